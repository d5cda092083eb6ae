"""Secrets at rest: AES-256-GCM, bound to the place they are stored at.

A token reads `v1:<key name>:<base64 of nonce and ciphertext>`. The associated data is the version, the key's name and
`bound` (for a column "app.model:field:pk"), so a token that is moved to another row does not open. The first of
PAR_SECRET_KEYS encrypts, all of them decrypt.
"""

from __future__ import annotations

import base64
import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from agent.conf import decode_key

VERSION = "v1"
_NONCE_BYTES = 12


class SecretUnreadable(Exception):
    """Raised when a stored secret cannot be opened: its key is gone, or it is not where it was written."""


def key_name(key: str) -> str:
    """Return the eight characters that name a key inside its tokens."""
    return hashlib.sha256(decode_key(key)).hexdigest()[:8]


def current_key() -> str:
    """Return the key that encrypts."""
    if not settings.PAR.secret_keys:
        raise ImproperlyConfigured("PAR_SECRET_KEYS is empty: secrets can be neither stored nor read")
    return settings.PAR.secret_keys[0]


def current_prefix() -> str:
    """Return how every token of the current key begins."""
    return f"{VERSION}:{key_name(current_key())}:"


def seal(plain: str, bound: str) -> str:
    """Encrypt `plain` for the place `bound`."""
    key = current_key()
    name = key_name(key)
    nonce = os.urandom(_NONCE_BYTES)
    box = AESGCM(decode_key(key)).encrypt(nonce, plain.encode(), f"{VERSION}:{name}:{bound}".encode())
    return f"{VERSION}:{name}:{base64.urlsafe_b64encode(nonce + box).decode()}"


def unseal(token: str, bound: str) -> str:
    """Decrypt a token of `seal`; raises `SecretUnreadable`."""
    version, _, rest = token.partition(":")
    name, _, body = rest.partition(":")
    key = next((key for key in settings.PAR.secret_keys if key_name(key) == name), None)
    if version != VERSION or key is None:
        raise SecretUnreadable(f"no key in PAR_SECRET_KEYS opens the secret of {bound}")
    try:
        box = base64.urlsafe_b64decode(body)
        nonce, cipher = box[:_NONCE_BYTES], box[_NONCE_BYTES:]
        return AESGCM(decode_key(key)).decrypt(nonce, cipher, f"{VERSION}:{name}:{bound}".encode()).decode()
    except (InvalidTag, ValueError) as error:
        raise SecretUnreadable(f"the secret of {bound} is damaged or belongs to another row") from error
