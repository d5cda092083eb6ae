"""Test doubles that ship: a model, an HTTP provider, a clock, a recorder and tools, all of them scripted."""

from agent.testing.chat_wire import chat_stream
from agent.testing.clock import FakeClock
from agent.testing.gate import Gate
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from agent.testing.model import ScriptedModel, calls, fails, says
from agent.testing.recorder import EventRecorder
from agent.testing.tool import ScriptedTool, call_tool, scripted_tool

__all__ = [
    "EventRecorder",
    "FakeClock",
    "Gate",
    "ScriptedAnswer",
    "ScriptedModel",
    "ScriptedProvider",
    "ScriptedTool",
    "call_tool",
    "calls",
    "chat_stream",
    "fails",
    "says",
    "scripted_tool",
]
