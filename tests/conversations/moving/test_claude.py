"""What Claude exports becomes conversations here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.runtime.messages import ReasoningBlock, TextBlock
from conversations.exceptions import ImportInvalid
from conversations.models import Conversation, User
from conversations.store import load_context
from tests.conversations.moving.files import chatgpt, claude, spoken, taken
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db

ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="helper")
    return UserFactory()


def text(conversation: Conversation) -> list[str]:
    return [
        f"{message.role}: {' | '.join(block.text for block in message.blocks if isinstance(block, TextBlock))}"
        for message in load_context(conversation, conversation.head).messages
    ]


def imported(user: User, value: dict[str, Any]) -> Conversation:
    (id,) = taken(user, [value]).conversations
    return Conversation.objects.select_related("head").get(pk=id)


def test_messages_in_their_order_are_turns(user: User) -> None:
    row = imported(
        user,
        claude(
            spoken("m1", "human", "Which river is the longest?"),
            spoken("m2", "assistant", "It depends. 尼罗河"),
            spoken("m3", "human", "On what?"),
            spoken("m4", "assistant", "On the source."),
            is_starred=True,
        ),
    )
    assert (row.title, row.external_id, row.pinned) == ("Rivers", "claude:k-1", True)
    assert row.created_at.isoformat() == "2025-03-01T10:00:00+00:00"
    assert row.revisions.count() == 2
    assert text(row) == [
        "user: Which river is the longest?",
        "assistant: It depends. 尼罗河",
        "user: On what?",
        "assistant: On the source.",
    ]


def tree() -> list[dict[str, Any]]:
    return [
        spoken("m1", "human", "One", parent_message_uuid=ROOT),
        spoken("m2", "assistant", "first", parent_message_uuid="m1"),
        spoken("m3", "assistant", "second", parent_message_uuid="m1"),
        spoken("m4", "human", "Two", parent_message_uuid="m2"),
    ]


def test_messages_with_a_parent_are_branches(user: User) -> None:
    row = imported(user, claude(*tree(), current_leaf_message_uuid="m3"))
    assert row.revisions.count() == 3
    assert text(row) == ["user: One", "assistant: second"]
    assert text(imported(user, claude(*tree(), id="k-2"))) == ["user: One", "assistant: first", "user: Two"]


def test_what_a_person_read_is_kept(user: User) -> None:
    artifact = {"type": "code", "title": "Clock", "language": "javascript", "content": "tick()", "command": "create"}
    answer = spoken("m2", "assistant", "the old form of the text")
    answer["content"] = [
        {"type": "thinking", "thinking": "A clock.", "summaries": []},
        {"type": "text", "text": "Here it is.", "citations": []},
        {"type": "tool_use", "id": "t1", "name": "artifacts", "input": artifact},
        {"type": "tool_result", "tool_use_id": "t1", "name": "artifacts", "content": [{"type": "text", "text": "OK"}]},
        {"type": "tool_use", "id": "t2", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_use", "id": "t3", "name": "artifacts", "input": {"command": "update", "new_str": "y"}},
        {"type": "token_budget", "remaining": 1},
        {"type": "text", "text": "Anything else?", "citations": []},
    ]
    row = imported(user, claude(spoken("m1", "human", "A clock, please"), answer))
    last = load_context(row, row.head).messages[-1]
    assert last.blocks == (
        ReasoningBlock(text="A clock."),
        TextBlock(text="Here it is."),
        TextBlock(text="**Clock**\n\n```javascript\ntick()\n```"),
        TextBlock(text="Anything else?"),
    )


def test_files_are_named_and_quoted(user: User) -> None:
    asked = spoken(
        "m1",
        "human",
        "Read this",
        attachments=[{"file_name": "a.txt", "file_type": "txt", "file_size": 3, "extracted_content": "abc"}],
        files=[{"file_name": "a.txt"}, {"file_name": "photo.png"}],
    )
    pasted = spoken("m2", "human", "", content=[], attachments=[{"file_name": "", "extracted_content": "long text"}])
    row = imported(user, claude(asked, pasted))
    assert text(row) == [
        "user: Read this | [file: a.txt]\n\n```\nabc\n``` | [file: photo.png]",
        "user: [file: text]\n\n```\nlong text\n```",
    ]


def test_an_old_export_has_text_only(user: User) -> None:
    old = {"uuid": "m1", "text": "Hello", "sender": "human", "created_at": "2023-08-01T00:00:00+00:00"}
    assert text(imported(user, claude(old))) == ["user: Hello"]


def test_the_same_file_again_changes_nothing_and_a_newer_one_adds(user: User) -> None:
    messages = tree()
    assert taken(user, [claude(*messages[:2])]).created == 1
    assert taken(user, [claude(*messages[:2])]).unchanged == 1
    assert taken(user, [claude(*messages)]).updated == 1
    assert text(Conversation.objects.get()) == ["user: One", "assistant: first", "user: Two"]


def test_one_file_may_hold_conversations_of_both(user: User) -> None:
    file = [claude(*tree()), chatgpt({"u": (None, "user", "Hi")}), claude(id="k-9", name="Nothing")]
    done = taken(user, file)
    assert (done.created, done.empty) == (2, 1)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "messages": (lambda value: value.update(chat_messages="x"), "$[0].chat_messages"),
    "message": (lambda value: value["chat_messages"].append(3), "$[0].chat_messages[4]"),
    "sender": (lambda value: value["chat_messages"][1].update(sender="robot"), "$[0].chat_messages[1].sender"),
    "id": (lambda value: value["chat_messages"][1].pop("uuid"), "$[0].chat_messages[1].uuid"),
    "twice": (lambda value: value["chat_messages"][1].update(uuid="m1"), "$[0].chat_messages[1].uuid"),
    "content": (lambda value: value["chat_messages"][1].update(content=["x"]), "$[0].chat_messages[1].content[0]"),
    "text": (
        lambda value: value["chat_messages"][1]["content"][0].update(text=5),
        "$[0].chat_messages[1].content[0].text",
    ),
    "time": (lambda value: value["chat_messages"][1].update(created_at="x"), "$[0].chat_messages[1].created_at"),
    "conversation": (lambda value: value.update(uuid=5), "$[0].uuid"),
}


@pytest.mark.parametrize(("break_it", "place"), WRONG.values(), ids=WRONG.keys())
def test_a_broken_file_is_refused_with_the_place(
    user: User, break_it: Callable[[dict[str, Any]], Any], place: str
) -> None:
    broken = claude(*tree())
    break_it(broken)
    with pytest.raises(ImportInvalid) as refused:
        taken(user, [broken])
    assert refused.value.place == place
    assert not Conversation.objects.exists()
