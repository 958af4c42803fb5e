"""Notices: short lines on new facts about a person, kept until their next reply says them."""

import json
from collections.abc import Sequence
from datetime import timedelta

from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch

#: Turns of one person whose lines wait at most; older ones fall off.
KEEP = 50
#: How long they wait: what was noted the day before yesterday is no news.
KEEP_FOR = timedelta(days=2)


class Notices:
    """Puts lines behind those that wait, and takes all that wait; notes who waits for them with a reply.

    Args:
        keep: How long lines wait after the last that was put.
        deadline_s: Seconds for one call; then MemoryUnavailable, which every method may raise.
    """

    def __init__(
        self, client: Redis, *, keep: timedelta = KEEP_FOR, deadline_s: float = 1.0
    ) -> None:
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, deadline_s)

    async def put(self, owner: str, turn_id: str, lines: Sequence[str]) -> None:
        """Keep *lines*, what the turn *turn_id* of *owner* taught, for their next reply."""
        if not lines:
            return
        key, _ = keys.notices(user_token(owner))
        await self._batch.run(
            [
                (
                    "RPUSH",
                    key,
                    json.dumps([turn_id, *lines], ensure_ascii=False).encode(
                        "utf-8", "replace"
                    ),
                ),
                ("LTRIM", key, -KEEP, -1),
                ("PEXPIRE", key, self._keep_ms),
            ]
        )

    async def take(self, owner: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return what waits for *owner*, by turn id, oldest first; each is returned once."""
        taken, _ = await self.take_awaited(owner)
        return taken

    async def take_awaited(
        self, owner: str
    ) -> tuple[list[tuple[str, tuple[str, ...]]], bool]:
        """Return what `take` does, and whether *owner* still hurries: nothing is known of their last turn yet."""
        key, hurry = keys.notices(user_token(owner))
        taken, is_hurried = await self._batch.run(
            [("LPOP", key, KEEP), ("EXISTS", hurry)]
        )
        read = [json.loads(body) for body in taken or ()]
        return [(turn_id, tuple(lines)) for turn_id, *lines in read], bool(is_hurried)

    async def hurry(self, owner: str, for_s: float) -> None:
        """Note that a reply to *owner* waits, for that long at most, for what their last turn teaches."""
        _, hurry = keys.notices(user_token(owner))
        await self._batch.run([("SET", hurry, 1, "PX", max(1, int(for_s * 1000)))])

    async def hurries(self, owner: str) -> bool:
        """Return whether a reply to *owner* waits."""
        return bool(
            (await self._batch.run([("EXISTS", keys.notices(user_token(owner))[1])]))[0]
        )

    async def calm(self, owner: str) -> None:
        """Note that the last turn of *owner* taught nothing: no reply need wait for it."""
        await self._batch.run([("UNLINK", keys.notices(user_token(owner))[1])])

    async def forget(self, owner: str) -> int:
        """Remove what waits for *owner*; return for how many turns something did."""
        key, hurry = keys.notices(user_token(owner))
        count, _ = await self._batch.run([("LLEN", key), ("UNLINK", key, hurry)])
        return int(count)
