"""What can be asked for on the search page."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django import forms

from agent.models import AgentProfile
from conversations.models import User
from conversations.search.index import Filters
from conversations.search.query import MOST_CHARACTERS

_ANY = ("", "Any")
_FOUND = {"yes": True, "no": False}


class SearchForm(forms.Form):
    """A query and what narrows it; everything but the query may be left out."""

    q = forms.CharField(label="Words or “phrases”", required=False, max_length=MOST_CHARACTERS)
    agent = forms.ChoiceField(label="Agent", required=False)
    since = forms.DateField(label="From", required=False)
    until = forms.DateField(label="To", required=False)
    pinned = forms.ChoiceField(label="Pinned", required=False, choices=[_ANY, ("yes", "Pinned"), ("no", "Not pinned")])
    archived = forms.ChoiceField(
        label="Archive", required=False, choices=[_ANY, ("no", "Not archived"), ("yes", "Archived")]
    )
    tag = forms.CharField(label="Tag", required=False, max_length=50)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            if isinstance(field, forms.DateField):
                field.widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
            elif name == "q":
                # With results below, the keyboard of a phone would cover them.
                begun = bool(self.data.get("q"))
                field.widget = forms.TextInput(attrs={"type": "search", "autofocus": not begun, "autocomplete": "off"})
        agents = AgentProfile.objects.filter(conversations__owner=user).distinct().order_by("name")
        self.fields["agent"].choices = [_ANY, *agents.values_list("slug", "name")]  # type: ignore[attr-defined]

    def filters(self) -> Filters:
        """Return what narrows the search; both days are UTC's and included."""
        given = self.cleaned_data
        until = given["until"]
        return Filters(
            agent=given["agent"] or None,
            since=given["since"] and _midnight(given["since"]),
            until=_midnight(until + timedelta(days=1)) if until not in (None, date.max) else None,
            pinned=_FOUND.get(given["pinned"]),
            archived=_FOUND.get(given["archived"]),
            tag=given["tag"] or None,
        )

    def narrows(self) -> bool:
        """Return whether anything but the query was given."""
        return any(name != "q" and self.data.get(name) for name in self.fields)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
