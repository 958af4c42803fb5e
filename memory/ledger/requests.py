"""Requests over HTTP, by the id that their sender chose: repeats are known, and any replica knows their reply.

A record has no words of a user. Its reply lies beside it, from when it was first made: what is first counts, whoever
makes another one. Those of a user are listed, so that forgetting a person finds them.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.message_parts import is_none
from tasklore.contracts.task_messages import MemoryMode
from tasklore.contracts.words import reads_unknown_as_other
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.ledger import scripts

#: How long an id is known, and what came of it can be asked for.
KEEP = timedelta(days=1)
#: Replies of a user that are forgotten in one round trip.
_PAGE = 1000


class RequestRecord(BaseModel):
    """One request: `digest` is of its body, so that another one under the same id is refused.

    `task_id` is that of the task it becomes, known before it becomes one; of several tasks it is their parent.
    `at_ms` is when it came, ms since 1970; `time_zone` is where its sender is, None for where all are believed to be.
    `not_before` is when its tasks may begin, None for at once. `tenant` is that of its sender, None for no tenant's,
    and in a record of 0.2. `sender` is its caller without the user, whom whoever reaches the record shares; None in one
    of 0.2, and of what is no request in words.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    digest: str
    task_id: str
    at_ms: int
    conversation_id: str | None = None
    memory: Annotated[MemoryMode, reads_unknown_as_other(MemoryMode)] = "use"
    time_zone: str | None = None
    not_before: datetime | None = Field(default=None, exclude_if=is_none)
    tenant: str | None = Field(default=None, exclude_if=is_none)
    sender: Caller | None = Field(default=None, exclude_if=is_none)


class Reply(NamedTuple):
    """A reply as it is kept: its *body*, and the user whose words it holds, None for a nameless one's."""

    body: bytes
    user_id: str | None


class KnownRequest(NamedTuple):
    """All that is kept of a request; *reply* is the body of its reply, `is_held` while some process works on it."""

    record: RequestRecord | None
    reply: bytes | None
    is_held: bool


class RequestRecords:
    """Keeps requests; every method raises MemoryUnavailable without an answer within *deadline_s*.

    Args:
        keep: How long a request and its reply are known.
        deadline_s: Seconds for one round trip.
        now: The clock, in seconds since 1970.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = KEEP,
        deadline_s: float = 1.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s)
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._now = now

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

    async def find(self, request: str) -> KnownRequest:
        """Return the record of *request*."""
        key, held, replied = keys.request(request)
        record, holder, reply = (await self._batch.run([("MGET", key, held, replied)]))[
            0
        ]
        return KnownRequest(
            RequestRecord.model_validate_json(record) if record is not None else None,
            reply,
            holder is not None,
        )

    async def hold(self, request: str, hold_ms: int) -> bool:
        """Work on *request* for *hold_ms*, and return True; False when another replica does."""
        held = keys.request(request).held
        return (await self._batch.run([("SET", held, "1", "NX", "PX", hold_ms)]))[
            0
        ] is not None

    async def keep_holding(self, requests: list[str], hold_ms: int) -> None:
        """Work on *requests* for *hold_ms* more."""
        await self._batch.run(
            [("SET", keys.request(one).held, "1", "PX", hold_ms) for one in requests]
        )

    async def let_go(self, request: str, reply: Reply | None) -> bool:
        """Work on *request* no more, and return whether *reply* is its first; without one the next who asks goes on."""
        commands = self.letting_go(request, reply)
        replies = await self._batch.run(commands)
        return reply is None or replies[-2] is not None

    def letting_go(self, request: str, reply: Reply | None) -> list[Command]:
        """Return the commands of `let_go`, to be sent with others; a reply that is there already stays."""
        _, held, replied = keys.request(request)
        commands: list[Command] = []
        if reply is not None:
            if reply.user_id is not None:
                commands += self._noting_user(reply.user_id, request)
            commands.append(("SET", replied, reply.body, "NX", "PX", self._keep_ms))
        return [*commands, ("UNLINK", held)]

    async def forget_reply(self, request: str, body: bytes) -> bool:
        """Remove the reply of *request* if it still is *body*, and return whether another one is there by now."""
        replied = keys.request(request).reply
        script: Command = ("FCALL", scripts.FORGET_REPLY, 1, replied, body)
        return bool((await self._batch.run([script]))[0])

    async def forget_replies(self, requests: Sequence[str]) -> int:
        """Remove the replies of *requests*, and return how many there were: asked for again, they begin again."""
        if not requests:
            return 0
        commands: list[Command] = [
            ("UNLINK", keys.request(one).reply) for one in requests
        ]
        return sum(await self._batch.run(commands))

    async def forget(self, user_id: str) -> int:
        """Remove every reply to *user_id*, and return how many there were."""
        listed = keys.user_requests(user_token(user_id))
        removed = 0
        while found := (await self._batch.run([("ZRANGE", listed, 0, _PAGE - 1)]))[0]:
            requests = [one.decode() for one in found]
            removed += await self.forget_replies(requests)
            await self._batch.run([("ZREM", listed, *requests)])
        return removed

    async def count(self, user_id: str) -> int:
        """Return how many replies to *user_id* there are."""
        listed = keys.user_requests(user_token(user_id))
        now_ms = int(self._now() * 1000)
        return int((await self._batch.run([("ZCOUNT", listed, now_ms, "+inf")]))[0])

    def _noting_user(self, user_id: str, request: str) -> list[Command]:
        """Return the commands that list the reply to *request* as one to *user_id*, before it holds a word."""
        listed = keys.user_requests(user_token(user_id))
        now_ms = int(self._now() * 1000)
        return [
            ("ZADD", listed, now_ms + self._keep_ms, request),
            ("ZREMRANGEBYSCORE", listed, "-inf", now_ms),
            ("PEXPIRE", listed, self._keep_ms),
        ]


def place_of(space: str, kind: str, request_id: str) -> str:
    """Return where a request of *kind* lies that a caller of *space* named *request_id*."""
    return hashlib.blake2b(
        json.dumps([space, kind, request_id]).encode(), digest_size=16
    ).hexdigest()
