"""Any interleaving of what tabs, processes and programs do to one conversation keeps every turn (B66)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from agent.runtime.events import Cancelled
from agent.runtime.exceptions import AgentError
from agent.runtime.messages import AgentMessage, ModelContext
from conversations import store
from conversations.models import Conversation, Execution, ExecutionStatus, Revision, User
from conversations.store import Branch, Changes
from tests.conversations.store.writing import DONE, begin, said, state
from tests.factories import AgentProfileFactory, UserFactory

CLIENTS = st.sampled_from(["one tab", "another tab", "a program"])
BRANCHINGS = st.sampled_from(["head", "older", "edit", "regenerate"])
REFUSALS = {"CONVERSATION_CONFLICT", "INVALID_STATE", "INVALID_ARGUMENT"}


class Interleaving(RuleBasedStateMachine):
    """Clients that read when they like and write on what they have read."""

    user: User
    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.kept: dict[int, list[str]] = {}  # each stored turn, by its revision, with all that was said up to it
        self.version = 0

    @initialize()
    def a_conversation(self) -> None:
        self.user = UserFactory()
        self.conversation = store.create_conversation(self.user)
        self.seen = dict.fromkeys(["one tab", "another tab", "a program"], 0)

    def row(self) -> Conversation:
        return store.owned_conversation(self.user, self.conversation.pk)

    def attempt(self, work: Any) -> Any:
        """Do something that may be refused; then nothing has changed."""
        before = self.row()
        try:
            return work()
        except AgentError as refused:
            error = refused
        assert error.code in REFUSALS, error
        assert getattr(error, "current_revision", before.version) == before.version
        after = self.row()
        assert (after.version, after.head_id, after.title) == (before.version, before.head_id, before.title)
        return None

    def remember(self, revision: Revision) -> None:
        context = store.load_context(self.row(), revision)
        self.kept[revision.pk] = [message.id for message in context.messages]

    @rule(client=CLIENTS)
    def reads(self, client: str) -> None:
        self.seen[client] = self.row().version

    @rule(
        target=runs, client=CLIENTS, branching=st.sampled_from(["head", "older", "edit", "regenerate"]), data=st.data()
    )
    def starts(self, client: str, branching: str, data: st.DataObject) -> Any:
        self.count += 1
        branch, text = self._branch(branching, data)
        given: dict[str, Any] = {"branch": branch} if branch else {}
        started = self.attempt(
            lambda: begin(self.user, text, self.conversation, base_version=self.seen[client], **given)
        )
        return started.pk if started is not None else None

    def _branch(self, kind: str, data: st.DataObject) -> tuple[Branch | None, str | None]:
        text = f"question {self.count}"
        rows = list(Revision.objects.filter(conversation=self.conversation).order_by("number"))
        if kind == "head" or not rows:
            return None, text
        at = data.draw(st.sampled_from(rows))
        said_there = [m.id for m in store.load_context(self.conversation, at).messages if m.role == "user"]
        if kind == "older" or not said_there:
            return Branch(at.public_id), text
        chosen = data.draw(st.sampled_from(said_there))
        return (
            (Branch(at.public_id, edit=chosen), text) if kind == "edit" else (Branch(at.public_id, None, chosen), None)
        )

    @rule(run=consumes(runs))
    def completes(self, run: Any) -> None:
        execution = Execution.objects.filter(pk=run, status=ExecutionStatus.RUNNING).first()
        if execution is not None:
            messages = (AgentMessage.from_wire(execution.input), said(f"answer {self.count}", "assistant"))
            revision = store.save_turn(execution, messages, state(self.count), DONE)
            self.remember(revision)
            assert set(self.kept[revision.pk]) >= {message.id for message in messages}

    @rule(run=consumes(runs), adopts=st.booleans(), as_branch=st.booleans())
    def stops(self, run: Any, adopts: bool, as_branch: bool) -> None:
        execution = Execution.objects.filter(pk=run, status=ExecutionStatus.RUNNING).first()
        if execution is None:
            return
        store.finish_failed(
            execution,
            status=ExecutionStatus.CANCELLED,
            messages=(AgentMessage.from_wire(execution.input),),
            model_context=ModelContext(model_state=None),
            outcome=Cancelled(reason="user"),
        )
        if adopts:
            done = self.attempt(lambda: store.adopt_recovered(self.user, execution.pk, as_branch=as_branch))
            if done is not None:
                self.remember(done.execution.revision)

    @rule(client=CLIENTS, strict=st.booleans(), change=st.sampled_from(["title", "pinned", "archived", "tags"]))
    def changes(self, client: str, strict: bool, change: str) -> None:
        self.count += 1
        values = {"title": f"title {self.count}", "pinned": True, "archived": False, "tags": [f"tag {self.count}"]}
        before = self.row()
        known = self.seen[client] if strict else None
        after = self.attempt(
            lambda: store.change_conversation(
                self.user, self.conversation.pk, Changes(**{change: values[change]}), known=known
            )
        )
        if after is not None:
            others = {"title", "pinned", "archived", "tags"} - {change}
            stored = self.row()
            assert getattr(stored, change) == values[change]
            assert all(getattr(stored, each) == getattr(before, each) for each in others)

    @rule(client=CLIENTS, extends=st.booleans())
    def saves_the_whole(self, client: str, extends: bool) -> None:
        self.count += 1
        context = store.load_context(self.row(), self.row().head)
        messages = (*(context.messages if extends else ()), said(f"put {self.count}"))
        saved = self.attempt(
            lambda: store.put_conversation(
                self.user,
                self.conversation.pk,
                f"title {self.count}",
                self.seen[client],
                context.model_copy(update={"messages": messages}),
            )
        )
        if saved is not None:
            self.remember(saved.head)

    @rule(client=CLIENTS, newest=st.booleans(), data=st.data())
    def restores(self, client: str, newest: bool, data: st.DataObject) -> None:
        rows = list(Revision.objects.filter(conversation=self.conversation).order_by("number"))
        if rows:
            at = data.draw(st.sampled_from(rows))
            self.attempt(
                lambda: store.restore(
                    self.user, self.conversation.pk, at.public_id, known=self.seen[client], newest=newest
                )
            )

    @rule(client=CLIENTS)
    def resets(self, client: str) -> None:
        self.attempt(lambda: store.reset_model_state(self.user, self.conversation.pk, known=self.seen[client]))

    @invariant()
    def the_version_never_falls(self) -> None:
        if hasattr(self, "conversation"):
            row = self.row()
            assert row.version >= self.version
            assert row.head_version <= row.version
            self.version = row.version

    def teardown(self) -> None:
        """Nothing was lost."""
        if not hasattr(self, "conversation"):
            return
        row = self.row()
        for pk, ids in self.kept.items():
            context = store.load_context(row, Revision.objects.get(pk=pk))
            assert [message.id for message in context.messages] == ids
        numbers = list(Revision.objects.filter(conversation=row).values_list("number", flat=True))
        assert len(set(numbers)) == len(numbers)
        assert max(numbers, default=0) <= row.version


@pytest.mark.django_db
def test_every_interleaving_keeps_every_turn() -> None:
    AgentProfileFactory(slug="demo", is_default=True)
    fixed = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Interleaving, settings=settings(fixed, max_examples=20, stateful_step_count=25))
