"""Requests to a Messages API: ready bytes, joined from parts that are encoded once.

The parts stand in the order in which the provider caches them: settings, tools, instructions, conversation. Up to four
cache marks say where a prefix ends that the next request begins with as well (P170).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from agent.providers.anthropic_history import END, USER, MessagesEncoder, is_extra, is_legal_id
from agent.providers.anthropic_schema import output_schema
from agent.providers.anthropic_thinking import budget_of, with_thinking
from agent.providers.config import ModelConfig
from agent.providers.history import History, checked
from agent.providers.prepared import EncodedTools, PreparedRequest, ToolEncoder, members, sampling
from agent.providers.schemas import object_schema
from agent.providers.state import ProviderState, issuer_of
from agent.runtime.messages import AgentMessage, TextBlock
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

logger = logging.getLogger(__name__)

STATE_FORMAT = "anthropic-messages/v1"
DEFAULT_MAX_TOKENS = 4096  # P32
OPENING = USER + b'{"type":"text","text":"(The beginning of this conversation is not shown.)"}' + END
GOING_ON = USER + b'{"type":"text","text":"Please continue."}' + END

# A history with calls is refused where there are no tools at all.
_NO_TOOLS = members(
    tools=[{"name": "none", "description": "There are no tools at the moment.", "input_schema": {"type": "object"}}],
    tool_choice={"type": "none"},
)
_CHOICES = {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}}
_TTLS = {"five_min": "5m", "one_hour": "1h"}
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


class MessagesRequests:
    """Builds the requests of one adapter."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._issuer = issuer_of(config)
        self._head = orjson.dumps({"model": config.model, "stream": True})[:-1]
        self._tools = ToolEncoder(_encode_tool)
        self._history = History(MessagesEncoder())
        self._mark = b""
        if config.cache_ttl:
            control = {"type": "ephemeral", "ttl": _TTLS[config.cache_ttl]}
            self._mark = b',"cache_control":' + orjson.dumps(control)

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request; raises `StateMismatch`."""
        tools = self._tools.encode(request.tools)
        state = checked(ProviderState.read(request.model_state, STATE_FORMAT, self._issuer), is_extra)
        state = replace(state, call_ids={ours: id for ours, id in state.call_ids.items() if is_legal_id(id)})
        instructions, said = _divided(request.messages)
        messages = list(self._history.encode(said, tools.names, state))
        if self._mark:
            self._mark_conversation(messages)
        if messages and not messages[0].startswith(USER):
            messages.insert(0, OPENING)
        if messages and not messages[-1].startswith(USER):
            messages.append(GOING_ON)
        parts = [self._head, self._settings(request, state), self._tool_parts(tools, request.tool_choice)]
        if instructions:
            if not request.volatile_prompt:
                instructions[-1] = instructions[-1][:-1] + self._mark + b"}"
            elif self._mark:
                logger.debug("the instructions carry no cache mark: they are other ones in each run")
            parts.append(b',"system":[' + b",".join(instructions) + b"]")
        parts += (b',"messages":[', b",".join(messages), b"]}")
        kept = state.only(said, self._history.calls)
        answer_id = request.response_message_id
        return PreparedRequest(b"".join(parts), tools.names, kept, answer_id, not messages, tools.left_out)

    def _settings(self, request: ModelRequest, state: ProviderState) -> bytes:
        settings = sampling(self._config, request)
        if (temperature := settings["temperature"]) is not None:
            settings["temperature"] = min(temperature, 1.0)  # others allow 2
        budget = budget_of(self._config.reasoning_effort, request, state)
        settings["max_tokens"] = settings["max_tokens"] or DEFAULT_MAX_TOKENS + budget
        if budget:
            settings = with_thinking(settings, budget)
        output = None
        if (schema := request.response_schema) is not None:
            output = {"format": {"type": "json_schema", "schema": output_schema(object_schema(schema) or schema)}}
        stops = [stop for stop in self._config.stop_sequences if stop.strip()]
        return members(**settings, stop_sequences=stops or None, output_config=output)

    def _tool_parts(self, tools: EncodedTools, choice: str | None) -> bytes:
        if not tools.encoded:
            return _NO_TOOLS if self._history.calls else b""
        wire: dict[str, str] | None = _CHOICES.get(choice or "")
        if choice in tools.sent:
            wire = {"type": "tool", "name": tools.names.wire(choice or "")}
        elif choice and wire is None:
            logger.warning("tool %r cannot be asked for: it is not in the request", choice)
        # The mark goes into the last tool: `…}]`.
        return b',"tools":' + tools.encoded[:-2] + self._mark + b"}]" + members(tool_choice=wire)

    def _mark_conversation(self, messages: list[bytes]) -> None:
        """Mark the last two messages of the user: where this request ends, and where the one before it did.

        The second mark is for turns that added more blocks than the provider looks back. An answer is never marked: it
        may end with what cannot be. With those of the tools and the instructions these are four marks, as many as there
        may be, so that none of them is ever left out for another.
        """
        users = [at for at in range(len(messages) - 1, -1, -1)[:4] if messages[at].startswith(USER)]
        for at in users[:2]:
            messages[at] = messages[at][: -len(END) - 1] + self._mark + b"}" + END


def _divided(messages: tuple[AgentMessage, ...]) -> tuple[list[bytes], tuple[AgentMessage, ...]]:
    """Return the instructions that a conversation begins with, and the rest.

    Instructions in its midst are said as the user's words: nothing else is allowed there.
    """
    start = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    blocks = [
        orjson.dumps({"type": "text", "text": block.text})
        for message in messages[:start]
        for block in message.blocks
        if isinstance(block, TextBlock) and block.text.strip()
    ]
    rest = messages[start:]
    if any(message.role == "system" for message in rest):
        rest = tuple(_as_user(message) if message.role == "system" else message for message in rest)
    return blocks, rest


def _as_user(message: AgentMessage) -> AgentMessage:
    """Return a message in the user's name, always the same one."""
    known = message.encoded.get(_as_user)
    if known is None:
        known = message.encoded[_as_user] = message.model_copy(update={"role": "user"})
    made: AgentMessage = known
    return made


def _encode_tool(definition: ToolDefinition, name: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    if not all(_PROPERTY.fullmatch(each) for each in schema["properties"]):
        return None
    return {"name": name, "description": definition.description, "input_schema": schema}
