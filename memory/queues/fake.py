"""Rows that wait in this process only, for unit tests; it passes the contract suite of the real queue."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from contracts.errors import InvalidInput
from contracts.identifiers import user_token
from memory.queues.claims import OUTCOMES, Claim, Closing, Counts, KnownRow, QueueName, Row
from memory.queues.queue import MOST_ROWS, Mended


@dataclass(slots=True)
class _Kept:
    """A row, when it was appended, and under which claim its last word was said."""

    row: KnownRow
    number: int
    appended_ms: int
    fence: int = 0
    trace: str = ""

    @property
    def is_closed(self) -> bool:
        return self.row.state in OUTCOMES

    @property
    def is_parked(self) -> bool:
        return self.row.state == "needs_model"


@dataclass(slots=True)
class _Table:
    """Everything of one owner; `open` are the rows of a claim that has not been given back."""

    kept: dict[str, _Kept] = field(default_factory=dict)
    holder: str = ""
    fence: int = 0
    leased_until_ms: int = 0
    open: tuple[str, ...] = ()

    def in_order(self) -> list[_Kept]:
        return [kept for kept in self.kept.values() if not kept.is_closed and not kept.is_parked]


class FakeQueue:
    """Stands for `memory.queues.queue.PersonalQueue`; *clock* tells seconds since 1970."""

    def __init__(
        self,
        name: QueueName,
        *,
        keep: timedelta = timedelta(days=7),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name: QueueName = name
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._clock = clock
        self._tables: dict[str, _Table] = {}
        self._numbers = itertools.count(1)

    async def append(self, owner: str, rows: Sequence[tuple[str, bytes]], *, trace: str = "") -> int:
        """Add the rows whose ids are not known; return how many those were."""
        table = self._table(owner)
        if any(not row_id for row_id, _ in rows):
            raise InvalidInput("a row needs an id, by which it is known when it comes again")
        known, now = len(table.kept), self._now_ms()
        for row_id, body in rows:
            if row_id not in table.kept:
                row = KnownRow(row_id, body, "waiting", now)
                table.kept[row_id] = _Kept(row, next(self._numbers), now, trace=trace)
        return len(table.kept) - known

    async def owners_due(self, now_ms: int, limit: int) -> list[str]:
        """Return up to *limit* owners with a row that can be claimed, in the order of those rows."""
        now, due_by = self._now_ms(), max(now_ms, self._now_ms())
        due = [
            (first.number, owner)
            for owner, table in self._tables.items()
            for first in table.in_order()[:1]
            if table.leased_until_ms <= now and (first.row.not_before_ms or 0) <= due_by
        ]
        return [owner for _, owner in sorted(due)[:limit]]

    async def claim(self, owner: str, *, holder: str, limit: int, lease_ms: int, now_ms: int) -> Claim | None:
        """Return the first rows of *owner* in order, or None when there is nothing to claim."""
        if not 1 <= limit <= MOST_ROWS:
            msg = f"a claim is of 1 to {MOST_ROWS} rows, not {limit}"
            raise InvalidInput(msg)
        table, now = self._table(owner), self._now_ms()
        if table.leased_until_ms > now:
            return None
        self._count_crashes(table)
        taken: list[Row] = []
        for kept in table.in_order()[:limit]:
            row = kept.row
            if (row.not_before_ms or 0) > max(now, now_ms) or (row.crashes and taken):
                break
            taken.append(Row(row.row_id, row.body, row.attempts, row.note, row.crashes, kept.trace))
            if row.crashes:
                break
        if not taken:
            return None
        table.holder, table.fence, table.leased_until_ms = holder, next(self._numbers), now + lease_ms
        table.open = tuple(row.row_id for row in taken)
        return Claim(self._name, owner, user_token(owner), holder, table.fence, tuple(taken), self._keep_ms)

    async def renew(self, claim: Claim, lease_ms: int) -> bool:
        """Let *claim* last *lease_ms* from now, when it still holds."""
        if not self._holds(claim):
            return False
        self._table(claim.owner).leased_until_ms = self._now_ms() + lease_ms
        return True

    async def release(self, claim: Claim) -> None:
        """Give *claim* back."""
        if self._holds(claim):
            table = self._table(claim.owner)
            table.leased_until_ms, table.open = 0, ()

    async def note(self, claim: Claim, row_id: str, note: bytes) -> bool:
        """Keep *note* for the next claim of a row."""
        kept = self._table(claim.owner).kept.get(row_id)
        if not self._holds(claim) or kept is None or kept.is_closed:
            return False
        kept.row = replace(kept.row, note=note)
        return True

    async def close(self, claim: Claim, closings: Sequence[Closing]) -> bool:
        """Do *closings*, all or none."""
        if not self._holds(claim):
            return False
        table = self._table(claim.owner)
        for closing in closings:
            kept = table.kept.get(closing.row_id)
            if kept is not None and not kept.is_closed:
                self._close_row(kept, closing, claim.fence)
        return True

    async def resume(self, owner: str, reason: Literal["needs_model"] = "needs_model") -> int:
        """Put the parked rows of *owner* back into the order."""
        parked = [kept for kept in self._table(owner).kept.values() if kept.row.state == reason]
        for kept in parked:
            kept.row = replace(kept.row, state="waiting", at_ms=kept.appended_ms, not_before_ms=None)
        return len(parked)

    async def resume_all(self, reason: Literal["needs_model"] = "needs_model") -> int:
        """Put the parked rows of everybody back into the order."""
        return sum([await self.resume(owner, reason) for owner in self._tables])

    async def rows(self, owner: str, limit: int) -> tuple[KnownRow, ...]:
        """Return up to *limit* rows: those in order, those parked, then the last closed first."""
        table = self._table(owner)
        parked = [kept for kept in table.kept.values() if kept.is_parked]
        closed = sorted((kept for kept in table.kept.values() if kept.is_closed), key=lambda kept: -kept.row.at_ms)
        return tuple(kept.row for kept in [*table.in_order(), *parked, *closed][:limit])

    async def counts(self, owner: str) -> Counts:
        """Return how many rows of *owner* there are, by state."""
        table = self._table(owner)
        states = [kept.row.state for kept in table.kept.values()]
        by_outcome = {outcome: states.count(outcome) for outcome in OUTCOMES}
        return Counts(len(table.in_order()), states.count("needs_model"), by_outcome)

    async def pending_total(self, limit_owners: int = 10_000) -> int:
        """Return how many rows wait in order."""
        waiting = [len(table.in_order()) for table in self._tables.values() if table.in_order()]
        return sum(waiting[:limit_owners]) + len(waiting[limit_owners:])

    async def oldest(self, limit_owners: int = 10_000) -> int | None:
        """Return when the oldest row in order was appended, ms since 1970, or None when none waits."""
        first = [kept for table in self._tables.values() for kept in table.in_order()[:1]]
        return min((kept.appended_ms for kept in first[:limit_owners]), default=None)

    async def mend(self, limit: int = 1, cursor: int = 0) -> Mended:  # noqa: ARG002 - as the store has it
        """Return that nothing had to be mended: there is no index."""
        return Mended(0, 0)

    async def forget(self, owner: str) -> int:
        """Remove everything of *owner*; return how many rows there were."""
        kept = self._table(owner).kept
        del self._tables[owner]
        return len(kept)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _table(self, owner: str) -> _Table:
        """Return the table of *owner*, without what was closed too long ago."""
        try:
            owner.encode()
        except UnicodeEncodeError as error:
            msg = f"owner {owner!r} holds half of a surrogate pair, which is no text; send valid Unicode"
            raise InvalidInput(msg) from error
        if not owner:
            raise InvalidInput("rows need an owner")
        table = self._tables.setdefault(owner, _Table())
        before = self._now_ms() - self._keep_ms
        table.kept = {
            row_id: kept for row_id, kept in table.kept.items() if not kept.is_closed or kept.row.at_ms > before
        }
        return table

    def _holds(self, claim: Claim) -> bool:
        table = self._table(claim.owner)
        same = table.holder == claim.holder and table.fence == claim.fence
        return same and table.leased_until_ms > self._now_ms()

    def _count_crashes(self, table: _Table) -> None:
        """Note on every row of a claim that was not given back that its run ended without a word."""
        for kept in [table.kept[row_id] for row_id in table.open if row_id in table.kept]:
            if not kept.is_closed and not kept.is_parked and kept.fence != table.fence:
                attempts = kept.row.attempts + (len(table.open) == 1)
                kept.row = replace(kept.row, crashes=kept.row.crashes + 1, attempts=attempts)
        table.open = ()

    def _close_row(self, kept: _Kept, closing: Closing, fence: int) -> None:
        row = replace(
            kept.row,
            state=closing.state,
            at_ms=self._now_ms(),
            reason=closing.reason,
            plan_id=closing.plan_id,
            not_before_ms=closing.not_before_ms,
        )
        if closing.state == "retry":
            row = replace(row, attempts=row.attempts + (kept.fence != fence), crashes=0)
        elif closing.state != "needs_model":
            row = replace(row, note=None)
        kept.row, kept.fence = row, fence
