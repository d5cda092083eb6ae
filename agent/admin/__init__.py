from agent.admin.audit import AuditRecordAdmin
from agent.admin.base import ReadOnlyAdmin, readable_json
from agent.admin.endpoint import ModelEndpointAdmin
from agent.admin.profile import AgentProfileAdmin
from agent.admin.tool import ToolRecordAdmin

__all__ = [
    "AgentProfileAdmin",
    "AuditRecordAdmin",
    "ModelEndpointAdmin",
    "ReadOnlyAdmin",
    "ToolRecordAdmin",
    "readable_json",
]
