"""Requests over HTTP, by the id that their sender chose: repeats are known, and any replica knows their end.

No words of a user are kept here: they stand in the conversation and in the ledger, where forgetting a person
finds them. A record only says where to look.
"""

import hashlib
import json
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from redis.asyncio import Redis

from tasklore.contracts.message_parts import is_none
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch

#: How long an id is known, and what came of it can be asked for.
KEEP = timedelta(days=1)


class RequestRecord(BaseModel):
    """One request: `digest` is of its body, so that another one under the same id is refused.

    `task_id` is that of the task it becomes, known before it becomes one; of several tasks it is their parent.
    `at_ms` is when it came, ms since 1970; `time_zone` is where its sender is, None for where all are believed to be.
    `not_before` is when its tasks may begin, None for at once. `tenant` is that of its sender, None for no tenant's,
    and in a record of 0.2.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    digest: str
    task_id: str
    at_ms: int
    conversation_id: str | None = None
    memory: str = "use"
    time_zone: str | None = None
    not_before: datetime | None = Field(default=None, exclude_if=is_none)
    tenant: str | None = Field(default=None, exclude_if=is_none)


class PartEnd(BaseModel):
    """How one of several parts of a request ended: its `kind`, and missing fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    kind: str
    missing: tuple[str, ...] = ()


class RequestEnd(BaseModel):
    """How a request ended, beside its turn and its report: `kind` of the reply, missing fields.

    Of a request that asked for several tasks `parts` has each, in order; else it is empty.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    kind: str
    missing: tuple[str, ...] = ()
    elapsed_ms: int = 0
    parts: tuple[PartEnd, ...] = ()


class Known(NamedTuple):
    """All that is kept of a request; `is_held` while some process works on it."""

    record: RequestRecord | None
    end: RequestEnd | None
    is_held: bool


class RequestRecords:
    """Keeps requests; every method raises MemoryUnavailable without an answer within *deadline_s*.

    Args:
        keep: How long a request is known.
        deadline_s: Seconds for one round trip.
    """

    def __init__(
        self, client: Redis, *, keep: timedelta = KEEP, deadline_s: float = 1.0
    ) -> None:
        self._batch = CommandBatch(client, deadline_s)
        self._keep_ms = keep // timedelta(milliseconds=1)

    async def claim(
        self, request: str, record: RequestRecord, hold_ms: int = 0
    ) -> RequestRecord | None:
        """Keep *record* under *request*, a `place_of`, and return None; or the one that is there already.

        With *hold_ms* it is worked on from now, too: for an id that was just made, which no other client can know.
        """
        earlier = (await self._batch.run(self.claiming(request, record, hold_ms)))[0]
        return (
            RequestRecord.model_validate_json(earlier) if earlier is not None else None
        )

    def claiming(
        self, request: str, record: RequestRecord, hold_ms: int = 0
    ) -> list[Command]:
        """Return the commands of `claim`, to be sent with others."""
        key, held, _ = keys.request(request)
        commands: list[Command] = [
            ("SET", key, record.model_dump_json(), "NX", "GET", "PX", self._keep_ms)
        ]
        if hold_ms:
            commands.append(("SET", held, "1", "NX", "PX", hold_ms))
        return commands

    async def find(self, request: str) -> Known:
        """Return the record of *request*."""
        key, held, end = keys.request(request)
        record, holder, ended = (await self._batch.run([("MGET", key, held, end)]))[0]
        return Known(
            RequestRecord.model_validate_json(record) if record is not None else None,
            RequestEnd.model_validate_json(ended) if ended is not None else None,
            holder is not None,
        )

    async def hold(self, request: str, hold_ms: int) -> bool:
        """Work on *request* for *hold_ms*, and return True; False when another replica does."""
        _, held, _ = keys.request(request)
        return (await self._batch.run([("SET", held, "1", "NX", "PX", hold_ms)]))[
            0
        ] is not None

    async def keep_holding(self, requests: list[str], hold_ms: int) -> None:
        """Work on *requests* for *hold_ms* more."""
        await self._batch.run(
            [("SET", keys.request(one)[1], "1", "PX", hold_ms) for one in requests]
        )

    async def let_go(self, request: str, end: RequestEnd | None) -> None:
        """Work on *request* no more; None is no end, so that the next who asks begins it again."""
        await self._batch.run(self.letting_go(request, end))

    def letting_go(self, request: str, end: RequestEnd | None) -> list[Command]:
        """Return the commands of `let_go`, to be sent with others."""
        _, held, ended = keys.request(request)
        kept: Command = ("UNLINK", ended)
        if end is not None:
            kept = ("SET", ended, end.model_dump_json(), "PX", self._keep_ms)
        return [kept, ("UNLINK", held)]


def place_of(space: str, kind: str, request_id: str) -> str:
    """Return where a request of *kind* lies that a caller of *space* named *request_id*."""
    return hashlib.blake2b(
        json.dumps([space, kind, request_id]).encode(), digest_size=16
    ).hexdigest()
