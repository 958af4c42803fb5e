"""Celery on Redis with Redis results: late acknowledgement (as durable as the others), 64 prefetched, no events."""

# The libraries live in a venv of their own, out of the type checker's sight.
# mypy: disable-error-code="import-not-found,untyped-decorator"

import time
from typing import Any

from celery import Celery

from benchmarks.budget import analyze, parameters
from benchmarks.peers.protocol import REDIS_URL, run

app = Celery("benchmark", broker=REDIS_URL, backend=REDIS_URL)
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=64,
    worker_send_task_events=False,
    task_track_started=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="analyze_budget")
def analyze_budget(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question."""
    return analyze(question)


async def enqueue(count: int) -> list[str]:
    """Publish *count* questions."""
    return [
        f"celery-task-meta-{analyze_budget.delay(parameters(number)).id}"
        for number in range(count)
    ]


async def latency(count: int) -> list[float]:
    """Ask *count* questions one after the other; the result is announced to the producer by Redis publish."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        analyze_budget.delay(parameters(number)).get(timeout=30)
        times.append((time.perf_counter() - started) * 1000)
    return times


if __name__ == "__main__":
    run(enqueue, latency)
