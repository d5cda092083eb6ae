"""What the checks of requests are worth: a check that lets everything pass would prove nothing."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import ValidationError

from tests.agent.providers.sdk_types import check_type

WHOLE: dict[Any, dict[str, Any]] = {
    CompletionCreateParamsStreaming: {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
    },
    MessageCreateParamsStreaming: {
        "model": "m",
        "stream": True,
        "max_tokens": 5,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
    },
    ResponseCreateParamsStreaming: {
        "model": "m",
        "stream": True,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}],
    },
}


@pytest.mark.parametrize("type", WHOLE)
def test_a_member_that_the_sdk_does_not_know_is_found_wherever_it_is(type: Any) -> None:
    body = WHOLE[type]
    check_type(body, type)
    with pytest.raises(ValidationError, match="bogus"):
        check_type(body | {"bogus": 1}, type)
    (place,) = body.keys() & {"messages", "input"}
    (message,) = body[place]
    with pytest.raises(ValidationError, match="bogus"):
        check_type(body | {place: [message | {"bogus": 1}]}, type)
    with pytest.raises(ValidationError, match="bogus"):
        check_type(body | {place: [message | {"content": [message["content"][0] | {"bogus": 1}]}]}, type)
