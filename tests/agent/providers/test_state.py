"""The model state of our adapters: who may read it (R25-R28)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.registry import fits, state_format
from agent.providers.state import ProviderState, StateMismatch, issuer_of
from agent.runtime.messages import ModelState
from tests.agent.providers.reading import kept_state

CLAUDE = ModelConfig("anthropic-messages", "a-model")
FORMAT = state_format("anthropic-messages")
SIGNED = {"m": [[0, {"type": "thinking", "thinking": "Hm", "signature": "of vendor A"}]]}


@pytest.mark.parametrize(
    "other",
    [
        replace(CLAUDE, base_url="https://api.z.ai/api/anthropic"),
        replace(CLAUDE, model="another"),
        replace(CLAUDE, protocol="openai-chat"),
        ModelConfig("demo", "a-model"),
    ],
)
def test_a_state_is_of_no_use_to_another_model_server_or_protocol(other: ModelConfig) -> None:
    """R27: signatures hold where they were made, and nowhere else."""
    state = kept_state(CLAUDE, extras=SIGNED)
    assert fits(state, CLAUDE) and not fits(state, other)
    with pytest.raises(StateMismatch):
        ProviderState.read(state, state_format(other.protocol), issuer_of(other))


@pytest.mark.parametrize(
    "url", ["https://api.anthropic.com", "https://api.anthropic.com/v1", "https://API.Anthropic.com/"]
)
def test_one_server_may_be_written_in_several_ways(url: str) -> None:
    assert fits(kept_state(CLAUDE), replace(CLAUDE, base_url=url, api_key="another"))


@pytest.mark.parametrize("url", ["https://[", "https://user:secret@host.test"])
def test_an_issuer_holds_no_secret_and_is_there_for_every_address(url: str) -> None:
    assert "secret" not in issuer_of(replace(CLAUDE, base_url=url))


@pytest.mark.parametrize("data", [{}, {"extras": SIGNED}, ["issuer"], None, 5])
def test_a_state_without_an_issuer_fits_nobody(data: Any) -> None:
    state = ModelState(format=FORMAT, data=data)
    assert not fits(state, CLAUDE)
    with pytest.raises(StateMismatch):
        ProviderState.read(state, FORMAT, issuer_of(CLAUDE))


@pytest.mark.parametrize("data", [{"callIds": {"a": 5}}, {"callIds": []}, {"extras": {"a": 5}}, {"more": {}}])
def test_a_state_that_holds_something_else_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(StateMismatch, match="promises"):
        ProviderState.read(kept_state(CLAUDE, **data), FORMAT, issuer_of(CLAUDE))


@pytest.mark.parametrize("protocol", [name for name in get_args(ProtocolName) if name != "demo"])
def test_what_an_adapter_keeps_is_of_use_to_it(protocol: ProtocolName) -> None:
    """R26: through the database's form and back."""
    config = ModelConfig(protocol, "a-model")
    made = (
        ProviderState(issuer=issuer_of(config)).plus({"a": "b"}, "m", [{"x": 1}]).to_model_state(state_format(protocol))
    )
    assert made is not None
    stored = ModelState.model_validate_json(made.model_dump_json(by_alias=True))
    assert fits(stored, config)
    read = ProviderState.read(stored, stored.format, issuer_of(config))
    assert (dict(read.call_ids), read.only([], ["a"]).issuer) == ({"a": "b"}, issuer_of(config))


def test_a_state_with_nothing_in_it_is_none() -> None:
    assert ProviderState(issuer="x").to_model_state(FORMAT) is None
