"""What clients ask for, whatever the wire: the websocket's commands and the HTTP API's bodies build on these."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from agent.providers.images import UnfitPicture, checked
from agent.runtime.interrupts import Decision
from agent.runtime.limits import PartialLimits
from agent.runtime.messages import MAX_SAFE_INTEGER, Base64Source, ImageBlock, TextBlock, Value
from agent.runtime.tools import ToolAnnotations
from agent.runtime.values import JsonData, JsonObject, Text
from conversations.attachments import id_at
from conversations.attachments.references import SCHEME
from conversations.store.branching import Branch

MOST_CLIENT_TOOLS = 32
SHOWN = 64  # characters of a name that a fault repeats

MessageId = Annotated[Text, StringConstraints(min_length=1, max_length=512)]
Version = Annotated[int, Field(strict=True, ge=0, le=MAX_SAFE_INTEGER)]
ClientId = Annotated[Text, StringConstraints(min_length=1, max_length=128)]


class ClientTool(Value):
    """A front-end tool that the client runs itself (R105); its name and schema are checked when a run starts."""

    name: Annotated[Text, StringConstraints(max_length=128)]
    description: Annotated[Text, StringConstraints(max_length=4096)]
    input_schema: JsonData
    annotations: ToolAnnotations = ToolAnnotations()


class AttachmentBlock(Value):
    """A file that was uploaded before: a picture, or a text or PDF whose text the model reads."""

    type: Literal["attachment"] = "attachment"
    attachment_id: UUID


Given: TypeAlias = TextBlock | ImageBlock | AttachmentBlock
InputBlock = Annotated[Given, Field(discriminator="type")]


class StartBody(Value):
    """The start of a run."""

    agent: Annotated[Text, StringConstraints(min_length=1, max_length=64)]
    input: Annotated[tuple[InputBlock, ...], Field(max_length=16)] = ()
    conversation_id: UUID | None = None
    base_revision: Version | None = None
    from_revision_id: UUID | None = None
    edit_message_id: MessageId | None = None
    regenerate_message_id: MessageId | None = None
    temporary: Annotated[bool, Field(strict=True)] = False
    client_id: ClientId | None = None
    client_tools: Annotated[tuple[ClientTool, ...], Field(max_length=MOST_CLIENT_TOOLS)] = ()
    limits: PartialLimits | None = None

    @field_validator("input")
    @classmethod
    def _says_something(cls, blocks: tuple[Given, ...]) -> tuple[Given, ...]:
        if blocks and not any(not isinstance(block, TextBlock) or block.text.strip() for block in blocks):
            raise ValueError("the message is empty")
        return blocks

    @field_validator("input")
    @classmethod
    def _shows_pictures(cls, blocks: tuple[Given, ...]) -> tuple[Given, ...]:
        return tuple([_picture(block) if isinstance(block, ImageBlock) else block for block in blocks])

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name in ("base_revision", "from_revision_id", "edit_message_id", "regenerate_message_id"):
            if getattr(self, name) is not None and self.conversation_id is None:
                raise ValueError(f"{to_camel(name)} needs a conversationId")
        if self.temporary and self.conversation_id is not None:
            raise ValueError("temporary is for a new conversation")
        if self.edit_message_id is not None and self.regenerate_message_id is not None:
            raise ValueError("editMessageId and regenerateMessageId do not go together")
        if self.regenerate_message_id is not None and self.input:
            raise ValueError("regenerateMessageId takes no input: the message is there")
        if self.regenerate_message_id is None and not self.input:
            raise ValueError("the message is empty")
        if self.client_tools and self.client_id is None:
            raise ValueError("clientTools need a clientId, by which their calls find the client")
        return self

    def identity(self) -> dict[str, Any]:
        """Return, as JSON data, everything that makes two starts the same one."""
        return self.model_dump(mode="json", by_alias=True, include=set(StartBody.model_fields))

    @property
    def branch(self) -> Branch | None:
        """Where the run begins, unless that is the head."""
        branch = Branch(self.from_revision_id, self.edit_message_id, self.regenerate_message_id)
        return None if branch == Branch() else branch


def _picture(block: ImageBlock) -> ImageBlock | AttachmentBlock:
    """Return a picture with the type that its bytes have; one by address is looked at when it is fetched."""
    if not isinstance(block.source, Base64Source):
        if not block.source.url.startswith(SCHEME):
            return block
        if (id := id_at(block.source.url)) is None:
            raise ValueError(f"{SCHEME} is followed by the id of an attachment")
        return AttachmentBlock(attachment_id=id)
    try:
        return ImageBlock(source=checked(block.source))
    except UnfitPicture as error:
        raise ValueError(f"the picture cannot be shown to a model: {error}") from None


class ApproveBody(Value):
    """Allow the pending tool call, with other arguments if given."""

    interrupt_id: Annotated[str, StringConstraints(max_length=64)]
    arguments: JsonObject | None = None

    def decision(self) -> Decision:
        return Decision("approved" if self.arguments is None else "modified", arguments=self.arguments)


class RejectBody(Value):
    """Refuse the pending tool call; the model is told the reason."""

    interrupt_id: Annotated[str, StringConstraints(max_length=64)]
    reason: Annotated[Text, StringConstraints(max_length=2000)] | None = None

    def decision(self) -> Decision:
        return Decision("rejected", reason=self.reason)


class RespondBody(Value):
    """Answer the pending tool call with yes or no (R89)."""

    interrupt_id: Annotated[str, StringConstraints(max_length=64)]
    value: Annotated[bool, Field(strict=True)]
    arguments: JsonObject | None = None
    reason: Annotated[Text, StringConstraints(max_length=2000)] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.arguments is not None and not self.value:
            raise ValueError("arguments go with the value true")
        if self.reason is not None and self.value:
            raise ValueError("a reason goes with the value false")
        return self

    def decision(self) -> Decision:
        if self.value:
            return ApproveBody(interrupt_id=self.interrupt_id, arguments=self.arguments).decision()
        return RejectBody(interrupt_id=self.interrupt_id, reason=self.reason).decision()


class ToolResultBody(Value):
    """What a front-end tool came to; a string is told to the model as it is, other JSON as its text (R107)."""

    call_id: Annotated[str, StringConstraints(max_length=128)]
    result: JsonData
    is_error: Annotated[bool, Field(strict=True)] = False


def faults(error: ValidationError) -> str:
    """Return what a validation found, in one line; of the input it repeats short names at most."""
    found = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False)[:5]:
        where = ".".join(str(part)[:SHOWN] for part in fault["loc"])
        what = fault["msg"][: 4 * SHOWN]
        found.append(f"{where}: {what}" if where else what)
    return "; ".join(found)
