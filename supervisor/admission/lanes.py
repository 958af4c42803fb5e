"""The order of waiting tasks: one lane an agent and priority, in which senders take turns, and their tenants in these.

A sender is a tenant whose own keys sent the task, or a key that names tenants as it likes: however many names it
invents, it has the turns of one. Turns are strides: each stands at a place that moves by 1/weight with every task, and
the one that is furthest behind is next. A new one begins where the lane is, so that turns are not saved up. A lane
knows tasks by the sequence of their message in the stream alone.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping
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
class _Turns:
    """Names that take turns by strides: the place of each, and the order in which they are looked at."""

    places: dict[str, float] = field(default_factory=dict)
    _order: list[tuple[float, int, str]] = field(default_factory=list)
    _now: float = 0.0
    _arrivals: int = 0

    def join(self, name: str) -> None:
        """Let *name* take turns from now on; one that does so already stays where it is."""
        if name not in self.places:
            self.places[name] = self._now
            self._line_up(name)

    def take_next(
        self, waits: Callable[[str], bool], weight_of: Callable[[str], float]
    ) -> str | None:
        """Return whose turn it is, and move them on; names that wait no more leave. None: none waits."""
        while self._order:
            place, _, name = heapq.heappop(self._order)
            if not waits(name):
                del self.places[name]
            elif place < self.places[name]:
                # It had a task out of turn meanwhile.
                self._line_up(name)
            else:
                self._now = place
                self.places[name] = place + 1 / weight_of(name)
                self._line_up(name)
                return name
        return None

    def _line_up(self, name: str) -> None:
        self._arrivals += 1
        heapq.heappush(self._order, (self.places[name], self._arrivals, name))


@dataclass(slots=True)
class _Sender:
    """A sender whose tasks wait in a lane: how many, and the turns of its tenants, by their tokens."""

    waiting: int = 0
    turns: _Turns = field(default_factory=_Turns)


class Lane:
    """The tenants whose tasks of one agent and priority wait; `len` is how many tenants there are."""

    def __init__(self, agent_id: str, priority: str) -> None:
        self.priority = priority
        self._agent_id = agent_id
        self._senders: dict[str, _Sender] = {}
        self._turns = _Turns()
        #: Sequences of the tasks of each tenant, in order.
        self._tenants: dict[str, deque[int]] = {}
        self._heads: list[tuple[int, str]] = []
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
        name = subjects.sender_of(token)
        sender = self._senders.setdefault(name, _Sender())
        self._turns.join(name)
        sender.turns.join(token)
        sender.waiting += 1
        waiting = self._tenants.setdefault(token, deque())
        if not waiting:
            heapq.heappush(self._heads, (sequence, token))
        waiting.append(sequence)

    def oldest(self) -> int | None:
        """Return the sequence of the task that waits longest; None when none waits."""
        found = self._oldest()
        return None if found is None else self._tenants[found][0]

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
        name = subjects.sender_of(token)
        # Their places in the turns stay, and move on with the next one.
        self._turns.places[name] += 1 / weights.get(name, 1.0)
        self._senders[name].turns.places[token] += 1 / _weight_of(token, weights)
        return self._take(token)

    def take(self, weights: Mapping[str, float]) -> int | None:
        """Take the next task by turns; None when none waits."""
        name = self._turns.take_next(
            self._sender_waits, lambda sender: weights.get(sender, 1.0)
        )
        if name is None:
            return None
        token = self._senders[name].turns.take_next(
            self._tenant_waits, lambda tenant: _weight_of(tenant, weights)
        )
        return None if token is None else self._take(token)

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

    def _sender_waits(self, name: str) -> bool:
        if self._senders[name].waiting:
            return True
        for token in self._senders.pop(name).turns.places:
            self._tenants.pop(token, None)
        return False

    def _tenant_waits(self, token: str) -> bool:
        if self._tenants[token]:
            return True
        del self._tenants[token]
        return False

    def _take(self, token: str) -> int:
        self._senders[subjects.sender_of(token)].waiting -= 1
        sequence = self._tenants[token].popleft()
        self._last = max(self._last, sequence)
        self._moved[token] = sequence, self._moved.get(token, (0, 0))[1] + 1
        return sequence

    def _oldest(self) -> str | None:
        while self._heads:
            head, token = self._heads[0]
            tenant = self._tenants.get(token)
            if not tenant:
                heapq.heappop(self._heads)
            elif tenant[0] > head:
                heapq.heapreplace(self._heads, (tenant[0], token))
            else:
                return token
        return None


def _weight_of(token: str, weights: Mapping[str, float]) -> float:
    """Return the weight of a tenant among those of its sender, by its *token*."""
    return weights.get(subjects.tenant_of(token), 1.0)
