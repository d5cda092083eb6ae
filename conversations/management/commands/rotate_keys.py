"""`manage.py rotate_keys`: encrypt every stored secret with the first of PAR_SECRET_KEYS."""

from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError

from agent import crypto
from agent.models.fields import rotate_secrets
from conversations.accounts import MFA_PLACE
from conversations.models import IdempotentRequest


class Command(BaseCommand):
    """Safe beside a running site: a secret that changes meanwhile is left as it is then."""

    help = "Encrypt all stored secrets with the first key, so that older keys can be dropped."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            fields, factors = rotate_secrets() + _rotate_answers(), _rotate_factors()
        except crypto.SecretUnreadable as error:
            raise CommandError(f"{error}; put its key back into PAR_SECRET_KEYS") from error
        name = crypto.key_name(crypto.current_key())
        self.stdout.write(f"{fields} secrets and {factors} second factors now use the key {name}.")


def _rotate_answers() -> int:
    changed = 0
    for row in IdempotentRequest.objects.exclude(answer="").exclude(answer__startswith=crypto.current_prefix()):
        old = row.answer
        changed += IdempotentRequest.objects.filter(pk=row.pk, answer=old).update(answer=row.sealed(row.body))
    return changed


def _rotate_factors() -> int:
    changed = 0
    for row in Authenticator.objects.all():
        data = {key: _resealed(value) for key, value in row.data.items()}
        if data != row.data:
            changed += Authenticator.objects.filter(pk=row.pk, data=row.data).update(data=data)
    return changed


def _resealed(value: Any) -> Any:
    if isinstance(value, list):
        return [_resealed(item) for item in value]
    sealed = isinstance(value, str) and value.startswith(f"{crypto.VERSION}:")
    if not sealed or value.startswith(crypto.current_prefix()):
        return value
    return crypto.seal(crypto.unseal(value, MFA_PLACE), MFA_PLACE)
