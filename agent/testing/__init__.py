"""Test doubles that ship: a model, a clock, a recorder and tools, all of them scripted."""

from agent.testing.clock import FakeClock
from agent.testing.gate import Gate
from agent.testing.model import ScriptedModel, calls, fails, says
from agent.testing.recorder import EventRecorder
from agent.testing.tool import ScriptedTool, call_tool, scripted_tool

__all__ = [
    "EventRecorder",
    "FakeClock",
    "Gate",
    "ScriptedModel",
    "ScriptedTool",
    "call_tool",
    "calls",
    "fails",
    "says",
    "scripted_tool",
]
