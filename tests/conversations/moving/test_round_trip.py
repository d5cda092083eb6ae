"""What leaves as JSON comes back whole, and what somebody wrote into it by hand does not pass for ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.models import AgentProfile
from agent.runtime.exceptions import InvalidState
from agent.runtime.messages import ToolResultBlock
from conversations.exceptions import ConversationConflict, ImportInvalid
from conversations.hosting.jobs import Jobs
from conversations.models import Conversation, Execution, ExecutionStatus, Revision, RevisionKind, User
from conversations.moving import Form, export_all
from conversations.store import adopt_recovered, load_context, load_path
from conversations.unsaved import unsaved_turns
from tests.conversations.moving.files import taken
from tests.conversations.moving.trees import planted, planting
from tests.conversations.store.writing import texts
from tests.damage import grow, message
from tests.factories import AgentProfileFactory, ConversationFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db

IN_DATABASE = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def user() -> User:
    return UserFactory()


@pytest.fixture
def agent() -> AgentProfile:
    return AgentProfileFactory(slug="helper")


def written(user: User) -> bytes:
    return b"".join(export_all(user, Form.JSON).pieces)


def same(conversation: dict[str, Any]) -> dict[str, Any]:
    """Return what must be alike in a conversation and its copy: all but the names that each copy has of its own."""
    places = {each["revisionId"]: at for at, each in enumerate(conversation["revisions"])}
    own = ("conversationId", "externalId")
    revisions = [
        {name: value for name, value in each.items() if name not in ("revisionId", "executionId", "seal")}
        | {"parent": places.get(each["parent"])}
        for each in conversation["revisions"]
    ]
    turns = [
        {name: value for name, value in each.items() if name not in ("executionId", "seal")}
        | {"after": places.get(each["after"]), "beside": places.get(each["beside"])}
        for each in conversation["unsavedTurns"]
    ]
    kept = {name: value for name, value in conversation.items() if name not in own}
    turns.sort(key=lambda each: (each["createdAt"], each["messages"][0]["id"]))
    return kept | {"head": places.get(conversation["head"]), "revisions": revisions, "unsavedTurns": turns}


@IN_DATABASE
@given(st.lists(planting(), min_size=1, max_size=3))
def test_a_copy_in_another_account_is_the_same(agent: AgentProfile, drawn: list[Any]) -> None:
    first, second = UserFactory(), UserFactory()
    for each in drawn:
        planted(first, agent, each)
    file = written(first)
    done = taken(second, file)
    assert (done.created, done.updated, done.unchanged, done.model_states_dropped) == (len(drawn), 0, 0, 0)
    before, after = orjson.loads(file), orjson.loads(written(second))
    assert [same(each) for each in after["conversations"]] == [same(each) for each in before["conversations"]]
    again = taken(second, file)
    assert (again.created, again.updated, again.unchanged) == (0, 0, len(drawn))
    assert again.conversations == done.conversations
    assert orjson.loads(written(second))["conversations"] == after["conversations"]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00"])
@pytest.mark.parametrize("member", ["createdAt", "updatedAt", "revisions"])
def test_a_time_that_is_none_everywhere_is_refused_with_its_place(
    user: User, agent: AgentProfile, member: str, time: str
) -> None:
    grow(ConversationFactory(owner=user, agent=agent), None, message("q", "Hello"))
    file = orjson.loads(written(user))
    owner = file["conversations"][0]
    if member == "revisions":
        owner["revisions"][0]["createdAt"] = time
    else:
        owner[member] = time
    with pytest.raises(ImportInvalid, match=r"createdAt|updatedAt"):
        taken(UserFactory(), orjson.dumps(file))


@IN_DATABASE
@given(planting())
def test_where_the_original_is_nothing_changes(agent: AgentProfile, drawn: Any) -> None:
    user = UserFactory()
    conversation = planted(user, agent, drawn)
    columns = Conversation.objects.filter(pk=conversation.pk).values().get()
    done = taken(user, written(user))
    assert (done.unchanged, done.conversations) == (1, (conversation.pk,))
    assert Conversation.objects.filter(owner=user).values().get() == columns
    assert conversation.revisions.count() == len(drawn[0])


def tool_turn(execution: str = "unknown") -> list[dict[str, Any]]:
    result = {"type": "tool-result", "callId": "call-1", "name": "look", "status": "error", "content": []}
    return [
        {"id": "m-1", "role": "user", "blocks": [{"type": "text", "text": "Look"}]},
        {
            "id": "m-2",
            "role": "assistant",
            "blocks": [{"type": "tool-call", "callId": "call-1", "name": "look", "input": {"n": 1e16}}],
        },
        {"id": "m-3", "role": "tool", "blocks": [result | {"execution": execution}]},
        {"id": "m-4", "role": "assistant", "blocks": [{"type": "text", "text": "Nothing."}]},
    ]


@pytest.fixture
def conversation(user: User, agent: AgentProfile) -> Conversation:
    """Two turns with model states; a tool of the first may have had an effect."""
    row = Conversation.objects.create(owner=user, agent=agent, title="Tools")
    first = Revision.objects.create(
        conversation=row,
        number=1,
        context=tool_turn(),
        model_state={"format": "f/v1", "data": {"secret": "s-1"}},
        model_context={"checkpoint": None, "usage": None},
    )
    row.head = Revision.objects.create(
        conversation=row,
        number=2,
        parent=first,
        context=[{"id": "m-5", "role": "user", "blocks": [{"type": "text", "text": "And now?"}]}],
        model_state={"format": "f/v1", "data": {"secret": "s-2"}},
        model_context={"checkpoint": None, "usage": None},
    )
    row.version = 2
    row.save()
    return row


def results(conversation: Conversation) -> list[ToolResultBlock]:
    messages = load_context(conversation, conversation.head).messages
    return [block for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)]


def test_an_untouched_file_gives_back_what_nobody_may_write(conversation: Conversation) -> None:
    """DESIGN 7: the seal holds in any account, in any order of members and with any spaces."""
    file = orjson.loads(written(conversation.owner))
    done = taken(other := UserFactory(), json.dumps(file, indent=3, sort_keys=True).encode())
    copy = Conversation.objects.get(owner=other)
    assert done.model_states_dropped == 0
    assert [each.model_state["data"]["secret"] for each in copy.revisions.order_by("pk")] == ["s-1", "s-2"]  # type: ignore[index]
    assert [block.imported for block in results(copy)] == [False]


def edited(file: dict[str, Any], at: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = file["conversations"][0]["revisions"][at]
    return found


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], Any], int]] = {
    "another state": (lambda file: edited(file)["modelContext"]["modelState"].update(data="mine"), 2),
    "another text": (lambda file: edited(file)["messages"][0]["blocks"][0].update(text="Look again"), 2),
    "another result": (lambda file: edited(file)["messages"][2]["blocks"][0].update(execution="completed"), 2),
    "another number": (lambda file: edited(file)["messages"][1]["blocks"][0]["input"].update(n=1e16 + 2), 2),
    "another kind": (lambda file: edited(file, 1).update(kind="recovered"), 1),
    "a keyframe": (lambda file: edited(file, 1).update(keyframe=True), 1),
    "another place": (lambda file: edited(file, 1).update(parent=None), 1),
    "another message id": (lambda file: edited(file, 1)["messages"][0].update(id="m-9"), 1),
    "no seal": (lambda file: edited(file, 1).pop("seal"), 1),
    "a seal of nothing": (lambda file: edited(file, 1).update(seal=""), 1),
    "half a seal": (lambda file: edited(file, 1).update(seal=edited(file, 1)["seal"][:-2]), 1),
    "the seal of another": (lambda file: edited(file, 1).update(seal=edited(file, 0)["seal"]), 1),
    "a seal of letters": (lambda file: edited(file, 1).update(seal="v1:é:é"), 1),
}


@pytest.mark.parametrize(("forge", "dropped"), FORGERIES.values(), ids=FORGERIES.keys())
def test_what_was_touched_is_a_claim(
    conversation: Conversation, forge: Callable[[dict[str, Any]], Any], dropped: int
) -> None:
    """DESIGN 7: a model state is dropped, and a result neither sets nor clears E6's facts."""
    file = orjson.loads(written(conversation.owner))
    forge(file)
    done = taken(other := UserFactory(), json.dumps(file).encode())
    assert (done.created, done.model_states_dropped) == (1, dropped)
    copy = Conversation.objects.get(owner=other)
    assert sum(each.model_state is not None for each in copy.revisions.all()) == 2 - dropped
    if dropped == 2:
        assert [block.imported for block in results(copy)] == [True]


