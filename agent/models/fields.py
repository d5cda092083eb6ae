"""A column that holds an encrypted secret and never shows it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.apps import apps
from django.db import models
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminPasswordWidget

from agent import crypto


class Plain(str):
    """A secret in the clear, on its way into a `SecretField`; its repr hides it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Plain('…')"


class SecretInput(forms.CharField):
    """A form field that is always empty; what is typed replaces the secret, nothing typed keeps it."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data)

    def prepare_value(self, value: Any) -> Any:
        return ""


class SecretField(models.TextField[Any, str]):
    """Holds a token of `agent.crypto`; assign `Plain(value)` to set it, `reveal(row, name)` to read it.

    The row's key is part of the encryption and must be known before the insert, so it takes a model with a UUID key.
    """

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = getattr(model_instance, self.attname)
        if isinstance(value, Plain):
            value = crypto.seal(value, place(model_instance, self.attname)) if value else ""
            setattr(model_instance, self.attname, value)
        return value

    def get_prep_value(self, value: Any) -> Any:
        # update(), filter() and bulk_update() cannot know the row, so plain text must not get this far.
        if isinstance(value, Plain) or (value and not str(value).startswith(f"{crypto.VERSION}:")):
            raise ValueError(f"{self.name!r} takes Plain(...) on a row that is saved")
        return super().get_prep_value(value)

    def save_form_data(self, instance: models.Model, data: Any) -> None:
        if data:
            setattr(instance, self.attname, Plain(data))

    def formfield(self, **kwargs: Any) -> Any:
        widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        return SecretInput(required=False, widget=widget, label=capfirst(self.verbose_name), help_text=self.help_text)


def place(row: models.Model, name: str) -> str:
    """Return where a secret lives, as `agent.crypto` binds it."""
    return f"{row._meta.label_lower}:{name}:{row.pk}"


def reveal(row: models.Model, name: str) -> str:
    """Return the secret in column `name` of a row in the clear; raises `agent.crypto.SecretUnreadable`."""
    token = getattr(row, name)
    if isinstance(token, Plain):
        return str(token)
    return crypto.unseal(token, place(row, name)) if token else ""


def rotate_secrets() -> int:
    """Encrypt every secret of every model with the current key; returns how many that changed.

    Raises `agent.crypto.SecretUnreadable` when a secret's key is gone.
    """
    changed = 0
    for model in apps.get_models():
        for name in [field.attname for field in model._meta.local_fields if isinstance(field, SecretField)]:
            rows = model._default_manager.exclude(**{name: ""})
            for row in rows.exclude(**{f"{name}__startswith": crypto.current_prefix()}):
                fresh = crypto.seal(reveal(row, name), place(row, name))
                # Only if nobody wrote another secret meanwhile.
                still = model._default_manager.filter(pk=row.pk, **{name: getattr(row, name)})
                changed += still.update(**{name: fresh})
    return changed
