"""What every peer application answers when run as a program: fill the queue, or ask one question at a time.

`enqueue N` prints a JSON list of N result keys in Redis; `latency N` prints N durations in milliseconds.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable

REDIS_URL = os.environ["BENCH_REDIS_URL"]


def run(
    enqueue: Callable[[int], Awaitable[list[str]]],
    latency: Callable[[int], Awaitable[list[float]]],
) -> None:
    """Carry out the command line and print its answer."""
    command = sys.argv[1]
    count = int(sys.argv[2])

    async def carry_out() -> list[str] | list[float]:
        return await (enqueue(count) if command == "enqueue" else latency(count))

    print(json.dumps(asyncio.run(carry_out())))
