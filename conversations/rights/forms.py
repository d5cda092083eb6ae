"""Forms of the page “Your data”."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone

from conversations.models import ApiToken, User

MOST_TOKENS = 100
_READ = ("read", "Read")
_WRITE = ("read,write", "Read and write")
_ADMIN = ("read,write,admin", "Read, write and administer")
_LIFETIMES = (("7", "A week"), ("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "Until it is revoked"))


class TokenForm(forms.Form):
    """A new API token of a person."""

    name = forms.CharField(
        max_length=100, label="What it is for", widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    scopes = forms.ChoiceField(label="What it may do")
    days = forms.ChoiceField(choices=_LIFETIMES, initial="90", required=False, label="How long it works")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.ChoiceField)
        scopes.choices = [_READ, _WRITE, *([_ADMIN] if user.is_staff else [])]
        scopes.initial = _WRITE[0]

    def clean(self) -> dict[str, Any]:
        if self._user.api_tokens.filter(revoked_at=None).count() >= MOST_TOKENS:
            raise forms.ValidationError(f"You have {MOST_TOKENS} tokens. Revoke one that is not needed any more.")
        return self.cleaned_data

    def issue(self) -> tuple[ApiToken, str]:
        """Create the token; returns the row and the plain token, which cannot be shown again."""
        wanted, days = self.cleaned_data, self.cleaned_data["days"]
        expires = timezone.now() + timedelta(days=int(days)) if days else None
        return ApiToken.issue(self._user, wanted["name"], scopes=wanted["scopes"].split(","), expires_at=expires)


class DeleteConversationsForm(forms.Form):
    """Says that all conversations may go."""

    sure = forms.BooleanField(
        label="Delete all of them, for good", error_messages={"required": "Tick the box, and nothing is left."}
    )


class CloseAccountForm(forms.Form):
    """Says that the account may go, by the address that it is of."""

    email = forms.CharField(
        max_length=254,
        label="Your e-mail address",
        widget=forms.EmailInput(attrs={"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean_email(self) -> str:
        typed: str = self.cleaned_data["email"]
        if typed.lower() != self._user.email:
            raise forms.ValidationError("This is not the address of your account.")
        return typed
