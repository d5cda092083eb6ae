"""The examples of the OpenAPI document; docs/http.md shows the same, and the tests hold both against the schemas."""

from __future__ import annotations

from typing import Any

CONVERSATION = "01890a5d-ac96-774b-bcce-b302099a8000"
EXECUTION = "01890a5d-b0c1-7aa1-8000-000000000001"
ATTACHMENT = "01890a5d-a8f0-7c3e-9b6a-5d2f8e1c4b70"
INTERRUPT = "interrupt-6f1c2a54-7d0e-4f0e-9d1b-2f8a4a0e7c11"
REVISION = "01890a5d-c000-7000-8000-000000000002"
OTHER_REVISION = "01890a5d-c000-7000-8000-000000000001"

ROW: dict[str, Any] = {
    "conversationId": CONVERSATION,
    "title": "Hello",
    "agent": "demo",
    "revision": 2,
    "status": "active",
    "pinned": False,
    "tags": ["weather"],
    "temporary": False,
    "headRevisionId": REVISION,
    "createdAt": "2026-12-01T10:00:00Z",
    "updatedAt": "2026-12-01T10:02:00Z",
}
CONTEXT: dict[str, Any] = {
    "messages": [
        {"id": "message-0", "role": "user", "blocks": [{"type": "text", "text": "Hello"}]},
        {"id": "message-1", "role": "assistant", "blocks": [{"type": "text", "text": "Good day."}]},
    ],
    "modelContext": {"checkpoint": None, "modelState": None, "usage": None},
}
ENTRY: dict[str, Any] = {
    "revisionId": REVISION,
    "number": 2,
    "parentId": None,
    "kind": "regenerate",
    "label": None,
    "isHead": True,
    "onHeadPath": True,
    "messageCount": 2,
    "preview": "Hello",
    "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
    "outcome": {"type": "completed", "stopReason": "end-turn"},
    "createdAt": "2026-12-01T10:02:00Z",
}
SHARE: dict[str, Any] = {
    "shareId": "01890a5d-d000-7000-8000-000000000003",
    "conversationId": CONVERSATION,
    "revisionId": REVISION,
    "prefix": "kT9x_q",
    "title": "Hello",
    "state": "live",
    "upToDate": True,
    "createdAt": "2026-12-01T10:05:00Z",
    "publishedAt": "2026-12-01T10:05:00Z",
    "expiresAt": "2027-01-01T00:00:00Z",
    "revokedAt": None,
}

_AMOUNT = {"unpricedCalls": 0, "cachedTokens": 1000, "outputTokens": 90, "reasoningTokens": 0}

