"""dramatiq with Redis broker and Redis results; JSON is its own default."""

# The libraries live in a venv of their own, out of the type checker's sight.
# mypy: disable-error-code="import-not-found,untyped-decorator"

import time
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.budget import analyze, parameters
from benchmarks.peers.protocol import REDIS_URL, run

backend = RedisBackend(url=REDIS_URL)
broker = RedisBroker(url=REDIS_URL)
broker.add_middleware(Results(backend=backend))
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="analyze_budget", store_results=True)
def analyze_budget(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question."""
    return analyze(question)


async def enqueue(count: int) -> list[str]:
    """Publish *count* questions."""
    return [
        backend.build_message_key(analyze_budget.send(parameters(number)))
        for number in range(count)
    ]


async def latency(count: int) -> list[float]:
    """Ask *count* questions one after the other; the result is waited for by the backend's blocking read."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        analyze_budget.send(parameters(number)).get_result(block=True, timeout=30_000)
        times.append((time.perf_counter() - started) * 1000)
    return times


if __name__ == "__main__":
    run(enqueue, latency)
