"""What is done with a conversation as a whole: its menu, its marks, and two windows that disagree."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat import faults, say, wait_for_end
from tests.browser.conftest import OpenPage
from tests.browser.line import Line
from tests.site import Site


def talk(page: Page, *texts: str) -> None:
    for text in texts:
        say(page, text)
        wait_for_end(page)


def choose(page: Page, name: str) -> None:
    page.locator("#menu > summary").click()
    page.locator("#menu").get_by_role("button", name=name, exact=True).click()


def test_a_conversation_is_renamed_with_the_keyboard_alone(page: Page) -> None:
    expect(page.locator("#menu")).to_be_hidden()
    talk(page, "Hello")
    summary = page.locator("#menu > summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert faults(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("#menu[open]")).to_have_count(0)
    expect(summary).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    field = page.get_by_label("Title")
    expect(field).to_have_value("Hello")
    assert faults(page) == []
    field.fill("<i>Greetings</i>")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("<i>Greetings</i>")
    expect(page.locator(".conversations [aria-current=page] .title")).to_have_text("<i>Greetings</i>")
    expect(page).to_have_title("<i>Greetings</i> · PAR")
    talk(page, "Hello again")
    expect(page.get_by_role("heading", level=1)).to_have_text("<i>Greetings</i>")
    expect(page.locator("[role=alert]:visible")).to_have_count(0)


def test_pinned_ones_stand_above_and_archived_ones_apart(page: Page, open_page: OpenPage) -> None:
    talk(page, "Hello pin")
    address = page.url
    choose(page, "Pin")
    pinned = page.get_by_role("list", name="Pinned").get_by_role("listitem")
    expect(pinned).to_contain_text(["Hello pin"])
    page.goto("/")
    expect(pinned).to_contain_text(["Hello pin"])
    page.goto(address)
    wait_for_end(page)
    choose(page, "Unpin")
    expect(page.get_by_text("Pinned", exact=True)).to_be_hidden()
    choose(page, "Archive")
    expect(page.locator(".topbar").get_by_text("Archived")).to_be_visible()
    expect(page.locator(".conversations [aria-current=page]")).to_have_count(0)
    page.get_by_role("link", name="Archived").click()
    expect(page.get_by_role("link", name="Hello pin")).to_be_visible()
    assert faults(page) == []
    page.get_by_role("link", name="Hello pin").click()
    wait_for_end(page)
    choose(page, "Take out of the archive")
    expect(page.locator(".topbar").get_by_text("Archived")).to_be_hidden()
    expect(page.locator(".conversations [aria-current=page] .title")).to_have_text("Hello pin")


def test_a_temporary_chat_is_marked_as_such(page: Page) -> None:
    page.get_by_label("Temporary chat").check()
    talk(page, "Hello for a day")
    marks = page.get_by_text("Temporary", exact=True).and_(page.locator(":visible"))
    expect(marks).to_have_count(2)
    page.reload()
    expect(marks).to_have_count(2)
    wait_for_end(page)
    choose(page, "Keep this chat")
    expect(marks).to_have_count(0)


def test_tags_are_kept(page: Page) -> None:
    talk(page, "Hello tags")
    choose(page, "Tags…")
    page.get_by_label("Words to find it by").fill("one, two words, , one")
    page.keyboard.press("Enter")
    expect(page.locator("#ask")).to_be_hidden()
    choose(page, "Tags…")
    expect(page.get_by_label("Words to find it by")).to_have_value("one, two words, one")
    page.keyboard.press("Escape")
    page.reload()
    choose(page, "Tags…")
    expect(page.get_by_label("Words to find it by")).to_have_value("one, two words")


def test_dropping_the_models_notes_changes_nothing_that_was_said(page: Page) -> None:
    talk(page, "Hello")
    choose(page, "Drop the model's own notes…")
    page.get_by_role("button", name="Drop them").click()
    expect(page.locator("#announcer")).to_contain_text("are dropped")
    talk(page, "Hello again")
    expect(page.locator(".said")).to_have_text(["Hello", "Hello again"])
    page.reload()
    expect(page.locator(".said")).to_have_text(["Hello", "Hello again"])


def test_a_conversation_is_deleted_while_it_answers(page: Page, site: Site) -> None:
    say(page, "Tell me a long story")
    expect(page.locator(".message-assistant").last).to_contain_text("Night 1")
    address = page.url
    choose(page, "Delete…")
    assert faults(page) == []
    page.get_by_role("button", name="Cancel").click()
    expect(page).to_have_url(address)
    choose(page, "Delete…")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url(f"{site.address}/")
    gone = address.rstrip("/").rpartition("/")[2]
    expect(page.locator(f'[data-conversation-id="{gone}"]')).to_have_count(0)


@pytest.mark.parametrize(
    ("choice", "seen"),
    [
        ("Send it here", ["Hello one", "Hello two", "Hello late"]),
        ("Send it as a branch from what I saw", ["Hello one", "Hello late"]),
    ],
)
def test_two_windows_that_disagree_lose_nothing(
    page: Page, line: Line, open_page: OpenPage, choice: str, seen: list[str]
) -> None:
    """B66: the page shows what is new and what was not sent, and the person decides."""
    talk(page, "Hello one")
    line.hold(lambda frame: "executionId" in frame and frame["type"] != "ack")  # this window hears of nothing
    other = open_page(page.url)
    talk(other, "Hello two")
    box = page.get_by_label("Message", exact=True)
    box.fill("Hello late")
    with page.expect_event("load"):
        box.press("Enter")
    line.hold(lambda frame: False)
    wait_for_end(page)
    expect(page.locator(".said")).to_have_text(["Hello one", "Hello two"])
    expect(box).to_have_value("Hello late")
    expect(page.get_by_text("What you wrote was not sent.")).to_be_visible()
    assert faults(page) == []
    page.reload()
    page.get_by_role("button", name=choice).click()
    wait_for_end(page)

    expect(page.locator(".said")).to_have_text(seen)
    expect(box).to_have_value("")
    expect(page.get_by_text("What you wrote was not sent.")).to_be_hidden()
    page.reload()
    wait_for_end(page)
    expect(page.locator(".said")).to_have_text(seen)
    expect(page.get_by_text("What you wrote was not sent.")).to_be_hidden()


def test_a_phone_has_room_for_the_menu(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 320, "height": 568}, color_scheme="dark")
    talk(page, "Hello to whoever has a small screen " * 3)
    page.locator("#menu > summary").click()
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    last = page.locator("#menu").get_by_role("button", name="Delete…")
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
