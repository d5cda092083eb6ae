from agent.models.audit import AuditRecord
from agent.models.endpoint import ModelEndpoint
from agent.models.fields import Plain, SecretField, reveal
from agent.models.profile import AgentFallback, AgentProfile
from agent.models.tool import ToolRecord
from agent.models.usage import ModelPrice, UsageRecord

__all__ = [
    "AgentFallback",
    "AgentProfile",
    "AuditRecord",
    "ModelEndpoint",
    "ModelPrice",
    "Plain",
    "SecretField",
    "ToolRecord",
    "UsageRecord",
    "reveal",
]
