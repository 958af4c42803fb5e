"""Which workers are alive, by the signs of life that they put into their bucket."""

from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.messages import WorkerPresence
from tasklore.runtime.messaging.buckets import read_bucket
from tasklore.runtime.messaging.direct import Line


async def live_workers(line: Line) -> list[WorkerPresence]:
    """Return every worker that was alive within the last 15 seconds, by agent.

    Raises:
        Unreachable: the bucket did not answer.
    """
    found = await read_bucket(line, subjects.WORKERS_BUCKET)
    presences = [
        (key, presence)
        for key, body in found.items()
        if (presence := _read_presence(body)) is not None
    ]
    # Whatever else says that it is a worker was not put there by one.
    return [presence for key, presence in presences if key == key_of_presence(presence)]


def key_of_presence(presence: WorkerPresence) -> str:
    """Return the key in the bucket of the worker that *presence* is of."""
    return f"{presence.agent_id}.{presence.worker_id}"


def _read_presence(body: bytes) -> WorkerPresence | None:
    try:
        return WorkerPresence.model_validate_json(body)
    except ValidationError:
        return None
