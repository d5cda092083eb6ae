"""The official SDKs with their own iterators, for the same streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.benchmarks.dialects import Answer
from tests.benchmarks.floor import Ask
from tests.benchmarks.script import Event


@asynccontextmanager
async def official(protocol: str, address: str) -> AsyncIterator[Ask]:
    """Yield what asks a server with the SDK of a protocol."""
    take = SDKS[protocol]
    async with _client(protocol, address) as client:
        create = _create(protocol, client)

        async def ask(body: Event) -> Answer:
            answer = Answer()
            async for event in await create(**body):
                take(event, answer)
            return answer

        yield ask


def _client(protocol: str, address: str) -> Any:
    if protocol == "anthropic-messages":
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(base_url=address, api_key="key")
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=f"{address}/v1", api_key="key")


def _create(protocol: str, client: Any) -> Any:
    if protocol == "openai-chat":
        return client.chat.completions.create
    return client.responses.create if protocol == "openai-responses" else client.messages.create


def _chat(chunk: Any, answer: Answer) -> None:
    if not chunk.choices:
        return
    delta = chunk.choices[0].delta
    if delta.content:
        answer.pieces.append(delta.content)
    for part in delta.tool_calls or ():
        answer.call_id = part.id or answer.call_id
        answer.arguments += part.function.arguments or ""


def _responses(event: Any, answer: Answer) -> None:
    if event.type == "response.output_text.delta":
        answer.pieces.append(event.delta)
    elif event.type == "response.output_item.done":
        answer.items.append(event.item)
        if event.item.type == "function_call":
            answer.call_id, answer.arguments = event.item.call_id, event.item.arguments


def _messages(event: Any, answer: Answer) -> None:
    if event.type == "content_block_delta":
        if event.delta.type == "text_delta":
            answer.pieces.append(event.delta.text)
        elif event.delta.type == "input_json_delta":
            answer.arguments += event.delta.partial_json
    elif event.type == "content_block_start" and event.content_block.type == "tool_use":
        answer.call_id = event.content_block.id


SDKS: Mapping[str, Callable[[Any, Answer], None]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _messages,
}
