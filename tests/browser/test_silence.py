"""The server answers without a name, too late or not at all: the page says so and never waits for ever."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat import card, last_answer, say, wait_for_end
from tests.browser.conftest import OpenPage
from tests.browser.line import Line

POSTCARD = "local.send_postcard"
PATIENCE = 21_000  # milliseconds after which the page gives up


def typed(page: Page, text: str) -> None:
    """Expect that the text is back in the box, and a word why."""
    wait_for_end(page)
    expect(page.get_by_label("Message", exact=True)).to_have_value(text)
    expect(page.locator(".said")).to_have_count(0)


def test_an_error_without_an_id_puts_the_message_back(page: Page, line: Line) -> None:
    line.swallowed = {"start"}
    say(page, "Too fast")
    expect(page.locator("#composer")).to_have_attribute("data-mode", "sending")
    line.tell({"type": "error", "id": None, "code": "RATE_LIMITED", "message": "too many commands; slow down"})

    typed(page, "Too fast")
    expect(page.get_by_role("alert").filter(has_text="That was too fast")).to_be_visible()


def test_a_message_without_an_answer_is_put_back(page: Page, line: Line) -> None:
    line.swallowed = {"start"}
    say(page, "Is anybody there?")
    expect(page.locator("#composer")).to_have_attribute("data-mode", "sending")
    page.clock.fast_forward(PATIENCE)

    typed(page, "Is anybody there?")
    expect(page.get_by_role("alert").filter(has_text="does not answer")).to_be_visible()
    line.swallowed = set()
    page.get_by_role("button", name="Send", exact=True).click()
    wait_for_end(page)

    expect(last_answer(page)).to_contain_text("demo agent")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    first, again = line.sent("start")
    assert first["id"] == again["id"]  # had the first arrived after all, this would start no second run


def test_an_answer_that_comes_too_late_is_taken_all_the_same(page: Page, line: Line) -> None:
    line.swallowed = {"start"}
    say(page, "Hello, slowly")
    expect(page.locator("#composer")).to_have_attribute("data-mode", "sending")
    page.clock.fast_forward(PATIENCE)
    typed(page, "Hello, slowly")
    line.deliver(line.sent("start")[0])
    expect(last_answer(page)).to_contain_text("demo agent")
    wait_for_end(page)

    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    expect(page.locator(".said")).to_have_text(["Hello, slowly"])
    expect(page.locator("[data-problem]")).to_be_hidden()


def test_a_stop_without_an_answer_can_be_pressed_again(page: Page, line: Line) -> None:
    say(page, "Send a postcard to Fay")
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "waiting")
    line.swallowed = {"cancel"}
    stop = page.get_by_role("button", name="Stop")
    stop.click()
    expect(stop).to_be_disabled()
    page.clock.fast_forward(PATIENCE)
    expect(page.get_by_role("alert").filter(has_text="does not answer")).to_be_visible()
    line.swallowed = set()
    stop.click()
    wait_for_end(page)

    expect(page.locator(".notice-cancelled")).to_be_visible()


@pytest.mark.parametrize("ended", [False, True])
def test_a_decision_after_another_one_shows_the_real_one(
    page: Page, line: Line, open_page: OpenPage, ended: bool
) -> None:
    say(page, "Send a postcard to Gus")
    waiting = card(page, POSTCARD)
    expect(waiting).to_have_attribute("data-status", "waiting")
    other = open_page(page.url)
    expect(card(other, POSTCARD)).to_have_attribute("data-status", "waiting")
    line.hold()
    card(other, POSTCARD).get_by_role("button", name="Approve").click()
    if ended:
        wait_for_end(other)
    waiting.get_by_role("button", name="Reject").click()
    expect(waiting.get_by_role("button", name="Reject")).to_be_disabled()
    line.release()
    wait_for_end(page)

    expect(waiting).to_contain_text("Approved in another window")
    expect(waiting).to_have_attribute("data-status", "done")
    expect(page.locator("[role=alert]:visible")).to_have_count(0)


def test_the_answer_to_a_repeated_decision_is_the_first_one(page: Page, line: Line) -> None:
    say(page, "Send a postcard to Hal")
    waiting = card(page, POSTCARD)
    expect(waiting).to_have_attribute("data-status", "waiting")
    line.hold()
    waiting.get_by_role("button", name="Approve").click()
    expect(waiting.get_by_role("button", name="Approve")).to_be_disabled()
    line.deliver(line.sent("approve")[0])
    line.release()
    wait_for_end(page)

    expect(waiting).to_have_attribute("data-status", "done")
    expect(waiting).to_contain_text("Approved")
    expect(page.locator("[role=alert]:visible")).to_have_count(0)


def test_a_question_that_expired_is_nobodys_decision(page: Page, line: Line, open_page: OpenPage) -> None:
    line.changes = {"interrupt-resolved": {"value": False, "decision": "timeout", "arguments": None}}
    say(page, "Send a postcard to Ida")
    waiting = card(page, POSTCARD)
    expect(waiting).to_have_attribute("data-status", "waiting")
    card(open_page(page.url), POSTCARD).get_by_role("button", name="Reject").click()
    wait_for_end(page)

    expect(waiting.locator(".tool-decision")).to_have_text("Not answered in time")
    expect(waiting).to_have_attribute("data-status", "rejected")


def test_a_card_shows_the_arguments_that_were_approved(page: Page, line: Line) -> None:
    say(page, "Send a postcard to Jo")
    waiting = card(page, POSTCARD)
    expect(waiting).to_have_attribute("data-status", "waiting")
    line.swallowed = {"approve"}
    waiting.get_by_role("button", name="Approve").click()
    expect(waiting.get_by_role("button", name="Approve")).to_be_disabled()
    line.deliver({**line.sent("approve")[0], "arguments": {"to": "Kim", "text": "Hello"}})
    wait_for_end(page)

    expect(waiting.locator(".tool-decision")).to_have_text("Approved with other arguments")
    expect(waiting.locator("dd").first).to_have_text("Kim")


def test_a_question_tells_what_the_tool_does_and_that_it_is_final(page: Page, line: Line) -> None:
    """B74: the words about a tool are text, whoever wrote them."""
    attack = "Sends <img src=x onerror=alert(1)>."
    tool = {"description": attack, "annotations": {"destructiveHint": True}}
    line.changes = {"interrupt-requested": {"interrupt": {"tool": tool, "reason": attack}}}
    say(page, "Send a postcard to Lea")
    waiting = card(page, POSTCARD)

    expect(waiting.locator(".tool-description")).to_have_text(attack)
    expect(waiting.locator(".tool-why")).to_have_text(attack)
    expect(waiting.get_by_text("may not be undone")).to_be_visible()
    waiting.get_by_role("button", name="Reject").click()
    wait_for_end(page)
