"""Whether reasoning goes back to a chat completions server: each vendor has a rule of its own (R34)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent.providers.clients import is_host
from agent.providers.config import ModelConfig
from agent.runtime.messages import AgentMessage

# `all`: with every answer. `tool-turns`: with the answers of turns in which tools were called. `loop`: only with the
# answers since the last word of the user.
Scope: TypeAlias = Literal["all", "tool-turns", "loop"]


@dataclass(frozen=True, slots=True)
class ReasoningRule:
    """What goes back; `demanded` where the server refuses a call that comes without its reasoning."""

    scope: Scope
    demanded: bool = False

    def due(self, messages: Sequence[AgentMessage], extras: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return those of the extras that go back with `messages`."""
        if not extras:
            return extras
        turns = list(_turns(messages))
        if self.scope == "loop":
            turns = turns[-1:]
        elif self.scope == "tool-turns":
            turns = [turn for turn in turns[:-1] if any(message.tool_calls for message in turn)] + turns[-1:]
        return {message.id: extras[message.id] for turn in turns for message in turn if message.id in extras}


@dataclass(frozen=True, slots=True)
class _Vendor:
    domains: tuple[str, ...]
    models: re.Pattern[str]
    scope: Scope
    demanding: bool = False


_VENDORS = (
    _Vendor(("deepseek.com",), re.compile(r"\bdeepseek", re.IGNORECASE), "tool-turns", demanding=True),
    _Vendor(("xiaomimimo.com",), re.compile(r"\bmimo-", re.IGNORECASE), "tool-turns", demanding=True),
    _Vendor(
        ("moonshot.ai", "moonshot.cn", "kimi.com", "kimi.ai"),
        re.compile(r"\bkimi-", re.IGNORECASE),
        "all",
        demanding=True,
    ),
    _Vendor(("z.ai", "bigmodel.cn"), re.compile(r"\bglm-", re.IGNORECASE), "all"),
    _Vendor(("aliyuncs.com",), re.compile(r"\bqw(en|q)", re.IGNORECASE), "loop"),
)


def reasoning_rule(config: ModelConfig) -> ReasoningRule | None:
    """Return the rule for an endpoint, None where reasoning never goes back.

    The model's name decides before the host: one vendor serves the models of others. Only a vendor's own servers are
    taken to demand reasoning: others may refuse it where the model gave none.
    """
    host = next((vendor for vendor in _VENDORS if is_host(config, *vendor.domains)), None)
    match config.reasoning_replay:
        case "never":
            return None
        case "always":
            return ReasoningRule("all", demanded=host is not None and host.demanding)
        case "auto":
            vendor = next((vendor for vendor in _VENDORS if vendor.models.search(config.model)), host)
            if vendor is None:
                return None
            return ReasoningRule(vendor.scope, demanded=vendor.demanding and vendor is host)


def _turns(messages: Sequence[AgentMessage]) -> Iterator[list[AgentMessage]]:
    """Yield the answers of each turn; the last turn is the one in progress."""
    turn: list[AgentMessage] = []
    for message in messages:
        if message.role == "user":
            yield turn
            turn = []
        elif message.role == "assistant":
            turn.append(message)
    yield turn
