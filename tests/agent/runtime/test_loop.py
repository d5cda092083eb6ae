"""One run from the input to its outcome."""

from __future__ import annotations

import pytest

from agent.runtime import (
    AgentError,
    AgentMessage,
    Context,
    ModelContext,
    ModelState,
    PartialLimits,
    TextBlock,
    ToolCallBlock,
    ToolDecision,
    ToolResultBlock,
    Usage,
    create_runtime,
)
from agent.testing import EventRecorder, ScriptedModel, calls, fails, says, scripted_tool

LIFECYCLE = ("status", "block-start", "block-delta", "block-stop")


async def test_a_plain_turn_streams_its_text_and_completes_with_the_stop_reason() -> None:
    """R56, R59, R65."""
    with ScriptedModel(says("Hel", "lo", usage=Usage(input_tokens=3, output_tokens=2, total_tokens=5))) as model:
        recorder = EventRecorder()
        result = await create_runtime(model).start("Hi", observer=recorder).result
    assert result.outcome.to_wire() == {"type": "completed", "stopReason": "end-turn"}
    assert [(message.role, message.text) for message in result.messages] == [("user", "Hi"), ("assistant", "Hello")]
    assert result.usage.total_tokens == 5
    assert recorder.text() == "Hello"
    assert recorder.types(without=LIFECYCLE) == [
        "execution-started",
        "messages",
        "model-call-started",
        "model-call-completed",
        "messages",
        "execution-completed",
    ]


async def test_tools_run_in_model_order_and_their_results_go_back_to_the_model() -> None:
    """R78, R80."""
    first, second = scripted_tool("first", "one"), scripted_tool("second", "two")
    with ScriptedModel(calls(("second", {"n": 1}), ("first", {"n": 2})), says("Done")) as model:
        recorder = EventRecorder()
        result = await create_runtime(model, [first, second]).start("Go", observer=recorder).result
    assert [event.tool_name for event in recorder.events if event.type == "tool-call-started"] == ["second", "first"]
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    sent = model.requests[1].messages
    assert [b.content[0].text for m in sent for b in m.blocks if isinstance(b, ToolResultBlock)] == ["two", "one"]


async def test_the_system_message_is_composed_for_the_call_and_is_no_part_of_the_result() -> None:
    with ScriptedModel(says("ok")) as model:
        result = await create_runtime(model).start("Hi", instructions="Be brief.").result
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]
    assert {message.role for message in result.recovered.messages} == {"user", "assistant"}


async def test_each_model_call_gets_the_complete_state_of_the_last_one() -> None:
    """R28, R191."""
    state = ModelState(format="test/v1", data={"n": 1})
    echo = scripted_tool("echo", "x")
    with ScriptedModel(calls(("echo", {}), model_state=state), calls(("echo", {})), says("end")) as model:
        context = Context(model_context=ModelContext(model_state=ModelState(format="test/v1", data=0)))
        result = await create_runtime(model, [echo]).start("Hi", context=context).result
    assert [r.model_state and r.model_state.data for r in model.requests] == [0, {"n": 1}, None]
    assert result.model_context.model_state is None


async def test_a_batch_with_one_unknown_tool_runs_nothing() -> None:
    """R74, R187."""
    known = scripted_tool("known", "x")
    with ScriptedModel(calls(("known", {}), ("unknown", {}))) as model:
        execution = create_runtime(model, [known]).start("Go")
        with pytest.raises(AgentError) as caught:
            await execution.result
    assert caught.value.code == "MODEL_PROTOCOL_ERROR"
    assert known.invocations == []
    assert caught.value.recovered is not None
    assert [message.role for message in caught.value.recovered.messages] == ["user"]  # R77


@pytest.mark.parametrize(
    "arguments", ["[1, 2]", '"x"', "5", "true", '{"a": 1} trailing', "{", '{"x": NaN}', '{"x": 1e999}', "[" * 9_000]
)
async def test_bad_arguments_are_reported_to_the_model_and_the_batch_does_not_run(arguments: str) -> None:
    """DESIGN 2 `report`; B71, B73, B89, B90."""
    known = scripted_tool("known", "x")
    with ScriptedModel(calls(("known", {}), ("known", arguments)), says("Sorry")) as model:
        result = await create_runtime(model, [known], tool_call_errors="report").start("Go").result
    assert known.invocations == []
    results = [block for m in result.messages for block in m.blocks if isinstance(block, ToolResultBlock)]
    assert [(block.status, block.execution) for block in results] == [("error", "not-executed")] * 2
    sent = [block for m in model.requests[1].messages for block in m.blocks if isinstance(block, ToolCallBlock)]
    assert sent[1].input == {}  # what is replayed is an object


