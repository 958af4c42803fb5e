"""The order of waiting tasks: one lane an agent and priority, in which tenants take turns by their weights.

Turns are strides: each tenant stands at a place that moves by 1/weight with every task, and the one that is furthest
behind is next. A new tenant begins where the lane is, so that turns are not saved up. No message is held for longer
than `HELD_S`, since it may be erased from the stream meanwhile.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from contracts import subjects
from runtime.messaging.direct import Stored

#: Priorities, the highest first, and after how many seconds a lower one gets turns beside higher ones.
PRIORITIES = {"interactive": 0.0, "normal": 30.0, "batch": 300.0}
#: New messages of one tenant that are held, the largest of them in bytes, and seconds for which any is held.
_NEW_HELD, _LARGEST_HELD, HELD_S = 4, 16 * 1024, 1.0
#: Messages of one tenant that are read at once: at least, and at most.
_FEWEST_READ, _MOST_READ = 4, 256
#: Moved messages that may lie in the stream before each tenant's are removed by themselves.
_MOST_MOVED = 512


class Removal(NamedTuple):
    """Messages to be removed from the stream: all on `subject` before `sequence`."""

    subject: str
    sequence: int


@dataclass(slots=True)
class Tenant:
    """A tenant whose tasks wait in a lane; `after` is the sequence that everything of it lies behind.

    `held` are its first messages; with a `gap` there are more in the stream than those.
    """

    token: str
    subject: str
    turn: float
    held: deque[Stored] = field(default_factory=deque)
    gap: bool = False
    after: int = 0
    seen: int = 0
    read_at: float = 0.0

    @property
    def head(self) -> int:
        """A sequence that its first message does not lie before."""
        return self.held[0].sequence if self.held else self.after + 1


class Lane:
    """The tenants whose tasks of one agent and priority wait."""

    def __init__(self, agent_id: str, priority: str, now: Callable[[], float] = time.monotonic) -> None:
        self.priority = priority
        self._agent_id = agent_id
        self._now = now
        self._tenants: dict[str, Tenant] = {}
        self._turns: list[tuple[float, int, str]] = []
        self._heads: list[tuple[int, str]] = []
        self._turn = 0.0
        self._arrivals = 0
        self._removed, self._last = 1, 0
        #: By subject, the last sequence that was moved and how many were and still lie in the stream.
        self._moved: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._tenants)

    def arrive(self, token: str, message: Stored | None) -> None:
        """Let *message* of the tenant *token* wait; None stands for any number that are in the stream."""
        tenant = self._tenants.get(token)
        if tenant is None:
            tenant = self._tenants[token] = Tenant(token, self._filter(token), self._turn)
            self._line_up(tenant)
            tenant.after = message.sequence - 1 if message is not None else 0
            heapq.heappush(self._heads, (tenant.head, token))
        elif not (tenant.held or tenant.gap):
            heapq.heappush(self._heads, (tenant.head, token))
        if message is None:
            tenant.gap = True
        elif message.sequence > tenant.seen:
            tenant.seen = message.sequence
            if not tenant.gap and len(tenant.held) < _NEW_HELD and len(message.body) <= _LARGEST_HELD:
                tenant.read_at = tenant.read_at if tenant.held else self._now()
                tenant.held.append(message)
            else:
                tenant.gap = True

    def missing(self, number: int) -> tuple[list[Tenant], int]:
        """Return the tenants to be read, and how many messages of each.

        They are of the next *number* turns, or wait longest, and hold nothing.
        """
        tokens = {token for _, _, token in heapq.nsmallest(number, self._turns)}
        if (oldest := self._oldest()) is not None:
            tokens.add(oldest.token)
        found = [self._tenants[token] for token in tokens]
        for tenant in found:
            if tenant.held and self._now() - tenant.read_at > HELD_S:
                tenant.held.clear()
                tenant.gap = True
        batch = min(_MOST_READ, max(_FEWEST_READ, 2 * number // max(1, len(found))))
        return [tenant for tenant in found if tenant.gap and not tenant.held], batch

    def fill(self, tenant: Tenant, found: Sequence[Stored], *, has_more: bool) -> None:
        """Hold *found*, the first messages of *tenant* that lie in the stream, which is none where it is empty."""
        tenant.held.extend(found)
        last = found[-1].sequence if found else tenant.seen
        # A copy of the stream that lags behind does not have all that another showed.
        tenant.gap, tenant.read_at = has_more or last < tenant.seen, self._now()
        tenant.seen = max(tenant.seen, last)

    def oldest_at(self) -> str | None:
        """Return when the oldest message was stored, in RFC 3339; None when it has not been read."""
        tenant = self._oldest()
        return tenant.held[0].stored_at if tenant is not None and tenant.held else None

    def take_oldest(self, weights: Mapping[str, float]) -> Stored | None:
        """Take the message that waits longest, out of turn; None when it has not been read."""
        tenant = self._oldest()
        if tenant is None or not tenant.held:
            return None
        # Its place in the turns stays, and moves on with its next one.
        tenant.turn += 1 / weights.get(tenant.token, 1.0)
        return self._take(tenant)

    def take(self, weights: Mapping[str, float]) -> Stored | None:
        """Take the next message by turns; None when there is none, or it has not been read."""
        while self._turns:
            turn, _, token = self._turns[0]
            tenant = self._tenants[token]
            if not tenant.held and tenant.gap:
                return None
            heapq.heappop(self._turns)
            if not tenant.held:
                del self._tenants[token]
            elif turn < tenant.turn:
                # It had a task out of turn meanwhile.
                self._line_up(tenant)
            else:
                self._turn, tenant.turn = turn, turn + 1 / weights.get(token, 1.0)
                self._line_up(tenant)
                return self._take(tenant)
        return None

    def removals(self, cursor: int) -> list[Removal]:
        """Return what is to be removed from the stream, all that was taken being stored elsewhere.

        Nothing from *cursor* on is known here but what was taken.
        """
        oldest = self._oldest()
        before = min(cursor, oldest.head if oldest is not None else self._last + 1)
        found = []
        if before > self._removed:
            self._removed = before
            self._moved = {subject: moved for subject, moved in self._moved.items() if moved[0] >= before}
            found.append(Removal(self._filter(), before))
        if sum(number for _, number in self._moved.values()) > _MOST_MOVED:
            found += [Removal(subject, last + 1) for subject, (last, _) in self._moved.items()]
            self._moved.clear()
        return found

    def _filter(self, token: str = "") -> str:
        return subjects.waiting_of(self._agent_id, priority=self.priority, token=token)

    def _line_up(self, tenant: Tenant) -> None:
        self._arrivals += 1
        heapq.heappush(self._turns, (tenant.turn, self._arrivals, tenant.token))

    def _take(self, tenant: Tenant) -> Stored:
        message = tenant.held.popleft()
        tenant.after, self._last = message.sequence, max(self._last, message.sequence)
        self._moved[tenant.subject] = message.sequence, self._moved.get(tenant.subject, (0, 0))[1] + 1
        return message

    def _oldest(self) -> Tenant | None:
        while self._heads:
            head, token = self._heads[0]
            tenant = self._tenants.get(token)
            if tenant is None or not (tenant.held or tenant.gap):
                heapq.heappop(self._heads)
            elif tenant.head > head:
                heapq.heapreplace(self._heads, (tenant.head, token))
            else:
                return tenant
        return None
