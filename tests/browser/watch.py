"""A browser context that writes down every complaint: console, policy, failed answers, foreign requests."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Request, Response

POLICY_REPORT = """
addEventListener("securitypolicyviolation", (e) =>
  window.__violation(`csp ${e.effectiveDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
"""


class Watched:
    """One page of one context; `allowed` are words of complaints that the test expects."""

    def __init__(self, browser: Browser, address: str, allowed: tuple[str, ...], options: dict[str, Any]) -> None:
        self.address = address
        self.allowed = allowed
        self.trouble: list[str] = []
        self.context = browser.new_context(base_url=address, **{"reduced_motion": "reduce", **options})
        self.context.set_default_timeout(15_000)
        self.context.expose_function("__violation", self.complain)
        self.context.add_init_script(POLICY_REPORT)
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complain(f"error {error}"))
        self.page.on("response", self._response)
        self.page.on("request", self._request)

    def complain(self, what: str) -> None:
        if not any(word in what for word in self.allowed):
            self.trouble.append(what)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complain(f"console {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.complain(f"{response.status} {response.url}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complain(f"foreign {request.url}")
