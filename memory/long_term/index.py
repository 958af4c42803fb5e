"""The index of entries by agent: counting, listing and forgetting walk it, not every key of the server.

An entry is listed before it is stored, by the ms since 1970 of its end; the places of its neighbours likewise. What is
over goes a few at a time while others are stored, when somebody walks by, and when a user is forgotten: a member holds
the question. Entries that 0.2 stored are in no index: until it is said that all are listed, every key is looked at.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.long_term import scripts

#: Keys a page: one page is well under the 10 ms for which a script or a scan may hold Redis.
PAGE = 500
#: How long a quarantine is kept behind its first entry. An entry of a file names no user, so that nobody can tell whose
#: words it holds: all of them go within this time, and who wants one back has the file.
QUARANTINE_KEPT = timedelta(days=30)
#: The end of what is remembered for ever.
NEVER = "+inf"
#: PTTL of a key without an end, and of one that is gone.
_ENDLESS = -1
_GONE = -2
#: Stands among the agents once every entry is listed; no agent is called so.
_COMPLETE = "~complete"


def listing(key: str, until: int | str) -> Command:
    """Return the command that lists the entry *key*, which ends *until* then, in ms or `NEVER`."""
    index, member = keys.ltm_listing(key)
    return ("ZADD", index, until, member)


def listing_near(root: str, fields: int, until: int | str) -> Command:
    """Return the command that lists the places of neighbours below *root*, of so many *fields*, until the last ends."""
    index, member = keys.ltm_listing(root)
    return ("ZADD", index, "GT", until, f"{member} {fields}")


def listing_user(token: str, until: int | str) -> Command:
    """Return the command that lists the user *token* until the last of their entries ends."""
    return ("ZADD", keys.ltm_user_lists(), "GT", until, token)


def trimming(index: str, before_ms: int) -> Command:
    """Return the command that lets go of up to a page of what ended *before_ms*; its reply is how many went."""
    return ("FCALL", scripts.TRIM_INDEX, 1, index, before_ms, PAGE)


def ending(quarantine: str) -> Command:
    """Return the command by which *quarantine* ends `QUARANTINE_KEPT` from now, unless its end is set already."""
    return ("PEXPIRE", quarantine, QUARANTINE_KEPT // timedelta(milliseconds=1), "NX")


class EntryIndex:
    """Walks the entries of one agent, or of all. MemoryUnavailable after `deadline_s` seconds for one page."""

    def __init__(self, client: Redis, *, deadline_s: float) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def agents(self) -> list[str] | None:
        """Return the agents that have entries, or had some; None while not every entry is listed."""
        found = await self._listed_agents()
        return sorted(found - {_COMPLETE}) if _COMPLETE in found else None

    async def _listed_agents(self) -> set[str]:
        found = (await self._batch.run([("SMEMBERS", keys.ltm_agents())]))[0]
        return {one.decode(errors="replace") for one in found}

    async def walk(self, agent_id: str | None = None) -> AsyncIterator[list[str]]:
        """Yield pages of keys of entries, and of places of neighbours, in no order; one may come twice, or be over."""
        agents = await self.agents()
        if agents is None:
            async for page in self._scan(keys.ltm_pattern(agent_id)):
                yield page
            return
        for agent in agents if agent_id is None else [agent_id]:
            index = keys.ltm_index(agent)
            async for members in self._pages(("ZSCAN", index), ("COUNT", PAGE)):
                yield [
                    key for member in members[::2] for key in _keys_of(index, member)
                ]

    async def users(self) -> AsyncIterator[list[str]]:
        """Yield pages of the tokens of users that have a list of entries, or had one."""
        if await self.agents() is not None:
            everybody = ("ZSCAN", keys.ltm_user_lists())
            async for members in self._pages(everybody, ("COUNT", PAGE)):
                yield [member.decode() for member in members[::2]]
            return
        async for page in self._scan(keys.ltm_users_pattern()):
            yield [
                keys.parse_ltm_users(key)
                for key in page
                if key != keys.ltm_user_lists()
            ]

    async def quarantines(self) -> AsyncIterator[str]:
        """Yield the keys of quarantines, one of each agent that may have one."""
        agents = await self.agents()
        if agents is not None:
            for agent in agents:
                yield keys.quarantine(agent)
            return
        async for page in self._scan(keys.quarantine_pattern()):
            for key in page:
                yield key

    async def trim(self, now_ms: int) -> None:
        """Let go of all that is over by *now_ms*, in every index, and have each quarantine end.

        Quarantines of before they had an end get one by this.
        """
        async for key in self.quarantines():
            await self._batch.run([ending(key)])
        agents = await self._listed_agents() - {_COMPLETE}
        for index in (*map(keys.ltm_index, sorted(agents)), keys.ltm_user_lists()):
            while (await self._batch.run([trimming(index, now_ms)]))[0] == PAGE:
                pass

    async def build(self, now_ms: int) -> int:
        """List every entry, say that all are, and return how many there are.

        Looks at every key of the server once: for what 0.2 stored. No process of 0.2 may store more from then on.
        """
        count = 0
        async for page in self._scan(keys.ltm_pattern()):
            entries = [key for key in page if keys.parse_ltm(key) is not None]
            near = [key for key in page if keys.near_root(key) is not None]
            lefts = await self._batch.run([("PTTL", key) for key in (*entries, *near)])
            firsts = await self._batch.run([("ZRANGE", key, 0, 0) for key in near])
            untils = dict(zip((*entries, *near), lefts, strict=True))
            commands: list[Command] = [
                listing(key, _end(untils[key], now_ms))
                for key in entries
                if untils[key] != _GONE
            ]
            count += len(commands)
            for key, places in zip(near, firsts, strict=True):
                if places and (root := keys.near_root(key)) is not None:
                    fields = places[0].count(b"|") + 1
                    commands.append(
                        listing_near(root, fields, _end(untils[key], now_ms))
                    )
            agents = {
                parts.agent_id
                for key in entries
                if (parts := keys.parse_ltm(key)) is not None
            }
            commands += [("SADD", keys.ltm_agents(), agent) for agent in sorted(agents)]
            await self._batch.run(commands)
        async for page in self._scan(keys.quarantine_pattern()):
            held = [keys.parse_quarantine(key) for key in page]
            await self._batch.run([("SADD", keys.ltm_agents(), one) for one in held])
        async for page in self._scan(keys.ltm_users_pattern()):
            lists = [key for key in page if key != keys.ltm_user_lists()]
            lefts = await self._batch.run([("PTTL", key) for key in lists])
            await self._batch.run(
                [
                    listing_user(keys.parse_ltm_users(key), _end(left, now_ms))
                    for key, left in zip(lists, lefts, strict=True)
                    if left != _GONE
                ]
            )
        await self._batch.run([("SADD", keys.ltm_agents(), _COMPLETE)])
        return count

    async def _scan(self, pattern: str) -> AsyncIterator[list[str]]:
        async for page in self._pages(("SCAN",), ("MATCH", pattern, "COUNT", PAGE)):
            yield [name.decode(errors="replace") for name in page]

    async def _pages(
        self, command: tuple[str, ...], words: tuple[str | int, ...]
    ) -> AsyncIterator[list[Any]]:
        cursor: bytes | str = "0"
        while True:
            cursor, found = (await self._batch.run([(*command, cursor, *words)]))[0]
            yield found
            if cursor == b"0":
                return


def _end(left_ms: int, now_ms: int) -> int | str:
    return NEVER if left_ms == _ENDLESS else now_ms + left_ms


def _keys_of(index: str, member: bytes) -> list[str]:
    """Return the key of an entry, or the keys of the places of neighbours, that *member* stands for."""
    name, _, fields = member.decode(errors="replace").partition(" ")
    key = keys.ltm_listed(index, name)
    if not keys.is_near(key):
        return [keys.ltm_listed(index, member.decode(errors="replace"))]
    return list(keys.near_below(key, int(fields) if fields.isdigit() else 1))
