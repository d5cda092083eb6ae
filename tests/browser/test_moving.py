"""Conversations go out and in by the page of the account."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat import faults
from tests.browser.conftest import OpenPage
from tests.conversations.moving.files import chatgpt

PATH = "/account/import/"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
ANSWER = "It is `12` metres deep.\n\n```python\ndepth = 12\n```\n\n| lake | depth |\n|---|---|\n| Upper | 12 |"


def file(id: str) -> list[dict[str, Any]]:
    nodes = {"u": (None, "user", "How deep is the lake?\nI want to swim."), "a": ("u", "assistant", ANSWER)}
    return [chatgpt(nodes, title="The lake", id=id)]


def choose(page: Page, value: Any, name: str = "conversations.json") -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    page.get_by_label("File").set_input_files({"name": name, "mimeType": "application/json", "buffer": data})
    page.get_by_role("button", name="Import").click()


def test_a_file_is_imported_and_its_conversation_opened(open_page: OpenPage) -> None:
    page = open_page(PATH)
    choose(page, file("browser-1"))
    expect(page.get_by_role("status")).to_contain_text("1 new conversation.")
    choose(page, file("browser-1"))
    expect(page.get_by_role("status")).to_contain_text("1 conversation that was here already.")
    choose(page, file("browser-2"))
    page.get_by_role("link", name="Open the last of them").click()
    expect(page.get_by_role("heading", name="The lake")).to_be_visible()
    expect(page.locator(".message-assistant").last).to_contain_text("metres deep")


def test_a_file_that_is_none_is_refused_with_the_place(open_page: OpenPage) -> None:
    page = open_page(PATH, allowed=("400",))
    choose(page, [*file("browser-3"), {}])
    shown = page.get_by_role("status")
    expect(shown).to_contain_text("nothing of it was")
    expect(shown).to_contain_text("$[1]: this is no conversation of PAR, ChatGPT or Claude")
    expect(shown).to_be_focused()
    expect(page.get_by_role("button", name="Import")).to_be_enabled()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_has_no_known_barrier(open_page: OpenPage, scheme: Literal["light", "dark"]) -> None:
    page = open_page(PATH, color_scheme=scheme, viewport={"width": 390, "height": 844})
    choose(page, file("browser-4"))
    expect(page.get_by_role("status")).to_contain_text("conversation")
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_conversation_can_be_printed_and_kept(open_page: OpenPage, tmp_path: Path) -> None:
    """The page shows itself under a policy that allows nothing but its own styles."""
    page = open_page(PATH)
    choose(page, file("browser-5"))
    page.get_by_role("link", name="Open the last of them").click()
    page.wait_for_url("**/c/**")
    id = page.url.rstrip("/").rpartition("/")[2]
    printed = open_page(f"/ai/conversations/{id}/export?format=html", color_scheme="dark")
    expect(printed.get_by_role("heading", name="The lake")).to_be_visible()
    expect(printed.get_by_role("cell", name="Upper")).to_be_visible()
    assert (
        printed.locator("body").evaluate("element => getComputedStyle(element).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert printed.locator("pre").first.evaluate("element => getComputedStyle(element).whiteSpace") == "pre-wrap"
    kept = tmp_path / "lake.html"
    kept.write_text(printed.content())
    alone = open_page(PATH, allowed=(kept.name,))
    alone.goto(kept.as_uri())
    assert alone.locator("body").evaluate("element => getComputedStyle(element).maxWidth") == "736px"
    assert faults(alone) == []
