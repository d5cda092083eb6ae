"""What the provider tests share: requests, and a whole answer read at once."""

from __future__ import annotations

from typing import Any

from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.registry import state_format
from agent.providers.state import issuer_of
from agent.runtime.assembly import AssembledCall, MessageAssembler
from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import (
    AgentMessage,
    ModelState,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    tool_result,
)
from agent.runtime.model import Model, ModelRequest
from agent.runtime.tools import ToolDefinition


def user(text: str, *, id: str = "message-user") -> AgentMessage:
    return AgentMessage(id=id, role="user", blocks=(TextBlock(text=text),))


def assistant(*blocks: Any, id: str = "message-assistant") -> AgentMessage:
    return AgentMessage(id=id, role="assistant", blocks=blocks)


def call(call_id: str, name: str = "look", **arguments: Any) -> ToolCallBlock:
    return ToolCallBlock(call_id=call_id, name=name, input=arguments)


def result(of: ToolCallBlock, text: str, *, failed: bool = False, execution: Any = "completed") -> AgentMessage:
    block = tool_result(of, text, status="error" if failed else "success", execution=execution)
    return AgentMessage(id=f"message-of-{of.call_id}", role="tool", blocks=(block,))


def tool(name: str, schema: dict[str, Any] | None = None) -> ToolDefinition:
    return ToolDefinition(name=name, description=f"The tool {name}.", input_schema=schema or {"type": "object"})


def ask(
    *messages: AgentMessage, tools: tuple[ToolDefinition, ...] = (), state: ModelState | None = None
) -> ModelRequest:
    return ModelRequest("message-answer", messages or (user("Hello"),), tools, state)


def config(url: str, *, protocol: ProtocolName = "openai-chat", model: str = "a-model", **fields: Any) -> ModelConfig:
    values = {"api_key": "sk-TEST-123/+x", "allow_private": True, **fields}
    return ModelConfig(protocol, model, url, **values)


def kept_state(config: ModelConfig, **data: Any) -> ModelState:
    """The model state that the model of `config` makes; `data` are `callIds` and `extras`."""
    return ModelState(format=state_format(config.protocol), data={"issuer": issuer_of(config)} | data)


async def read(model: Model, request: ModelRequest | None = None) -> MessageAssembler:
    """Make a call and return what came, however it ended."""
    assembler = MessageAssembler(10_000_000)
    async for batch in model.stream(request or ask(), CancelSignal()):
        assert batch, "a batch is never empty"
        assembler.feed(batch)
    assembler.close()
    return assembler


def text_of(answer: MessageAssembler) -> str:
    return "".join(block.text for block in answer.blocks() if isinstance(block, TextBlock))


def reasoning_of(answer: MessageAssembler) -> str:
    return "".join(block.text for block in answer.blocks() if isinstance(block, ReasoningBlock))


def calls_of(answer: MessageAssembler) -> list[AssembledCall]:
    return [block for block in answer.blocks() if isinstance(block, AssembledCall)]
