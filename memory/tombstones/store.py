"""The store of tombstones: hides the memory of a user at one moment, and brings it back as it was.

Each key keeps its hash tag, so that one script renames all of them, and no reader has to know of it. What a tombstone
hides ends by itself; two of one user are numbered, and the later one is brought back first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pydantic import BaseModel, ConfigDict
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory import keys as all_keys
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.key_parts import token_of
from tasklore.memory.tombstones import keys, scripts

#: How long what was hidden can be brought back.
HIDDEN_FOR = timedelta(days=1)
#: Tries to hide or bring back while others change the documents.
_ATTEMPTS = 10
_ASIDE: Final = "aside"
_MILLISECOND = timedelta(milliseconds=1)


class TombstoneRecord(BaseModel):
    """What one tombstone hides: by key its own end in ms since 1970, -1 without one; `by` names who hid it."""

    model_config = ConfigDict(frozen=True)

    held: Mapping[str, int]
    by: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class _Stones:
    """The tombstones of one user as they were read: bodies by number, what is put aside, and the last number."""

    bodies: Mapping[int, bytes]
    aside: bytes | None
    last: int
    resources: bytes

    @property
    def names(self) -> list[str]:
        """The documents that stand there now."""
        return self.resources.decode().split()

    def records(self) -> dict[int, TombstoneRecord]:
        """Return the records by number, the latest first."""
        return {
            number: TombstoneRecord.model_validate_json(self.bodies[number])
            for number in sorted(self.bodies, reverse=True)
        }


class Tombstones:
    """Hides the memory of users, and brings it back within a day.

    Args:
        hidden_for: How long what is hidden can be brought back.
        deadline_s: Seconds for one call; then MemoryUnavailable, which every method may raise.
    """

    def __init__(
        self,
        client: Redis,
        *,
        hidden_for: timedelta = HIDDEN_FOR,
        deadline_s: float = 1.0,
    ) -> None:
        self._hidden_ms = hidden_for // _MILLISECOND
        self._batch = CommandBatch(client, deadline_s)

    async def hide(self, user_id: str, *, by: str, now: datetime) -> int:
        """Hide all of *user_id* from now on and return how many keys that were; once for each *by*.

        Raises:
            MemoryUnavailable: others changed the documents each time.
        """
        token = _token_of(user_id)
        for _ in range(_ATTEMPTS):
            seen = await self._read(token)
            for record in seen.records().values():
                if record.by == by:
                    return len(record.held)
            number = seen.last + 1
            visible = keys.memory_of(token, seen.names)
            pairs = [
                key for one in visible for key in (one, keys.hidden(token, number, one))
            ]
            at_ms = _ms_of(now)
            reply = await self._run(
                scripts.HIDE,
                [
                    keys.tombstone(token),
                    all_keys.plans(token),
                    *keys.leases_of(token),
                    *pairs,
                ],
                number,
                at_ms + self._hidden_ms,
                seen.resources,
                _tail_of(by, at_ms),
            )
            if reply[0] == b"done":
                return int(reply[1])
        raise _changed()

    async def bring_back(self, user_id: str, *, by: str, now: datetime) -> bool:
        """Bring back what *user_id* had hidden last, and put aside what came since; False where nothing is hidden.

        Raises:
            MemoryUnavailable: others changed the documents each time.
        """
        token = _token_of(user_id)
        for _ in range(_ATTEMPTS):
            seen = await self._read(token)
            if seen.aside is not None:
                # It was done before, and what was put aside is still there.
                return True
            found = next(iter(seen.records().items()), None)
            if found is None:
                return False
            number, record = found
            visible = list(
                dict.fromkeys([*keys.memory_of(token, seen.names), *record.held])
            )
            named = [
                key
                for one in visible
                for key in (
                    keys.hidden(token, number, one),
                    one,
                    keys.hidden(token, _ASIDE, one),
                )
            ]
            reply = await self._run(
                scripts.BRING_BACK,
                [
                    keys.tombstone(token),
                    all_keys.plans(token),
                    *keys.leases_of(token),
                    *named,
                ],
                number,
                seen.bodies[number],
                seen.resources,
                _tail_of(by, _ms_of(now)),
                *(record.held.get(one, -1) for one in visible),
            )
            if reply[0] == b"done":
                return True
        raise _changed()

    async def aside(self, user_id: str) -> TombstoneRecord | None:
        """Return what was put aside when the memory of *user_id* came back; None where nothing is."""
        seen = await self._read(_token_of(user_id))
        if seen.aside is None:
            return None
        return TombstoneRecord.model_validate_json(seen.aside)

    async def forget(self, user_id: str) -> int:
        """Remove all that is hidden or put aside of *user_id* now, and return how many keys that were."""
        token = _token_of(user_id)
        named = _named(token, await self._read(token))
        if not named:
            await self._batch.run([("UNLINK", keys.tombstone(token))])
            return 0
        # The tombstone goes last: whoever stops here knows what is left.
        gone, _ = await self._batch.run(
            [("UNLINK", *named), ("UNLINK", keys.tombstone(token))]
        )
        return int(gone)

    async def count(self, user_id: str) -> int:
        """Return how many keys of *user_id* are hidden or put aside."""
        token = _token_of(user_id)
        named = _named(token, await self._read(token))
        if not named:
            return 0
        return int((await self._batch.run([("EXISTS", *named)]))[0])

    async def _read(self, token: str) -> _Stones:
        fields, resources = await self._batch.run(
            [
                ("HGETALL", keys.tombstone(token)),
                ("HGET", all_keys.plans(token), "#resources"),
            ]
        )
        found = as_mapping(fields)
        bodies = {
            int(name): body for name, body in found.items() if name.decode().isdigit()
        }
        return _Stones(
            bodies=bodies,
            aside=found.get(_ASIDE.encode()),
            last=int(found.get(b"#last", 0)),
            resources=resources or b"",
        )

    async def _run(
        self, script: str, named: list[str], *words: str | bytes | int
    ) -> list[bytes]:
        command: Command = ("FCALL", script, len(named), *named, *words)
        reply: list[bytes] = (await self._batch.run([command]))[0]
        return reply


def _named(token: str, seen: _Stones) -> list[str]:
    """Return every key that hides something, or has something put aside."""
    named = [
        keys.hidden(token, number, key)
        for number, record in seen.records().items()
        for key in record.held
    ]
    if seen.aside is not None:
        aside = TombstoneRecord.model_validate_json(seen.aside)
        named += [keys.hidden(token, _ASIDE, key) for key in aside.held]
    return named


def _tail_of(by: str, at_ms: int) -> str:
    """Return a record without its keys, which the script knows, and without its first brace."""
    whole = TombstoneRecord(held={}, by=by, at_ms=at_ms)
    return whole.model_dump_json(exclude={"held"}).removeprefix("{")


def _ms_of(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _changed() -> MemoryUnavailable:
    return MemoryUnavailable(
        f"the documents were changed by others {_ATTEMPTS} times in a row; ask again"
    )


def _token_of(user_id: str) -> str:
    return token_of(user_id, "a tombstone is somebody's; send the user id")
