"""What programs send to change conversations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints, field_validator

from agent.runtime.messages import Value
from agent.runtime.ports import Title, WholeContext
from agent.runtime.values import Text
from conversations.bodies import Version
from conversations.models import LABEL_LENGTH
from conversations.store import UNCHANGED, Changes, Unchanged

MOST_TAGS = 20

ShownTitle = Annotated[Title, StringConstraints(pattern=r"\S")]
Label = Annotated[Text, StringConstraints(pattern=r"\S", max_length=LABEL_LENGTH)]
Tag = Annotated[Text, StringConstraints(pattern=r"\S", max_length=50)]
Flag = Annotated[bool, Field(strict=True)]


class NewConversation(Value):
    """A conversation to be made, empty or with a context."""

    title: ShownTitle | None = None
    agent: Annotated[Text, StringConstraints(min_length=1, max_length=64)] | None = None
    temporary: Flag = False
    context: WholeContext | None = None


class SaveBody(Value):
    """The whole of a conversation, on top of `revision` (R122, R127)."""

    title: ShownTitle | None
    revision: Version
    context: WholeContext


class PatchBody(Value):
    """Changes: what is missing stays, null clears; with `revision` only if nothing has changed since."""

    title: ShownTitle | None = None
    pinned: Flag | None = None
    archived: Flag | None = None
    temporary: Flag | None = None
    tags: Annotated[tuple[Tag, ...], Field(max_length=MOST_TAGS)] | None = None
    revision: Version | None = None

    @field_validator("tags")
    @classmethod
    def _plain(cls, tags: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if tags is None else tuple(dict.fromkeys(tag.strip() for tag in tags))

    def changes(self) -> Changes:
        def given(name: str, cleared: Any) -> Any | Unchanged:
            if name not in self.model_fields_set:
                return UNCHANGED
            value = getattr(self, name)
            return cleared if value is None else value

        return Changes(
            title=given("title", None),
            pinned=given("pinned", False),
            archived=given("archived", False),
            temporary=given("temporary", False),
            tags=given("tags", ()),
        )


class RestoreBody(Value):
    """A revision to be the head again; with `newest` the newest one of its branch."""

    revision_id: UUID
    newest: Flag = False
    revision: Version | None = None


class ForkBody(Value):
    """What to copy into a new conversation: the branch up to a revision (the head, if none is named), or all."""

    revision_id: UUID | None = None
    scope: Literal["branch", "all"] = "branch"
    title: ShownTitle | None = None


class ResetBody(Value):
    """The version on which the model state is dropped (E3)."""

    revision: Version


class LabelBody(Value):
    """The name of a branch; null takes it away."""

    label: Label | None
    revision: Version | None = None


class ShareBody(Value):
    """What to share: a revision (the head, if none is named), until a time or for good."""

    revision_id: UUID | None = None
    expires_at: AwareDatetime | None = None


class SharePatch(Value):
    """Changes of a share: what is missing stays, null lets the link last."""

    revision_id: UUID | None = None
    expires_at: AwareDatetime | None = None

    @field_validator("revision_id")
    @classmethod
    def _named(cls, revision_id: UUID | None) -> UUID:
        if revision_id is None:
            raise ValueError("a share always shows a revision; leave it out to change nothing")
        return revision_id

    @property
    def new_revision(self) -> UUID | Unchanged:
        return UNCHANGED if self.revision_id is None else self.revision_id

    @property
    def new_expiry(self) -> datetime | None | Unchanged:
        return self.expires_at if "expires_at" in self.model_fields_set else UNCHANGED
