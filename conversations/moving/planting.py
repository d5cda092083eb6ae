"""Conversations from a file become conversations of a person, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from agent.models import AgentProfile
from conversations.exceptions import AgentNotFound
from conversations.models import LIVE, Conversation, Execution, Revision, RevisionKind, User
from conversations.moving.enclosures import Enclosures, with_ids
from conversations.moving.incoming import NOTHING_KEPT, Incoming, Node, messages_of
from conversations.moving.leftovers import UnsavedTurn, as_claim, leave, new_turns, note_continued
from conversations.moving.names import revision_name
from conversations.store import title_of, trees
from conversations.store.puts import claimed
from conversations.store.revisions import advance
from conversations.store.spelling import canonical

_NOWHERE = UUID(int=0)

Ids: TypeAlias = Mapping[UUID, UUID | str]


@dataclass(frozen=True, slots=True)
class Planted:
    """What became of a conversation."""

    id: UUID
    how: Literal["created", "updated", "unchanged"]


class Planter:
    """Plants conversations for a person; `agent` is the slug of who goes on with those whose agent they have not."""

    def __init__(self, user: User, agent: str | None) -> None:
        self._user = user
        self._now = timezone.now()  # nothing comes from the future: it would outlive what goes after a while
        self._enclosures = Enclosures(user)
        self.dropped = 0  # model states that were sealed, but not for what they would stand below
        self._agents = {each.slug: each for each in AgentProfile.objects.visible_to(user)}
        if agent is not None and agent not in self._agents:
            raise AgentNotFound(f"there is no agent {agent!r}")
        default = next((each for each in self._agents.values() if each.is_default), None)
        default = default or next(iter(self._agents.values()), None)
        self._agent = self._agents[agent] if agent is not None else default

    def check(self, incoming: Incoming) -> None:
        """Raise `AgentNotFound` if nobody could go on with a conversation, `ImportInvalid` for a file in it."""
        self._agent_of(incoming)
        if incoming.attachments and self._brings_news(incoming):
            self._enclosures.check(incoming.attachments, incoming.said)

    def prepare(self, incoming: Incoming) -> None:
        """Do what needs no transaction."""
        if incoming.attachments and self._brings_news(incoming):
            self._enclosures.write(incoming.attachments, incoming.said)

    def plant(self, incoming: Incoming) -> Planted:
        """Make a conversation, or add to the one that it became before what is new; part of a transaction.

        The head moves on where the person did not: it was left where the last import put it, and nothing stands below.
        """
        existing = self._existing(incoming)
        if existing is None:
            return Planted(self._create(incoming).pk, "created")
        if not self._has_news(incoming, existing):
            return Planted(existing.pk, "unchanged")
        existing = Conversation.objects.select_for_update(of=("self",)).select_related("head").get(pk=existing.pk)
        self._add(incoming, existing)
        return Planted(existing.pk, "updated")

    def _existing(self, incoming: Incoming) -> Conversation | None:
        """Return what a conversation became before: the original rather than a copy."""
        there = Q(external_id=incoming.external_id)
        if incoming.original is not None:
            there |= Q(pk=incoming.original)
        found = list(Conversation.objects.filter(there, owner=self._user).select_related("head"))
        return next((each for each in found if each.pk == incoming.original), found[0] if found else None)

    def _brings_news(self, incoming: Incoming) -> bool:
        existing = self._existing(incoming)
        return existing is None or self._has_news(incoming, existing)

    def _has_news(self, incoming: Incoming, existing: Conversation) -> bool:
        news = _news(incoming, self._names(incoming, existing))
        return bool(news or new_turns(incoming.external_id, incoming.unsaved, existing))

    def _create(self, incoming: Incoming) -> Conversation:
        places = {node.source: place for place, node in enumerate(incoming.nodes)}
        names = {node.source: self._name(incoming, node) for node in incoming.nodes}
        first = next((message for node in incoming.nodes for message in node.messages if message.role == "user"), None)
        ids = self._kept(incoming, incoming.nodes, incoming.unsaved, None)
        conversation = trees.plant_tree(
            self._user,
            self._agent_of(incoming),
            [
                _planted(node, None if node.parent is None else places[node.parent], names, ids)
                for node in incoming.nodes
            ],
            head=None if incoming.head is None else places[incoming.head],
            title=title_of(first) if incoming.title is None and incoming.original is None and first else incoming.title,
            title_by_person=incoming.title_by_person,
            pinned=incoming.pinned,
            archived=incoming.archived,
            temporary=incoming.temporary,
            tags=list(incoming.tags),
            external_id=incoming.external_id,
            version=incoming.version,
            created_at=min(incoming.created_at, self._now),
            updated_at=min(incoming.updated_at, self._now),
        )
        self._leave(incoming, incoming.nodes, incoming.unsaved, conversation, names, ids)
        return conversation

    def _add(self, incoming: Incoming, existing: Conversation) -> None:
        known = self._names(incoming, existing)
        news, turns = self._believed(incoming, existing, known)
        places = {node.source: place for place, node in enumerate(news)}
        names = known | {node.source: self._name(incoming, node) for node in news}
        moves = incoming.head in places and self._is_where_it_was(incoming, existing, known)
        now = max(existing.updated_at, min(incoming.updated_at, self._now))
        ids = self._kept(incoming, news, turns, existing)
        rows = trees.graft(
            existing,
            [
                _planted(
                    node, places[node.parent] if node.parent in places else known.get(node.parent or ""), names, ids
                )
                for node in news
            ],
        )
        if moves and incoming.head is not None:
            trees.move_head(existing, rows[places[incoming.head]], now)
        else:
            advance(existing, now=now)
        self._leave(incoming, news, turns, existing, names, ids)

    def _leave(
        self,
        incoming: Incoming,
        nodes: Sequence[Node],
        turns: Sequence[UnsavedTurn],
        conversation: Conversation,
        names: Mapping[str, UUID],
        ids: Ids,
    ) -> None:
        """Keep the turns that were not saved, and note which of these revisions were such at first."""
        head = conversation.head.public_id if conversation.head else None
        if ids:
            turns = [replace(turn, messages=with_ids(turn.messages, ids)) for turn in turns]
        leave(
            incoming.external_id,
            turns,
            conversation,
            names=names,
            agents=self._agents,
            at_head=head == (None if incoming.head is None else names[incoming.head]),
            now=self._now,
        )
        continued = {names[node.source]: node.execution for node in nodes if node.execution is not None}
        if continued:
            rows = conversation.revisions.filter(public_id__in=continued)
            note_continued(incoming.external_id, {continued[row.public_id]: row for row in rows}, conversation)

    def _same(self, incoming: Incoming, existing: Conversation, known: dict[str, UUID]) -> set[str | None]:
        """Return those revisions of the file that are here just as they are there, or follow from such ones."""
        rows = Revision.objects.filter(conversation=existing, public_id__in=known.values())
        there = {each.public_id: each for each in rows.select_related("parent")}
        ids = self._enclosures.there(incoming.attachments, incoming.said, existing) if incoming.attachments else {}
        same: set[str | None] = {None}
        for node in incoming.nodes:
            if node.parent not in same:
                continue
            here = there[known[node.source]] if node.source in known else None
            if here is None or _is_same(node, here, known, ids):
                same.add(node.source)
        return same

    def _believed(
        self, incoming: Incoming, existing: Conversation, known: dict[str, UUID]
    ) -> tuple[list[Node], list[UnsavedTurn]]:
        """Return what is new; what nobody may write stays only below what is here just as it is in the file."""
        same = self._same(incoming, existing, known)
        nodes, turns = [], []
        for node in _news(incoming, known):
            if node.source not in same:
                self.dropped += node.model_context.model_state is not None
                node = replace(node, messages=claimed(node.messages), model_context=NOTHING_KEPT, execution=None)
            nodes.append(node)
        for turn in new_turns(incoming.external_id, incoming.unsaved, existing):
            if not {turn.after, turn.beside} <= same:
                self.dropped += turn.keeps_a_state
                turn = as_claim(turn)
            turns.append(turn)
        return nodes, turns

    def _kept(
        self,
        incoming: Incoming,
        nodes: Sequence[Node],
        turns: Sequence[UnsavedTurn],
        existing: Conversation | None,
    ) -> Ids:
        if not incoming.attachments:
            return {}
        return self._enclosures.keep(incoming.attachments, messages_of(nodes, turns), existing)

    def _is_where_it_was(self, incoming: Incoming, existing: Conversation, known: dict[str, UUID]) -> bool:
        """Return whether the head may move on: nobody went on from it, and no answer is being written."""
        if existing.head is None:
            return True
        on_trunk = existing.head.public_id in {self._name_of(incoming, source) for source in incoming.trunk} | {
            known[source] for source in incoming.trunk if source in known
        }
        live = Execution.objects.filter(conversation=existing, status__in=LIVE)
        return on_trunk and not existing.head.children.exists() and not live.exists()

    def _names(self, incoming: Incoming, existing: Conversation) -> dict[str, UUID]:
        """Return the public ids of those revisions of a file that the conversation has."""
        there = set(Revision.objects.filter(conversation=existing).values_list("public_id", flat=True))
        names: dict[str, UUID] = {}
        for node in incoming.nodes:
            own = UUID(node.source) if incoming.original is not None else None
            name = own if own in there and own is not None else self._name(incoming, node)
            if name in there:
                names[node.source] = name
        return names

    def _name(self, incoming: Incoming, node: Node) -> UUID:
        return self._name_of(incoming, node.source)

    def _name_of(self, incoming: Incoming, source: str) -> UUID:
        return revision_name(self._user.pk, incoming.external_id, source)

    def _agent_of(self, incoming: Incoming) -> AgentProfile:
        found = self._agents.get(incoming.agent or "") or self._agent
        if found is None:
            raise AgentNotFound("there is no agent that you may use, and a conversation needs one")
        return found


def _is_same(node: Node, here: Revision, known: Mapping[str, UUID], ids: Ids) -> bool:
    """Return whether a revision that is here is the one of the file, at the same place."""
    parent = here.parent.public_id if here.parent else None
    if here.keyframe != node.keyframe or parent != (None if node.parent is None else known.get(node.parent, _NOWHERE)):
        return False
    messages = with_ids(node.messages, ids) if ids else node.messages
    return canonical(here.context) == canonical([message.to_wire() for message in messages])


def _news(incoming: Incoming, known: dict[str, UUID]) -> list[Node]:
    return [node for node in incoming.nodes if node.source not in known]


def _planted(node: Node, parent: int | UUID | None, names: dict[str, UUID], ids: Ids) -> trees.Node:
    return trees.Node(
        parent=parent,
        messages=with_ids(node.messages, ids) if ids else node.messages,
        model_context=node.model_context,
        kind=RevisionKind(node.kind),
        keyframe=node.keyframe,
        label=node.label,
        number=node.number,
        public_id=names[node.source],
        usage=node.usage,
        outcome=node.outcome,
        created_at=node.created_at,
    )
