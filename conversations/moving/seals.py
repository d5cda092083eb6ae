"""Seals: proof that a revision in a file, or a turn that was not saved, is one that this site wrote there.

A seal is an HMAC over that and the digest of the path that leads to it, whoever owns it and wherever it stands:
an untouched file gives back what nobody may write by hand (model states, results of tools). The first of
PAR_SECRET_KEYS seals, each of them opens.
"""

from __future__ import annotations

import hashlib
import hmac
from uuid import UUID

from django.conf import settings

from agent.conf import decode_key
from agent.crypto import current_key, key_name
from conversations.moving.document import RevisionDocument, UnsavedDocument
from conversations.store.spelling import canonical

_SALT = b"par revision seal v1"
_UNSAVED = b"unsaved turn"
_NOWHERE = bytes(32)
_KEPT_UNSAVED = ("kind", "kept", "status", "outcome", "error", "messages", "unfinished", "modelContext", "usage")
_KEPT = ("kind", "keyframe", "messages", "modelContext", "usage", "outcome")


class Trail:
    """The digests of a tree's paths, taken in from the roots on."""

    def __init__(self) -> None:
        self._digests: dict[UUID | None, bytes] = {None: b""}

    def add(self, revision: RevisionDocument) -> bytes:
        """Take in a revision, its parent before it, and return what its seal covers; raises `KeyError`."""
        before = self._digests[revision.parent]  # of a keyframe, too: a branch that stands elsewhere is another one
        wire = revision.to_wire()
        kept = {name: wire[name] for name in _KEPT}
        if revision.execution_id is not None:
            kept["executionId"] = str(revision.execution_id)
        digest = hashlib.sha256(before + revision.revision_id.bytes + canonical(kept)).digest()
        self._digests[revision.revision_id] = digest
        return digest

    def of(self, turn: UnsavedDocument) -> bytes:
        """Return what the seal of a turn covers that was not saved; raises `KeyError`."""
        places = (self._digests[place] if place is not None else _NOWHERE for place in (turn.after, turn.beside))
        wire = turn.to_wire()
        kept = canonical({name: wire[name] for name in _KEPT_UNSAVED})
        return hashlib.blake2b(
            b"".join(places) + turn.execution_id.bytes + kept, digest_size=32, person=_UNSAVED
        ).digest()


def seal(digest: bytes) -> str:
    """Return the seal of what `Trail.add` returned."""
    key = current_key()
    return f"v1:{key_name(key)}:{_mac(key, digest)}"


def is_sealed(digest: bytes, claimed: str | None) -> bool:
    """Return whether one of the site's keys made this seal."""
    version, _, rest = (claimed or "").partition(":")
    name, _, mac = rest.partition(":")
    keys = [key for key in settings.PAR.secret_keys if key_name(key) == name]
    return version == "v1" and any(hmac.compare_digest(_mac(key, digest).encode(), mac.encode()) for key in keys)


def _mac(key: str, digest: bytes) -> str:
    derived = hashlib.blake2b(_SALT, key=decode_key(key), digest_size=32).digest()
    return hmac.new(derived, digest, hashlib.sha256).hexdigest()
