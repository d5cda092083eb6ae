"""A turn that did not end well: go on from it, have it continued; nothing that was typed is lost."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from agent.testing.chat_wire import chat_stream
from agent.testing.http_provider import ScriptedAnswer
from tests.browser.chat import LONG, faults, last_answer, say, wait_for_end, words
from tests.browser.conftest import OpenPage
from tests.browser.scripted import add_agent, provider
from tests.site import Site

STORY = "Tell me a long story"


def stop(page: Page) -> None:
    """Stop a story after its first night."""
    say(page, STORY)
    expect(last_answer(page)).to_contain_text("Night 1", timeout=LONG)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


def offer(page: Page, name: str) -> Locator:
    return page.locator("#transcript").get_by_role("button", name=name)


def test_a_stopped_turn_is_gone_on_from(page: Page, open_page: OpenPage) -> None:
    """DESIGN 3: it becomes part of the conversation here, in another window, and after a reload."""
    say(page, "Hello")
    stop(page)
    early = open_page(page.url)
    expect(offer(early, "Continue from here")).to_be_visible()
    offer(page, "Continue from here").click()
    expect(page.locator(".notice")).to_have_count(0)

    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(page.get_by_placeholder("Write how to go on from here")).to_be_visible()
    expect(last_answer(page)).to_contain_text("Night 1")
    expect(early.locator(".notice")).to_have_count(0)
    page.reload()
    wait_for_end(page)
    expect(page.locator(".run, .notice")).to_have_count(0)
    expect(last_answer(page)).to_contain_text("Night 1")

    say(page, "Hello again")
    wait_for_end(page)
    expect(early.locator(".said")).to_have_text(["Hello", STORY, "Hello again"])
    say(early, "And from here")
    wait_for_end(early)
    expect(page.locator(".said")).to_have_text(["Hello", STORY, "Hello again", "And from here"])
    expect(page.locator("[role=alert]:visible")).to_have_count(0)


def test_a_window_that_saw_the_turn_stop_hears_of_it(page: Page, open_page: OpenPage) -> None:
    say(page, "Hello")
    wait_for_end(page)
    other = open_page(page.url)
    wait_for_end(other)
    stop(page)
    wait_for_end(other)
    said = words(other).replace("Stopped.", "").split("This turn")[0].strip()
    expect(offer(other, "Continue from here")).to_be_visible()
    offer(page, "Continue from here").click()
    expect(other.locator(".notice")).to_have_count(0)

    assert words(other) == said
    say(other, "Hello again")
    wait_for_end(other)
    expect(other.locator("[role=alert]:visible")).to_have_count(0)
    expect(last_answer(other)).to_contain_text("demo agent")


def test_an_answer_that_broke_off_can_be_gone_on_from(open_page: OpenPage, site: Site) -> None:
    broken = ScriptedAnswer(chat_stream("It was a dark", " and stormy")[:-3], end="reset")
    with provider(broken, chat_stream("night.")) as url:
        add_agent(site, "broken", url)
        page = open_page("/?agent=broken")
        say(page, "Begin")
        wait_for_end(page)
        expect(page.locator(".notice-failed")).to_contain_text("The answer broke off.")
        assert faults(page) == []
        page.reload()
        wait_for_end(page)
        offer(page, "Continue from here").click()
        expect(page.locator(".notice")).to_have_count(0)
        say(page, "Go on")
        wait_for_end(page)

    expect(page.locator(".message-assistant .prose")).to_have_text(["It was a dark and stormy", "night."])


def test_where_nothing_was_answered_there_is_nothing_to_go_on_from(open_page: OpenPage, site: Site) -> None:
    add_agent(site, "silent", "http://127.0.0.1:9/v1")
    page = open_page("/?agent=silent")
    say(page, "Is anybody there?")
    wait_for_end(page)

    for _ in ("at once", "after a reload"):
        expect(offer(page, "Try again")).to_be_visible()
        expect(offer(page, "Continue from here")).to_have_count(0)
        page.reload()
        wait_for_end(page)


def test_a_refusal_to_go_on_is_said_and_the_page_catches_up(open_page: OpenPage, site: Site) -> None:
    """The conversation has moved on without a word to this page."""
    page = open_page(allowed=("409",))
    stop(page)
    conversation = page.url.rstrip("/").rsplit("/", 1)[-1]
    site.shell(
        "from conversations.models import Conversation, Revision; "
        f"c = Conversation.objects.get(pk='{conversation}'); "
        "c.head = Revision.objects.create(conversation=c, number=c.version + 1, parent=c.head, context=[]); "
        "c.version += 1; c.head_version = c.version; c.save()"
    )
    page.get_by_label("Message", exact=True).fill("half a thought")
    with page.expect_event("load"):
        offer(page, "Continue from here").click()
    wait_for_end(page)

    expect(page.get_by_role("alert").filter(has_text="has gone on elsewhere")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("half a thought")


def test_a_message_to_a_conversation_that_went_on_elsewhere_is_kept(page: Page, site: Site) -> None:
    """CONVERSATION_CONFLICT: the page brings itself up to date, the text is in the box and can be sent again."""
    say(page, "Hello")
    wait_for_end(page)
    conversation = page.url.rstrip("/").rsplit("/", 1)[-1]
    site.shell(
        "from conversations.models import Conversation, Revision; "
        f"c = Conversation.objects.get(pk='{conversation}'); "
        "said = {'id': 'm-1', 'role': 'user', 'blocks': [{'type': 'text', 'text': 'From elsewhere'}]}; "
        "c.head = Revision.objects.create(conversation=c, number=c.version + 1, parent=c.head, context=[said]); "
        "c.version += 1; c.head_version = c.version; c.save()"
    )
    with page.expect_event("load"):
        say(page, "And now?")
    wait_for_end(page)

    expect(page.get_by_role("alert").filter(has_text="has gone on elsewhere")).to_be_visible()
    expect(page.locator(".said")).to_have_text(["Hello", "From elsewhere"])
    expect(page.get_by_label("Message", exact=True)).to_have_value("And now?")
    page.get_by_role("button", name="Send", exact=True).click()
    wait_for_end(page)
    expect(page.locator(".said")).to_have_text(["Hello", "From elsewhere", "And now?"])
    expect(last_answer(page)).to_contain_text("demo agent")


def test_an_answer_that_was_cut_off_is_continued(open_page: OpenPage, site: Site) -> None:
    """R52, R58: also after a reload, and the offer goes once it was taken."""
    with provider(chat_stream("Half an ans", finish="length"), chat_stream("wer.")) as url:
        add_agent(site, "cut", url)
        page = open_page("/?agent=cut")
        say(page, "Talk")
        wait_for_end(page)
        expect(page.locator(".notice-max-tokens")).to_contain_text("The answer was cut off")
        expect(offer(page, "Continue")).to_be_visible()
        assert faults(page) == []
        page.reload()
        wait_for_end(page)
        expect(page.locator(".notice-max-tokens")).to_contain_text("The answer was cut off")
        offer(page, "Continue").click()
        expect(last_answer(page)).to_contain_text("wer.")
        expect(page.get_by_label("Message", exact=True)).to_be_focused()
        wait_for_end(page)

    expect(page.locator(".said")).to_have_text(["Talk", "Continue."])
    expect(offer(page, "Continue")).to_have_count(0)
