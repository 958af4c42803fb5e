"""taskiq with the Redis stream broker (acknowledged, the durable one of its three) and its Redis result backend."""

# The libraries live in a venv of their own, out of the type checker's sight.
# mypy: disable-error-code="import-not-found,untyped-decorator"

import time
from typing import Any

from taskiq.serializers import JSONSerializer
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from benchmarks.budget import analyze, parameters
from benchmarks.peers.protocol import REDIS_URL, run

# consumer_id "0": the queue is filled before the worker starts.
broker = RedisStreamBroker(
    REDIS_URL, consumer_id="0", xread_count=200
).with_result_backend(RedisAsyncResultBackend(REDIS_URL, serializer=JSONSerializer()))


@broker.task(task_name="analyze_budget")
async def analyze_budget(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question."""
    return analyze(question)


async def enqueue(count: int) -> list[str]:
    """Publish *count* questions; the result's key is the task id."""
    await broker.startup()
    keys = [
        (await analyze_budget.kiq(parameters(number))).task_id
        for number in range(count)
    ]
    await broker.shutdown()
    return keys


async def latency(count: int) -> list[float]:
    """Ask *count* questions one after the other."""
    await broker.startup()
    times = []
    for number in range(count):
        started = time.perf_counter()
        task = await analyze_budget.kiq(parameters(number))
        await task.wait_result(check_interval=0.0005, timeout=30)
        times.append((time.perf_counter() - started) * 1000)
    await broker.shutdown()
    return times


if __name__ == "__main__":
    run(enqueue, latency)
