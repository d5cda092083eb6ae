"""The pages are usable without a mouse, with a screen reader, in the dark and on a phone."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import expect

from agent.testing.chat_wire import chat_stream
from tests.browser.chat import card, faults, last_answer, say, wait_for_end
from tests.browser.conftest import OpenPage
from tests.browser.scripted import add_agent, provider
from tests.site import Site

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
PHONE = {"viewport": {"width": 390, "height": 844}}


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
    expect(card(page, "local.send_postcard")).to_have_attribute("data-status", "waiting")
    for summary in page.locator("summary:visible").all():
        if summary.locator("xpath=..").get_attribute("open") is None:
            summary.click()

    assert faults(page) == []
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


@pytest.mark.parametrize(
    "path", ["/accounts/password/change/", "/accounts/email/", "/accounts/2fa/", "/accounts/logout/", "/account/data/"]
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


WIDE = (
    """
| one | two | three |
|---|---|---|
| CELL | CELL | CELL |

```python
LINE
```

LONG

مرحبا بالعالم، كيف حالك؟
""".replace("CELL", "wide" * 12)
    .replace("LINE", "x = " + "1 + " * 100 + "1")
    .replace("LONG", "long" * 100)
)


@pytest.mark.parametrize("width", [320, 640])  # a small phone; a screen of 1280 pixels at 200 %
def test_what_is_wide_scrolls_inside_itself(open_page: OpenPage, site: Site, width: int) -> None:
    """Tables and code scroll, long words break, and a paragraph from right to left begins at the right."""
    with provider(chat_stream(WIDE)) as url:
        add_agent(site, f"wide-{width}", url)
        page = open_page(f"/?agent=wide-{width}", viewport={"width": width, "height": 360})
        say(page, "Show it")
        wait_for_end(page)

    assert page.evaluate("document.documentElement.scrollWidth") == width
    for wide in (last_answer(page).locator(".table"), last_answer(page).locator("pre")):
        assert wide.evaluate("element => element.scrollWidth > element.clientWidth && element.tabIndex === 0")
    arabic = last_answer(page).locator("p", has_text="مرحبا")
    gap = """(p) => {
      const range = document.createRange();
      range.selectNodeContents(p);
      return p.getBoundingClientRect().right - range.getBoundingClientRect().right;
    }"""
    assert arabic.evaluate(gap) < 2
    assert faults(page) == []


def test_the_first_tab_leads_past_the_list(open_page: OpenPage) -> None:
    page = open_page()
    wait_for_end(page)
    first = page.locator("a[href], button, input, select, textarea, summary, [tabindex]").first
    first.focus()
    expect(page.get_by_role("link", name="Skip to the message box")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_label("Message", exact=True)).to_be_focused()