EXAMPLES: dict[str, dict[str, Any]] = {
    "Imported": {
        "created": 1,
        "updated": 0,
        "unchanged": 2,
        "empty": 0,
        "conversations": [CONVERSATION],
        "modelStatesDropped": 0,
    },
    "StartBody": {"agent": "demo", "input": [{"type": "text", "text": "Hello"}]},
    "AttachmentRow": {
        "attachmentId": ATTACHMENT,
        "name": "report.pdf",
        "mediaType": "application/pdf",
        "size": 48213,
        "width": None,
        "height": None,
        "pages": 3,
    },
    "Started": {"executionId": EXECUTION, "conversationId": CONVERSATION, "created": True, "modelStateReset": False},
    "RespondBody": {"interruptId": INTERRUPT, "value": True},
    "Responded": {"executionId": EXECUTION, "interruptId": INTERRUPT},
    "ToolResultBody": {"callId": "call-1", "result": {"temperature": 21}, "isError": False},
    "ResultTaken": {"executionId": EXECUTION, "callId": "call-1"},
    "Stopped": {"executionId": EXECUTION, "status": "cancelled"},
    "ErrorBody": {
        "error": {
            "code": "CONVERSATION_CONFLICT",
            "message": "the conversation has moved on to revision 4; reload it",
            "currentRevision": 4,
        }
    },
    "ConversationHead": {"conversation": ROW},
    "ConversationList": {"conversations": [ROW], "nextCursor": None},
    "ConversationSnapshot": {"conversation": ROW, "context": CONTEXT},
    "ReadConversation": {
        "conversation": ROW,
        "owner": {"id": 7, "email": "ada@example.org"},
        "messages": CONTEXT["messages"],
    },
    "NewConversation": {"title": "Plans", "agent": "demo"},
    "SaveBody": {"title": "Hello", "revision": 2, "context": CONTEXT},
    "PatchBody": {"title": "The weather", "pinned": True, "tags": ["weather"]},
    "RestoreBody": {"revisionId": REVISION, "newest": True},
    "ForkBody": {"revisionId": REVISION, "scope": "branch"},
    "ResetBody": {"revision": 2},
    "LabelBody": {"label": "the short version"},
    "RevisionList": {"revisions": [ENTRY], "nextBefore": None},
    "RevisionSnapshot": {"revision": ENTRY, "context": CONTEXT},
    "RevisionChanged": {"conversation": ROW, "revision": ENTRY | {"label": "the short version"}},
    "RevisionDiff": {
        "fromId": OTHER_REVISION,
        "toId": REVISION,
        "common": 1,
        "commonEnd": 0,
        "removed": [{"id": "message-9", "role": "assistant", "blocks": [{"type": "text", "text": "Good evening."}]}],
        "added": [{"id": "message-1", "role": "assistant", "blocks": [{"type": "text", "text": "Good day."}]}],
        "modelStateChanged": False,
    },
    "SearchResult": {
        "hits": [
            {
                "conversation": {
                    "conversationId": CONVERSATION,
                    "title": "A cat in the garden",
                    "agent": "demo",
                    "revision": 2,
                    "status": "active",
                    "pinned": False,
                    "tags": ["pets"],
                    "temporary": False,
                    "headRevisionId": "01890a5d-c000-7000-8000-000000000002",
                    "createdAt": "2026-12-01T10:00:00Z",
                    "updatedAt": "2026-12-01T10:02:00Z",
                },
                "revisionId": "01890a5d-c000-7000-8000-000000000002",
                "messageId": "message-1",
                "role": "assistant",
                "createdAt": "2026-12-01T10:02:00Z",
                "title": [
                    {"text": "A ", "match": False},
                    {"text": "cat", "match": True},
                    {"text": " in the garden", "match": False},
                ],
                "snippet": [
                    {"text": "…so let the ", "match": False},
                    {"text": "cat", "match": True},
                    {"text": " come to you.", "match": False},
                ],
            }
        ],
        "nextCursor": "1847683315200000123",
    },
    "ExecutionRow": {
        "executionId": EXECUTION,
        "conversationId": CONVERSATION,
        "agent": "demo",
        "seq": 12,
        "status": "completed",
        "phase": None,
        "messages": [
            {"id": "message-0", "role": "user", "blocks": [{"type": "text", "text": "Hello"}]},
            {"id": "message-1", "role": "assistant", "blocks": [{"type": "text", "text": "Good day."}]},
        ],
        "current": None,
        "tools": [],
        "interrupt": None,
        "interruptCallId": None,
        "revision": {"id": REVISION, "number": 1, "version": 1},
        "outcome": {"type": "completed", "stopReason": "end-turn"},
        "error": None,
        "createdAt": "2026-12-01T10:00:00Z",
        "finishedAt": "2026-12-01T10:00:02Z",
        "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
    },
    "Used": {
        "since": "2026-11-02T00:00:00Z",
        "until": "2026-12-02T00:00:00Z",
        "executions": 2,
        "conversations": 1,
        "total": {**_AMOUNT, "modelCalls": 3, "inputTokens": 1200, "cost": "0.0042"},
        "byDay": [{**_AMOUNT, "day": "2026-12-01", "modelCalls": 3, "inputTokens": 1200, "cost": "0.0042"}],
        "byAgent": [{**_AMOUNT, "agent": "demo", "modelCalls": 3, "inputTokens": 1200, "cost": "0.0042"}],
    },
    "ShareBody": {"expiresAt": "2027-01-01T00:00:00Z"},
    "MadeShare": {"share": SHARE, "link": "https://ai.example.org/s/kT9x_q3b6VdPUQmWcJ0yFhE5rNzLs1gA8tXoKi2DvMw/"},
    "SharePatch": {"expiresAt": None},
    "ShareHead": {"share": SHARE | {"expiresAt": None}},
    "ShareList": {"shares": [SHARE | {"expiresAt": None}], "nextCursor": None},
}