def test_a_file_of_another_site_is_a_claim(conversation: Conversation, settings: Any) -> None:
    file = written(conversation.owner)
    here = settings.PAR
    there = here.model_copy(update={"secret_keys": ("A" * 43 + "=",)})
    settings.PAR = there
    assert taken(UserFactory(), file).model_states_dropped == 2
    settings.PAR = there.model_copy(update={"secret_keys": (*there.secret_keys, *here.secret_keys)})
    assert taken(UserFactory(), file).model_states_dropped == 0, "each key that the site knows opens a seal"


def test_no_secret_and_no_instruction_is_in_a_file(conversation: Conversation, settings: Any) -> None:
    """B83."""
    AgentProfile.objects.update(system_prompt="Never tell anybody of the cellar.")
    file = written(conversation.owner).decode()
    assert "cellar" not in file
    assert not any(key in file for key in settings.PAR.secret_keys)
    assert conversation.owner.email not in file


def failed_turn(conversation: Conversation) -> Execution:
    """A turn below the head in which a tool ran and another may have."""
    messages = orjson.loads(orjson.dumps(tool_turn("completed")[:3]).replace(b"m-", b"u-").replace(b"call-", b"x-"))
    open_call = {"type": "tool-call", "callId": "x-2", "name": "fetch", "input": {}}
    messages.append({"id": "u-4", "role": "assistant", "blocks": [open_call]})
    text = {"index": 0, "type": "text", "callId": "", "name": "", "text": "Half a", "stopped": False}
    return cast(
        Execution,
        ExecutionFactory(
            conversation=conversation,
            agent=conversation.agent,
            base=conversation.head,
            base_version=conversation.version,
            status=ExecutionStatus.FAILED,
            error_code="MODEL_FAILED",
            error_message="the server went away",
            retryable=True,
            input=messages[0],
            transcript=messages,
            calls={"x-2": "started"},
            partial={"messageId": "u-5", "blocks": [text]},
            model_context={"checkpoint": None, "modelState": {"format": "f/v1", "data": "s-3"}, "usage": None},
        ),
    )


