"""The JSON form in which conversations leave the site and come back, whole: docs/moving.md describes it."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from agent.runtime.events import Outcome
from agent.runtime.messages import AgentMessage, ModelContext, NonBlank, Usage, Value
from agent.runtime.model import BlockType
from agent.runtime.values import JsonObject, Text
from conversations.models import LABEL_LENGTH, TITLE_LENGTH

FORMAT = "par-conversations"
VERSION = 1
MOST_TAGS = 100
TAG_LENGTH = 100

Kind = Literal["turn", "edit", "regenerate", "compaction", "recovered", "put", "import", "reset"]
Count = Annotated[int, Field(strict=True, ge=0, le=2**50)]  # leaves room to go on from


def _within(moment: datetime) -> datetime:
    if not MINYEAR < moment.year < MAXYEAR:  # there another time zone has no such day
        raise ValueError("a time at the end of the calendar")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_within)]
Tag = Annotated[Text, StringConstraints(min_length=1, max_length=TAG_LENGTH)]


class RevisionDocument(Value):
    """A revision: the messages that it adds to its parent's, or all of them for a keyframe.

    `execution_id` is the turn that was not saved at first and that somebody continued from. `seal` proves that the
    revision comes from a site with the same key, unchanged, as are all on the path to it.
    """

    revision_id: UUID
    number: Count
    parent: UUID | None
    kind: Kind
    label: Annotated[Text, StringConstraints(max_length=LABEL_LENGTH)]
    keyframe: Annotated[bool, Field(strict=True)]
    messages: tuple[AgentMessage, ...]
    model_context: ModelContext
    usage: Usage | None
    outcome: Annotated[Outcome, Field(discriminator="type")] | None
    created_at: Moment
    execution_id: UUID | None = None
    seal: Annotated[str, StringConstraints(max_length=200)] | None = None


class AttachmentDocument(Value):
    """A file that messages mention by its id; `data` is its content in base64, null where it could not be read."""

    attachment_id: UUID
    name: Annotated[Text, StringConstraints(max_length=1024)]
    media_type: Annotated[Text, StringConstraints(max_length=256)]
    data: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]*={0,2}$")] | None


class ErrorDocument(Value):
    """Why a turn failed."""

    code: Annotated[Text, StringConstraints(max_length=64)]
    message: Text
    retryable: Annotated[bool, Field(strict=True)] = False


class HalfBlock(Value):
    """A block of a message that was being written."""

    index: Count
    type: BlockType
    call_id: Text
    name: Text
    text: Text
    stopped: Annotated[bool, Field(strict=True)]


class HalfMessage(Value):
    """The message that was being written when a turn ended."""

    message_id: NonBlank
    blocks: tuple[HalfBlock, ...]


class UnsavedDocument(Value):
    """A turn that was stopped or failed: no part of the conversation, but still to be read, and continued from.

    It began below the revision `after`. One of `kind` `edit` or `regenerate` is another version of the revision
    `beside`, a child of `after` of which the first `kept` messages stay. `current` tells that the head has not moved
    since. `seal` is that of a revision.
    """

    execution_id: UUID
    after: UUID | None
    beside: UUID | None = None
    kept: Count = 0
    kind: Literal["turn", "edit", "regenerate"] = "turn"
    current: Annotated[bool, Field(strict=True)] = False
    agent: Annotated[Text, StringConstraints(min_length=1, max_length=64)]
    status: Literal["failed", "cancelled"]
    outcome: Annotated[Outcome, Field(discriminator="type")] | None
    error: ErrorDocument | None
    messages: Annotated[tuple[AgentMessage, ...], Field(min_length=1)]
    unfinished: HalfMessage | None
    model_context: ModelContext | None = None
    usage: Usage | None = None
    created_at: Moment
    finished_at: Moment | None = None
    seal: Annotated[str, StringConstraints(max_length=200)] | None = None


class ConversationDocument(Value):
    """A conversation with its whole tree, parents before children, and the turns that are no part of it."""

    conversation_id: UUID
    external_id: Annotated[Text, StringConstraints(min_length=1, max_length=200)] | None
    title: Annotated[Text, StringConstraints(max_length=TITLE_LENGTH)] | None
    title_by_person: Annotated[bool, Field(strict=True)]
    agent: Annotated[Text, StringConstraints(min_length=1, max_length=64)]
    pinned: Annotated[bool, Field(strict=True)]
    archived: Annotated[bool, Field(strict=True)]
    tags: Annotated[tuple[Tag, ...], Field(max_length=MOST_TAGS)]
    temporary: Annotated[bool, Field(strict=True)]
    version: Count
    created_at: Moment
    updated_at: Moment
    head: UUID | None
    revisions: tuple[RevisionDocument, ...]
    attachments: tuple[AttachmentDocument, ...] = ()
    unsaved_turns: tuple[UnsavedDocument, ...] = ()


class Envelope(Value):
    """What stands around the conversations of a file; `damaged` names those that could not be read when it was made."""

    format: Literal["par-conversations"]
    version: Literal[1]
    exported_at: AwareDatetime
    conversations: tuple[Any, ...] = Field(max_length=0)
    damaged: tuple[JsonObject, ...] = ()


def beginning(now: datetime) -> dict[str, Any]:
    """Return the envelope of a file that is made now, without its conversations."""
    return {"format": FORMAT, "version": VERSION, "exportedAt": now}
