"""The numbers on the first page of the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from agent.models import AgentProfile
from conversations.models import LIVE, Conversation, Execution, ExecutionStatus, User


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what is going on to the context of the admin's index."""
    day = Execution.objects.made_here().filter(created_at__gte=timezone.now() - timedelta(days=1))
    context["figures"] = [
        {"title": "Runs now", "value": Execution.objects.filter(status__in=LIVE).count()},
        {"title": "Runs in 24 hours", "value": day.count()},
        {"title": "Failed in 24 hours", "value": day.filter(status=ExecutionStatus.FAILED).count()},
        {"title": "Conversations", "value": Conversation.objects.count()},
        {"title": "People", "value": User.objects.filter(is_active=True).count()},
        {"title": "Agents", "value": AgentProfile.objects.filter(enabled=True).count()},
    ]
    return context
