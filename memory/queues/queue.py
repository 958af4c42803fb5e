"""What waits for a user: rows appended by id once, claimed in order under a lease, closed for good or tried again.

There are two of these tables, of turns that people said and of facts that were found in them. Everything of one user
lies under one tag and changes in scripts. Beside it an index of owners says when it pays to look at whose rows: an
append marks its owner with a new score, and a look writes its result only over the score that it saw, so
that no append is forgotten, whatever dies between two steps; rows that a lost server forgot `mend` finds again.
"""

import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_of
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.key_parts import token_of
from tasklore.memory.queues import scripts as queue_scripts
from tasklore.memory.queues.claims import (
    OUTCOMES,
    Claim,
    Closing,
    Counts,
    KnownRow,
    NewRow,
    QueueName,
    QueueRow,
    closing_arguments,
)
from tasklore.memory.queues.scripts import PARKED

__all__ = [
    "Claim",
    "Closing",
    "Counts",
    "KnownRow",
    "Mended",
    "PersonalQueue",
    "QueueRow",
]

#: Owners, or parked rows, in one round trip: some 5 ms of this process, and of the server.
PAGE = 1_000
#: Most rows of one claim: what one script reads; an LLM gets far fewer at once.
MOST_ROWS = 1_000

_NEVER = -1


class Mended(NamedTuple):
    """How many owners were put back into the index, and the cursor to go on with: 0 when every key was looked at."""

    put_back: int
    cursor: int


