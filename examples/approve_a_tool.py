"""An agent whose tool asks before it acts: `python -m examples.approve_a_tool`. No Django, no key, no network."""

import asyncio
import sys
from collections.abc import Sequence

from agent.providers import ModelConfig
from agent.providers.demo import Demo
from agent.runtime import BlockDelta, Event, create_runtime
from agent.runtime.events import InterruptRequested
from agent.tools import tool


@tool(require_confirmation=True)
def send_postcard(to: str, text: str) -> str:
    """Send a postcard to somebody."""
    return f"The postcard to {to} is in the mail."


async def main() -> None:
    # With a real server the model is `build_model(config, transport)`, from agent.providers.registry, with
    #   config = ModelConfig("openai-chat", "a-model", "http://127.0.0.1:11434/v1", api_key="", allow_private=True)
    #   transport = Transport(), from agent.providers.transport; `await transport.start()` first, `close()` at the end.
    runtime = create_runtime(Demo(ModelConfig("demo", "demo")), [send_postcard])
    batches: asyncio.Queue[Sequence[Event]] = asyncio.Queue()
    execution = runtime.start("Send a postcard to Ada", observer=batches.put_nowait)
    while execution.verdict is None or not batches.empty():
        for event in await batches.get():
            if isinstance(event, BlockDelta) and event.block_type == "text":
                print(event.text, end="", flush=True)
            elif isinstance(event, InterruptRequested):
                print(f"\n{event.interrupt.tool.name} {dict(event.interrupt.arguments)}\nApprove? [y/N]", flush=True)
                answer = await asyncio.to_thread(sys.stdin.readline)
                execution.respond(event.interrupt.id, answer.strip().lower() == "y")
    print("\n" + (await execution.result).outcome.type)


asyncio.run(main())
