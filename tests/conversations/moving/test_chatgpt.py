"""What ChatGPT exports becomes conversations here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent.runtime.messages import ImageBlock, ReasoningBlock, TextBlock
from conversations.checking import Tally, check_conversation
from conversations.exceptions import ImportInvalid
from conversations.models import Conversation, Revision, RevisionKind, User
from conversations.moving import incoming as limits
from conversations.store import load_context
from tests.conversations.moving.files import chatgpt, taken, zipped
from tests.conversations.store.writing import AGENT, turn
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="helper", is_default=True)
    AgentProfileFactory(slug=AGENT)
    return UserFactory()


def text(conversation: Conversation, tip: Revision | None = None) -> list[str]:
    """Return what is said up to a revision, the head if none is given."""
    messages = load_context(conversation, tip or conversation.head).messages
    return [
        f"{message.role}: {' | '.join(block.text for block in message.blocks if isinstance(block, TextBlock))}"
        for message in messages
    ]


def imported(user: User, value: dict[str, Any]) -> Conversation:
    (id,) = taken(user, [value]).conversations
    return Conversation.objects.select_related("head").get(pk=id)


def said(content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"content": content, **more}


def test_a_conversation_becomes_a_chain_of_turns(user: User) -> None:
    row = imported(
        user,
        chatgpt(
            {
                "root": (None, None, ""),
                "s": ("root", "system", ""),
                "u1": ("s", "user", "How do I bake bread? 面包"),
                "a1": ("u1", "assistant", "With flour."),
                "u2": ("a1", "user", "And then?"),
                "a2": ("u2", "assistant", "Wait."),
            },
            is_archived=True,
        ),
    )
    assert (row.title, row.external_id, row.archived, row.agent.slug) == ("Bread", "chatgpt:c-1", True, "helper")
    assert row.created_at.isoformat() == "2023-11-14T22:13:20+00:00"
    assert row.updated_at.isoformat() == "2023-11-14T22:15:00+00:00"
    turns = list(row.revisions.order_by("number"))
    assert [(turn.kind, len(turn.context)) for turn in turns] == [(RevisionKind.IMPORT, 2)] * 2
    assert [turn.parent for turn in turns] == [None, turns[0]]
    assert (row.head, row.version, row.head_version) == (turns[1], 2, 2)
    assert text(row) == [
        "user: How do I bake bread? 面包",
        "assistant: With flour.",
        "user: And then?",
        "assistant: Wait.",
    ]


BRANCHES = {
    "root": (None, None, ""),
    "u1": ("root", "user", "One"),
    "a1": ("u1", "assistant", "first answer"),
    "b1": ("u1", "assistant", "second answer"),
    "u2": ("b1", "user", "Two"),
    "v2": ("b1", "user", "Two, edited"),
    "a2": ("v2", "assistant", "last"),
}


def test_after_a_newer_export_the_conversation_goes_on(user: User) -> None:
    """The next revision takes no number that an import gave, and nothing counts as damaged."""
    messages = {"u1": (None, "user", "One"), "a1": ("u1", "assistant", "1")}
    row = imported(user, chatgpt(messages))
    for n in range(2, 6):
        messages |= {
            f"u{n}": (f"a{n - 1}", "user", f"Question {n}"),
            f"a{n}": (f"u{n}", "assistant", f"Answer {n}"),
        }
    row = imported(user, chatgpt(messages))
    for n in range(3):
        row = turn(user, f"more {n}", "said", row).conversation
    assert [each.partition(": ")[2] for each in text(row)][-6::2] == ["more 0", "more 1", "more 2"]
    assert list(check_conversation(row.pk, Tally())) == []


def test_branches_are_branches(user: User) -> None:
    """An answer made again and a question edited stand beside what they are another version of."""
    row = imported(user, chatgpt(BRANCHES))
    turns = {tuple(text(row, turn)): turn for turn in row.revisions.all()}
    assert sorted(turns) == [
        ("user: One", "assistant: first answer"),
        ("user: One", "assistant: second answer"),
        ("user: One", "assistant: second answer", "user: Two"),
        ("user: One", "assistant: second answer", "user: Two, edited", "assistant: last"),
    ]
    first, second = (turns["user: One", f"assistant: {which} answer"] for which in ("first", "second"))
    assert (first.parent, second.parent) == (None, None)
    assert first.context[0] == second.context[0]
    assert row.head is not None
    assert row.head.parent == second
    assert text(row)[-1] == "assistant: last"


@pytest.mark.parametrize(("current", "tip"), [("a1", "first answer"), ("u2", "Two"), ("root", "last"), ("x", "last")])
def test_the_head_is_where_the_person_was(user: User, current: str, tip: str) -> None:
    row = imported(user, chatgpt(BRANCHES, current=current))
    assert text(row)[-1].endswith(tip)


KINDS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "parts": ("assistant", said({"content_type": "text", "parts": ["a", "b"]}), ["a\n\nb"]),
    "code": (
        "assistant",
        said({"content_type": "code", "language": "unknown", "text": "x = '```'"}),
        ["````\nx = '```'\n````"],
    ),
    "program": (
        "assistant",
        said({"content_type": "code", "language": "python", "text": "print(1)"}, recipient="python"),
        ["```python\nprint(1)\n```"],
    ),
    "what a program said": ("tool", said({"content_type": "execution_output", "text": "1"}), []),
    "search": ("assistant", said({"content_type": "code", "text": 'search("x")'}, recipient="web"), []),
    "what a search found": ("tool", said({"content_type": "tether_browsing_display", "result": "…"}), []),
    "document": (
        "assistant",
        said(
            {
                "content_type": "code",
                "text": json.dumps({"name": "plan", "type": "code/python", "content": "pass"}),
            },
            recipient="canmore.create_textdoc",
        ),
        ["**plan**\n\n```python\npass\n```"],
    ),
    "half a document": (
        "assistant",
        said({"content_type": "code", "text": '{"name": '}, recipient="canmore.create_textdoc"),
        ['```json\n{"name": \n```'],
    ),
    "painted picture": (
        "tool",
        said(
            {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}],
            },
            author={"role": "tool", "name": "dalle.text2im"},
        ),
        ["[image]"],
    ),
    "sent picture": (
        "user",
        said(
            {
                "content_type": "multimodal_text",
                "parts": [
                    {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"},
                    "What is this?",
                ],
            },
            metadata={
                "attachments": [
                    {"id": "file-1", "name": "tree.png", "size": 1},
                    {"id": "file-2", "name": "notes\n.pdf", "size": 1},
                ]
            },
        ),
        ["[image: tree.png]\n\nWhat is this?\n\n[file: notes .pdf]"],
    ),
    "speech": (
        "user",
        said(
            {
                "content_type": "multimodal_text",
                "parts": [
                    {"content_type": "audio_transcription", "text": "Hello there", "direction": "in"},
                    {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": {}},
                ],
            }
        ),
        ["Hello there"],
    ),
    "citation": (
        "assistant",
        said(
            {"content_type": "text", "parts": ["So it is \ue200cite\ue202turn0search0\ue201, or not \ue200x\ue201."]},
            metadata={
                "content_references": [
                    {"matched_text": "\ue200cite\ue202turn0search0\ue201", "alt": "([here](https://example.org))"}
                ]
            },
        ),
        ["So it is ([here](https://example.org)), or not ."],
    ),
    "hidden": (
        "assistant",
        said({"content_type": "text", "parts": ["x"]}, metadata={"is_visually_hidden_from_conversation": True}),
        [],
    ),
    "weightless": ("assistant", said({"content_type": "text", "parts": ["x"]}, weight=0.0), []),
    "instructions": ("user", said({"content_type": "user_editable_context", "user_profile": "x"}), []),
    "recap": ("assistant", said({"content_type": "reasoning_recap", "content": "Thought for 5 s"}), []),
    "system": ("system", said({"content_type": "text", "parts": ["Be kind."]}), []),
    "blank": ("assistant", said({"content_type": "text", "parts": [" "]}), []),
    "something new": (
        "assistant",
        said({"content_type": "hologram", "parts": ["text", {"content_type": "y"}]}),
        ["text"],
    ),
    "NUL": ("assistant", said({"content_type": "text", "parts": ["a\0b"]}), ["a\ufffdb"]),
}


@pytest.mark.parametrize(("role", "message", "kept"), KINDS.values(), ids=KINDS.keys())
def test_one_rule_says_what_is_kept(user: User, role: str, message: dict[str, Any], kept: list[str]) -> None:
    nodes = {
        "root": (None, None, ""),
        "u": ("root", "user", "Go"),
        "n": ("u", role, {"author": {"role": role}, **message}),
        "z": ("n", "assistant", "Done"),
    }
    row = imported(user, chatgpt(nodes))
    name = "user" if role == "user" else "assistant"
    assert text(row) == ["user: Go", *(f"{name}: {each}" for each in kept), "assistant: Done"]
    assert all(each.role != "system" for each in load_context(row, row.head).messages)


MARK = "\ue200cite\ue202turn0search0\ue201"
LINK = "([here](https://example.org))"


def cited(user: User, parts: str, *references: tuple[str, str], id: str = "c-1") -> str:
    """Return what becomes of a text with these marks and the links for them."""
    found = [{"matched_text": mark, "alt": alt} for mark, alt in references]
    content = {"content_type": "text", "parts": [parts]}
    message = said(content, metadata={"content_references": found})
    row = imported(user, chatgpt({"u": (None, "user", "Go"), "a": ("u", "assistant", message)}, id=id))
    return text(row)[-1].removeprefix("assistant: ")


def test_only_a_whole_mark_becomes_a_link(user: User) -> None:
    """Forty references that each doubled the text would fill every memory."""
    assert cited(user, "a \ue200 b", *[("\ue200", "\ue200\ue200")] * 60) == "a \ue200 b"
    assert cited(user, f"a {MARK}", (MARK, LINK + MARK), (MARK, "later"), id="c-2") == f"a {LINK}{MARK}"


def test_links_are_no_longer_than_what_came(user: User) -> None:
    """Otherwise a mark of seven bytes would stand for thousands, a hundred thousand times."""
    mark = "\ue200x\ue201"
    assert cited(user, f"a {mark * 3} b", (mark, LINK), (mark, LINK)) == f"a {LINK * 2} b"
    assert cited(user, f"a {mark} b", (mark, "x" * 4_001), id="c-2") == "a  b"
    assert len(cited(user, "a" + mark * 100_000, (mark, "x" * 4_000), id="c-3")) <= 2 * 300_001 + 4_000


def test_many_links_in_a_long_text_are_put_in_at_once(user: User) -> None:
    """Once for each reference, the text would be copied sixty thousand times."""
    marks = [f"\ue200{at}\ue201" for at in range(60_000)]
    shown = cited(user, "".join(marks), *((mark, f"({at})") for at, mark in enumerate(marks)))
    assert shown == "".join(f"({at})" for at in range(60_000))


def test_marks_that_do_not_end_are_text(user: User) -> None:
    """Looked for from each beginning to the end of the text, they would take minutes."""
    open_marks = "\ue200" * 4_000_000
    assert cited(user, open_marks + MARK, (MARK, LINK)) == open_marks + LINK


def test_thoughts_are_reasoning(user: User) -> None:
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Weighing", "content": "This or that."}]}
    nodes = {"u": (None, "user", "Go"), "t": ("u", "assistant", said(thoughts)), "a": ("t", "assistant", "That.")}
    row = imported(user, chatgpt(nodes))
    blocks = [block for message in load_context(row, row.head).messages for block in message.blocks]
    assert ReasoningBlock(text="Weighing\n\nThis or that.") in blocks
    assert not any(isinstance(block, ImageBlock) for block in blocks)


def test_what_was_left_out_leaves_no_gap(user: User) -> None:
    nodes = {
        "h": (None, "system", "x"),
        "u": ("h", "user", "One"),
        "t": ("u", "tool", "x"),
        "a": ("t", "assistant", "answer"),
        "b": ("t", "assistant", "another"),
    }
    row = imported(user, chatgpt(nodes))
    assert row.revisions.count() == 2
    assert text(row) == ["user: One", "assistant: another"]


def test_the_same_file_again_changes_nothing(user: User) -> None:
    file = [chatgpt(BRANCHES), chatgpt(BRANCHES, id="c-2")]
    first = taken(user, file)
    before = list(Revision.objects.order_by("pk").values()), list(Conversation.objects.order_by("pk").values())
    again = taken(user, file)
    assert (first.created, again.created, again.updated, again.unchanged) == (2, 0, 0, 2)
    assert again.conversations == first.conversations
    assert before == (
        list(Revision.objects.order_by("pk").values()),
        list(Conversation.objects.order_by("pk").values()),
    )
    other = UserFactory()
    assert taken(other, file).created == 2, "another person has their own"


def test_a_newer_export_adds_what_is_new(user: User) -> None:
    older = {name: BRANCHES[name] for name in ("root", "u1", "a1", "b1", "u2")}
    row = imported(user, chatgpt(older, current="u2"))
    before = set(row.revisions.values_list("public_id", flat=True))
    Conversation.objects.filter(pk=row.pk).update(title="My own title", archived=True)
    done = taken(user, [chatgpt(BRANCHES, update_time=1_750_000_000)])
    row.refresh_from_db()
    assert (done.updated, row.title, row.archived) == (1, "My own title", True)
    assert set(row.revisions.values_list("public_id", flat=True)) > before
    assert row.revisions.count() == 4
    assert text(row)[-1] == "user: Two", "the head was on a branch that did not go on"
    assert row.updated_at.year == 2025


def test_the_head_goes_on_where_its_branch_did(user: User) -> None:
    row = imported(user, chatgpt({name: BRANCHES[name] for name in ("root", "u1", "b1")}))
    assert taken(user, [chatgpt(BRANCHES)]).updated == 1
    row.refresh_from_db()
    assert text(row)[-1] == "assistant: last"
    assert list(row.revisions.order_by("number").values_list("number", flat=True)) == [1, 2, 3, 4]
    assert (row.version, row.head_version) == (5, 5), "above every number: the next revision takes one of its own"


def test_a_question_that_was_answered_since_goes_on(user: User) -> None:
    row = imported(user, chatgpt({name: BRANCHES[name] for name in ("root", "u1")}))
    assert taken(user, [chatgpt({name: BRANCHES[name] for name in ("root", "u1", "a1")})]).updated == 1
    row.refresh_from_db()
    assert text(row) == ["user: One", "assistant: first answer"]


@pytest.mark.parametrize("name", ["conversations", "export/conversations", "conversations-000"])
def test_an_archive_is_taken_as_it_comes(user: User, name: str) -> None:
    data = json.dumps([chatgpt(BRANCHES)]).encode()
    assert taken(user, zipped(**{name: data, "user": b"{}", "my-conversations": b"x"})).created == 1


def test_an_archive_in_parts_is_one_export(user: User) -> None:
    parts = {f"conversations-00{at}": json.dumps([chatgpt(BRANCHES, id=f"c-{at}")]).encode() for at in range(3)}
    assert taken(user, zipped(**parts)).created == 3


def test_what_says_nothing_is_counted_and_left_out(user: User) -> None:
    done = taken(user, [chatgpt({"root": (None, None, "")}), chatgpt(BRANCHES, id="c-2")])
    assert (done.created, done.empty) == (1, 1)


def test_a_title_is_made_where_there_is_none(user: User) -> None:
    assert imported(user, chatgpt(BRANCHES, title=None)).title == "One"
    assert imported(user, chatgpt(BRANCHES, title="x" * 300, id="c-2")).title == "x" * 255 + "…"
    assert imported(user, chatgpt(BRANCHES, title="a\n\0b", id="c-3")).title == "a \ufffdb"


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "mapping": (lambda value: value.update(mapping=[1]), "$[1].mapping"),
    "node": (lambda value: value["mapping"].update(a1=7), "$[1].mapping.a1"),
    "parent": (lambda value: value["mapping"]["a1"].update(parent=7), "$[1].mapping.a1.parent"),
    "parts": (
        lambda value: value["mapping"]["a1"]["message"]["content"].update(parts="x"),
        "$[1].mapping.a1.message.content.parts",
    ),
    "time": (lambda value: value.update(create_time="soon"), "$[1].create_time"),
    "a time out of the world": (lambda value: value.update(create_time=1e300), "$[1].create_time"),
    "id": (lambda value: value.update(conversation_id=None, id=None), "$[1].id"),
    "long id": (lambda value: value.update(conversation_id="x" * 200), "$[1].conversation_id"),
    "circle": (lambda value: value["mapping"]["u1"].update(parent="a2"), "$[1].mapping"),
    "itself": (lambda value: value["mapping"]["u1"].update(parent="u1"), "$[1].mapping"),
    "other": (lambda value: value.pop("mapping"), "$[1]"),
}


@pytest.mark.parametrize(("break_it", "place"), WRONG.values(), ids=WRONG.keys())
def test_a_broken_file_is_refused_as_a_whole(user: User, break_it: Callable[[dict[str, Any]], Any], place: str) -> None:
    broken = json.loads(json.dumps(chatgpt(BRANCHES, id="c-2")))
    break_it(broken)
    with pytest.raises(ImportInvalid) as refused:
        taken(user, [chatgpt(BRANCHES), broken])
    assert refused.value.place == place
    assert not Conversation.objects.exists()


def test_a_place_in_an_archive_names_its_file(user: User) -> None:
    with pytest.raises(ImportInvalid, match=r"^conversations\.json: \$\[0\]: "):
        taken(user, zipped(conversations=b"[{}]"))


def test_what_cannot_be_stored_is_replaced_by_the_one_rule(user: User) -> None:
    """`agent/runtime/values.py`: half a surrogate pair, NUL, NaN; wherever it stands."""
    nodes = {"u\0": (None, "user", "a\0b"), "a\ud83d": ("u\0", "assistant", "c\ud83dd")}
    value = chatgpt(nodes, id="c\0", title="t\udfff", moderation_results=[float("nan")])
    (id,) = taken(user, json.dumps([value]).encode()).conversations
    row = Conversation.objects.select_related("head").get(pk=id)
    assert (row.title, row.external_id) == ("t\ufffd", "chatgpt:c\ufffd")
    assert text(row) == ["user: a\ufffdb", "assistant: c\ufffdd"]


def test_a_long_conversation_takes_no_recursion(user: User) -> None:
    nodes = {"n0": (None, "user", "0")}
    for at in range(1, 3000):
        nodes[f"n{at}"] = (f"n{at - 1}", "assistant" if at % 2 else "user", str(at))
    row = imported(user, chatgpt(nodes))
    assert (row.revisions.count(), len(text(row))) == (1500, 3000)


def test_branches_that_would_repeat_without_end_are_refused(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question at each step of a long answer makes each turn hold all steps before it."""
    monkeypatch.setattr(limits, "MOST_MESSAGES", 1000)
    nodes: dict[str, Any] = {"n0": (None, "assistant", "0")}
    for at in range(1, 60):
        nodes[f"n{at}"] = (f"n{at - 1}", "assistant", str(at))
        nodes[f"u{at}"] = (f"n{at}", "user", "?")
    with pytest.raises(ImportInvalid, match="more than 1000 messages"):
        taken(user, [chatgpt(nodes)])
