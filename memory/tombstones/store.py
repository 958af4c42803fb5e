"""The store of tombstones: hides the memory of a user at one moment, and brings it back as it was.

Each key keeps its hash tag, so that one script renames all of them, and no reader has to know of it. Conversations have
tags of their own: messages in them are taken out of their places one conversation after the other, and each script may
be repeated. What a tombstone hides ends by itself; two of one user are numbered, and the later one comes back first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

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
_BACK: Final = "#back"
_MILLISECOND = timedelta(milliseconds=1)


class TombstoneRecord(BaseModel):
    """What one tombstone hides: by key its own end in ms since 1970, -1 without one; `by` names who hid it."""

    model_config = ConfigDict(frozen=True)

    held: Mapping[str, int]
    by: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """How many *keys* a tombstone hides, from when until when they can be brought back."""

    keys: int
    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PutAside:
    """All that came while a memory was hidden, and stands nowhere since that is back, as it was stored.

    *bodies* are of documents by resource, *episodes* turns as they are kept. *rows* are those that waited in each
    queue, each an id and a body, and *late* those that came after they were to be hidden. *settings* say whether turns
    are kept. *by* names who brought the memory back, at *at*.
    """

    by: str
    at: datetime
    bodies: Mapping[str, bytes] = field(default_factory=dict)
    episodes: Sequence[bytes] = ()
    rows: Mapping[str, Sequence[tuple[str, bytes]]] = field(default_factory=dict)
    late: Mapping[str, Sequence[tuple[str, bytes]]] = field(default_factory=dict)
    conversations: Sequence[str] = ()
    settings: Mapping[bytes, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Stones:
    """The tombstones of one user as they were read: fields by name, and the documents that stand there now."""

    fields: Mapping[bytes, bytes]
    resources: bytes

    @property
    def names(self) -> list[str]:
        """The documents that stand there now."""
        return self.resources.decode().split()

    @property
    def last(self) -> int:
        """The number of the last tombstone."""
        return int(self.fields.get(b"#last", 0))

    @property
    def back_by(self) -> str | None:
        """Who brought something back since the last tombstone."""
        found = self.fields.get(_BACK.encode())
        return None if found is None else found.decode()

    def body(self, number: int) -> bytes:
        """Return the record *number* as it is stored."""
        return self.fields[b"%d" % number]

    def records(self) -> dict[int, TombstoneRecord]:
        """Return the records by number, the latest first."""
        numbers = [int(name) for name in self.fields if name.isdigit()]
        return {
            number: TombstoneRecord.model_validate_json(self.body(number))
            for number in sorted(numbers, reverse=True)
        }

    def aside(self) -> TombstoneRecord | None:
        """Return the record of the keys that are put aside."""
        found = self.fields.get(_ASIDE.encode())
        return None if found is None else TombstoneRecord.model_validate_json(found)


class Tombstones:
    """Hides the memory of users, and brings it back within a day.

    Args:
        hidden_for: How long hidden keys can be brought back.
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
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)

    async def hide(self, user_id: str, *, by: str, now: datetime) -> Hidden:
        """Hide all of *user_id* from now on, once for each *by*; a repeat finishes what an earlier call began.

        Raises:
            MemoryUnavailable: others changed the documents each time, or a store did not answer in time.
        """
        token = _token_of(user_id)
        for _ in range(_ATTEMPTS):
            seen = await self._read(token)
            for number, record in seen.records().items():
                if record.by == by:
                    left_ms = record.at_ms + self._hidden_ms - _ms_of(now)
                    await self._hide_talks(
                        user_id, number=number, record=record, left_ms=left_ms
                    )
                    return self._hidden(record)
            number = seen.last + 1
            visible = keys.memory_of(token, seen.names)
            pairs = [
                key for one in visible for key in (one, keys.hidden(token, number, one))
            ]
            at_ms = _ms_of(now)
            # The next look finds it by its name.
            await self._run(
                scripts.HIDE,
                [
                    keys.tombstone(token),
                    all_keys.plans(token),
                    *keys.leases_of(token),
                    *pairs,
                ],
                (
                    number,
                    self._hidden_ms,
                    at_ms,
                    seen.resources,
                    _tail_of(by, at_ms),
                ),
            )
        raise _changed()

    async def hidden_by(self, user_id: str, by: str) -> Hidden | None:
        """Return what *by* hid of *user_id* and can be brought back; None where that is nothing."""
        seen = await self._read(_token_of(user_id))
        found = (one for one in seen.records().values() if one.by == by)
        record = next(found, None)
        return None if record is None else self._hidden(record)

    async def latest(self, user_id: str, now: datetime) -> Hidden | None:
        """Return the tombstone of *user_id* that would be taken away at *now*; None where nothing is hidden."""
        found = self._latest(await self._read(_token_of(user_id)), now)
        return None if found is None else self._hidden(found[1])

    async def bring_back(self, user_id: str, *, by: str, now: datetime) -> bool:
        """Bring back all that *user_id* had hidden last, and put later keys aside; False where nothing is hidden.

        It is done once for each *by*. Later keys wait to be said again (`put_aside`, `settle`).

        Raises:
            MemoryUnavailable: others changed the documents each time, or a store did not answer in time.
        """
        token = _token_of(user_id)
        for _ in range(_ATTEMPTS):
            seen = await self._read(token)
            if seen.back_by == by or seen.aside() is not None:
                # It was done before; what was put aside may still be there.
                return True
            found = self._latest(seen, now)
            if found is None:
                return False
            number, record = found
            # Before the record of them goes: whoever stops here knows what to repeat.
            await self._show_talks(token, number, record)
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
            others = [
                one.at_ms for each, one in seen.records().items() if each != number
            ]
            await self._run(
                scripts.BRING_BACK,
                [
                    keys.tombstone(token),
                    all_keys.plans(token),
                    *keys.leases_of(token),
                    *named,
                ],
                (
                    number,
                    seen.body(number),
                    seen.resources,
                    _tail_of(by, _ms_of(now)),
                    max(others, default=""),
                    by,
                    *(record.held.get(one, -1) for one in visible),
                ),
            )
        raise _changed()

    async def put_aside(self, user_id: str) -> PutAside | None:
        """Return all that was put aside when the memory of *user_id* came back; None where nothing waits."""
        token = _token_of(user_id)
        record = (await self._read(token)).aside()
        if record is None:
            return None

        def aside(key: str) -> str:
            return keys.hidden(token, _ASIDE, key)

        of = all_keys.episodes(token)
        queues = [all_keys.queue(name, token) for name in keys.QUEUES]
        stored, turns, settings, talks, *listed = await self._batch.run(
            [
                ("HGET", aside(all_keys.plans(token)), "#resources"),
                ("HGETALL", aside(of.turns)),
                ("HGETALL", aside(of.settings)),
                ("SMEMBERS", aside(all_keys.user_conversations(token))),
                *(("ZRANGE", aside(one.pending), 0, -1) for one in queues),
                *(("HGETALL", aside(one.rows)) for one in queues),
                *(("HGETALL", keys.late_rows(token, name)) for name in keys.QUEUES),
            ]
        )
        resources = (stored or b"").decode().split()
        bodies = await self._batch.run(
            [
                ("HGET", aside(all_keys.document(token, one)), "body")
                for one in resources
            ]
        )
        waiting = listed[:2]
        known = listed[2:4]
        late = listed[4:]
        return PutAside(
            by=record.by,
            at=_moment_of(record.at_ms),
            bodies={
                name: body
                for name, body in zip(resources, bodies, strict=True)
                if body is not None
            },
            # Beside turns lie the numbers of first passages, for those after them.
            episodes=tuple(
                body for body in as_mapping(turns).values() if body.startswith(b"{")
            ),
            rows={
                name: _rows_of(as_mapping(held), order)
                for name, held, order in zip(keys.QUEUES, known, waiting, strict=True)
            },
            late={
                name: _rows_of(as_mapping(held), as_mapping(held))
                for name, held in zip(keys.QUEUES, late, strict=True)
            },
            conversations=sorted(one.decode() for one in talks),
            settings=as_mapping(settings),
        )

    async def settle(self, user_id: str) -> None:
        """Remove all that was put aside of *user_id*: it was said again."""
        token = _token_of(user_id)
        record = (await self._read(token)).aside()
        if record is None:
            return
        gone = [keys.hidden(token, _ASIDE, one) for one in record.held]
        gone += [keys.late_rows(token, name) for name in keys.QUEUES]
        await self._batch.run(
            [
                ("UNLINK", *gone),
                ("HDEL", keys.tombstone(token), _ASIDE),
                ("PEXPIRE", keys.tombstone(token), self._hidden_ms),
            ]
        )

    async def forget(self, user_id: str) -> int:
        """Remove all that is hidden or put aside of *user_id* now, and return how many keys that were."""
        token = _token_of(user_id)
        seen = await self._read(token)
        talks = await self._talks(token, seen)
        for conversation_id in {one for one, _ in talks}:
            await self._drop_empty(conversation_id)
        named = [key for _, key in talks] + _own_keys(token, seen)
        # The tombstone goes last: whoever stops here knows what is left.
        gone = await self._batch.run(
            [("UNLINK", key) for key in [*named, keys.tombstone(token)]]
        )
        return sum(int(one) for one in gone[:-1])

    async def count(self, user_id: str) -> int:
        """Return how many keys of *user_id* are hidden or put aside."""
        token = _token_of(user_id)
        seen = await self._read(token)
        talks = await self._talks(token, seen)
        named = [key for _, key in talks] + _own_keys(token, seen)
        found = await self._batch.run([("EXISTS", key) for key in named])
        return sum(int(one) for one in found)

    async def _read(self, token: str) -> _Stones:
        found, resources = await self._batch.run(
            [
                ("HGETALL", keys.tombstone(token)),
                ("HGET", all_keys.plans(token), "#resources"),
            ]
        )
        return _Stones(as_mapping(found), resources or b"")

    def _latest(
        self, seen: _Stones, now: datetime
    ) -> tuple[int, TombstoneRecord] | None:
        """Return the last tombstone whose day is not over."""
        since = _ms_of(now) - self._hidden_ms
        fresh = (one for one in seen.records().items() if one[1].at_ms > since)
        return next(fresh, None)

    def _hidden(self, record: TombstoneRecord) -> Hidden:
        return Hidden(
            keys=len(record.held),
            at=_moment_of(record.at_ms),
            until=_moment_of(record.at_ms + self._hidden_ms),
        )

    async def _hide_talks(
        self, user_id: str, *, number: int, record: TombstoneRecord, left_ms: int
    ) -> None:
        """Hide what *user_id* said in each conversation that the tombstone *number* names, for *left_ms*."""
        token = _token_of(user_id)
        for one in await self._conversations(token, number, record):
            named = [*keys.talk(one), *keys.hidden_talk(token, number, one)]
            await self._run(scripts.HIDE_TALK, named, (user_id, left_ms))

    async def _show_talks(
        self, token: str, number: int, record: TombstoneRecord
    ) -> None:
        for one in await self._conversations(token, number, record):
            named = [*keys.talk(one), *keys.hidden_talk(token, number, one)]
            await self._run(scripts.SHOW_TALK, named)

    async def _conversations(
        self, token: str, number: int, record: TombstoneRecord
    ) -> list[str]:
        """Return the conversations of the user when the tombstone *number* was set."""
        listed = all_keys.user_conversations(token)
        if listed not in record.held:
            return []
        found = await self._batch.run(
            [("SMEMBERS", keys.hidden(token, number, listed))]
        )
        return sorted(one.decode() for one in found[0])

    async def _talks(self, token: str, seen: _Stones) -> list[tuple[str, str]]:
        """Return every key that hides something of a conversation, beside the id of that."""
        return [
            (one, key)
            for number, record in seen.records().items()
            for one in await self._conversations(token, number, record)
            for key in keys.hidden_talk(token, number, one)
        ]

    async def _drop_empty(self, conversation_id: str) -> None:
        """Remove a conversation in which nothing stands but places of hidden messages."""
        of = keys.talk(conversation_id)
        said, waiting = await self._batch.run(
            [("LRANGE", of.said, 0, -1), ("LRANGE", of.inbox, 0, -1)]
        )
        if not any([*said, *waiting[1::2]]):
            await self._batch.run([("UNLINK", *of)])

    async def _run(
        self,
        script: str,
        named: Sequence[str],
        words: Sequence[str | bytes | int] = (),
    ) -> Any:
        command: Command = ("FCALL", script, len(named), *named, *words)
        return (await self._batch.run([command]))[0]


