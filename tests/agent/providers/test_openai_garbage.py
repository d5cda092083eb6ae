"""Whatever a server of OpenAI's protocols sends is read or is a failure of the model, never an exception."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.management.replay import load_cases
from agent.providers.decoder import AnswerDecoder
from agent.providers.failures import Scrubber
from agent.providers.framing import SSESplitter
from agent.providers.names import ToolNames
from agent.providers.openai_chat_decode import ChatDecoder
from agent.providers.openai_responses_decode import ResponsesDecoder
from agent.providers.prepared import PreparedRequest
from agent.providers.state import ProviderState
from agent.runtime.assembly import MessageAssembler
from agent.runtime.exceptions import ModelFailed

CASES = Path(__file__).parents[2] / "cases"
PREPARED = PreparedRequest(b"", ToolNames([]), ProviderState(), "message-answer", empty=False)
MAKE: dict[str, Callable[[], AnswerDecoder]] = {
    "chat": lambda: ChatDecoder(PREPARED, Scrubber([]), keep_reasoning=True),
    "responses": lambda: ResponsesDecoder(PREPARED, Scrubber([])),
}
EVENTS: dict[str, list[Any]] = {api: [] for api in MAKE}
for case in load_cases(CASES):
    if case.api in MAKE and case.status == 200:
        for payload in SSESplitter(10**6).feed(case.body):
            try:
                EVENTS[case.api].append(json.loads(payload))
            except ValueError:
                continue

ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        2**70,
        1.5,
        float("nan"),
        "",
        " ",
        "x",
        "\x00",
        "\ud83d",
        "9" * 5_000,
        [],
        [None],
        [[]],
        {},
        {"a": 1},
    ]
)


@st.composite
def spoiled(draw: st.DrawFn, api: str) -> bytes:
    """A recorded event with one member anywhere in it replaced by something odd, or gone."""
    event: Any = json.loads(json.dumps(draw(st.sampled_from(EVENTS[api]))))
    at = event
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and draw(st.integers(0, 3)):
            at = at[key]
        elif draw(st.booleans()):
            at[key] = draw(ODD)
            break
        else:
            del at[key]
            break
    return json.dumps(event).encode()


@pytest.mark.parametrize("api", list(MAKE))
@given(st.data())
def test_spoiled_events_never_raise(api: str, data: st.DataObject) -> None:
    """DESIGN 2: the stream that the engine gets keeps the contract, or ends with an error (R40-R44)."""
    decoder, assembler = MAKE[api](), MessageAssembler(10**6)
    for payload in data.draw(st.lists(spoiled(api), min_size=1, max_size=8)):
        if not decoder.ended:
            assembler.feed(decoder.decode([payload]))
    if not decoder.ended:
        assembler.feed(decoder.close())
    assembler.close()
    assert assembler.failure is None or isinstance(assembler.failure, ModelFailed)
    if assembler.stop is not None and assembler.stop.model_state is not None:
        assembler.stop.model_state.model_dump_json()


@pytest.mark.parametrize("api", list(MAKE))
@given(st.data())
def test_a_spoiled_body_never_raises(api: str, data: st.DataObject) -> None:
    decoder, assembler = MAKE[api](), MessageAssembler(10**6)
    assembler.feed([*decoder.decode_whole(data.draw(spoiled(api))), *decoder.close()])
    assert assembler.ended
