"""Users of entries: an entry that one user alone asked for is removed with that user.

Beside the list of entries that a user's tasks stored stands how often that user was served each of them. An entry that
was served more often than that was asked for by others too, and stays.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.long_term import scripts
from tasklore.memory.long_term.index import EntryIndex
from tasklore.memory.long_term.neighbours import forgetting

#: Entries in one round trip: two small reads each.
PAGE = 500


class Released(NamedTuple):
    """How many entries were removed with a user, and how many stay, since others asked for them too."""

    removed: int
    kept: int


def note_hits(own: Mapping[tuple[str, str], int]) -> list[Command]:
    """Return the commands that note how often each user, by token, was served each entry.

    Of entries that others stored nothing is noted: a user's part in them is only their count of hits.
    """
    by_user: dict[str, list[str | int]] = defaultdict(list)
    for (token, entry_key), count in own.items():
        by_user[token] += (entry_key, count)
    return [
        (
            "FCALL",
            scripts.NOTE_SERVED,
            2,
            keys.ltm_users(token),
            keys.ltm_served(token),
            *words,
        )
        for token, words in by_user.items()
    ]


class EntryOwners:
    """Removes from the long-term memory what only one user asked for.

    Every method may raise MemoryUnavailable, after `deadline_s` seconds for one step.
    """

    def __init__(self, client: Redis, *, deadline_s: float = 5.0) -> None:
        self._batch = CommandBatch(client, deadline_s)
        self._index = EntryIndex(client, deadline_s=deadline_s)

    async def listed(self, token: str) -> int:
        """Return how many entries are listed as stored by the tasks of the user *token*."""
        return int((await self._batch.run([("ZCARD", keys.ltm_users(token))]))[0])

    async def release(self, token: str) -> Released:
        """Remove the entries that only the user *token* asked for, and the list of what their tasks stored.

        Safe to repeat: an entry leaves the list after it is gone.
        """
        index = keys.ltm_users(token)
        removed = 0
        kept = 0
        while True:
            listed: list[bytes] = (
                await self._batch.run([("ZRANGE", index, 0, PAGE - 1)])
            )[0]
            if not listed:
                break
            page = [key.decode(errors="replace") for key in listed]
            doomed = await self._only_theirs(token, page)
            removed += sum(await self._batch.run([forgetting(key) for key in doomed]))
            kept += len(page) - len(doomed)
            await self._batch.run([("ZREM", index, *listed)])
        await self._batch.run(
            [
                ("UNLINK", index, keys.ltm_served(token)),
                ("ZREM", keys.ltm_user_lists(), token),
            ]
        )
        # Of those that were over nobody knows any more whose they were.
        await self._index.trim(time.time_ns() // 1_000_000)
        return Released(removed, kept)

    async def _only_theirs(self, token: str, page: Sequence[str]) -> list[str]:
        """Return the entries of *page* that no other user was served."""
        asked: list[Command] = [("HMGET", keys.ltm_served(token), *page)]
        asked += [
            ("GET", keys.hits_of(key))
            for key in page
            if keys.parse_ltm(key) is not None
        ]
        own, *hits = await self._batch.run(asked)
        served = iter(hits)
        doomed = []
        for key, mine in zip(page, own, strict=True):
            parts = keys.parse_ltm(key)
            if parts is None:
                continue
            by_all = int(next(served) or 0)
            if parts.user_token is not None or by_all <= int(mine or 0):
                doomed.append(key)
        return doomed
