"""Something between page and server goes wrong for a moment: the page ends up with all that was said."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from agent.testing.chat_wire import chat_stream
from tests.agent.providers.pictures import PNG
from tests.browser.chat import LONG, card, last_answer, say, wait_for_end, words
from tests.browser.conftest import OpenPage
from tests.browser.line import Frame, Line
from tests.browser.scripted import add_agent, provider
from tests.site import Site

POSTCARD = "local.send_postcard"
PARAGRAPHS = ["First words.", "More words.", "Last words."]
PICTURE = {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": PNG}}


def final_html(frame: Frame) -> bool:
    return frame["type"] == "rendered" and bool(frame["final"])


def start(site: Site, **body: Any) -> dict[str, Any]:
    """Start a run as a program does."""
    return ask(site, "POST", "/executions", body)


def ask(site: Site, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {site.token()}", "Content-Type": "application/json"}
    request = Request(f"{site.address}/ai{path}", json.dumps(body).encode(), headers, method=method)
    with urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def test_a_page_whose_subscription_failed_asks_again(page: Page, line: Line) -> None:
    say(page, "Send a postcard to Mia")
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "waiting")
    line.refused = {"subscribe": "INTERNAL_ERROR"}
    page.reload()
    expect(page.locator("#connection")).to_contain_text("Asking again", timeout=LONG)
    expect(card(page, POSTCARD)).to_have_count(0)
    line.refused = {}
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "waiting", timeout=LONG)
    expect(page.locator("#connection")).to_be_hidden()

    card(page, POSTCARD).get_by_role("button", name="Reject").click()
    wait_for_end(page)
    assert len(line.sent("subscribe")) > 2


def test_an_answer_whose_html_is_not_whole_is_shown_as_text(page: Page, line: Line, site: Site) -> None:
    with provider(chat_stream(*(f"{each}\n\n" for each in PARAGRAPHS))) as url:
        add_agent(site, "plain", url)
        page.goto("/?agent=plain")
        line.hold(final_html)
        say(page, "Talk")
        wait_for_end(page)
        prose = last_answer(page).locator(".prose")
        expect(prose).to_have_text(" ".join(PARAGRAPHS))
        expect(prose.locator("p")).to_have_count(0)
        line.release()

    expect(prose.locator("p")).to_have_text(PARAGRAPHS)


def test_a_thought_without_a_word_moves_nothing(open_page: OpenPage, site: Site) -> None:
    """Some servers send an empty thought before each answer."""
    with provider(chat_stream("# One\n\n", "two", reasoning=["\n", "\n"])) as url:
        add_agent(site, "thoughtless", url)
        page = open_page("/?agent=thoughtless")
        say(page, "Talk")
        wait_for_end(page)

    expect(last_answer(page).get_by_role("heading", level=3)).to_have_text("One")
    expect(page.locator(".reasoning")).to_have_count(0)
    streamed = words(page)
    page.reload()
    assert words(page) == streamed


def test_what_cannot_be_sent_again_as_it_was_is_not_offered(open_page: OpenPage, site: Site) -> None:
    add_agent(site, "blind", "http://127.0.0.1:9/v1")
    text = {"type": "text", "text": "What is this?"}
    first = start(site, agent="blind", input=[text])
    page = open_page(f"/c/{first['conversationId']}/")
    again = page.get_by_role("button", name="Try again")
    expect(again).to_have_count(1)
    start(site, agent="blind", input=[text, PICTURE], conversationId=first["conversationId"])
    expect(page.locator(".notice")).to_have_count(2)

    for _ in ("live", "after a reload"):
        blocks = page.locator(".run").last.locator(".blocks > *")
        expect(blocks).to_have_count(2)
        expect(blocks.first).to_have_text("What is this?")
        expect(blocks.last.get_by_role("img", name="picture")).to_be_visible()
        expect(again).to_have_count(0)
        page.reload()
        wait_for_end(page)


def test_a_revision_that_was_never_shown_is_not_taken_for_seen(page: Page, line: Line) -> None:
    """The server's answer tells of a later revision: a message must not be sent as if this page knew it."""
    say(page, "Hello")
    wait_for_end(page)
    say(page, "Tell me a long story")
    expect(last_answer(page)).to_contain_text("Night 1", timeout=LONG)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)
    page.route("**/adopt", lambda route: route.fulfill(json={"conversation": {"revision": 4}}))
    before = len(line.sent("subscribe"))
    page.get_by_role("button", name="Continue from here").click()
    expect(page.locator(".notice")).to_have_count(0)
    say(page, "And now?")
    wait_for_end(page)

    assert line.sent("start")[-1]["baseRevision"] == 1
    assert len(line.sent("subscribe")) > before


@pytest.mark.parametrize("told", [1, 2])
def test_a_turn_that_is_being_followed_makes_no_page_out_of_date(page: Page, line: Line, told: int) -> None:
    """The answer to a subscription may know the turn's own revision before the events that tell of it are here.

    One that knows of more is heeded when the turn has ended.
    """
    say(page, "Send a postcard to Ned")
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "waiting")
    page.evaluate("document.documentElement.dataset.loadedOnce = true")
    line.changes = {"ack": {"version": told}}
    before = len(line.sent("subscribe"))
    execution = page.locator(".run").last.get_attribute("data-execution-id")
    line.tell({"type": "status", "executionId": execution, "seq": 1_000_000, "status": "generating"})  # it missed some
    card(page, POSTCARD).get_by_role("button", name="Approve").click()
    wait_for_end(page)

    expect(page.locator("html[data-loaded-once]")).to_have_count(2 - told)
    if told == 1:
        expect(card(page, POSTCARD).locator(".tool-decision")).to_have_text("Approved")
        assert len(line.sent("subscribe")) == before + 1


@pytest.mark.parametrize("decision", ["Approve", "Stop"])
def test_a_title_that_was_changed_during_a_turn_is_taken_up_after_it(
    page: Page, line: Line, site: Site, decision: str
) -> None:
    say(page, "Send a postcard to Ole")
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "waiting")
    conversation = page.url.rstrip("/").rsplit("/", 1)[-1]
    ask(site, "PATCH", f"/conversations/{conversation}", {"title": "Cards"})
    execution = page.locator(".run").last.get_attribute("data-execution-id")
    line.tell({"type": "status", "executionId": execution, "seq": 1_000_000, "status": "generating"})  # it missed some
    page.get_by_role("button", name=decision, exact=True).click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Cards", timeout=LONG)
    wait_for_end(page)
    expect(page.locator(".said")).to_have_text(["Send a postcard to Ole"])