class PersonalQueue:
    """The table *name*, `turns` or `facts`, of every user; bodies are bytes, taken as they are.

    Whether a row is due is decided by the clock that is ahead, the server's or the caller's; leases and all that is
    stored follow the server's.

    Args:
        name: Which table.
        keep: How long a closed row is known: an id that comes again within it changes nothing.
        deadline_s: Seconds for one round trip; then MemoryUnavailable, which every method may raise.
        new_token: Names a call of `claim`, so that one repeated after a lost reply is not refused by itself.
        breaker: When given, a server that keeps failing is left alone for a while.
    """

    def __init__(
        self,
        client: Redis,
        name: QueueName,
        *,
        keep: timedelta = timedelta(days=7),
        deadline_s: float = 1.0,
        new_token: Callable[[], str] = lambda: secrets.token_hex(8),
        breaker: Breaker | None = None,
    ) -> None:
        self._name: QueueName = name
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, deadline_s, breaker)
        self._new_token = new_token
        self._owners = keys.owners(name)

    async def append(
        self,
        owner: str,
        rows: Sequence[tuple[str, bytes]],
        *,
        trace: str = "",
        said: datetime | None = None,
    ) -> int:
        """Add *rows*, each an id and a body, behind those that wait; return how many were not known before.

        *trace* is what `Row.trace` says of those until they are closed, "" for nothing. Rows that were *said* before
        a tombstone of *owner* (`tasklore.memory.tombstones`) do not wait here, and come back with the keys it hides.

        Appending again is safe, also after a row was closed, and mends the index of owners.

        Raises:
            InvalidInput: *owner* or an id is empty or no text.
        """
        token = _token_of(owner)
        words = _words_of(
            [NewRow(row_id=row_id, body=body, trace=trace) for row_id, body in rows]
        )
        said_ms = "" if said is None else int(said.timestamp() * 1000)
        own = keys.queue(self._name, token)
        both = (*own, keys.tombstone(token), keys.late_rows(token, self._name))
        terms = self._keep_ms, said_ms
        added, _ = await self._batch.run(
            [
                (
                    "FCALL",
                    queue_scripts.APPEND_ROWS,
                    len(both),
                    *both,
                    *terms,
                    *words,
                ),
                self._marking(token),
            ]
        )
        return int(added)

    async def take_over(
        self, claim: Claim, closings: Sequence[Closing], rows: Sequence[NewRow]
    ) -> bool:
        """Append *rows* as `append` does, and do *closings* of *claim*, which is of the other table, in the same step.

        All or nothing: False, and nothing, when *claim* is lost. To do it again is safe.

        Raises:
            InvalidInput: an id is empty or no text.
        """
        token = claim.owner_token
        words = (
            self._keep_ms,
            len(rows),
            *_words_of(rows),
            *closing_arguments(claim, closings),
        )
        both = (*keys.queue(self._name, token), *claim.keys)
        # The first mark is for a sender that is killed before the second; a look in between may have passed it over.
        _, taken, _ = await self._batch.run(
            [
                self._marking(token),
                ("FCALL", queue_scripts.HAND_OVER, len(both), *both, *words),
                self._marking(token),
            ]
        )
        if not taken:
            seen, (look, _) = await self._batch.run(
                [
                    ("ZSCORE", self._owners, token),
                    self._script(queue_scripts.LOOK, token),
                ]
            )
            await self._settle(token, seen, look)
        return bool(taken)

    async def owners_due(self, now_ms: int, limit: int) -> list[str]:
        """Return up to *limit* owners whose rows it pays to claim, who waits longest first."""
        command = ("FCALL", queue_scripts.OWNERS_DUE, 1, self._owners, now_ms, limit)
        return [
            user_of(token.decode()) for token in (await self._batch.run([command]))[0]
        ]

    async def claim(
        self, owner: str, *, holder: str, limit: int, lease_ms: int, now_ms: int
    ) -> Claim | None:
        """Return the first rows of *owner* in order, up to one that is not due; None when there is nothing to claim.

        While a claim lasts there is no other one, under whatever *holder*. It lasts *lease_ms* unless renewed. Of a
        claim that ended without a word every row comes alone next.

        Raises:
            InvalidInput: *owner* is empty or no text, or *limit* is not 1 to 1,000.
        """
        if not 1 <= limit <= MOST_ROWS:
            raise InvalidInput(f"a claim is of 1 to {MOST_ROWS} rows, not {limit}")
        token = _token_of(owner)
        terms = (self._new_token(), limit, lease_ms, now_ms)
        seen, found = await self._batch.run(
            [
                ("ZSCORE", self._owners, token),
                self._script(queue_scripts.CLAIM_ROWS, token, holder, *terms),
            ]
        )
        look, *claimed = found
        if look != 0:
            await self._settle(token, seen, look)
        if not claimed:
            return None
        rows = tuple(
            QueueRow(
                row_id=row_id.decode(),
                body=body,
                attempts=attempts,
                note=note,
                crashes=crashes,
                trace=trace.decode(),
            )
            for row_id, body, attempts, crashes, note, trace in zip(
                *(claimed[1 + part :: 6] for part in range(6)), strict=True
            )
        )
        return Claim(
            queue=self._name,
            owner=owner,
            owner_token=token,
            holder=holder,
            fence=int(claimed[0]),
            rows=rows,
            keep_ms=self._keep_ms,
        )

    async def renew(self, claim: Claim, lease_ms: int) -> bool:
        """Let *claim* last *lease_ms* from now; False when it is lost, and its work of no use."""
        return bool(await self._under(claim, queue_scripts.RENEW_CLAIM, lease_ms))

    async def release(self, claim: Claim) -> None:
        """Give *claim* back: whatever of its rows is still waiting can be claimed at once, by anybody."""
        token = claim.owner_token
        seen, found = await self._batch.run(
            [
                ("ZSCORE", self._owners, token),
                self._script(
                    queue_scripts.RELEASE_CLAIM, token, claim.holder, claim.fence
                ),
            ]
        )
        if not found:
            return
        if found[0] in (_NEVER, PARKED):
            await self._settle(token, seen, found[0])
        else:
            # Unlike a settlement this cannot come too late to be heeded.
            await self._mark(token)

    async def close(self, claim: Claim, closings: Sequence[Closing]) -> bool:
        """Do *closings*, all or none; False, and none, when *claim* is lost. A row closed already stays as it is."""
        command = self._script(
            queue_scripts.CLOSE, claim.owner_token, *closing_arguments(claim, closings)
        )
        return bool((await self._batch.run([command]))[0])

    async def resume(
        self, owner: str, reason: Literal["needs_model"] = "needs_model"
    ) -> int:
        """Put the rows of *owner* that were closed as *reason* back where they were in the order; return how many."""
        token = _token_of(owner)
        resumed = 0
        while True:
            command = self._script(queue_scripts.RESUME_ROWS, token, reason, PAGE)
            count = int((await self._batch.run([command]))[0])
            resumed += count
            if count:
                await self._mark(token)
            if count < PAGE:
                return resumed

    async def resume_all(self, reason: Literal["needs_model"] = "needs_model") -> int:
        """Do `resume` for every owner, as once a model is there; return how many rows came back."""
        resumed = 0
        cursor = 0
        while True:
            # Every owner with a waiting or parked row is in the index throughout, and this misses none of those.
            reply = (
                await self._batch.run([("ZSCAN", self._owners, cursor, "COUNT", PAGE)])
            )[0]
            for token in reply[1][::2]:
                resumed += await self.resume(user_of(token.decode()), reason)
            cursor = int(reply[0])
            if cursor == 0:
                return resumed

    async def rows(self, owner: str, limit: int) -> tuple[KnownRow, ...]:
        """Return up to *limit* rows for people: those that wait in order, those parked, then the last closed first."""
        found = (
            await self._batch.run(
                [self._script(queue_scripts.READ_ROWS, _token_of(owner), limit)]
            )
        )[0]
        return tuple(_read_known(*found[at : at + 5]) for at in range(0, len(found), 5))

    async def counts(self, owner: str) -> Counts:
        """Return how many rows of *owner* there are, by state."""
        of = keys.queue(self._name, _token_of(owner))
        waiting, parked, closed = await self._batch.run(
            [
                ("ZCOUNT", of.pending, "-inf", f"({PARKED}"),
                ("ZCOUNT", of.pending, PARKED, "+inf"),
                ("HMGET", of.state, *(f"c:{outcome}" for outcome in OUTCOMES)),
            ]
        )
        by_outcome = {
            outcome: int(count or 0)
            for outcome, count in zip(OUTCOMES, closed, strict=True)
        }
        return Counts(waiting, parked, by_outcome)

    async def pending_total(self, limit_owners: int = 10_000) -> int:
        """Return how many rows wait in order; of owners beyond the first *limit_owners* one row each is counted."""
        waiting = ("ZCOUNT", self._owners, "-inf", f"({PARKED}")
        owners = int((await self._batch.run([waiting]))[0])
        total = counted = 0
        async for tokens in self._waiting_owners(limit_owners):
            of = [keys.queue(self._name, token).pending for token in tokens]
            total += sum(
                await self._batch.run(
                    [("ZCOUNT", pending, "-inf", f"({PARKED}") for pending in of]
                )
            )
            counted += len(tokens)
        return total + max(0, owners - counted)

    async def oldest(self, limit_owners: int = 10_000) -> int | None:
        """Return when the oldest row in order was appended, ms since 1970, or None when none waits.

        Only the first *limit_owners* are asked, those who wait longest.
        """
        numbers: list[int] = []
        async for tokens in self._waiting_owners(limit_owners):
            looks = await self._batch.run(
                [self._script(queue_scripts.LOOK, token) for token in tokens]
            )
            numbers += [number for _, number in looks if number]
        return min(numbers) // 1000 if numbers else None

    async def mend(self, limit: int = PAGE, cursor: int = 0) -> Mended:
        """Look at about *limit* keys of the server, from *cursor* on, and index the owners whose rows wait unknown."""
        head, tail = keys.queue(self._name, "x").pending.split("x")
        scan = ("SCAN", cursor, "MATCH", f"{head}*{tail}", "COUNT", limit)
        reply = (await self._batch.run([scan]))[0]
        tokens = [key.decode()[len(head) : -len(tail)] for key in reply[1]]
        scores = await self._batch.run(
            [("ZSCORE", self._owners, token) for token in tokens]
        )
        unknown = [
            token for token, score in zip(tokens, scores, strict=True) if score is None
        ]
        looks = await self._batch.run(
            [self._script(queue_scripts.LOOK, token) for token in unknown]
        )
        waiting = [
            token
            for token, (look, _) in zip(unknown, looks, strict=True)
            if look != _NEVER
        ]
        for token in waiting:
            await self._mark(token)
        return Mended(len(waiting), int(reply[0]))

    async def forget(self, owner: str) -> int:
        """Remove everything of *owner*, whatever is claimed of it; return how many rows there were."""
        token = _token_of(owner)
        of = keys.queue(self._name, token)
        seen, count, _ = await self._batch.run(
            [("ZSCORE", self._owners, token), ("HLEN", of.rows), ("UNLINK", *of)]
        )
        await self._settle(token, seen, _NEVER)
        return int(count)

    def _script(self, sha: str, token: str, *words: str | bytes | int) -> Command:
        return ("FCALL", sha, 6, *keys.queue(self._name, token), *words)

    async def _under(self, claim: Claim, sha: str, *words: str | bytes | int) -> Any:
        command = self._script(
            sha, claim.owner_token, claim.holder, claim.fence, *words
        )
        return (await self._batch.run([command]))[0]

    async def _mark(self, token: str) -> None:
        """Say that it pays to look at this owner now."""
        await self._batch.run([self._marking(token)])

    def _marking(self, token: str) -> Command:
        return ("FCALL", queue_scripts.MARK_OWNER, 1, self._owners, token)

    async def _settle(self, token: str, seen: Any, look: int) -> None:
        """Write the look at an owner, unless it was marked since *seen* was its score."""
        score = "" if seen is None else repr(float(seen))
        await self._batch.run(
            [("FCALL", queue_scripts.SETTLE_OWNER, 1, self._owners, token, score, look)]
        )

    async def _waiting_owners(self, limit: int) -> AsyncIterator[list[str]]:
        for offset in range(0, limit, PAGE):
            page = "LIMIT", offset, min(PAGE, limit - offset)
            command = ("ZRANGEBYSCORE", self._owners, "-inf", f"({PARKED}", *page)
            tokens = [token.decode() for token in (await self._batch.run([command]))[0]]
            yield tokens
            if len(tokens) < PAGE:
                return


