"""Stores for use without the site: conversations in memory or in one SQLite file."""

from agent.persistence.memory import MemoryConversationStore
from agent.persistence.sqlite import SqliteConversationStore

__all__ = ["MemoryConversationStore", "SqliteConversationStore"]
