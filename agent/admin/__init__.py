from agent.admin.audit import AuditRecordAdmin
from agent.admin.base import ReadOnlyAdmin, readable_json
from agent.admin.endpoint import ModelEndpointAdmin
from agent.admin.profile import AgentProfileAdmin
from agent.admin.tool import ToolRecordAdmin
from agent.admin.usage import ModelPriceAdmin, UsageRecordAdmin

__all__ = [
    "AgentProfileAdmin",
    "AuditRecordAdmin",
    "ModelEndpointAdmin",
    "ModelPriceAdmin",
    "ReadOnlyAdmin",
    "ToolRecordAdmin",
    "UsageRecordAdmin",
    "readable_json",
]