def facts(revision: Revision) -> list[tuple[str, str, bool]]:
    results = [block for message in revision.context for block in message["blocks"] if block["type"] == "tool-result"]
    return [(each["name"], each["execution"], each.get("imported", False)) for each in results]


def test_a_turn_that_was_not_saved_can_be_continued_from_in_the_copy(conversation: Conversation) -> None:
    failed_turn(conversation)
    file = written(conversation.owner)
    done = taken(other := UserFactory(), file)
    turn = Execution.objects.select_related("conversation").get(conversation__owner=other)
    adopted = adopt_recovered(other, turn.pk).execution.revision
    assert adopted is not None
    context = load_context(adopted.conversation, adopted)

    assert done.model_states_dropped == 0
    assert (turn.error_code, turn.error_message, turn.retryable) == ("MODEL_FAILED", "the server went away", True)
    assert facts(adopted) == [("look", "completed", False), ("fetch", "unknown", False)]
    assert [message.text for message in context.messages][-1] == "Half a"
    assert context.model_context.model_state is not None
    assert context.model_context.model_state.data == "s-3"
    assert taken(other, file).unchanged == 1, "what was continued from does not come again"
    assert Execution.objects.filter(conversation__owner=other).count() == 1


def test_a_first_turn_that_failed_comes_back(user: User, agent: AgentProfile) -> None:
    empty = ConversationFactory(owner=user, agent=agent, title="Never answered")
    failed_turn(empty)
    assert taken(other := UserFactory(), written(user)).created == 1
    assert Execution.objects.get(conversation__owner=other).base is None
    assert taken(user, written(user)).unchanged == 1, "where the original is nothing changes"


def test_a_newer_file_brings_the_turns_that_failed_since(conversation: Conversation) -> None:
    other = UserFactory()
    taken(other, written(conversation.owner))
    failed_turn(conversation)
    done = taken(other, written(conversation.owner))
    turn = Execution.objects.select_related("conversation__head").get(conversation__owner=other)
    assert (done.updated, done.model_states_dropped) == (1, 0)
    assert turn.conversation.head == turn.base
    assert adopt_recovered(other, turn.pk).created


