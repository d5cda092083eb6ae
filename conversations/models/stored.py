"""JSON columns of what must be readable for years: damage costs the value that is damaged, and is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DEFERRED
from django.db.models.fields.json import KeyTransform
from django.db.models.query_utils import DeferredAttribute
from django.db.models.sql.compiler import SQLCompiler

from agent.runtime.exceptions import CorruptRevision

S = TypeVar("S")
G = TypeVar("G")


class StoredAttribute(DeferredAttribute):
    """Reads a value that was not loaded; raises `CorruptRevision`, which names the row, where it is no JSON."""

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        name = self.field.attname
        if instance is None or name in instance.__dict__:
            return super().__get__(instance, cls)
        rows = type(instance)._base_manager.using(instance._state.db).filter(pk=instance.pk)
        value = rows.values_list(name, flat=True).get()
        if value is DEFERRED:
            raise CorruptRevision(f"the {self.field.verbose_name} of {instance} cannot be read")
        instance.__dict__[name] = value
        return value


class StoredJSON(models.JSONField[S, G]):
    """A JSON column of which one bad value spoils no other row: it counts as not loaded, in `values` as `DEFERRED`.

    Django gives JSON that does not parse back as text, and raises for a text that is no UTF-8, before anybody can tell
    of which row it is. SQLite checks neither.
    """

    descriptor_class = StoredAttribute

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs  # the column is the same

    def select_format(self, compiler: SQLCompiler, sql: str, params: Any) -> tuple[str, Any]:
        if compiler.connection.vendor == "sqlite":
            return f"CAST({sql} AS BLOB)", params
        return sql, params

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        if value is None:
            return None
        if isinstance(expression, KeyTransform):
            value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            return super().from_db_value(value, expression, connection)
        try:
            return json.loads(value, cls=self.decoder, parse_int=_number)
        except (RecursionError, ValueError):
            return DEFERRED


def _number(digits: str) -> int | float:
    """Return a number as it was stored: PostgreSQL writes a large double with all its digits and no exponent."""
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else float(digits)
