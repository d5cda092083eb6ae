"""Other versions of a turn: edited, answered again, switched between, named, looked back at and gone on from."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.chat import LONG, faults, last_answer, say, wait_for_end, words
from tests.browser.conftest import OpenPage
from tests.browser.line import Line
from tests.browser.test_keeping_up import start
from tests.site import Site

SHOW = "Show me what you can do"
STORY = "Tell me a long story"
EARLIER = re.compile(r"/c/[0-9a-f-]{36}/\?revision=[0-9a-f-]{36}$")
CURRENT = re.compile(r"/c/[0-9a-f-]{36}/$")


def talk(page: Page, *texts: str) -> None:
    for text in texts:
        say(page, text)
        wait_for_end(page)


def said(page: Page) -> Locator:
    return page.locator(".message-user .said")


def edit(page: Page, at: int, text: str) -> None:
    """Send the message number `at` once more with another text."""
    page.get_by_role("button", name="Edit this message").nth(at).click()
    box = page.get_by_label("Edit your message")
    expect(box).to_be_focused()
    box.fill(text)
    box.press("Enter")


def again(page: Page) -> Locator:
    return page.get_by_role("button", name="Try again: another answer")


def counts(page: Page, *shown: str) -> None:
    expect(page.locator(".versions-at")).to_have_text(list(shown))


def same_after_a_reload(page: Page) -> None:
    wait_for_end(page)
    seen = words(page)
    page.reload()
    wait_for_end(page)
    assert words(page) == seen


def test_an_edited_message_takes_the_place_of_what_came_after(page: Page, open_page: OpenPage) -> None:
    """In the window where it is edited, and in one that only looks on."""
    talk(page, "Hello one", "Hello two", "Hello three")
    other = open_page(page.url)
    wait_for_end(other)
    edit(page, 1, SHOW)
    expect(said(page)).to_have_text(["Hello one", SHOW])
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(said(other)).to_have_text(["Hello one", SHOW])
    wait_for_end(page)

    for each in (page, other):
        counts(each, "2/2")
        expect(said(each)).to_have_text(["Hello one", SHOW])
        same_after_a_reload(each)
        counts(each, "2/2")


def test_an_edit_that_came_to_nothing_leaves_the_conversation_as_it_was(page: Page, open_page: OpenPage) -> None:
    talk(page, "Hello one", "Hello two")
    other = open_page(page.url)
    wait_for_end(other)
    edit(page, 0, STORY)
    expect(last_answer(page)).to_contain_text("Night 1", timeout=LONG)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)

    for each in (page, other):
        expect(said(each)).to_have_text([STORY, "Hello one", "Hello two"])
        expect(each.locator(".notice")).to_contain_text("not part of the conversation")
        counts(each)
        same_after_a_reload(each)
    page.get_by_role("button", name="Continue from here as a branch").click()
    for each in (page, other):
        expect(said(each)).to_have_text([STORY])
        expect(each.locator(".notice")).to_have_count(0)
    counts(page, "2/2")
    page.reload()
    expect(said(page)).to_have_text([STORY])
    counts(page, "2/2")


def test_a_refused_edit_is_put_back_with_its_text(page: Page, line: Line) -> None:
    talk(page, "Hello one", "Hello two")
    line.refused = {"start": "RATE_LIMITED"}
    edit(page, 0, "Hello other")
    box = page.get_by_label("Edit your message")
    expect(box).to_have_value("Hello other")
    expect(page.locator(".edit .problem")).to_contain_text("too fast")
    expect(page.locator(".message-user")).to_have_count(2)
    assert faults(page) == []
    page.reload()
    expect(box).to_have_value("Hello other")
    wait_for_end(page)
    line.refused = {}
    box.press("Enter")
    wait_for_end(page)
    expect(said(page)).to_have_text(["Hello other"])
    counts(page, "2/2")
    assert line.sent("start")[-1]["editMessageId"]


def test_an_edit_is_given_up_with_escape(page: Page) -> None:
    talk(page, "Hello one")
    button = page.get_by_role("button", name="Edit this message")
    button.focus()
    page.keyboard.press("Enter")
    page.get_by_label("Edit your message").fill("something else")
    page.keyboard.press("Escape")

    expect(page.locator(".edit")).to_have_count(0)
    expect(button).to_be_focused()
    expect(said(page)).to_have_text("Hello one")


def test_versions_are_made_and_switched_with_the_keyboard_alone(page: Page) -> None:
    talk(page, "What is 1 + 1?")
    again(page).focus()
    page.keyboard.press("Enter")
    expect(said(page)).to_have_text("What is 1 + 1?")
    wait_for_end(page)
    counts(page, "2/2")
    talk(page, "Hello after the second")
    same_after_a_reload(page)

    page.get_by_role("button", name="Previous version").focus()
    page.keyboard.press("Enter")
    counts(page, "1/2")
    wait_for_end(page)
    expect(said(page)).to_have_text("What is 1 + 1?")
    expect(page.get_by_role("button", name="Next version")).to_be_focused()
    expect(page.get_by_role("group", name="Versions of this turn")).to_contain_text("Version 1 of 2")
    expect(page.get_by_role("button", name="Previous version")).to_be_disabled()
    page.keyboard.press("Enter")
    counts(page, "2/2")
    wait_for_end(page)
    expect(said(page)).to_have_text(["What is 1 + 1?", "Hello after the second"])


def test_a_version_is_named(page: Page) -> None:
    talk(page, "Hello")
    again(page).click()
    wait_for_end(page)
    page.get_by_role("button", name="Name this version").click()
    assert faults(page) == []
    page.get_by_label("Name", exact=True).fill("<b>The better one</b>")
    page.keyboard.press("Enter")
    label = page.locator(".versions-label")
    expect(label).to_have_text("<b>The better one</b>")
    page.reload()
    expect(label).to_have_text("<b>The better one</b>")
    talk(page, "Goes on without a conflict")


def test_an_earlier_version_is_read_and_gone_on_from(page: Page, open_page: OpenPage) -> None:
    talk(page, "Hello one", "Hello two")
    page.locator("#menu > summary").click()
    page.get_by_role("link", name="History").click()
    assert faults(page) == []
    page.get_by_role("link", name="Revision 1").click()
    expect(page).to_have_url(EARLIER)
    expect(page.get_by_text("An earlier version.")).to_be_visible()
    expect(said(page)).to_have_text("Hello one")
    expect(page.locator("[data-turn]:visible")).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_be_hidden()
    assert faults(page) == []
    other = open_page(page.url.split("?")[0])
    wait_for_end(other)

    page.get_by_role("button", name="Continue from here").click()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    talk(page, "Hello from the past")
    expect(page).to_have_url(CURRENT)
    expect(page.get_by_text("An earlier version.")).to_have_count(0)
    for each in (page, other):
        expect(said(each)).to_have_text(["Hello one", "Hello from the past"])
        counts(each, "2/2")
        same_after_a_reload(each)
    talk(page, "And on")


def test_a_turn_that_failed_on_an_earlier_version_stays_there(page: Page) -> None:
    talk(page, "Hello one", "Hello two")
    address = page.url
    page.goto(f"{address}history/")
    page.get_by_role("link", name="Revision 1").click()
    page.get_by_role("button", name="Continue from here").click()
    say(page, STORY)
    expect(last_answer(page)).to_contain_text("Night 1", timeout=LONG)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)
    expect(page).to_have_url(EARLIER)
    expect(said(page)).to_have_text(["Hello one", STORY])
    page.reload()
    expect(said(page)).to_have_text(["Hello one", STORY])
    page.get_by_role("link", name="Back to the newest").click()
    expect(said(page)).to_have_text(["Hello one", STORY, "Hello two"])


def test_a_revision_is_restored_and_what_came_after_is_kept(page: Page) -> None:
    talk(page, "Hello one", "Hello two")
    address = page.url
    page.goto(f"{address}history/")
    page.get_by_role("button", name="Restore revision 1").click()
    expect(page).to_have_url(address)
    expect(said(page)).to_have_text("Hello one")
    expect(page.get_by_role("link", name="kept in the history")).to_be_visible()
    wait_for_end(page)
    talk(page, "Hello other two")
    counts(page, "2/2")
    expect(page.get_by_role("link", name="kept in the history")).to_have_count(0)
    same_after_a_reload(page)
    page.goto(f"{address}history/")
    expect(page.locator(".revision")).to_have_count(3)


def test_revisions_are_named_compared_and_copied(page: Page) -> None:
    talk(page, "Hello one", "Hello two")
    address = page.url
    page.goto(f"{address}history/")
    page.get_by_role("button", name="Name revision 1").click()
    page.get_by_label("Name", exact=True).fill("The beginning")
    page.keyboard.press("Enter")
    expect(page.locator("#revision-1 .mark")).to_have_text("The beginning")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Both begin with the same 2 messages.")).to_be_visible()
    expect(page.locator(".side-gone")).to_contain_text("Nothing.")
    expect(page.locator(".side-come .said")).to_have_text("Hello two")
    assert faults(page) == []
    page.go_back()
    page.get_by_role("button", name="Fork at revision 1").click()
    page.wait_for_url(lambda url: "/c/" in url and "history" not in url)
    assert page.url != address
    wait_for_end(page)
    expect(said(page)).to_have_text("Hello one")
    talk(page, "In the copy")
    page.goto(address)
    expect(said(page)).to_have_text(["Hello one", "Hello two"])


def test_versions_fit_on_a_phone(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 320, "height": 640}, color_scheme="dark")
    talk(page, "Hello")
    again(page).click()
    wait_for_end(page)
    counts(page, "2/2")
    page.get_by_role("button", name="Edit this message").click()
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    page.keyboard.press("Escape")
    for path in ("history/", "?revision="):
        if path == "history/":
            page.goto(page.url + path)
        else:
            page.get_by_role("link", name="Revision 1").click()
            expect(page.get_by_text("An earlier version.")).to_be_visible()
        assert faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_a_program_that_answers_elsewhere_in_the_tree_is_followed(page: Page, site: Site) -> None:
    """A run on a branch that this page does not show is not drawn here; its end is."""
    talk(page, "Hello one")
    again(page).click()
    wait_for_end(page)
    counts(page, "2/2")
    first = page.get_by_role("button", name="Previous version").get_attribute("value")
    conversation = page.url.rstrip("/").rsplit("/", 1)[-1]
    start(
        site,
        agent="demo",
        conversationId=conversation,
        fromRevisionId=first,
        input=[{"type": "text", "text": "Hello from a program"}],
    )
    expect(said(page)).to_have_text(["Hello one", "Hello from a program"], timeout=LONG)
    counts(page, "1/2")
    wait_for_end(page)
    same_after_a_reload(page)
