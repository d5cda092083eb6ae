"""Words for what a person does on the chat page."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

LONG = 30_000  # milliseconds until an answer must be complete


def say(page: Page, text: str) -> None:
    wait_for_end(page)
    box = page.get_by_label("Message", exact=True)
    box.fill(text)
    box.press("Enter")


def wait_for_end(page: Page) -> None:
    """Return when nothing runs any more and the page has drawn how it ended, which it does with the next frame."""
    expect(page.locator("#composer")).to_have_attribute("data-mode", "ready", timeout=LONG)
    expect(page.locator(".run:is([data-status=running], [data-status=waiting_input])")).to_have_count(0, timeout=LONG)


def last_answer(page: Page) -> Locator:
    return page.locator(".message-assistant").last


def card(page: Page, tool: str) -> Locator:
    return page.get_by_role("group", name=f"Tool call: {tool}").last


def words(page: Page) -> str:
    """Return all that was said, without the state of folded parts and without layout, once its HTML has come."""
    expect(page.locator("[data-bare]")).to_have_count(0, timeout=LONG)
    return " ".join((page.locator("#transcript").text_content() or "").split())


def faults(page: Page) -> list[str]:
    """Return what axe finds: the rule and where it is broken."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{fault['id']}: {[node['target'] for node in fault['nodes']]}" for fault in found]
