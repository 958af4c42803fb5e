"""The order of waiting tasks: one lane an agent and priority, in which tenants take turns by their weights.

Turns are strides: each tenant stands at a place that moves by 1/weight with every task, and the one that is furthest
behind is next. A new tenant begins where the lane is, so that turns are not saved up. A lane knows tasks by the
sequence of their message in the stream alone.
"""

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tasklore.contracts import subjects

#: Priorities, the highest first, and after how many seconds a lower one gets turns beside higher ones.
PRIORITIES = {"interactive": 0.0, "normal": 30.0, "batch": 300.0}
#: Seconds to which it is known since when a task waits.
_MARKED_S = 0.05
#: Moved messages that may lie in the stream before each tenant's are removed by themselves.
_MOST_MOVED = 512


class Removal(NamedTuple):
    """Messages to be removed from the stream: all on `subject` before `sequence`."""

    subject: str
    sequence: int


@dataclass(slots=True)
class _Tenant:
    """A tenant whose tasks wait in a lane: their sequences, in order."""

    turn: float
    waiting: deque[int] = field(default_factory=deque)


class Lane:
    """The tenants whose tasks of one agent and priority wait; `len` is how many tenants there are."""

    def __init__(self, agent_id: str, priority: str) -> None:
        self.priority = priority
        self._agent_id = agent_id
        self._tenants: dict[str, _Tenant] = {}
        self._turns: list[tuple[float, int, str]] = []
        self._heads: list[tuple[int, str]] = []
        self._turn = 0.0
        self._arrivals = 0
        self._removed = 1
        self._last = 0
        #: Sequences and when each was stored, in seconds since 1970, `_MARKED_S` or more apart.
        self._marks: deque[tuple[int, float]] = deque()
        #: By the token of a tenant, the last sequence that was taken and how many were and still lie in the stream.
        self._moved: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._tenants)

    def arrive(self, token: str, sequence: int, stored_at: float) -> None:
        """Let a task of the tenant *token* wait behind all that came before.

        *sequence* is that of its message, *stored_at* in seconds since 1970.
        """
        if not self._marks or stored_at - self._marks[-1][1] >= _MARKED_S:
            self._marks.append((sequence, stored_at))
        tenant = self._tenants.get(token)
        if tenant is None:
            tenant = self._tenants[token] = _Tenant(self._turn)
            self._line_up(token, tenant)
        if not tenant.waiting:
            heapq.heappush(self._heads, (sequence, token))
        tenant.waiting.append(sequence)

    def oldest(self) -> int | None:
        """Return the sequence of the task that waits longest; None when none waits."""
        found = self._oldest()
        return None if found is None else self._tenants[found].waiting[0]

    def waits_since(self) -> float | None:
        """Return when the oldest task was stored, in seconds since 1970; None when none waits."""
        oldest = self.oldest()
        if oldest is None:
            return None
        while len(self._marks) > 1 and self._marks[1][0] <= oldest:
            self._marks.popleft()
        return self._marks[0][1]

    def take_oldest(self, weights: Mapping[str, float]) -> int | None:
        """Take the task that waits longest, out of turn; None when none waits."""
        token = self._oldest()
        if token is None:
            return None
        # Its place in the turns stays, and moves on with its next one.
        self._tenants[token].turn += 1 / weights.get(token, 1.0)
        return self._take(token)

    def take(self, weights: Mapping[str, float]) -> int | None:
        """Take the next task by turns; None when none waits."""
        while self._turns:
            turn, _, token = heapq.heappop(self._turns)
            tenant = self._tenants[token]
            if not tenant.waiting:
                del self._tenants[token]
            elif turn < tenant.turn:
                # It had a task out of turn meanwhile.
                self._line_up(token, tenant)
            else:
                self._turn = turn
                tenant.turn = turn + 1 / weights.get(token, 1.0)
                self._line_up(token, tenant)
                return self._take(token)
        return None

    def removals(self, cursor: int) -> list[Removal]:
        """Return what is to be removed from the stream, all that was taken being stored elsewhere.

        Nothing from *cursor* on is known here.
        """
        oldest = self.oldest()
        before = min(cursor, oldest if oldest is not None else self._last + 1)
        found = []
        if before > self._removed:
            self._removed = before
            self._moved = {
                token: moved
                for token, moved in self._moved.items()
                if moved[0] >= before
            }
            found.append(Removal(self._filter(), before))
        if sum(number for _, number in self._moved.values()) > _MOST_MOVED:
            found += [
                Removal(self._filter(token), last + 1)
                for token, (last, _) in self._moved.items()
            ]
            self._moved.clear()
        return found

    def _filter(self, token: str = "") -> str:
        return subjects.waiting_of(self._agent_id, priority=self.priority, token=token)

    def _line_up(self, token: str, tenant: _Tenant) -> None:
        self._arrivals += 1
        heapq.heappush(self._turns, (tenant.turn, self._arrivals, token))

    def _take(self, token: str) -> int:
        sequence = self._tenants[token].waiting.popleft()
        self._last = max(self._last, sequence)
        self._moved[token] = sequence, self._moved.get(token, (0, 0))[1] + 1
        return sequence

    def _oldest(self) -> str | None:
        while self._heads:
            head, token = self._heads[0]
            tenant = self._tenants.get(token)
            if tenant is None or not tenant.waiting:
                heapq.heappop(self._heads)
            elif tenant.waiting[0] > head:
                heapq.heapreplace(self._heads, (tenant.waiting[0], token))
            else:
                return token
        return None
