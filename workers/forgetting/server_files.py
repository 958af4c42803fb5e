"""The servers' files, in which removed things lie on for a while: each class is a `forgetting.erasure.RewritesFiles`.

A server that lets remains lie says beside how much.
"""

from collections.abc import Mapping

import structlog
from redis.asyncio import Redis

from contracts import subjects
from contracts.errors import ConfigurationError
from memory.compaction import rewrite
from runtime.messaging.direct import Line, client_of
from runtime.messaging.erasure import Eraser
from runtime.messaging.jetstream import ask_jetstream

log = structlog.get_logger(__name__)

#: Every stream that carries what people said, or what came of it.
_STREAMS = (
    subjects.TASKS,
    subjects.LATER,
    subjects.REPORTS,
    subjects.TURNS,
    subjects.FACTS,
    subjects.MESSAGES,
    subjects.DEAD,
)
#: Bytes that a turn-over needs for a moment; a stream with less room would refuse tasks, or drop dead letters, for it.
_ROOM = 16 * 1024 * 1024


class StreamFiles:
    """Drops from the files of JetStream what was acknowledged, replaced or has expired."""

    def __init__(self, line: Line) -> None:
        self._client = client_of(line)
        self._eraser = Eraser(line)

    async def rewrite(self) -> Mapping[str, int]:
        """Turn every stream over; return beside how many messages of each, that stay, remains may lie on.

        The server drops them within its sync interval. They lie on in a file of which more than half stays, until
        that has gone as well.
        """
        beside = {}
        for stream in _STREAMS:
            info = await ask_jetstream(self._client, f"STREAM.INFO.{stream}")
            most, held = info["config"].get("max_bytes", -1), info["state"]["bytes"]
            if 0 < most < held + _ROOM:
                log.warning("stream_too_full_to_turn_over", stream=stream, bytes=held)
                beside[stream] = info["state"]["messages"]
            else:
                beside[stream] = await self._eraser.turn_over(stream, subjects.filler(stream))
        return beside


class StoreFiles:
    """Has Redis write its append-only file and its snapshot anew."""

    def __init__(self, client: Redis, *, deadline_s: float = 60.0) -> None:
        self._client = client
        self._deadline_s = deadline_s

    async def rewrite(self) -> Mapping[str, int]:
        """Return nothing, or that this server does not let us do it."""
        try:
            await rewrite(self._client, self._deadline_s)
        except ConfigurationError as error:
            log.warning("store_files_not_rewritten", error=str(error))
            return {"files of Redis": 1}
        return {}