def test_a_turn_whose_conversation_has_gone_on_becomes_a_branch_of_the_copy_too(conversation: Conversation) -> None:
    failed_turn(conversation)
    Conversation.objects.filter(pk=conversation.pk).update(version=3, head_version=3)
    taken(other := UserFactory(), written(conversation.owner))
    turn = Execution.objects.get(conversation__owner=other)
    with pytest.raises(ConversationConflict):
        adopt_recovered(other, turn.pk)
    assert adopt_recovered(other, turn.pk, as_branch=True).created


def unsaved(file: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = file["conversations"][0]["unsavedTurns"][0]
    return found


def edit_of_root(file: dict[str, Any]) -> None:
    """Let a turn that began below the root be another version of it."""
    root = edited(file)["revisionId"]
    unsaved(file).update(kind="edit", after=None, beside=root)


FORGED_TURNS: dict[str, tuple[Callable[[dict[str, Any]], Any], int]] = {
    "another state": (lambda file: unsaved(file)["modelContext"]["modelState"].update(data="mine"), 1),
    "another text": (lambda file: unsaved(file)["messages"][0]["blocks"][0].update(text="Look again"), 1),
    "another result": (lambda file: unsaved(file)["messages"][2]["blocks"][0].update(status="success"), 1),
    "another half": (lambda file: unsaved(file)["unfinished"]["blocks"][0].update(text="Half the"), 1),
    "another end": (lambda file: unsaved(file).update(status="cancelled"), 1),
    "another place": (lambda file: unsaved(file).update(after=edited(file)["revisionId"]), 1),
    "another turn": (lambda file: unsaved(file).update(executionId="01890a5d-ac96-774b-bcce-b302099a8000"), 1),
    "no seal": (lambda file: unsaved(file).pop("seal"), 1),
    "beside its base": (lambda file: edit_of_root(file), 1),
    "the seal of a revision": (lambda file: unsaved(file).update(seal=edited(file, 1)["seal"]), 1),
    "the seal of a turn for a revision": (lambda file: edited(file, 1).update(seal=unsaved(file)["seal"]), 1),
    "another beginning": (lambda file: edited(file)["messages"][0]["blocks"][0].update(text="Look again"), 3),
}


@pytest.mark.parametrize(("forge", "dropped"), FORGED_TURNS.values(), ids=FORGED_TURNS.keys())
def test_a_turn_that_was_touched_is_a_claim(
    conversation: Conversation, forge: Callable[[dict[str, Any]], Any], dropped: int
) -> None:
    """DESIGN 7: what is continued from neither sets nor clears E6's facts."""
    failed_turn(conversation)
    file = orjson.loads(written(conversation.owner))
    forge(file)
    done = taken(other := UserFactory(), json.dumps(file).encode())
    turn = Execution.objects.get(conversation__owner=other)
    adopted = adopt_recovered(other, turn.pk, as_branch=True).execution.revision
    assert adopted is not None
    genuine = "the seal of a turn for a revision"

    assert done.model_states_dropped == dropped
    assert {imported for _, _, imported in facts(adopted)} == {forge is not FORGED_TURNS[genuine][0]}


@pytest.mark.parametrize("forge", [{"parent": None}, {"keyframe": True}], ids=["another place", "a keyframe"])
def test_seals_count_for_nothing_below_what_stands_elsewhere(conversation: Conversation, forge: dict[str, Any]) -> None:
    """Who moves a revision first, and then imports the genuine file, gets no state for what is not on its path."""
    grow(conversation, conversation.head, message("m-6", "More"), model_state={"format": "f/v1", "data": "s-4"})
    failed_turn(conversation)
    whole = written(conversation.owner)
    file = orjson.loads(whole)
    moved = edited(file, 1)
    moved.update(forge)
    del file["conversations"][0]["revisions"][2]
    file["conversations"][0].update(unsavedTurns=[], head=moved["revisionId"])
    taken(other := UserFactory(), json.dumps(file).encode())

    assert taken(other, whole).model_states_dropped == 2
    turn = Execution.objects.get(conversation__owner=other)
    adopted = adopt_recovered(other, turn.pk, as_branch=True).execution.revision
    assert adopted is not None
    assert {imported for _, _, imported in facts(adopted)} == {True}
    assert Revision.objects.get(conversation__owner=other, number=3).model_state is None


@pytest.mark.parametrize("newer_first", [False, True])
def test_a_turn_that_was_continued_from_since_is_no_unsaved_one(conversation: Conversation, newer_first: bool) -> None:
    turn = failed_turn(conversation)
    older = written(conversation.owner)
    adopt_recovered(conversation.owner, turn.pk)
    newer = written(conversation.owner)
    other = UserFactory()
    for file in (newer, older) if newer_first else (older, newer):
        taken(other, file)
    copy = Conversation.objects.select_related("head").get(owner=other)

    assert len(texts(copy)) == len(texts(conversation))
    assert unsaved_turns(copy, load_path(copy, copy.head)) == []


def stopped_again(conversation: Conversation, text: str) -> Execution:
    """Another answer to the last question, stopped halfway: nothing of it has an id of its own but the half message."""
    question = message("m-5", "And now?")
    half = {"index": 0, "type": "text", "callId": "", "name": "", "text": text, "stopped": False}
    return cast(
        Execution,
        ExecutionFactory(
            conversation=conversation,
            agent=conversation.agent,
            base=conversation.revisions.get(number=1),
            beside=conversation.revisions.get(number=2),
            kind=RevisionKind.REGENERATE,
            status=ExecutionStatus.CANCELLED,
            outcome={"type": "cancelled", "reason": "user"},
            input=question,
            transcript=[question],
            partial={"messageId": f"m-{text}", "blocks": [half]},
        ),
    )


def halves(conversation: Conversation) -> list[str]:
    found = Execution.objects.filter(conversation=conversation, revision=None).values_list("partial", flat=True)
    return sorted(partial["blocks"][0]["text"] for partial in found if partial is not None)


def test_what_a_turn_said_that_nobody_continued_from_stays_and_comes(conversation: Conversation) -> None:
    """Stopped answers to one question have that question in common, and nothing else."""
    first = stopped_again(conversation, "One")
    stopped_again(conversation, "Two")
    other, late = UserFactory(), UserFactory()
    taken(other, written(conversation.owner))
    adopt_recovered(conversation.owner, first.pk, as_branch=True)
    stopped_again(conversation, "Three")
    newer = written(conversation.owner)
    for person in (other, late):
        assert taken(person, newer).model_states_dropped == 0
        assert halves(Conversation.objects.get(owner=person)) == ["Three", "Two"]
    assert halves(conversation) == ["Three", "Two"]
    assert taken(other, newer).unchanged == 1


def test_a_claim_to_be_a_turn_takes_nothing_from_it(conversation: Conversation) -> None:
    """Somebody gives back a file that says the turn was continued from, in other words."""
    turn = failed_turn(conversation)
    before = Execution.objects.filter(pk=turn.pk).values().get()
    file = orjson.loads(written(conversation.owner))
    claim = edited(file, 1) | {
        "revisionId": "01890a5d-ac96-774b-bcce-b302099a8000",
        "number": 9,
        "parent": edited(file, 1)["revisionId"],
        "kind": "recovered",
        "executionId": str(turn.pk),
        "messages": unsaved(file)["messages"],
        "seal": None,
    }
    file["conversations"][0]["revisions"].append(claim)
    assert taken(conversation.owner, json.dumps(file).encode()).updated == 1
    assert Execution.objects.filter(pk=turn.pk).values().get() == before


def test_an_imported_turn_is_no_run_of_this_site(conversation: Conversation) -> None:
    """Who subscribes is told of the latest run, and usage counts runs."""
    failed_turn(conversation)
    taken(other := UserFactory(), written(conversation.owner))
    copy = Conversation.objects.get(owner=other)
    assert Jobs("here").find_conversation(conversation.owner, conversation.pk).state is not None
    assert Jobs("here").find_conversation(other, copy.pk).state is None
    assert not Execution.objects.made_here().filter(conversation=copy).exists()


@pytest.mark.parametrize(
    "columns",
    [
        {"partial": {"messageId": "x", "blocks": [{"type": "text"}]}},
        {"usage": {"inputTokens": 1}},
        {"model_context": {"modelState": 1}},
        {"kept": 3},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_part_of_a_turn_that_can_be_done_without_costs_nothing_else(
    conversation: Conversation, columns: dict[str, Any]
) -> None:
    Execution.objects.filter(pk=failed_turn(conversation).pk).update(**columns)
    file = written(conversation.owner)
    assert "damaged" not in orjson.loads(file)
    assert taken(UserFactory(), file).created == 1


@pytest.mark.parametrize("columns", [{"calls": []}, {"transcript": [], "input": {}}], ids=["calls", "input"])
def test_a_turn_that_cannot_be_read_costs_no_other_conversation(
    conversation: Conversation, columns: dict[str, Any]
) -> None:
    Execution.objects.filter(pk=failed_turn(conversation).pk).update(**columns)
    ConversationFactory(owner=conversation.owner, agent=conversation.agent, title="Whole")
    file = orjson.loads(written(conversation.owner))
    assert [each["title"] for each in file["conversations"]] == ["Whole"]
    assert "cannot be read" in file["damaged"][0]["error"]


def test_a_half_message_with_the_id_of_another_is_not_continued_from(conversation: Conversation) -> None:
    """Else the conversation could not be read any more."""
    half = {"messageId": "m-1", "blocks": failed_turn(conversation).partial["blocks"]}  # type: ignore[index]
    Execution.objects.update(partial=half)
    with pytest.raises(InvalidState, match="cannot be continued"):
        adopt_recovered(conversation.owner, Execution.objects.get().pk)


@pytest.mark.parametrize("reason", ["\0", "\ud800"], ids=["NUL", "half a pair"])
@pytest.mark.parametrize("name", ["revisions", "unsavedTurns"])
def test_a_reason_is_cleaned_like_any_text(conversation: Conversation, name: str, reason: str) -> None:
    failed_turn(conversation)
    file = orjson.loads(written(conversation.owner))
    file["conversations"][0][name][0]["outcome"] = {"type": "cancelled", "reason": reason}
    other = UserFactory()
    assert taken(other, json.dumps(file).encode()).created == 1
    rows: list[Any] = [*Revision.objects.all(), *Execution.objects.filter(conversation__owner=other)]
    assert {"type": "cancelled", "reason": "\ufffd"} in [row.outcome for row in rows]


def test_a_newer_file_adds_what_is_new_and_leaves_the_rest(conversation: Conversation) -> None:
    other = UserFactory()
    old = orjson.loads(written(conversation.owner))
    del old["conversations"][0]["revisions"][1]
    old["conversations"][0]["head"] = old["conversations"][0]["revisions"][0]["revisionId"]
    taken(other, json.dumps(old).encode())
    copy = Conversation.objects.get(owner=other)
    Conversation.objects.filter(pk=copy.pk).update(title="Mine", pinned=True, tags=["kept"])
    done = taken(other, written(conversation.owner))
    copy.refresh_from_db()
    assert done.model_states_dropped == 0
    assert (done.updated, copy.title, copy.pinned, copy.tags, copy.revisions.count()) == (1, "Mine", True, ["kept"], 2)
    assert copy.head == copy.revisions.get(number=2)
    assert (copy.version, copy.head_version) == (3, 3)


def test_a_state_is_not_put_below_what_was_forged_before(conversation: Conversation) -> None:
    """Who imports a forged beginning first, and then the genuine file, gets no model state for what they forged."""
    other = UserFactory()
    whole = written(conversation.owner)
    forged = orjson.loads(whole)
    del forged["conversations"][0]["revisions"][1]
    forged["conversations"][0]["head"] = edited(forged)["revisionId"]
    edited(forged)["messages"][0]["blocks"][0]["text"] = "Something else"
    assert taken(other, json.dumps(forged).encode()).model_states_dropped == 1
    done = taken(other, whole)
    assert (done.updated, done.model_states_dropped) == (1, 1)
    copy = Conversation.objects.get(owner=other)
    assert [each.model_state for each in copy.revisions.order_by("number")] == [None, None]


def test_nothing_comes_from_the_future(conversation: Conversation) -> None:
    """It would stay for ever where old conversations go by themselves."""
    file = orjson.loads(written(conversation.owner))
    file["conversations"][0].update(createdAt="2300-01-01T00:00:00Z", updatedAt="2300-01-01T00:00:00Z")
    taken(other := UserFactory(), json.dumps(file).encode())
    copy = Conversation.objects.get(owner=other)
    assert copy.created_at <= copy.updated_at <= timezone.now()


def test_the_head_stays_where_a_person_went_on(conversation: Conversation) -> None:
    other = UserFactory()
    old = orjson.loads(written(conversation.owner))
    del old["conversations"][0]["revisions"][1]
    old["conversations"][0]["head"] = old["conversations"][0]["revisions"][0]["revisionId"]
    taken(other, json.dumps(old).encode())
    copy = Conversation.objects.get(owner=other)
    mine = Revision.objects.create(conversation=copy, number=7, parent=copy.head)
    Conversation.objects.filter(pk=copy.pk).update(head=mine, version=7, head_version=7)
    assert taken(other, written(conversation.owner)).updated == 1
    copy.refresh_from_db()
    assert (copy.head, copy.version, copy.head_version) == (mine, 8, 7)
    assert copy.revisions.count() == 3


def test_what_was_deleted_comes_back_when_it_is_imported(conversation: Conversation, user: User) -> None:
    file = written(user)
    Conversation.objects.all().delete()
    assert taken(user, file).created == 1
    assert Conversation.objects.get(owner=user).external_id == f"par:{conversation.pk}"
    assert taken(user, file).unchanged == 1


def test_one_damaged_conversation_costs_no_other(conversation: Conversation, agent: AgentProfile) -> None:
    user = conversation.owner
    Conversation.objects.create(owner=user, agent=agent, title="Whole")
    Revision.objects.filter(number=2).update(context=[{"id": 1}])
    file = orjson.loads(written(user))
    assert [each["title"] for each in file["conversations"]] == ["Whole"]
    assert [each["conversationId"] for each in file["damaged"]] == [str(conversation.pk)]
    assert "revision 2" in file["damaged"][0]["error"]
    assert taken(UserFactory(), json.dumps(file).encode()).created == 1


DEEP: Any = 1
for _ in range(99):
    DEEP = [DEEP]

BROKEN: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "version": (lambda file: file.update(version=2), "$.version"),
    "format": (lambda file: file.update(format="other"), "$.format"),
    "a surprise": (lambda file: file.update(surprise=1), "$.surprise"),
    "no date": (lambda file: file.pop("exportedAt"), "$.exportedAt"),
    "an id": (lambda file: file["conversations"][0].update(conversationId="x"), "$.conversations[0].conversationId"),
    "a title": (lambda file: file["conversations"][0].update(title="x" * 257), "$.conversations[0].title"),
    "a tag": (lambda file: file["conversations"][0].update(tags=["", "x"]), "$.conversations[0].tags[0]"),
    "a flag": (lambda file: file["conversations"][0].update(pinned=1), "$.conversations[0].pinned"),
    "a time": (lambda file: file["conversations"][0].update(createdAt="soon"), "$.conversations[0].createdAt"),
    "no zone": (
        lambda file: file["conversations"][0].update(createdAt="2026-01-01T00:00:00"),
        "$.conversations[0].createdAt",
    ),
    "a member": (lambda file: file["conversations"][0].update(owner=1), "$.conversations[0].owner"),
    "no head": (lambda file: file["conversations"][0].update(head=None), "$.conversations[0].head"),
    "an unknown head": (
        lambda file: file["conversations"][0].update(head="01890a5d-ac96-774b-bcce-b302099a8000"),
        "$.conversations[0].head",
    ),
    "a child first": (
        lambda file: file["conversations"][0]["revisions"].reverse(),
        "$.conversations[0].revisions[0].parent",
    ),
    "twice": (
        lambda file: edited(file, 1).update(revisionId=edited(file, 0)["revisionId"]),
        "$.conversations[0].revisions[1].revisionId",
    ),
    "a number twice": (lambda file: edited(file, 1).update(number=1), "$.conversations[0].revisions[1].number"),
    "a huge number": (lambda file: edited(file, 1).update(number=2**60), "$.conversations[0].revisions[1].number"),
    "a kind": (lambda file: edited(file, 1).update(kind="x"), "$.conversations[0].revisions[1].kind"),
    "an outcome": (
        lambda file: edited(file, 1).update(outcome={"type": "completed", "stopReason": "x"}),
        "$.conversations[0].revisions[1].outcome.stopReason",
    ),
    "a block": (
        lambda file: edited(file, 1)["messages"][0]["blocks"][0].update(text=1),
        "$.conversations[0].revisions[1].messages[0].blocks[0].text",
    ),
    "a system message": (
        lambda file: edited(file, 1)["messages"][0].update(role="system"),
        "$.conversations[0].revisions[1].messages.0",
    ),
    "a role": (
        lambda file: edited(file, 0)["messages"][2].update(role="user"),
        "$.conversations[0].revisions[0].messages.2",
    ),
    "a message twice": (
        lambda file: edited(file, 1)["messages"][0].update(id="m-1"),
        "$.conversations[0].revisions[1].messages[0]",
    ),
    "an open call": (
        lambda file: edited(file, 0)["messages"].pop(2),
        "$.conversations[0].revisions[0].messages",
    ),
    "a result without a call": (
        lambda file: edited(file, 0)["messages"].pop(1),
        "$.conversations[0].revisions[0].messages",
    ),
    "a turn twice": (
        lambda file: file["conversations"][0]["unsavedTurns"].append(unsaved(file)),
        "$.conversations[0].unsavedTurns[1].executionId",
    ),
    "a turn below nothing": (
        lambda file: unsaved(file).update(after="01890a5d-ac96-774b-bcce-b302099a8000"),
        "$.conversations[0].unsavedTurns[0].after",
    ),
    "a turn beside its base": (
        lambda file: unsaved(file).update(kind="edit", beside=unsaved(file)["after"]),
        "$.conversations[0].unsavedTurns[0].beside",
    ),
    "a turn that keeps of nothing": (
        lambda file: unsaved(file).update(kept=1),
        "$.conversations[0].unsavedTurns[0].kept",
    ),
    "a turn that keeps too much": (
        lambda file: unsaved(file).update(
            kind="edit", after=edited(file)["revisionId"], beside=edited(file, 1)["revisionId"], kept=2
        ),
        "$.conversations[0].unsavedTurns[0].kept",
    ),
    "a turn beside another": (
        lambda file: unsaved(file).update(after=edited(file)["revisionId"], beside=edited(file, 1)["revisionId"]),
        "$.conversations[0].unsavedTurns[0].kind",
    ),
    "an edit of nothing": (
        lambda file: unsaved(file).update(kind="edit"),
        "$.conversations[0].unsavedTurns[0].kind",
    ),
    "half of a message of the path": (
        lambda file: unsaved(file)["unfinished"].update(messageId="m-1"),
        "$.conversations[0].unsavedTurns[0].unfinished.messageId",
    ),
    "a turn of nobody": (
        lambda file: unsaved(file)["messages"].pop(0),
        "$.conversations[0].unsavedTurns[0].messages[0].role",
    ),
    "a turn without a word": (
        lambda file: unsaved(file).update(messages=[]),
        "$.conversations[0].unsavedTurns[0].messages",
    ),
    "a turn that is live": (
        lambda file: unsaved(file).update(status="running"),
        "$.conversations[0].unsavedTurns[0].status",
    ),
    "a message of the path in a turn": (
        lambda file: unsaved(file).update(seal=None) or unsaved(file)["messages"][0].update(id="m-1"),
        "$.conversations[0].unsavedTurns[0].messages[0]",
    ),
    "an open call in a turn": (
        lambda file: unsaved(file).update(seal=None) or unsaved(file)["messages"].pop(),
        "$.conversations[0].unsavedTurns[0].messages",
    ),
    "depth": (
        lambda file: edited(file, 0)["messages"][1]["blocks"][0].update(input={"a": DEEP}),
        "$.conversations[0]",
    ),
    "no object": (lambda file: file["conversations"].append([]), "$.conversations[1]"),
}


@pytest.mark.parametrize(("break_it", "place"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_refused_as_a_whole_with_the_place(
    conversation: Conversation, break_it: Callable[[dict[str, Any]], Any], place: str
) -> None:
    failed_turn(conversation)
    file = orjson.loads(written(conversation.owner))
    break_it(file)
    if len(file["conversations"]) == 1:
        file["conversations"].append(file["conversations"].pop())
    with pytest.raises(ImportInvalid) as refused:
        taken(other := UserFactory(), json.dumps(file).encode())
    assert refused.value.place == place, refused.value.message
    assert not Conversation.objects.filter(owner=other).exists()


def test_nothing_before_the_fault_is_kept_either(conversation: Conversation) -> None:
    file = orjson.loads(written(conversation.owner))
    file["conversations"] += [file["conversations"][0] | {"tags": 1}]
    with pytest.raises(ImportInvalid, match=r"\$\.conversations\[1\]\.tags"):
        taken(UserFactory(), json.dumps(file).encode())
    assert Conversation.objects.count() == 1
