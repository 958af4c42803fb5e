"""The baseline worker: nats-py as its users write it when they want speed. No validation, memory, ledger or retry.

Usage: `python -m benchmarks.raw_worker NATS_URL BATCH`. Fetches a batch from a durable pull consumer, answers all of it
concurrently, publishes each report to a file stream, acknowledges. uvloop and the standard library's json.
"""

import asyncio
import json
import signal
import sys

import nats
import uvloop
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from benchmarks.budget import analyze
from benchmarks.lanes import RAW


async def answer(stream: JetStreamContext, message: Msg) -> None:
    """Compute one assignment, publish its report durably, acknowledge."""
    assignment = json.loads(message.data)
    report = {
        "task_id": assignment["task_id"],
        "status": "completed",
        "result": analyze(assignment["task"]["parameters"]),
    }
    subject = (
        f"{RAW.reports_prefix}.{assignment['supervisor_id']}.{assignment['task_id']}.1"
    )
    await stream.publish(subject, json.dumps(report).encode())
    await message.ack()


async def work(url: str, batch: int) -> None:
    """Fetch and answer until SIGTERM."""
    client = await nats.connect(url)
    stream = client.jetstream()
    tasks = await stream.pull_subscribe_bind(RAW.consumer, RAW.tasks_stream)
    current = asyncio.current_task()
    assert current is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
    while True:
        try:
            messages = await tasks.fetch(batch, timeout=5)
        except TimeoutError:
            continue
        await asyncio.gather(*(answer(stream, message) for message in messages))


if __name__ == "__main__":
    try:
        uvloop.run(work(sys.argv[1], int(sys.argv[2])))
    except asyncio.CancelledError:
        sys.exit(0)
