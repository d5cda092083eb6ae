"""Which adapter speaks which protocol."""

from __future__ import annotations

from typing import get_args

from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.registry import build_model
from agent.providers.transport import Transport


def test_every_protocol_has_an_adapter() -> None:
    made = {type(build_model(ModelConfig(name, "m"), Transport())) for name in get_args(ProtocolName)}
    assert len(made) == len(get_args(ProtocolName))
