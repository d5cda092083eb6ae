"""From a function's signature to the input schema of a tool, and from a model's arguments back to keyword arguments.

The parameters become one pydantic model. Its fields have names of our own and carry the parameter's name as alias, so
that a parameter may be called `copy`, `schema` or `_x`. Arguments are validated as strict JSON: `"5"` is no integer and
`true` is no number, as the schema says, while a date may be written as a string, because JSON has no dates.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import CoreSchema, ErrorDetails

from agent.runtime.tools import ToolContext
from agent.tools.docstring import Docstring
from agent.tools.exceptions import ArgumentsError, ToolDeclarationError

_MAX_NAMED_ERRORS = 8
_MAX_WHOLE = 2**53


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a tool function: the schema that a model sees, and the way back."""

    schema: dict[str, Any]
    model: type[BaseModel]
    names: dict[str, str]
    context_names: tuple[str, ...]

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function; what the model left out keeps the function's own default.

        Raises `ArgumentsError` when the arguments break the schema.
        """
        try:
            values = self.model.model_validate_json(orjson.dumps(_whole(arguments)), strict=True)
        except ValidationError as error:
            raise ArgumentsError(self._explain(error)) from error
        return {self.names[field]: getattr(values, field) for field in values.model_fields_set}

    def _explain(self, error: ValidationError) -> str:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [self._line(detail) for detail in found[:_MAX_NAMED_ERRORS]]
        if len(found) > _MAX_NAMED_ERRORS:
            lines.append(f"and {len(found) - _MAX_NAMED_ERRORS} more")
        return "; ".join(lines)

    def _line(self, detail: ErrorDetails) -> str:
        where = repr(".".join(str(part)[:80] for part in detail["loc"])) if detail["loc"] else "arguments"
        match detail["type"]:
            case "missing":
                return f"{where} is required"
            case "extra_forbidden" if len(detail["loc"]) == 1:
                known = ", ".join(repr(name) for name in self.names.values()) or "none"
                return f"{where} is not a parameter (known: {known})"
            case _:
                return f"{where}: {detail['msg']}"


def read_parameters(function: Callable[..., Any], documented: Docstring) -> Parameters:
    """Build the parameters of a tool from its signature; raises `ToolDeclarationError` naming what is missing."""
    hints = _type_hints(function)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    context_names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = _checked_hint(function, parameter, hints)
        if _is_context(function, parameter.name, hint):
            context_names.append(parameter.name)
            continue
        key = f"parameter_{len(names)}"
        names[key] = parameter.name
        fields[key] = (hint, _field(function, parameter, hint, documented.parameters.get(parameter.name)))
    for name in documented.parameters:
        if name not in names.values() and name not in context_names:
            raise _error(function, f"the docstring describes {name!r}, which is not a parameter")
    model, schema = _model(function, fields)
    return Parameters(schema, model, names, tuple(context_names))


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise _error(function, f"a type hint cannot be resolved: {error}") from error


def _checked_hint(function: Callable[..., Any], parameter: inspect.Parameter, hints: dict[str, Any]) -> Any:
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            raise _error(function, f"{str(parameter).split(':')[0]!r} has no schema; name each parameter")
        case inspect.Parameter.POSITIONAL_ONLY:
            raise _error(function, f"{parameter.name!r} is positional-only; arguments are passed by name")
        case _:
            pass
    if parameter.name not in hints:
        raise _error(function, f"parameter {parameter.name!r} has no type hint")
    return hints[parameter.name]


def _is_context(function: Callable[..., Any], name: str, hint: Any) -> bool:
    """Whether the parameter is injected; a context inside another type could be filled by the model (R8)."""
    plain = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    if plain is ToolContext or typing.get_args(plain) in ((ToolContext, NoneType), (NoneType, ToolContext)):
        return True
    if _mentions_context(plain):
        raise _error(function, f"parameter {name!r} must be a plain ToolContext")
    return False


def _mentions_context(hint: Any) -> bool:
    return hint is ToolContext or any(_mentions_context(argument) for argument in typing.get_args(hint))


def _field(function: Callable[..., Any], parameter: inspect.Parameter, hint: Any, text: str | None) -> FieldInfo:
    if isinstance(parameter.default, FieldInfo):
        raise _error(function, f"put the Field of {parameter.name!r} into Annotated[...]; its default is a plain value")
    options: dict[str, Any] = {"alias": parameter.name}
    if parameter.default is not inspect.Parameter.empty:
        options["default"] = parameter.default
    if text and not FieldInfo.from_annotation(hint).description:
        options["description"] = text
    field: FieldInfo = Field(**options)
    return field


class _SchemaWriter(GenerateJsonSchema):
    """Leaves out the titles that only repeat a parameter's name, and defaults that no JSON can show."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: CoreSchema, mode: typing.Literal["validation", "serialization"] = "validation") -> Any:
        written = super().generate(schema, mode)
        written.pop("title", None)
        return written


def _model(function: Callable[..., Any], fields: dict[str, Any]) -> tuple[type[BaseModel], dict[str, Any]]:
    try:
        model: type[BaseModel] = create_model(
            f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields
        )
        schema = TypeAdapter(model).json_schema(schema_generator=_SchemaWriter)
    except PydanticUserError as error:
        raise _error(function, f"a parameter has a type without a JSON schema: {error.message}") from error
    return model, {"type": "object", "properties": schema.pop("properties", {}), **schema}


def _whole(value: Any) -> Any:
    """Write 5.0 as 5: JSON Schema calls both an integer, and some providers send every number as a double."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _MAX_WHOLE else value
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def _error(function: Callable[..., Any], problem: str) -> ToolDeclarationError:
    return ToolDeclarationError(f"{function.__module__}.{function.__qualname__} cannot be a tool: {problem}")
