"""How much Claude thinks before it answers, and what the API demands of a request that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.providers.anthropic_history import THINKING
from agent.providers.state import ProviderState
from agent.runtime.messages import AgentMessage
from agent.runtime.model import ModelRequest

BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}  # tokens
MIN_TOP_P = 0.95


def budget_of(effort: str, request: ModelRequest, state: ProviderState) -> int:
    """Return the tokens for thinking, 0 where nothing is said about it.

    The API refuses it beside a forced tool, and in a turn whose calls were made without it.
    """
    forced = request.tool_choice is not None and request.tool_choice not in ("auto", "none")
    if not effort or forced or _began_without(request.messages, state):
        return 0
    return BUDGETS[effort]


def with_thinking(settings: Mapping[str, Any], budget: int) -> dict[str, Any]:
    """Return settings that the API takes together with thinking: room for the answer, no temperature, a high top p."""
    most, top_p = settings["max_tokens"], settings["top_p"]
    return {
        **settings,
        "max_tokens": most if most > budget else most + budget,
        "temperature": None,
        "top_p": top_p if top_p is not None and top_p >= MIN_TOP_P else None,
        "thinking": {"type": "enabled", "budget_tokens": budget},
    }


def _began_without(messages: tuple[AgentMessage, ...], state: ProviderState) -> bool:
    """Return whether the turn in progress has answers, and the state no reasoning of any of them."""
    answers: list[AgentMessage] = []
    for message in reversed(messages):
        if message.role == "user":
            break
        if message.role == "assistant":
            answers.append(message)
    kept = [block for answer in answers for _, block in state.extras.get(answer.id, ())]
    return bool(answers) and not any(block.get("type") in THINKING for block in kept)
