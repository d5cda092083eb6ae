"""Requests to the Responses API: ready bytes, joined from parts that are encoded once."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from agent.providers.config import ModelConfig
from agent.providers.history import History, checked
from agent.providers.openai_responses_history import ResponsesEncoder, is_extra
from agent.providers.prepared import EncodedTools, PreparedRequest, ToolEncoder, members, sampling
from agent.providers.schemas import is_strict, structured_output
from agent.providers.state import ProviderState, issuer_of
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

logger = logging.getLogger(__name__)

STATE_FORMAT = "openai-responses/v1"

# OpenAI's models without reasoning, which refuse to be asked for it; gateways put the vendor before the name.
_NO_REASONING = re.compile(r"(?:.*/)?(?:gpt-3\.5|gpt-4|chatgpt-4o|gpt-5-chat)", re.IGNORECASE)


class ResponsesRequests:
    """Builds the requests of one adapter."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._issuer = issuer_of(config)
        head: dict[str, Any] = {"model": config.model, "stream": True, "store": False}
        self._replays = _replays_reasoning(config)
        if self._replays:
            head["include"] = ["reasoning.encrypted_content"]  # B43
        if config.stop_sequences:
            logger.warning("the stop sequences of %r are not sent: the Responses API knows none", config.model)
        self._head = orjson.dumps(head)[:-1]
        self._tools = ToolEncoder(_encode_tool)
        self._history = History(ResponsesEncoder())

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request; raises `StateMismatch`."""
        tools = self._tools.encode(request.tools)
        state = checked(ProviderState.read(request.model_state, STATE_FORMAT, self._issuer), is_extra)
        messages, instructions = request.messages, None
        if messages and messages[0].role == "system":
            messages, instructions = messages[1:], messages[0].text.strip() or None
        sent = state if self._replays else replace(state, extras=_without_reasoning(state.extras))
        items = self._history.encode(messages, tools.names, sent)
        parts = [self._head, self._settings(request), members(instructions=instructions)]
        if tools.encoded:
            parts += (b',"tools":', tools.encoded, members(tool_choice=_tool_choice(request.tool_choice, tools)))
        parts += (b',"input":[', b",".join(items), b"]}")
        kept = state.only(messages, self._history.calls)
        answer_id = request.response_message_id
        return PreparedRequest(b"".join(parts), tools.names, kept, answer_id, not items, tools.left_out)

    def _settings(self, request: ModelRequest) -> bytes:
        settings, effort = sampling(self._config, request), self._config.reasoning_effort
        schema = request.response_schema
        output = None if schema is None else structured_output(schema)
        return members(
            max_output_tokens=settings.pop("max_tokens"),
            **settings,
            prompt_cache_key=self._config.prompt_cache_key or None,
            reasoning={"effort": effort, "summary": "auto"} if effort else None,
            text=output and {"format": {"type": "json_schema", **output}},
        )


def _replays_reasoning(config: ModelConfig) -> bool:
    """Return whether hidden reasoning is asked for and goes back (R34)."""
    match config.reasoning_replay:
        case "never":
            return False
        case "always":
            return True
        case "auto":
            return not _NO_REASONING.match(config.model)


def _without_reasoning(extras: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    return {id: [entry for entry in kept if entry.get("type") != "reasoning"] for id, kept in extras.items()}


def _encode_tool(definition: ToolDefinition, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": definition.description,
        "parameters": schema,
        "strict": is_strict(schema),  # said in any case: the API's own default would change the schema
    }


def _tool_choice(choice: str | None, tools: EncodedTools) -> Any:
    if choice is None or choice in ("auto", "required", "none"):
        return choice
    if choice not in tools.sent:
        return None  # the server would refuse the whole request for a tool that it was not told about
    return {"type": "function", "name": tools.names.wire(choice)}
