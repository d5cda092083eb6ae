"""The path of issue and product: sign in, talk, decide about tools, stop, come back."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.chat import LONG, card, last_answer, say, wait_for_end, words
from tests.browser.conftest import OpenPage
from tests.site import Site

POSTCARD = "local.send_postcard"
CONVERSATION = re.compile(r"/c/[0-9a-f-]{36}/$")


def test_from_the_sign_in_link_to_an_answer_in_colours(open_page: OpenPage, site: Site) -> None:
    page = open_page(site.sign_in_link(), signed_in=False)
    assert page.url == f"{site.address}/link/"
    page.get_by_role("button", name="Sign in").click()

    suggestions = page.get_by_role("list", name="Suggestions").get_by_role("button")
    expect(suggestions).to_have_count(3)
    suggestions.first.click()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    wait_for_end(page)

    expect(page).to_have_url(CONVERSATION)
    expect(last_answer(page).get_by_role("heading", level=3).first).to_be_visible()
    expect(last_answer(page).locator("pre code.language-python .k").first).to_be_visible()
    expect(last_answer(page).locator(".reasoning")).not_to_have_attribute("open", "")
    expect(page.locator(".conversations [aria-current=page] .title")).to_have_text("Show me what you can do")
    expect(page.get_by_role("heading", level=1)).to_have_text("Show me what you can do")


def test_what_was_streamed_is_what_is_stored(page: Page) -> None:
    say(page, "Show me what you can do")
    wait_for_end(page)
    streamed = words(page)
    page.reload()

    assert words(page) == streamed


def test_a_conversation_is_found_again_in_the_list(page: Page) -> None:
    say(page, "Hello to the list")
    wait_for_end(page)
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("New chat")
    page.get_by_role("link", name="Hello to the list").click()

    expect(page.locator(".said")).to_have_text("Hello to the list")
    expect(last_answer(page)).to_contain_text("demo agent")


def test_a_second_message_goes_on_in_the_same_conversation(page: Page) -> None:
    say(page, "Hello")
    wait_for_end(page)
    address = page.url
    say(page, "What time is it, and what is 12 * 34?")
    wait_for_end(page)

    assert page.url == address
    expect(last_answer(page)).to_contain_text("408")
    expect(card(page, "local.calculate")).to_have_attribute("data-status", "done")


def test_a_tool_runs_once_it_is_approved(page: Page) -> None:
    say(page, "Send a postcard to Ada")
    waiting = card(page, POSTCARD)
    expect(waiting).to_have_attribute("data-status", "waiting")
    expect(waiting.locator(".tool-description")).to_be_visible()
    expect(waiting.get_by_text("may not be undone")).to_be_hidden()
    expect(page.locator("#keys")).to_contain_text("once the answer has ended", use_inner_text=True)
    expect(waiting.get_by_role("term")).to_have_text(["to", "text"])
    expect(waiting.get_by_role("definition").first).to_have_text("Ada")
    expect(waiting.get_by_role("definition").first).to_be_visible()
    waiting.get_by_role("button", name="Approve").click()
    wait_for_end(page)

    expect(waiting).to_have_attribute("data-status", "done")
    expect(waiting).to_contain_text("Approved")
    expect(waiting.get_by_role("button", name="Approve")).to_be_hidden()
    expect(last_answer(page)).to_contain_text("on its way")


def test_a_tool_does_not_run_once_it_is_rejected(page: Page) -> None:
    say(page, "Send a postcard to Bob")
    waiting = card(page, POSTCARD)
    waiting.get_by_label("Reason for a rejection").fill("Bob is here already")
    waiting.get_by_label("Reason for a rejection").press("Enter")
    wait_for_end(page)

    expect(waiting).to_have_attribute("data-status", "rejected")
    expect(waiting).to_contain_text("Rejected")
    expect(waiting.locator(".tool-result-text")).to_contain_text("Bob is here already")
    expect(page.locator("#keys")).to_contain_text("Enter sends", use_inner_text=True)
    page.reload()
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "rejected")
    expect(card(page, POSTCARD).locator(".tool-fate")).to_have_text("Rejected Not run", use_inner_text=True)


def test_a_tool_is_approved_with_the_keyboard_alone(page: Page) -> None:
    say(page, "Send a postcard to Cleo")
    expect(card(page, POSTCARD)).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="The agent asks")).to_be_attached()
    for _ in range(3):  # the arguments and their text come first
        page.keyboard.press("Tab")
    expect(card(page, POSTCARD).get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card(page, POSTCARD)).to_be_focused()
    wait_for_end(page)

    expect(card(page, POSTCARD)).to_have_attribute("data-status", "done")


def test_a_question_that_was_answered_in_another_window_goes_away(page: Page, open_page: OpenPage) -> None:
    say(page, "Send a postcard to Dora")
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "waiting")
    other = open_page(page.url)
    card(other, POSTCARD).get_by_role("button", name="Approve").click()
    wait_for_end(page)
    wait_for_end(other)

    expect(card(page, POSTCARD)).to_contain_text("Approved in another window")
    assert last_answer(page).inner_text() == last_answer(other).inner_text()


def test_a_question_survives_a_reload(page: Page) -> None:
    say(page, "Send a postcard to Emil")
    expect(card(page, POSTCARD)).to_have_attribute("data-status", "waiting")
    page.reload()
    card(page, POSTCARD).get_by_role("button", name="Reject").click()
    wait_for_end(page)

    expect(card(page, POSTCARD)).to_have_attribute("data-status", "rejected")


def test_stop_ends_the_answer_and_says_what_that_means(page: Page) -> None:
    say(page, "Tell me a long story")
    expect(last_answer(page)).to_contain_text("Night 2", timeout=LONG)
    expect(page.locator("#announcer")).to_have_text("Demo is answering.")
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)

    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(page.locator("#announcer")).to_have_text("Stopped.")
    expect(page.locator(".notice-cancelled")).to_contain_text("not part of the conversation")
    expect(last_answer(page)).to_contain_text("Night 2")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    page.reload()
    expect(page.locator(".notice-cancelled")).to_contain_text("not part of the conversation")
    expect(page.locator(".said")).to_have_text("Tell me a long story")


def test_a_stopped_turn_stays_where_it_happened(page: Page, open_page: OpenPage) -> None:
    say(page, "Tell me a long story")
    expect(last_answer(page)).to_contain_text("Night 2", timeout=LONG)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)
    say(page, "Hello again")
    wait_for_end(page)
    say(page, "Tell me another long story")
    expect(last_answer(page)).to_contain_text("Night 1", timeout=LONG)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)
    later = open_page(page.url)
    wait_for_end(later)

    expect(page.locator("#transcript")).to_have_text(words(later))
    page.reload()
    wait_for_end(page)
    expect(page.locator(".said")).to_have_text(["Tell me a long story", "Hello again", "Tell me another long story"])
    stopped = page.locator(".run[data-status=cancelled]")
    expect(stopped).to_have_count(2)
    expect(stopped.first).to_contain_text("Night 2")
    expect(stopped.first).to_contain_text("not part of the conversation")
    expect(page.locator("#transcript > .message-user .said")).to_have_text("Hello again")

    offered = stopped.first.get_by_role("button")
    expect(offered).to_have_count(2)
    expect(offered.first).to_have_accessible_name("Copy the answer")
    expect(offered.last).to_have_accessible_name("Continue from here as a branch")
    stopped.last.get_by_role("button", name="Try again").click()
    expect(page.locator(".said")).to_have_count(4)
    expect(page.locator(".said").last).to_have_text("Tell me another long story")
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


def test_a_stopped_turn_can_be_tried_again(page: Page) -> None:
    say(page, "Tell me a long story")
    expect(last_answer(page)).to_contain_text("Night 1")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#composer")).to_have_attribute("data-mode", "running")

    expect(page.locator(".run")).to_have_count(2)
    expect(page.locator(".said").last).to_have_text("Tell me a long story")
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


def test_a_reload_in_mid_stream_goes_on(page: Page) -> None:
    """B56: the run does not depend on the page."""
    say(page, "Tell me a long story")
    expect(last_answer(page)).to_contain_text("Night 2", timeout=LONG)
    page.reload()
    expect(page.locator("#composer")).to_have_attribute("data-mode", "running")
    expect(last_answer(page)).to_contain_text("Night 1")
    expect(last_answer(page)).to_contain_text("Night 5", timeout=LONG)

    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


def test_a_reload_in_mid_stream_loses_nothing(page: Page, open_page: OpenPage) -> None:
    say(page, "Show me what you can do")
    expect(page).to_have_url(CONVERSATION)
    watching = open_page(page.url)
    page.reload()
    wait_for_end(page)
    wait_for_end(watching)

    followed, joined = words(page), words(watching)
    page.reload()
    assert words(page) == followed == joined


def test_closing_the_page_in_mid_stream_loses_nothing(page: Page, open_page: OpenPage) -> None:
    """B56."""
    say(page, "What time is it, and what is 3 * 4?")
    expect(page).to_have_url(CONVERSATION)
    address = page.url
    page.goto("about:blank")
    later = open_page(address)
    wait_for_end(later)

    expect(later.locator("#transcript")).to_contain_text("12")


def test_another_window_follows_the_whole_conversation(page: Page, open_page: OpenPage) -> None:
    say(page, "Hello")
    wait_for_end(page)
    other = open_page(page.url)
    wait_for_end(other)
    say(page, "What time is it, and what is 5 * 5?")
    expect(other.locator(".said").last).to_have_text("What time is it, and what is 5 * 5?")
    wait_for_end(page)
    wait_for_end(other)

    expect(last_answer(other)).to_contain_text("25")


def test_nothing_is_sent_twice(page: Page) -> None:
    box = page.get_by_label("Message", exact=True)
    box.fill("Only once")
    page.evaluate("""() => {
      const press = () => document.getElementById("box").dispatchEvent(
        new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
      press();
      document.getElementById("box").value = "Only once";
      press();
      document.getElementById("composer").requestSubmit();
    }""")
    wait_for_end(page)

    expect(page.locator(".said")).to_have_text(["Only once"])
    page.reload()
    expect(page.locator(".said")).to_have_text(["Only once"])


def test_shift_and_enter_make_a_new_line(page: Page) -> None:
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("one")
    box.press("Shift+Enter")
    box.press_sequentially("two")
    box.press("Enter")
    wait_for_end(page)

    assert page.locator(".said").text_content() == "one\ntwo"
    expect(page.get_by_role("heading", level=1)).to_have_text("one two")
    expect(page.locator(".conversations [aria-current=page] .title")).to_have_text("one two")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("one two")


def test_what_was_typed_survives_a_reload(page: Page) -> None:
    page.get_by_label("Message", exact=True).fill("half a thou")
    page.reload()

    expect(page.get_by_label("Message", exact=True)).to_have_value("half a thou")


def test_an_empty_chat_is_read_from_its_beginning(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 640, "height": 200})
    wait_for_end(page)
    page.set_viewport_size({"width": 500, "height": 210})
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    assert page.evaluate("document.documentElement.scrollHeight > innerHeight + 100")
    assert page.evaluate("scrollY") == 0


def test_signing_out_leads_to_the_sign_in_page(open_page: OpenPage, site: Site) -> None:
    page = open_page(site.sign_in_link(), signed_in=False)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/")

    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
