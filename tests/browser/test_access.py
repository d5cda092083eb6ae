"""The pages are usable without a mouse, with a screen reader, in the dark and on a phone."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.chat import card, say, wait_for_end
from tests.browser.conftest import OpenPage

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
PHONE = {"viewport": {"width": 390, "height": 844}}


def faults(page: Page) -> list[str]:
    """Return what axe finds: the rule and where it is broken."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{fault['id']}: {[node['target'] for node in fault['nodes']]}" for fault in found]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_sign_in_page_has_no_known_barrier(open_page: OpenPage, scheme: Scheme) -> None:
    page = open_page("/accounts/login/", signed_in=False, color_scheme=scheme)

    assert faults(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_empty_chat_has_no_known_barrier(open_page: OpenPage, scheme: Scheme) -> None:
    page = open_page(color_scheme=scheme)
    wait_for_end(page)

    assert faults(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_chat_has_no_known_barrier(open_page: OpenPage, scheme: Scheme) -> None:
    """Answer with code and table, tools, a question, a stopped turn."""
    page = open_page(color_scheme=scheme)
    say(page, "Show me what you can do")
    wait_for_end(page)
    say(page, "Tell me a long story")
    expect(page.locator(".message-assistant").last).to_contain_text("Night 1")
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)
    say(page, "Send a postcard to Ada")
    expect(card(page, "local.send_postcard")).to_contain_text("Waits for you")
    for summary in page.locator("summary:visible").all():
        if summary.locator("xpath=..").get_attribute("open") is None:
            summary.click()

    assert faults(page) == []
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


@pytest.mark.parametrize(
    "path", ["/accounts/password/change/", "/accounts/email/", "/accounts/2fa/", "/accounts/logout/"]
)
def test_the_account_pages_have_no_known_barrier(open_page: OpenPage, path: str) -> None:
    assert faults(open_page(path)) == []


def test_a_phone_shows_the_chat_and_hides_the_list(open_page: OpenPage) -> None:
    page = open_page(**PHONE)
    wait_for_end(page)
    new_chat = page.get_by_role("link", name="New chat")
    expect(new_chat).to_be_hidden()
    assert faults(page) == []

    page.get_by_role("button", name="Conversations").click()
    expect(new_chat).to_be_visible()
    assert faults(page) == []
    page.keyboard.press("Escape")
    expect(new_chat).to_be_hidden()
    expect(page.get_by_role("button", name="Conversations")).to_be_focused()


def test_nothing_is_wider_than_a_phone(open_page: OpenPage) -> None:
    page = open_page(**PHONE)
    say(page, "Show me what you can do")
    wait_for_end(page)
    say(page, "x" * 300)
    wait_for_end(page)

    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_first_tab_leads_past_the_list(open_page: OpenPage) -> None:
    page = open_page()
    wait_for_end(page)
    first = page.locator("a[href], button, input, select, textarea, summary, [tabindex]").first
    first.focus()
    expect(page.get_by_role("link", name="Skip to the message box")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_label("Message", exact=True)).to_be_focused()
