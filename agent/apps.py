"""The app of agents, tools and their governance."""

from __future__ import annotations

from django.apps import AppConfig


class AgentConfig(AppConfig):
    name = "agent"
    verbose_name = "Agents"

    def ready(self) -> None:
        from agent import checks  # noqa: F401  registers the system checks