async def test_an_unknown_tool_is_answered_with_what_there_is() -> None:
    """B89."""
    with ScriptedModel(calls(("get_dat", {})), says("Sorry")) as model:
        runtime = create_runtime(model, [scripted_tool("get_date")], tool_call_errors="report")
        result = await runtime.start("Go").result
    block = result.messages[2].blocks[0]
    assert isinstance(block, ToolResultBlock)
    assert "get_date" in block.content[0].text


@pytest.mark.parametrize("policy", ["fail", "report"])
async def test_a_call_id_of_the_history_is_not_taken_again(policy: str) -> None:
    """R75: the policy `report` has no second id to answer under, so this ends the run."""
    history = Context(
        messages=(
            AgentMessage(id="m", role="assistant", blocks=(ToolCallBlock(call_id="call_1", name="known", input={}),)),
        )
    )
    with ScriptedModel(calls(("known", {}, "call_1"))) as model:
        runtime = create_runtime(model, [scripted_tool("known")], tool_call_errors=policy)
        with pytest.raises(AgentError, match="call_1"):
            await runtime.start("Go", context=history).result


@pytest.mark.parametrize(
    ("stop_reason", "with_call", "outcome"),
    [
        ("tool-use", False, "MODEL_PROTOCOL_ERROR"),
        ("max-tokens", True, "MODEL_PROTOCOL_ERROR"),
        ("max-tokens", False, "max-tokens"),
        ("end-turn", True, "MODEL_PROTOCOL_ERROR"),
        ("stop-sequence", True, "MODEL_PROTOCOL_ERROR"),
        ("other", True, "MODEL_PROTOCOL_ERROR"),
        ("stop-sequence", False, "completed"),
        ("other", False, "completed"),
    ],
)
async def test_the_stop_reason_decides_what_comes_next(stop_reason: str, with_call: bool, outcome: str) -> None:
    """R52, R188."""
    step = calls(("known", {}), stop_reason=stop_reason) if with_call else says("text", stop_reason=stop_reason)
    with ScriptedModel(step) as model:
        execution = create_runtime(model, [scripted_tool("known")]).start("Go")
        try:
            ended = (await execution.result).outcome.type
        except AgentError as error:
            ended = error.code
    assert ended == outcome


async def test_max_tokens_without_blocks_adds_no_message() -> None:
    """DESIGN 2."""
    with ScriptedModel(says(stop_reason="max-tokens")) as model:
        result = await create_runtime(model).start("Go").result
    assert result.outcome.type == "max-tokens"
    assert [message.role for message in result.messages] == ["user"]


async def test_a_batch_of_the_last_allowed_model_call_does_not_run() -> None:
    """R71, R187."""
    known = scripted_tool("known", "x")
    with ScriptedModel(calls(("known", {}))) as model:
        runtime = create_runtime(model, [known], PartialLimits(max_model_calls=1))
        with pytest.raises(AgentError) as caught:
            await runtime.start("Go").result
    assert caught.value.code == "AGENT_MAX_MODEL_CALLS"
    assert known.invocations == []


async def test_the_budget_of_tool_calls_is_cumulative() -> None:
    """R76."""
    known = scripted_tool("known", "x")
    with ScriptedModel(calls(("known", {}), ("known", {})), calls(("known", {}), ("known", {}))) as model:
        runtime = create_runtime(model, [known], PartialLimits(max_tool_calls=3))
        with pytest.raises(AgentError) as caught:
            await runtime.start("Go").result
    assert caught.value.code == "AGENT_MAX_TOOL_CALLS"
    assert len(known.invocations) == 2


async def test_output_over_its_limit_fails_with_what_came_before() -> None:
    """R48, R69: code points are counted, nothing is cut."""
    with ScriptedModel(says("😀😀", "😀")) as model:
        recorder = EventRecorder()
        runtime = create_runtime(model, limits=PartialLimits(max_model_output_characters=2))
        with pytest.raises(AgentError) as caught:
            await runtime.start("Go", observer=recorder).result
    assert caught.value.code == "MODEL_OUTPUT_LIMIT_EXCEEDED"
    assert recorder.text() == "😀😀"


async def test_a_result_over_its_limit_is_not_published_and_is_recovered_as_omitted() -> None:
    """R72, E5."""
    with ScriptedModel(calls(("known", {}))) as model:
        recorder = EventRecorder()
        runtime = create_runtime(model, [scripted_tool("known", "12345")], PartialLimits(max_tool_result_characters=4))
        with pytest.raises(AgentError) as caught:
            await runtime.start("Go", observer=recorder).result
    assert caught.value.code == "TOOL_RESULT_LIMIT_EXCEEDED"
    assert "tool-call-completed" not in recorder.types()
    assert caught.value.recovered is not None
    block = caught.value.recovered.messages[-1].blocks[0]
    assert isinstance(block, ToolResultBlock)
    assert block.execution == "result-omitted"


