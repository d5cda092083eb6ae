from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from django.core import checks
from pytest_django import Settings

import agent.checks
from agent.checks import check_settings
from agent.conf import OTHER_NAMES, ParSettings, django_secret

ROOT = Path(__file__).resolve().parents[2]
KEY = base64.b64encode(bytes(32)).decode()


def read(**environ: str) -> ParSettings:
    return ParSettings.from_environment(environ)


def test_defaults_are_those_of_production() -> None:
    """R157, R158."""
    par = read()
    assert not par.development
    assert (par.base_path, par.conversation_list_limit) == ("/ai", 50)
    assert (par.connect_timeout, par.read_timeout) == (10.0, 300.0)
    assert (par.audit_enabled, par.audit_payload_mode, par.audit_summary_max_length) == (True, "metadata-only", 4000)
    assert not par.allow_private_models
    assert not par.signup_open
    assert par.origins == par.secret_keys == par.problems == ()


def test_values_come_from_variables_with_our_prefix() -> None:
    par = read(
        PAR_BASE_PATH="/x/y",
        PAR_ORIGINS="https://a.example, https://b.example:8443",
        PAR_SECRET_KEYS=f"{KEY},{KEY}",
        PAR_TRUSTED_PROXIES="1",
        PAR_AUDIT_ENABLED="false",
        PAR_CONNECT_TIMEOUT="2.5",
        PAR_DRAIN_TIMEOUT=" ",
    )
    assert par.problems == ()
    assert par.base_path == "/x/y"
    assert par.origins == ("https://a.example", "https://b.example:8443")
    assert par.secret_keys == (KEY, KEY)
    assert (par.trusted_proxies, par.audit_enabled, par.connect_timeout, par.drain_timeout) == (1, False, 2.5, 30.0)


def test_development_knows_its_own_origins() -> None:
    par = read(PAR_ENVIRONMENT="development", PORT="9001")
    assert par.origins == ("http://127.0.0.1:9001", "http://localhost:9001")
    assert par.allow_private_models
    assert not read(PAR_ENVIRONMENT="development", PAR_ALLOW_PRIVATE_MODELS="0").allow_private_models


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAR_ENVIRONMENT", "staging"),
        ("PAR_BASE_PATH", "ai"),
        ("PAR_BASE_PATH", "/ai/"),
        ("PAR_BASE_PATH", "/"),
        ("PAR_BASE_PATH", "//evil.example"),
        ("PAR_BASE_PATH", "/ai/../admin"),
        ("PAR_ORIGINS", "ai.example.org"),
        ("PAR_ORIGINS", "https://ai.example.org/"),
        ("PAR_ORIGINS", "https://*.example.org:x"),
        ("PAR_ORIGINS", "https://joe@ai.example.org"),
        ("PAR_TRUSTED_PROXIES", "-1"),
        ("PAR_AUDIT_ENABLED", "maybe"),
        ("PAR_AUDIT_PAYLOAD_MODE", "all"),
        ("PAR_CONNECT_TIMEOUT", "nan"),
        ("PAR_MAX_FRAME_BYTES", "lots"),
    ],
)
def test_a_value_that_cannot_be_used_is_reported_and_replaced(name: str, value: str, settings: Settings) -> None:
    par = read(**{name: value})
    assert getattr(par, ParSettings.variables()[name]) == getattr(read(), ParSettings.variables()[name])
    (problem,) = par.problems
    assert problem.startswith(name)
    assert repr(value) in problem
    assert "Value error" not in problem
    settings.PAR = par
    errors = [error for error in check_settings(None) if error.id == "agent.E001"]
    assert [error.msg for error in errors] == [problem]


@pytest.mark.parametrize("port", ["70000", "abc", "-1"])
def test_a_port_that_is_none_is_reported_as_such(port: str) -> None:
    par = read(PORT=port, PAR_ENVIRONMENT="development")
    (problem,) = par.problems
    assert problem.startswith(f"PORT is {port!r}")
    assert par.origins[0] == "http://127.0.0.1:8000"


def test_all_faults_are_reported_at_once_and_good_values_kept() -> None:
    par = read(PAR_BASE_PATH="x", PAR_TRUSTED_PROXIES="x", PAR_DRAIN_TIMEOUT="7")
    assert len(par.problems) == 2
    assert par.drain_timeout == 7


@pytest.mark.parametrize("keys", ["short", base64.b64encode(bytes(16)).decode(), f"{KEY},!!"])
def test_a_bad_key_is_reported_without_being_shown(keys: str) -> None:
    par = read(PAR_SECRET_KEYS=keys)
    assert par.secret_keys == ()
    assert len(par.problems) == 1
    assert keys not in par.problems[0]
    assert KEY not in repr(read(PAR_SECRET_KEYS=KEY))


def found(settings: Settings, **environ: str) -> set[str | None]:
    settings.PAR = read(**environ)
    return {message.id for message in check_settings(None)}


def test_production_needs_keys_origins_and_static_files(settings: Settings, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path
    assert found(settings) == {"agent.E002", "agent.E003", "agent.W003"}
    (tmp_path / "staticfiles.json").touch()
    complete = {"PAR_SECRET_KEYS": KEY, "PAR_ORIGINS": "https://ai.example.org"}
    assert found(settings, **complete) == set()
    assert found(settings, **complete | {"PAR_ORIGINS": "http://ai.example.org"}) == {"agent.W002"}


def test_a_misspelt_name_is_warned_about(settings: Settings) -> None:
    assert found(settings, PAR_ENVIRONMENT="development", PAR_BASEPATH="/x", PAR_CHROMIUM="/x") == {"agent.W001"}


def test_every_check_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    ids = set(re.findall(r"agent\.[EW]\d{3}", Path(agent.checks.__file__).read_text()))
    assert ids == set(re.findall(r"^\| `(agent\.[EW]\d{3})` \|", page, re.MULTILINE))


def test_the_settings_of_this_run_are_clean() -> None:
    assert [error for error in checks.run_checks() if error.level >= checks.WARNING] == []


def test_django_secrets_differ_from_key_to_key_and_hide_the_key() -> None:
    other = base64.b64encode(bytes([1] * 32)).decode()
    assert django_secret(KEY) == django_secret(KEY) != django_secret(other)
    assert len(django_secret(KEY)) >= 50


def test_every_setting_is_documented_and_described() -> None:
    """STYLE 13: each setting is documented, and there are fewer than 40."""
    page = (ROOT / "docs" / "configuration.md").read_text()
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE))
    names = set(ParSettings.variables())
    others = {"DATABASE_URL", "REDIS_URL", "EMAIL_URL", "PORT", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"}
    assert documented == names | OTHER_NAMES | others
    assert len(names) < 40
    for name, field in ParSettings.model_fields.items():
        assert field.description, name


def test_the_documented_defaults_are_the_real_ones() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    rows = dict(re.findall(r"^\| `(PAR_[A-Z_]+)` \| ([^|]*) \|", page, re.MULTILINE))
    for name, field in ParSettings.variables().items():
        default = ParSettings.model_fields[field].default
        shown = {True: "true", False: "false", (): ""}.get(default, str(default)) if default != 0 else "0"
        if isinstance(default, bool):
            shown = "true" if default else "false"
        assert rows[name].strip().strip("`") == shown, name


def test_the_example_environment_names_every_setting_once() -> None:
    text = (ROOT / ".env.example").read_text()
    named = re.findall(r"^#? ?([A-Z_]+)=", text, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(ParSettings.variables()) <= set(named)
