"""The key file of a development site: `<data_dir>/keys`, one base64 key a line, the first encrypts."""

from __future__ import annotations

import base64
import os
import secrets
import tempfile
from pathlib import Path

from agent.conf import KEY_BYTES


def new_key() -> str:
    """Return a fresh key in base64."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def development_keys(data_dir: Path) -> tuple[str, ...]:
    """Return the keys of the key file, which is made (mode 0600) when it is missing.

    Two processes that start at the same moment agree: the loser of the link reads what the winner wrote.
    """
    path = data_dir / "keys"
    if not path.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # the conversations will be there too
        handle, name = tempfile.mkstemp(prefix=".keys", dir=data_dir)  # mode 0600
        draft = Path(name)
        with os.fdopen(handle, "w") as file:
            file.write(new_key() + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return tuple(path.read_text().split())