def _token_of(owner: str) -> str:
    return token_of(
        owner,
        "rows need an owner: send the user id, or the conversation id of somebody anonymous",
    )


def _words_of(rows: Sequence[NewRow]) -> list[str | bytes]:
    """Return what `put_rows` reads of *rows* from ARGV."""
    return [
        word for row in rows for word in (_check_id(row.row_id), row.body, row.trace)
    ]


def _check_id(row_id: str) -> bytes:
    try:
        spelled = row_id.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"row id {row_id!r} contains an unpaired surrogate, which is invalid "
            "Unicode; send valid Unicode"
        ) from error
    if not spelled:
        raise InvalidInput(
            "a row needs an id, by which it is known when it comes again"
        )
    return spelled


def _read_known(
    row_id: bytes, number: bytes, body: bytes, spelled: bytes, note: bytes
) -> KnownRow:
    state = json.loads(spelled)
    appended_ms = int(float(number)) % PARKED // 1000
    return KnownRow(
        row_id=row_id.decode(),
        body=body,
        state=state.get("state", "waiting"),
        at_ms=int(state.get("at", appended_ms)),
        attempts=state.get("attempts", 0),
        crashes=state.get("crashes", 0),
        reason=state.get("reason", ""),
        plan_id=state.get("plan") or None,
        not_before_ms=int(state["not_before"]) if state.get("not_before") else None,
        note=note or None,
    )
