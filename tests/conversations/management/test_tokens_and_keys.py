from __future__ import annotations

import base64
import io
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from agent.models import ModelEndpoint, Plain, reveal
from conversations.accounts import MFAAdapter
from conversations.models import ApiToken
from tests.factories import ModelEndpointFactory, UserFactory

pytestmark = pytest.mark.django_db


def create(username: str, **options: object) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("create_token", username, stdout=out, stderr=err, **options)
    return out.getvalue().strip(), err.getvalue()


def test_the_token_alone_is_on_standard_output() -> None:
    user = UserFactory(username="joe")
    plain, words = create("joe", name="script", scopes="read", days=2)
    row = ApiToken.find(plain)
    assert row is not None
    assert (row.user, row.name, row.scopes) == (user, "script", ["read"])
    assert row.expires_at is not None
    assert timedelta(days=1) < row.expires_at - timezone.now() <= timedelta(days=2)
    assert plain not in words


def test_a_person_can_be_named_by_address() -> None:
    user = UserFactory()
    plain, _ = create(user.email.upper())
    row = ApiToken.find(plain)
    assert row is not None
    assert (row.user, row.scopes, row.expires_at) == (user, ["read", "write"], None)


def test_what_cannot_be_done_is_said() -> None:
    UserFactory(username="joe")
    UserFactory(username="gone", is_active=False)
    for username, options, message in [
        ("nobody", {}, "nobody called 'nobody'"),
        ("gone", {}, "closed"),
        ("joe", {"scopes": "root"}, "'root'"),
        ("joe", {"scopes": "read, root"}, "'root'"),
        ("joe", {"scopes": " , "}, "needs a scope"),
        ("joe", {"scopes": "read,admin"}, "for staff"),
        ("joe", {"days": 0}, "from 1 to 36500"),
        ("joe", {"days": -3}, "from 1 to 36500"),
        ("joe", {"days": 9_999_999}, "from 1 to 36500"),
    ]:
        with pytest.raises(CommandError, match=message):
            create(username, **options)
    assert not ApiToken.objects.exists()


def test_rotation_covers_secrets_and_second_factors(settings: Settings) -> None:
    (old,) = settings.PAR.secret_keys
    new = base64.b64encode(b"n" * 32).decode()
    adapter = MFAAdapter()
    user = UserFactory()
    ModelEndpointFactory(api_key=Plain("sk"))
    Authenticator.objects.create(user=user, type="totp", data={"secret": adapter.encrypt("seed")})
    codes = {"migrated_codes": [adapter.encrypt("one"), adapter.encrypt("two")], "used_mask": 3}
    Authenticator.objects.create(user=user, type="recovery_codes", data=codes)

    settings.PAR = settings.PAR.model_copy(update={"secret_keys": (new, old)})
    out = io.StringIO()
    call_command("rotate_keys", stdout=out)
    assert out.getvalue().startswith("1 secrets and 2 second factors")

    settings.PAR = settings.PAR.model_copy(update={"secret_keys": (new,)})
    totp, recovery = Authenticator.objects.order_by("pk")
    assert adapter.decrypt(totp.data["secret"]) == "seed"
    assert [adapter.decrypt(code) for code in recovery.data["migrated_codes"]] == ["one", "two"]
    assert recovery.data["used_mask"] == 3
    assert reveal(ModelEndpoint.objects.get(), "api_key") == "sk"

    settings.PAR = settings.PAR.model_copy(update={"secret_keys": (old,)})
    with pytest.raises(CommandError, match="put its key back"):
        call_command("rotate_keys", stdout=out)
