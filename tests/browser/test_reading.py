"""What makes a long answer pleasant to read: it is left alone, found again, and taken along."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat import LONG, card, faults, last_answer, say, wait_for_end
from tests.browser.conftest import OpenPage

COPYING: dict[str, Any] = {"permissions": ["clipboard-read", "clipboard-write"]}
AT_END = "innerHeight + scrollY > document.documentElement.scrollHeight - 60"


def clipboard(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_a_reader_who_scrolled_up_is_left_alone_and_led_back(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 800, "height": 400})
    newest = page.get_by_role("button", name="New text below")
    say(page, "Tell me a long story")
    expect(last_answer(page)).to_contain_text("Night 4", timeout=LONG)
    assert page.evaluate(AT_END)
    expect(newest).to_be_hidden()
    page.mouse.wheel(0, -600)
    page.wait_for_function("innerHeight + scrollY < document.documentElement.scrollHeight - 200")
    before = page.evaluate("scrollY")
    expect(last_answer(page)).to_contain_text("Night 6", timeout=LONG)
    assert page.evaluate("scrollY") == before

    assert faults(page) == []
    newest.click()
    expect(newest).to_be_hidden()
    assert page.evaluate(AT_END)
    expect(last_answer(page)).to_contain_text("Night 8", timeout=LONG)
    assert page.evaluate(AT_END)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


def test_code_and_answers_are_copied(open_page: OpenPage) -> None:
    """As they were streamed and after a reload; without thoughts and buttons."""
    page = open_page(**COPYING)
    say(page, "Show me what you can do")
    wait_for_end(page)
    for _ in ("streamed", "reloaded"):
        last_answer(page).get_by_role("button", name="Copy the code").first.click()
        expect(page.locator("#announcer")).to_have_text("Copied.")
        assert clipboard(page) == "export OPENAI_API_KEY=sk-...\nmake run"
        last_answer(page).get_by_role("button", name="Copy the answer").click()
        page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('Hello, I am the demo')")
        assert clipboard(page).rstrip().endswith("Use double number=21")
        assert "Copy" not in clipboard(page)
        page.reload()


def test_where_copying_is_not_allowed_the_text_is_selected(page: Page) -> None:
    say(page, "Show me what you can do")
    wait_for_end(page)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    last_answer(page).get_by_role("button", name="Copy the code").first.click()

    expect(page.locator("#announcer")).to_contain_text("does not allow copying")
    assert page.evaluate("getSelection().toString().trim()") == "export OPENAI_API_KEY=sk-...\nmake run"


def test_the_list_says_where_an_answer_is_written_or_waits(page: Page) -> None:
    say(page, "Send a postcard to Mia")
    item = page.locator(".conversations li").filter(has=page.locator("[aria-current]"))
    expect(item).to_contain_text("Waits for you", use_inner_text=True)
    page.reload()
    expect(item).to_contain_text("Waits for you", use_inner_text=True)
    card(page, "local.send_postcard").get_by_role("button", name="Approve").click()
    wait_for_end(page)
    expect(item).not_to_contain_text("Waits for you", use_inner_text=True)

    say(page, "Tell me a long story")
    expect(item).to_contain_text("Answering", use_inner_text=True)
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)
    expect(item).not_to_contain_text("Answering", use_inner_text=True)


@pytest.mark.parametrize("finger", [False, True])
def test_enter_makes_a_new_line_where_there_is_only_a_finger(open_page: OpenPage, finger: bool) -> None:
    page = open_page(has_touch=finger, is_mobile=finger)
    wait_for_end(page)
    box = page.get_by_label("Message", exact=True)
    box.fill("one")
    box.press("Enter")

    if finger:
        expect(box).to_have_value("one\n")
    else:
        wait_for_end(page)
        expect(page.locator(".said")).to_have_text("one")


def test_enter_belongs_to_an_input_method_while_it_composes(page: Page) -> None:
    wait_for_end(page)
    box = page.get_by_label("Message", exact=True)
    box.fill("にほん")
    for composing, code in ((True, 13), (False, 229)):
        box.evaluate(
            """(box, [isComposing, keyCode]) => box.dispatchEvent(
              new KeyboardEvent("keydown", { key: "Enter", isComposing, keyCode, bubbles: true, cancelable: true }))""",
            [composing, code],
        )

    expect(page.locator(".said")).to_have_count(0)
    expect(box).to_have_value("にほん")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_word_in_the_box_leaves_everything_where_it_is(open_page: OpenPage, width: int) -> None:
    page = open_page(viewport={"width": width, "height": 800})
    page.get_by_label("Message", exact=True).fill("https://example.org/" + "x" * 400)
    send = page.get_by_role("button", name="Send", exact=True).bounding_box()
    assert send is not None and send["x"] + send["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
