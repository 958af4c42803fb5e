"""arq: 400 jobs at once, the queue polled every millisecond instead of every 500."""

# The libraries live in a venv of their own, out of the type checker's sight.
# mypy: disable-error-code="import-not-found"

import asyncio
import json
import time
from typing import Any, ClassVar

import uvloop
from arq import create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.worker import func

from benchmarks.budget import analyze, parameters
from benchmarks.peers.protocol import REDIS_URL, run

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
SETTINGS = RedisSettings.from_dsn(REDIS_URL)


def to_json(value: dict[str, Any]) -> bytes:
    """Write a job or a result as JSON in place of arq's default, pickle."""
    return json.dumps(value).encode()


async def analyze_budget(_: dict[str, Any], question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question."""
    return analyze(question)


class WorkerSettings:
    """Read by the `arq` command."""

    functions: ClassVar[list[Any]] = [func(analyze_budget, name="analyze_budget")]
    redis_settings = SETTINGS
    job_serializer = staticmethod(to_json)
    job_deserializer = staticmethod(json.loads)
    max_jobs = 400
    poll_delay = 0.001
    keep_result = 3600


async def _pool() -> ArqRedis:
    return await create_pool(
        SETTINGS, job_serializer=to_json, job_deserializer=json.loads
    )


async def enqueue(count: int) -> list[str]:
    """Publish *count* questions."""
    pool = await _pool()
    keys = []
    for number in range(count):
        job = await pool.enqueue_job("analyze_budget", parameters(number))
        assert job is not None
        keys.append(f"arq:result:{job.job_id}")
    await pool.aclose()
    return keys


async def latency(count: int) -> list[float]:
    """Ask *count* questions one after the other."""
    pool = await _pool()
    times = []
    for number in range(count):
        started = time.perf_counter()
        job = await pool.enqueue_job("analyze_budget", parameters(number))
        assert job is not None
        await job.result(timeout=30, poll_delay=0.0005)
        times.append((time.perf_counter() - started) * 1000)
    await pool.aclose()
    return times


if __name__ == "__main__":
    run(enqueue, latency)
