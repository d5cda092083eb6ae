"""Wire protocols in, neutral model events out: a file per protocol, framing, transport and the network guard.

Only what needs no network library is exported here, so that describing a model stays cheap; `build_model` is in
`agent.providers.registry`, `Transport` in `agent.providers.transport`.
"""

from agent.providers.config import ModelConfig, ProtocolName

__all__ = ["ModelConfig", "ProtocolName"]
