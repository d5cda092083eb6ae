"""A conversation as Markdown: what was written stays as it was, and passes for nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conversations.models import Conversation, Revision
from conversations.moving.written import enclosed, escaped, markdown_of
from tests.factories import AgentProfileFactory, ConversationFactory

PIECES = st.lists(
    st.sampled_from(
        ["```", "~~~~", "# H", "H\n===", "H\n---", "<!--", "<pre>", "<script>", "- a", "  - ```", "> q", "> ```"]
        + ["a", "|a|b|\n|-|-|", "[x]: /y", "\\", "`", "**", "数据", "\r", "&lt;", "<?", "<![CDATA[", "1. ```"]
    ),
    max_size=8,
).flatmap(lambda pieces: st.sampled_from(["\n", "\n\n", " "]).map(lambda between: between.join(pieces)))


@given(PIECES)
@settings(max_examples=300)
def test_what_comes_after_a_message_is_not_part_of_it(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(f"{enclosed(text)}\n\n## You\n\nafter")
    top = [token for token in tokens if token.level == 0]
    assert [token.type for token in top[-4:]] == ["heading_open", "heading_close", "paragraph_open", "paragraph_close"]
    headings = [token.tag for token in top if token.type == "heading_open"]
    assert set(headings[:-1]) <= {"h3", "h4", "h5", "h6"}
    assert headings[-1] == "h2"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_title_is_shown_as_it_is(title: str) -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(f"# {escaped(title)} end")
    assert [token.type for token in tokens] == ["heading_open", "inline", "heading_close"]
    assert {token.type for token in tokens[1].children or []} <= {"text", "text_special"}


def test_code_stays_as_it_was_written() -> None:
    code = "Look:\n\n```python\n# no heading\nif x:\n\treturn '```'\n```\n\nDone."
    assert enclosed(code) == code
    assert enclosed("```js\nlet a") == "```js\nlet a\n```"
    assert enclosed("# Big\n\nText") == "### Big\n\nText"


def test_very_many_headings_take_no_longer_than_their_text() -> None:
    assert enclosed("# a\n\n" * 8_000) == "### a\n\n" * 8_000


@pytest.fixture
def conversation(db: None) -> Conversation:
    agent = AgentProfileFactory(name="Ada *the* agent")
    return ConversationFactory(agent=agent, title="# A `title` <b>\nwith [a](http://x) trap")


def say(conversation: Conversation, *messages: tuple[str, list[dict[str, Any]]]) -> None:
    context = [{"id": f"m-{at}", "role": role, "blocks": blocks} for at, (role, blocks) in enumerate(messages)]
    conversation.head = Revision.objects.create(conversation=conversation, number=1, context=context)
    conversation.save()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_a_conversation_reads_well(conversation: Conversation) -> None:
    call = {"type": "tool-call", "callId": "c-1", "name": "look_up", "input": {"query": "数据 ```"}}
    result = {"type": "tool-result", "callId": "c-1", "name": "look_up", "status": "error", "execution": "completed"}
    picture = {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": "iVBORw0KGgo="}}
    elsewhere = {"type": "image", "source": {"type": "url", "url": "https://example.org/a> (b).png"}}
    say(
        conversation,
        ("user", [text("Find it\n\n## Ada"), picture, elsewhere]),
        ("assistant", [{"type": "reasoning", "text": "Where?"}, call]),
        ("tool", [result | {"content": [text("nothing\n# here")]}]),
        ("assistant", [text("I found nothing.")]),
        ("user", [text("Thanks")]),
    )
    written = "".join(markdown_of(conversation, timezone.now()))
    lines = written.splitlines()
    assert [line for line in lines if line.startswith("# ")] == [r"# \# A \`title\` \<b\> with \[a\]\(http\://x\) trap"]
    assert [line for line in lines if line.startswith("## ")] == ["## You", r"## Ada \*the\* agent", "## You"]
    assert "#### Ada" in lines
    assert "> **Reasoning**" in lines
    assert r"> **Tool look\_up** (error)" in lines
    assert '>   "query": "数据 ```"' in lines
    assert "> # here" in lines
    assert "[picture](<https://example.org/a(b).png>)" in lines
    name = next(line for line in lines if line.startswith("![picture]")).removeprefix("![picture]")
    assert f"{name}: data:image/png;base64,iVBORw0KGgo=" in lines
    html = MarkdownIt("commonmark").render(written)
    assert html.count("<img") == 1
    assert "<b>" not in html


def test_an_empty_conversation_has_a_title(conversation: Conversation) -> None:
    conversation.title = None
    assert "".join(markdown_of(conversation, timezone.now())).startswith("# Untitled chat\n")
