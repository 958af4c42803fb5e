"""The servers' files, in which removed data lies on until they are written anew: each function is a `Rewrite`."""

import structlog
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.compaction import rewrite
from tasklore.runtime.messaging.direct import Line, client_of
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.jetstream import ask_jetstream

log = structlog.get_logger(__name__)

#: Every stream that carries users' words, or results made of them.
_STREAMS = (
    subjects.WAITING,
    subjects.TASKS,
    subjects.LATER,
    subjects.REPORTS,
    subjects.TURNS,
    subjects.FACTS,
    subjects.MESSAGES,
    subjects.DEAD,
    subjects.OUTPUT,
)
#: Bytes that a turn-over needs for a moment; a stream with less room would refuse tasks, or drop dead letters, for it.
_ROOM = 16 * 1024 * 1024


async def rewrite_streams(line: Line) -> dict[str, int]:
    """Turn every stream over; return, by stream, the messages that stay and beside which remains may lie on.

    The server drops remains within its sync interval, unless more than half of their file stays.
    """
    client = client_of(line)
    eraser = Eraser(line)
    beside = dict[str, int]()
    for stream in _STREAMS:
        info = await ask_jetstream(client, f"STREAM.INFO.{stream}")
        most = info["config"].get("max_bytes", -1)
        held = info["state"]["bytes"]
        if 0 < most < held + _ROOM:
            log.warning("stream_too_full_to_turn_over", stream=stream, bytes=held)
            beside[stream] = info["state"]["messages"]
        else:
            beside[stream] = await eraser.turn_over(stream, subjects.filler(stream))
    return beside


async def rewrite_redis(client: Redis, *, deadline_s: float = 60.0) -> dict[str, int]:
    """Have Redis write its append-only file and its snapshot anew; return 1 where the server does not allow that."""
    try:
        await rewrite(client, deadline_s)
    except ConfigurationError as error:
        log.warning("store_files_not_rewritten", error=str(error))
        return {"files of Redis": 1}
    return {}