def _own_keys(token: str, seen: _Stones) -> list[str]:
    """Return every key under the user's tag that hides something, or has something put aside."""
    named = [
        keys.hidden(token, number, key)
        for number, record in seen.records().items()
        for key in record.held
    ]
    aside = seen.aside()
    if aside is not None:
        named += [keys.hidden(token, _ASIDE, key) for key in aside.held]
    return named + [keys.late_rows(token, name) for name in keys.QUEUES]


def _rows_of(
    held: Mapping[bytes, bytes], order: Iterable[bytes]
) -> tuple[tuple[str, bytes], ...]:
    """Return the rows of *held* that *order* names, as a queue takes them."""
    return tuple((one.decode(), held[one]) for one in order if one in held)


def _tail_of(by: str, at_ms: int) -> str:
    """Return a record without its keys, which the script knows, and without its first brace."""
    whole = TombstoneRecord(held={}, by=by, at_ms=at_ms)
    return whole.model_dump_json(exclude={"held"}).removeprefix("{")


def _ms_of(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _moment_of(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _changed() -> MemoryUnavailable:
    return MemoryUnavailable(
        f"the documents were changed by others {_ATTEMPTS} times in a row; ask again"
    )


def _token_of(user_id: str) -> str:
    return token_of(user_id, "a tombstone is somebody's; send the user id")
