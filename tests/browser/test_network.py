"""The network goes and comes back, tabs are hidden, sign-ins end: no character is lost."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.chat import LONG, faults, last_answer, say, wait_for_end, words
from tests.browser.conftest import OpenPage
from tests.site import Site

OFFLINE = ("WebSocket connection to", "ERR_INTERNET_DISCONNECTED")
STORY = "Tell me a long story"


def written(page: Page) -> str:
    """Return what was said, without what differs between who pressed Stop and who watched."""
    wait_for_end(page)
    return words(page)


def test_offline_and_back_in_mid_answer_loses_no_character(open_page: OpenPage) -> None:
    """The network of one browser is cut while the answer is written: it stalls, comes back and catches up."""
    page = open_page(allowed=OFFLINE)
    say(page, STORY)
    expect(last_answer(page)).to_contain_text("Night 1", timeout=LONG)
    witness = open_page(page.url)
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text("Trying again", timeout=LONG)
    expect(last_answer(witness)).to_contain_text("Night 3", timeout=LONG)
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_be_hidden(timeout=LONG)
    expect(page.locator("#composer")).to_have_attribute("data-mode", "running")
    expect(last_answer(page)).to_contain_text("Night 4", timeout=LONG)
    page.get_by_role("button", name="Stop").click()

    assert written(page) == written(witness)
    page.reload()
    assert written(page) == written(witness)


def test_what_ended_while_the_browser_was_offline_is_shown_as_it_ended(open_page: OpenPage) -> None:
    page = open_page(allowed=OFFLINE)
    say(page, STORY)
    expect(last_answer(page)).to_contain_text("Night 1", timeout=LONG)
    witness = open_page(page.url)
    expect(last_answer(witness)).to_contain_text("Night 2", timeout=LONG)
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text("Trying again", timeout=LONG)
    assert faults(page) == []
    witness.get_by_role("button", name="Stop").click()
    wait_for_end(witness)
    page.context.set_offline(False)

    expect(page.locator(".notice-cancelled")).to_be_visible(timeout=LONG)
    assert written(page) == written(witness)


def test_a_hidden_tab_keeps_up(page: Page, open_page: OpenPage) -> None:
    """Where nobody looks the browser draws no frames; the page does without them."""
    say(page, "Hello")
    wait_for_end(page)
    hidden = page.context.new_page()
    hidden.add_init_script(
        "Object.defineProperty(document, 'hidden', { get: () => true }); window.requestAnimationFrame = () => 0;"
    )
    hidden.goto(page.url)
    wait_for_end(hidden)
    say(page, "Show me what you can do")
    expect(hidden.locator(".said").last).to_have_text("Show me what you can do")
    wait_for_end(page)
    wait_for_end(hidden)

    expect(hidden.locator("#transcript")).to_contain_text("return 2 * number")
    page.wait_for_function("() => document.querySelectorAll('.code .copy').length >= 3")
    assert words(hidden) == words(page)


def test_signing_out_in_another_tab_ends_this_one_and_keeps_what_was_typed(open_page: OpenPage, site: Site) -> None:
    page = open_page(site.sign_in_link(), signed_in=False)
    page.get_by_role("button", name="Sign in").click()
    say(page, "Hello")
    wait_for_end(page)
    address = page.url
    page.get_by_label("Message", exact=True).fill("half a thought")
    other = page.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Sign out").click()

    expect(page).to_have_url(re.compile(r"/accounts/login/\?next=%2Fc%2F"), timeout=LONG)
    page.goto(site.sign_in_link())
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{site.address}/")
    page.goto(address)
    expect(page.get_by_label("Message", exact=True)).to_have_value("half a thought")
