from __future__ import annotations

import base64

import pytest
from django.core import serializers
from django.db import transaction
from pytest_django import Settings

from agent import crypto
from agent.models import ModelEndpoint, Plain, reveal
from agent.models.fields import rotate_secrets
from tests.factories import ModelEndpointFactory

pytestmark = pytest.mark.django_db

SECRET = "sk-very-secret"
NEW = base64.b64encode(b"n" * 32).decode()


def use_keys(settings: Settings, *keys: str) -> None:
    settings.PAR = settings.PAR.model_copy(update={"secret_keys": keys})


def stored() -> str:
    return str(ModelEndpoint.objects.values_list("api_key", flat=True).get())


def test_a_secret_is_stored_encrypted_and_revealed_on_demand() -> None:
    row = ModelEndpointFactory(api_key=Plain(SECRET))
    assert SECRET not in stored()
    assert stored().startswith("v1:")
    assert row.api_key == stored()
    assert reveal(ModelEndpoint.objects.get(), "api_key") == SECRET
    assert SECRET not in repr(Plain(SECRET))


def test_an_empty_secret_stays_empty() -> None:
    row = ModelEndpointFactory(api_key=Plain(""))
    assert stored() == ""
    assert reveal(row, "api_key") == ""


def test_plain_text_never_reaches_a_query() -> None:
    row = ModelEndpointFactory()
    for value in (Plain(SECRET), SECRET):
        with pytest.raises(ValueError, match="api_key"), transaction.atomic():
            ModelEndpoint.objects.filter(pk=row.pk).update(api_key=value)
        with pytest.raises(ValueError, match="api_key"):
            list(ModelEndpoint.objects.filter(api_key=value))
    assert stored() == ""


def test_a_token_moved_to_another_row_does_not_open() -> None:
    row, other = ModelEndpointFactory(api_key=Plain(SECRET)), ModelEndpointFactory()
    other.api_key = row.api_key
    with pytest.raises(crypto.SecretUnreadable, match=str(other.pk)):
        reveal(other, "api_key")


@pytest.mark.parametrize("token", ["v1:", "v1:zzzz:AAAA", "nonsense", "v2:a:b"])
def test_a_damaged_token_is_a_clear_error(token: str) -> None:
    with pytest.raises(crypto.SecretUnreadable):
        crypto.unseal(token, "place")
    name = crypto.key_name(crypto.current_key())
    with pytest.raises(crypto.SecretUnreadable):
        crypto.unseal(f"v1:{name}:!!!", "place")


def test_rotation_encrypts_with_the_first_key_and_the_old_one_can_go(settings: Settings) -> None:
    (old,) = settings.PAR.secret_keys
    ModelEndpointFactory(api_key=Plain(SECRET))
    before = stored()
    use_keys(settings, NEW, old)
    assert reveal(ModelEndpoint.objects.get(), "api_key") == SECRET
    assert (rotate_secrets(), rotate_secrets()) == (1, 0)
    assert stored() != before
    use_keys(settings, NEW)
    assert reveal(ModelEndpoint.objects.get(), "api_key") == SECRET
    use_keys(settings, old)
    with pytest.raises(crypto.SecretUnreadable, match="no key"):
        reveal(ModelEndpoint.objects.get(), "api_key")
    with pytest.raises(crypto.SecretUnreadable):
        rotate_secrets()


def test_a_dump_carries_the_token_and_not_the_secret() -> None:
    ModelEndpointFactory(api_key=Plain(SECRET))
    dump = serializers.serialize("json", ModelEndpoint.objects.all())
    assert SECRET not in dump
    ModelEndpoint.objects.all().delete()
    for row in serializers.deserialize("json", dump):
        row.save()
    assert reveal(ModelEndpoint.objects.get(), "api_key") == SECRET
