"""What a page shows by reference: pictures and files by their address, and where the rest of a long result is."""

from __future__ import annotations

from uuid import UUID

from django.template.loader import render_to_string

from agent.runtime.messages import AgentMessage, ImageBlock, TextBlock, ToolCallBlock, UrlSource, tool_result
from conversations.sources import Sources
from conversations.transcript import Card, File, Picture, Said, ShownMessage, ShownRun, history
from conversations.unsaved import UnsavedTurn
from conversations.words import Notice

ID = UUID("01890a5d-a8f0-7c3e-9b6a-5d2f8e1c4b70")
SOURCES = Sources("/ai", "conversations/c", {ID: "a <photo>.png"})
PICTURE = ImageBlock(source=UrlSource(url=f"attachment:{ID}"))
FILE = TextBlock(
    text=f'<attachment id="{ID}" name="a &lt;b&gt;.pdf" type="application/pdf" pages="1">\n<i>x</i>\n</attachment>'
)
CALL = ToolCallBlock(call_id="c/1?", name="read", input={})


def asked(*blocks: TextBlock | ImageBlock) -> AgentMessage:
    return AgentMessage(id="m", role="user", blocks=blocks)


def read(text: str) -> tuple[AgentMessage, ...]:
    result = tool_result(CALL, text, status="success", execution="completed")
    return (
        asked(TextBlock(text="Read")),
        AgentMessage(id="n", role="assistant", blocks=(CALL,)),
        AgentMessage(id="o", role="tool", blocks=(result,)),
    )


def shown(*messages: AgentMessage, sources: Sources = SOURCES) -> list[object]:
    entries = history(messages, "A", limit=10, sources=sources).entries
    return [block for entry in entries if isinstance(entry, ShownMessage) for block in entry.blocks]


def test_an_attached_picture_is_shown_under_its_name() -> None:
    (block,) = shown(asked(PICTURE))
    assert block == Picture("a <photo>.png", f"/ai/attachments/{ID}")
    html = render_to_string("chat/picture.html", {"block": block})
    assert f'<img src="/ai/attachments/{ID}" alt="a &lt;photo&gt;.png"' in html


def test_a_picture_of_elsewhere_is_never_fetched() -> None:
    """B76."""
    elsewhere = ImageBlock(source=UrlSource(url="https://evil.example/?secret"))
    for message, sources in ((asked(elsewhere), SOURCES), (asked(PICTURE), Sources())):
        (block,) = shown(message, sources=sources)
        assert "src=" not in render_to_string("chat/picture.html", {"block": block})


def test_a_quoted_file_is_folded_with_a_link_that_saves_it() -> None:
    words, file = shown(asked(TextBlock(text="Look"), FILE))
    assert words == Said("Look")
    assert file == File("a <b>.pdf", "PDF, 1 page", "<i>x</i>", f"/ai/attachments/{ID}")
    html = render_to_string("chat/file.html", {"block": file})
    assert "&lt;i&gt;x&lt;/i&gt;" in html
    assert f'<a href="/ai/attachments/{ID}" download="a &lt;b&gt;.pdf">' in html


def test_a_long_result_is_cut_and_says_where_the_whole_is() -> None:
    (_, card) = shown(*read("x" * 20_000))
    assert isinstance(card, Card)
    assert card.whole == "/ai/conversations/c/tool-results/c%2F1%3F"
    assert len(card.result) < 16_200
    assert "4,000 characters are left out here" in card.result
    (_, short) = shown(*read("x" * 16_000))
    assert isinstance(short, Card)
    assert (short.whole, len(short.result)) == ("", 16_000)


def test_an_unsaved_turn_has_its_results_itself_and_a_file_is_not_sent_again_as_text() -> None:
    said = UnsavedTurn("e", None, "failed", Notice("Failed."), read("x" * 20_000), None)
    file = UnsavedTurn("f", None, "failed", Notice("Failed."), (asked(FILE),), None)
    entries = history((), "A", limit=10, unsaved=[said, file], sources=SOURCES).entries
    runs = [entry for entry in entries if isinstance(entry, ShownRun)]
    assert [run.repeatable for run in runs] == [True, False]
    (card,) = (block for block in runs[0].messages[1].blocks if isinstance(block, Card))
    assert card.whole == "/ai/executions/e/tool-results/c%2F1%3F"
