"""The cost of a journaled step of an agent, on a real store."""

from collections import Counter
from datetime import UTC, datetime

import pydantic_ai
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from redis.asyncio import Redis

from tasklore import Agent, Context
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.ledger import Ledger
from tasklore.workers.pydantic_agents import Prompt, run
from tasklore.workers.testing import AgentKit
from tests.servers import PATIENCE_S

ROUNDS = 20
#: Requests and calls of one run.
STEPS = 2 * ROUNDS + 1


def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Call a tool in each round."""
    number = sum(isinstance(message, ModelResponse) for message in messages)
    return ModelResponse(
        [
            ToolCallPart("look", {"number": number})
            if number < ROUNDS
            else TextPart("done")
        ]
    )


async def calls_of(redis: Redis) -> Counter[str]:
    """Return how often each command was run on this server."""
    return Counter(
        {
            name.removeprefix("cmdstat_"): of["calls"]
            for name, of in (await redis.info("commandstats")).items()
        }
    )


async def test_a_journaled_step_costs_one_write_beyond_its_own_work(
    valkey_or_redis: Redis,
) -> None:
    """And what earlier runs journaled is asked for once in a run: a round trip each, however long the run is."""
    clerk = pydantic_ai.Agent(FunctionModel(answer), name="clerk")

    @clerk.tool_plain
    async def look(number: int) -> str:
        return f"saw {number}"

    served = Agent("ClerkAgent")

    @served.task(uses=("llm",))
    async def work(prompt: Prompt, context: Context) -> str:
        """Run the agent."""
        return (await run(clerk, prompt.prompt, context)).output

    kit = AgentKit(served)
    kit.services.journal = Journal(valkey_or_redis, deadline_s=PATIENCE_S)  # type: ignore[assignment] # the real one
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S)
    costs = []
    for number in range(1, 4):
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        await ledger.begin(f"task-{number}", 1, "kit", now_ms, 60_000)
        before = await calls_of(valkey_or_redis)
        assert (await kit.run("work", {"prompt": "go"})).result == "done"
        calls = await calls_of(valkey_or_redis) - before
        costs.append((calls["fcall"], calls["hgetall"]))
    # The first run also finds that the server lacks the function.
    assert costs[1:] == [(STEPS, 1)] * 2
