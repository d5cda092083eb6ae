"""The server goes away and comes back; so does the page."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.chat import LONG, last_answer, say, wait_for_end
from tests.browser.conftest import OpenPage
from tests.site import Site

GONE = ("WebSocket connection to", "ERR_CONNECTION_REFUSED")


def test_a_page_outlives_its_server(open_page: OpenPage, site: Site) -> None:
    """What was said before is still there, what is said meanwhile is sent once the server is back."""
    page = open_page(allowed=GONE)
    stranger = open_page(allowed=GONE)
    say(page, "Remember this")
    wait_for_end(page)
    say(stranger, "Tell me a long story")
    expect(last_answer(stranger)).to_contain_text("Night 1", timeout=LONG)
    stranger.context.clear_cookies()

    site.stop()
    expect(page.locator("#connection")).to_contain_text("Trying again", timeout=LONG)
    expect(last_answer(page)).to_contain_text("demo agent")
    box = page.get_by_label("Message", exact=True)
    box.fill("Sent while nobody was there")
    box.press("Enter")
    expect(page.locator("#composer")).to_have_attribute("data-mode", "sending")

    site.start()
    wait_for_end(page)
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator(".said")).to_have_text(["Remember this", "Sent while nobody was there"])
    expect(stranger).to_have_url(re.compile("/accounts/login/"), timeout=LONG)

    page.goto("/")
    page.get_by_role("link", name="Remember this").first.click()
    expect(page.locator(".said")).to_have_text(["Remember this", "Sent while nobody was there"])
