"""The settings of PAR: one frozen object, read from environment variables named `PAR_*`.

A value that cannot be used never stops the start with a traceback: the default takes its place, the fault is kept in
`problems`, and the system check `agent.E001` reports it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

PREFIX = "PAR_"
KEY_BYTES = 32

# Read by the tests and by the settings module itself, not part of the object.
OTHER_NAMES = frozenset(
    {"PAR_ENV_FILE", "PAR_TEST_REQUIRE", "PAR_TEST_DATABASE_URL", "PAR_TEST_REDIS_URL", "PAR_CHROMIUM"}
)

_BASE_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _base_path(value: str) -> str:
    if not _BASE_PATH.fullmatch(value) or len(value) > 128:
        raise ValueError("a path such as /ai is needed: starts with a slash, does not end with one")
    return value


def _origin(value: str) -> str:
    parts = urlsplit(value)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == -1
        or value != _origin_of(parts.scheme, parts.netloc)
    ):
        raise ValueError(f"{value!r} is no origin; write scheme, host and port, as in https://ai.example.org")
    if "@" in parts.netloc:
        raise ValueError("an origin has no user name")
    return value.lower()


def _origin_of(scheme: str, netloc: str) -> str:
    return f"{scheme}://{netloc}"


def decode_key(text: str) -> bytes:
    """Return the 32 bytes of a key written in base64; raises `ValueError`."""
    try:
        key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error as error:
        raise ValueError("a key is not base64") from error
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {len(key)} bytes, {KEY_BYTES} are needed")
    return key


def _key(value: str) -> str:
    decode_key(value)
    return value


Origins: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(_split)]
Keys: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(_key)], ...], BeforeValidator(_split)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class ParSettings(BaseModel):
    """Everything an operator can set; `docs/configuration.md` lists the same."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: Literal["development", "production"] = Field(
        "production", description="`development` turns debug pages, loopback origins and generated keys on."
    )
    base_path: Annotated[str, AfterValidator(_base_path)] = Field(
        "/ai", description="Path under which the HTTP API and the websocket live."
    )
    origins: Origins = Field(
        (),
        description="Comma-separated origins of the site (scheme, host, port). Host names and CSRF follow from them. "
        "Required in production; in development loopback on `PORT`.",
    )
    secret_keys: Keys = Field(
        (),
        repr=False,
        description="Comma-separated base64 keys of 32 bytes. The first encrypts and signs, all of them decrypt. "
        "Required in production; in development made once in `PAR_DATA_DIR/keys`.",
    )
    trusted_proxies: Annotated[int, Field(ge=0, le=8)] = Field(
        0, description="Number of reverse proxies in front whose forwarded headers are believed; 0 believes none."
    )
    data_dir: Path = Field(
        Path(".data"), description="Directory of the SQLite database, keys, lock file and attachments."
    )
    allow_private_models: bool = Field(
        False,
        description="Whether model endpoints may have loopback and private addresses; true in development.",
    )
    signup_open: bool = Field(False, description="Whether strangers may create an account.")
    connect_timeout: Seconds = Field(10.0, description="Seconds until a connection to a model server must stand.")
    read_timeout: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = Field(
        300.0, description="Seconds without a byte after which a model server counts as dead; 0 waits for ever."
    )
    conversation_list_limit: Annotated[int, Field(ge=1, le=1000)] = Field(
        50, description="Conversations that one list request returns."
    )
    live_approval_timeout: Seconds = Field(300.0, description="Seconds a running turn waits for a person's decision.")
    client_tool_timeout: Seconds = Field(60.0, description="Seconds that a front-end tool of a client gets to answer.")
    drain_timeout: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = Field(
        30.0, description="Seconds that running turns get to end when the server stops."
    )
    cancel_grace_period: Annotated[float, Field(ge=0, le=300, allow_inf_nan=False)] = Field(
        5.0, description="Seconds that a cancelled tool gets to clean up."
    )
    max_frame_bytes: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = Field(
        1024 * 1024, description="Largest websocket frame and API body that is read, in bytes."
    )
    max_attachment_bytes: Annotated[int, Field(ge=1024, le=1024 * 1024 * 1024)] = Field(
        20 * 1024 * 1024, description="Largest file that is taken as an attachment, in bytes."
    )
    max_import_bytes: Annotated[int, Field(ge=1024, le=1024 * 1024 * 1024)] = Field(
        64 * 1024 * 1024,
        description="Largest file that is imported, and conversation that is saved as a whole, in bytes.",
    )
    commands_per_second: Annotated[int, Field(ge=1, le=10_000)] = Field(
        50, description="Commands a second that one websocket may send."
    )
    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        600,
        description="Requests a minute that one person may send to the HTTP API, and one address to shared pages.",
    )
    connections_per_person: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        200, description="Websockets, event streams and long polls that one person may have open at a time."
    )
    audit_enabled: bool = Field(True, description="Whether audit records are written.")
    audit_payload_mode: Literal["metadata-only", "full", "none"] = Field(
        "metadata-only", description="What an audit record keeps: `metadata-only`, `full` or `none`."
    )
    audit_summary_max_length: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        4000, description="Characters after which a text in an audit record is cut."
    )
    temporary_hours: Annotated[int, Field(ge=1, le=87_600)] = Field(
        24, description="Hours after its last change that a temporary conversation goes."
    )
    retention_days: Annotated[int, Field(ge=0, le=36_500)] = Field(
        0, description="Days after its last change that any conversation goes; 0 keeps them."
    )
    demo_pace: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = Field(
        0.02, description="Seconds between two pieces of the demo agent's answers; 0 writes at once."
    )
    problems: tuple[str, ...] = Field((), exclude=True, description="Faults found while reading; set by the reader.")
    unknown: tuple[str, ...] = Field((), exclude=True, description="`PAR_*` names nobody reads; set by the reader.")

    @property
    def development(self) -> bool:
        return self.environment == "development"

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Return the environment variable of each field: `{"PAR_BASE_PATH": "base_path", …}`."""
        return {PREFIX + name.upper(): name for name in cls.model_fields if name not in ("problems", "unknown")}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings; faults end up in `problems`, never in an exception."""
        names = cls.variables()
        raw: dict[str, Any] = {field: environ[name] for name, field in names.items() if environ.get(name, "").strip()}
        problems: list[str] = []
        port = environ.get("PORT") or "8000"
        if not (port.isdecimal() and int(port) < 65_536):
            problems.append(f"PORT is {port!r}: a number from 0 to 65535 is needed; the default is used")
            port = "8000"
        if raw.get("environment") == "development":
            raw.setdefault("allow_private_models", True)
            raw.setdefault("origins", f"http://127.0.0.1:{port},http://localhost:{port}")
        while True:
            try:
                checked = cls.model_validate(raw)
                break
            except ValidationError as error:
                for fault in error.errors(include_url=False, include_input=False):
                    field = str(fault["loc"][0])
                    if field in raw:
                        problems.append(_problem(field, raw.pop(field), fault["msg"].removeprefix("Value error, ")))
        unknown = sorted(n for n in environ if n.startswith(PREFIX) and n not in names and n not in OTHER_NAMES)
        return checked.model_copy(update={"problems": tuple(problems), "unknown": tuple(unknown)})


def _problem(field: str, value: object, message: str) -> str:
    shown = "" if field == "secret_keys" else f" is {value!r}"
    return f"{PREFIX}{field.upper()}{shown}: {message}; the default is used"


def django_secret(key: str) -> str:
    """Return Django's SECRET_KEY for one of our keys: derived, so that there is one secret to keep."""
    return hashlib.blake2b(b"django-secret-key", key=decode_key(key), digest_size=48).hexdigest()