@pytest.mark.parametrize(
    "result",
    [
        {"toolCallId": "wrong", "content": "x", "isError": False},
        {"toolCallId": None, "content": "x", "isError": False},
        {"toolCallId": "call_1", "content": 5, "isError": False},
        {"toolCallId": "call_1", "content": "x", "isError": 0},
        {"toolCallId": "call_1", "content": "x", "isError": False, "more": 1},
        {"tool_call_id": "call_1", "content": "x", "is_error": False},
        {"content": "x", "isError": False},
    ],
)
async def test_a_result_that_breaks_its_contract_ends_the_run(result: dict[str, object]) -> None:
    """R82, R83, R192."""
    with ScriptedModel(calls(("known", {}, "call_1"))) as model, pytest.raises(AgentError) as caught:
        await create_runtime(model, [scripted_tool("known", result)]).start("Go").result
    assert caught.value.code == "MODEL_PROTOCOL_ERROR"


async def test_a_tool_that_raises_ends_the_run() -> None:
    """R81."""
    with ScriptedModel(calls(("known", {}))) as model, pytest.raises(AgentError) as caught:
        await create_runtime(model, [scripted_tool("known", KeyError("secret"))]).start("Go").result
    assert caught.value.code == "TOOL_FAILED"
    assert "secret" not in caught.value.message


async def test_a_tool_that_raises_is_reported_without_details_where_the_agent_says_so() -> None:
    """DESIGN 2 `report`; B83."""
    with ScriptedModel(calls(("known", {})), says("Sorry")) as model:
        runtime = create_runtime(model, [scripted_tool("known", KeyError("secret"))], tool_exceptions="report")
        result = await runtime.start("Go").result
    block = result.messages[2].blocks[0]
    assert isinstance(block, ToolResultBlock)
    assert (block.status, block.execution) == ("error", "completed")
    assert "secret" not in block.content[0].text


async def test_a_refusal_is_an_error_and_its_text_is_kept() -> None:
    """DESIGN 2; B23."""
    model = ScriptedModel(fails("refused", code="MODEL_REFUSED", kind="refusal", refusal="I cannot."))
    with pytest.raises(AgentError) as caught:
        await create_runtime(model).start("Go").result
    assert caught.value.code == "MODEL_REFUSED"
    assert caught.value.recovered is not None
    assert caught.value.recovered.messages[-1].blocks == (TextBlock(text="I cannot."),)


async def test_a_provider_error_in_mid_text_keeps_complete_messages_only() -> None:
    """R63; B19."""
    with ScriptedModel(fails("broken", after="Half an ans")) as model:
        recorder = EventRecorder()
        with pytest.raises(AgentError) as caught:
            await create_runtime(model).start("Go", observer=recorder).result
    assert caught.value.code == "MODEL_FAILED"
    assert recorder.text() == "Half an ans"
    assert recorder.events[-1].type == "execution-failed"
    assert [message.role for message in recorder.messages()] == ["user"]


class Verdicts:
    """A policy that answers in turn."""

    def __init__(self, *verdicts: ToolDecision) -> None:
        self.verdicts = list(verdicts)

    async def decide(self, definition: object, invocation: object) -> ToolDecision:
        return self.verdicts.pop(0)


async def test_a_denied_call_is_answered_and_not_executed() -> None:
    """R7."""
    known = scripted_tool("known", "x")
    with ScriptedModel(calls(("known", {})), says("Pity")) as model:
        runtime = create_runtime(model, [known], policy=Verdicts(ToolDecision("deny", "switched off")))
        result = await runtime.start("Go").result
    block = result.messages[2].blocks[0]
    assert isinstance(block, ToolResultBlock)
    assert (block.content[0].text, block.execution) == ("switched off", "not-executed")
    assert known.invocations == []


async def test_rights_are_judged_again_after_an_approval() -> None:
    """B57."""
    known = scripted_tool("known", "x")
    with ScriptedModel(calls(("known", {})), says("Pity")) as model:
        policy = Verdicts(ToolDecision("confirm", "careful"), ToolDecision("deny", "gone"))
        recorder = EventRecorder()
        execution = create_runtime(model, [known], policy=policy).start("Go", observer=recorder)
        event = await recorder.wait_for("interrupt-requested")
        assert event.interrupt.reason == "careful"
        execution.respond(event.interrupt.id, True)
        result = await execution.result
    assert known.invocations == []
    assert result.messages[2].blocks[0].content[0].text == "gone"
