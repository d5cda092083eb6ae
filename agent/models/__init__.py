from agent.models.audit import AuditRecord
from agent.models.endpoint import ModelEndpoint
from agent.models.fields import Plain, SecretField, reveal
from agent.models.profile import AgentProfile
from agent.models.tool import ToolRecord

__all__ = ["AgentProfile", "AuditRecord", "ModelEndpoint", "Plain", "SecretField", "ToolRecord", "reveal"]
