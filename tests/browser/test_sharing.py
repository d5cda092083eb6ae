"""A conversation is shared, read by a stranger, continued by a reader and withdrawn, on every kind of screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat import faults, say, wait_for_end
from tests.browser.conftest import OpenPage
from tests.browser.test_access import PHONE, SCHEMES, Scheme

GONE = ("404",)


def share_address(page: Page) -> str:
    """Return where the links to the conversation of a chat page are made."""
    expect(page).to_have_url(re.compile("/c/"))
    return re.sub(r".*(/c/[^/]+/).*", r"\1share/", page.url)


def make_link(page: Page) -> str:
    page.get_by_role("button", name="Make a link").click()
    return page.get_by_label("Link", exact=True).input_value()


@pytest.fixture
def talk(page: Page) -> str:
    """Where a conversation with code, a table and tools is shared."""
    say(page, "Show me what you can do")
    say(page, "What time is it, and what is 3 * 4?")
    wait_for_end(page)
    return share_address(page)


def test_a_link_is_made_copied_read_and_revoked(open_page: OpenPage, talk: str) -> None:
    owner = open_page(talk, permissions=["clipboard-read", "clipboard-write"])
    link = make_link(owner)
    expect(owner.get_by_label("Link", exact=True)).to_be_focused()
    assert owner.evaluate("getSelection().toString()") == link
    owner.get_by_role("button", name="Copy", exact=True).click()
    expect(owner.get_by_text("Copied.")).to_be_visible()
    assert owner.evaluate("navigator.clipboard.readText()") == link
    assert faults(owner) == []

    stranger = open_page(link, signed_in=False, java_script_enabled=False, allowed=GONE)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("Show me what you can do")
    expect(stranger.get_by_role("group", name="Tool call: local.current_time")).to_have_attribute("data-status", "done")
    expect(stranger.locator("details")).to_have_count(0)
    expect(stranger.locator("button")).to_have_count(0)
    assert stranger.context.cookies() == []

    owner.locator("summary", has_text="Revoke").click()
    owner.get_by_role("button", name="Revoke it for good").click()
    expect(owner.get_by_text("The link is revoked")).to_be_visible()
    stranger.reload()
    expect(stranger.get_by_role("heading", level=1)).to_have_text("This link leads nowhere")


def test_what_is_said_later_comes_with_an_update(open_page: OpenPage, page: Page, talk: str) -> None:
    owner = open_page(talk)
    link = make_link(owner)
    say(page, "Something else, much later")
    wait_for_end(page)
    stranger = open_page(link, signed_in=False)
    expect(stranger.get_by_text("Something else, much later")).to_have_count(0)

    owner.goto(talk)
    owner.get_by_role("button", name="Update to now").click()
    expect(owner.locator(".share-link")).to_contain_text("shows everything")
    stranger.reload()
    expect(stranger.get_by_text("Something else, much later")).to_be_visible()


def test_a_reader_goes_on_in_a_copy_and_a_stranger_signs_in_first(open_page: OpenPage, talk: str) -> None:
    link = make_link(open_page(talk))
    stranger = open_page(link, signed_in=False)
    stranger.get_by_role("link", name="Continue in a copy").click()
    expect(stranger.get_by_role("heading", name="Sign in")).to_be_visible()

    reader = open_page(link)
    reader.get_by_role("link", name="Continue in a copy").click()
    assert faults(reader) == []
    reader.get_by_role("button", name="Make my copy").dblclick()
    expect(reader).to_have_url(re.compile("/c/"))
    say(reader, "Hello again")
    wait_for_end(reader)
    expect(reader.get_by_text("Show me what you can do").first).to_be_visible()
    copies = [row for row in reader.locator("#conversations li").all() if "Show me" in row.inner_text()]
    assert len(copies) >= 2


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [{}, PHONE])
def test_the_pages_have_no_known_barrier_and_fit(
    open_page: OpenPage, talk: str, scheme: Scheme, size: dict[str, dict[str, int]]
) -> None:
    owner = open_page(talk, color_scheme=scheme, **size)
    link = make_link(owner)
    owner.locator("summary", has_text="Revoke").click()
    shared = open_page(link, signed_in=False, color_scheme=scheme, **size)
    gone = open_page("/s/nothing/", signed_in=False, color_scheme=scheme, allowed=GONE, **size)
    for page in (owner, shared, gone):
        assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_link_is_made_without_a_mouse(open_page: OpenPage, talk: str) -> None:
    page = open_page(talk)
    page.get_by_label("The link works for").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_label("Link", exact=True)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_focused()
