"""How accounts work: who may sign up, and how second factors are stored."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.http import HttpRequest

from agent import crypto

MFA_PLACE = "mfa.authenticator"


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up is closed unless PAR_SIGNUP_OPEN says otherwise."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.PAR.signup_open)


class MFAAdapter(DefaultMFAAdapter):
    """Keeps the secrets of second factors encrypted."""

    def encrypt(self, text: str) -> str:
        return crypto.seal(text, MFA_PLACE)

    def decrypt(self, encrypted_text: str) -> str:
        return crypto.unseal(encrypted_text, MFA_PLACE)
