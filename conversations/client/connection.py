"""Where the site is, when to try again, and what the end of a connection means."""

from __future__ import annotations

import random
import ssl
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, NegotiationError

from conversations.client.exceptions import NotConnected, ProtocolViolation

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 10.0
TOO_LARGE = 1009
SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
REFUSED = {
    4401: ("AUTH_REQUIRED", "the token is not known, has expired or was revoked"),
    4403: ("FORBIDDEN", "the site does not take this origin"),
    4406: ("PROTOCOL_NOT_SUPPORTED", "the server does not speak par.v1"),
    4500: ("NOT_SERVED", "the site is not run by `manage.py serve`"),
}
PASSING = (408, 425, 429)  # answers of a proxy, beside those from 500 on, that do not last


def websocket_address(url: str, base_path: str) -> str:
    """Return the address of the websocket of a site; raises `ValueError` for what is no site's address."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ValueError(f"{url!r} is no address of a site; it looks like https://ai.example.org")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("the address of a site has no user, query or fragment; give the token as `token`")
    base = base_path.strip("/")
    path = "/".join(part for part in (parts.path.rstrip("/"), base, "ws") if part)
    return f"{SCHEMES[parts.scheme]}://{parts.netloc}/{path.lstrip('/')}"


def refusal(error: Exception) -> NotConnected | None:
    """Return what makes it useless to connect again, None where it may help."""
    match error:
        case ConnectionClosed():
            if error.rcvd is None and error.sent is not None and error.sent.code == TOO_LARGE:
                return NotConnected("FRAME_TOO_LARGE", "the server sent a frame that is too large")
            code = error.rcvd.code if error.rcvd is not None else None
            return NotConnected(*REFUSED[code]) if code in REFUSED else None
        case InvalidStatus():
            status = error.response.status_code
            if status >= 500 or status in PASSING:
                return None
            return NotConnected("NOT_CONNECTED", f"the address answers {status} and not as a websocket")
        case NegotiationError():
            return NotConnected(*REFUSED[4406])
        case ssl.SSLCertVerificationError() | InvalidURI():
            return NotConnected("NOT_CONNECTED", str(error))
        case ProtocolViolation():
            return NotConnected(error.code, error.message)
        case OSError() | TimeoutError() | EOFError() | InvalidHandshake():
            return None
        case _:
            return NotConnected("NOT_CONNECTED", f"{type(error).__name__}: {error}")


@dataclass(slots=True)
class Patience:
    """How long to wait before the next try: twice as long each time, with jitter, until `seconds` without success."""

    seconds: float
    tries: int = 0
    since: float | None = None

    def worked(self) -> None:
        """The connection is of use: the next loss begins anew."""
        self.tries, self.since = 0, None

    def pause(self) -> float | None:
        """Return the seconds until the next try, None to give up."""
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        left = self.since + self.seconds - now
        if left <= 0:
            return None
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self.tries, 16))
        self.tries += 1
        return min(left, longest * random.uniform(0.5, 1))  # noqa: S311 # jitter, no secret
