"""The list of runs by agent, state, tenant, user, time, parent and error, read in pages out of the index.

A page reads rows of some agents side by side, the last created first, drops what does not fit, and asks the ledger how
far the others are. It reads a bounded number of rows, and so may come back short: `after` goes on where it ended.

The runs of a user are read out of their own set, open ones first and then those that ended last. So what a page of
theirs says, its end included, depends on nobody else's.
"""

import heapq
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import RunWait, explain_wait
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_of
from tasklore.contracts.message_parts import is_none
from tasklore.contracts.messages import MemoryOutcome
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.ledger.ledger import Ledger, RunGlance
from tasklore.memory.ledger.task_index import MOST_AT_ONCE, TaskIndex, TaskRange
from tasklore.memory.ledger.task_rows import (
    END_STATES,
    FORGOTTEN,
    OPEN_STATES,
    RunState,
    TaskRow,
    read_row,
)
from tasklore.memory.ledger.task_tree import GONE
from tasklore.memory.times import EPOCH, MILLISECOND

#: Runs of a page, and rows that are read for one.
MOST_OF_PAGE = 200
MOST_READ = 1_000
#: Tasks of a page whose entries are looked at: of many that are open few may be in the state that is asked for.
MOST_ASKED = 200
#: Rows of an agent that are read at first where there are many agents: twice as many each time after that.
_FEWEST_READ = 10
#: The last moment that has a date, in ms since 1970: programs may write any number.
_LAST_MS = 253_402_300_799_999
_STATES = (*OPEN_STATES, *END_STATES, GONE)
_AFTER = re.compile(r"([0-9]{1,15})\.([0-9]{1,6})\.([A-Za-z0-9_-]{1,64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which runs are listed: those to which all of it applies; None is any.

    *user* is the token of a user, *created_from_ms*, *created_before_ms* and *ended_from_ms* are in ms since 1970, what
    a time begins with included. *is_open* are those that have not ended.
    """

    agent_id: str | None = None
    state: str | None = None
    tenant: str | None = None
    user: str | None = None
    created_from_ms: int | None = None
    created_before_ms: int | None = None
    parent_id: str | None = None
    error: str | None = None
    ended_from_ms: int | None = None
    is_open: bool = False

    def may_fit(self, row: TaskRow) -> bool:
        """Return whether a run fits by its *row*, and by its state where that stands there."""
        is_open_asked = self.state in OPEN_STATES
        if self.ended_from_ms is not None and (row.ended_ms or 0) < self.ended_from_ms:
            return False
        if self.is_open and row.has_ended:
            return False
        return (
            (self.tenant is None or row.tenant == self.tenant)
            and (self.user is None or row.user == self.user)
            and (self.parent_id is None or row.parent_id == self.parent_id)
            and (self.error is None or row.error == self.error)
            and (self.created_from_ms is None or row.created_ms >= self.created_from_ms)
            and (
                self.created_before_ms is None
                or row.created_ms < self.created_before_ms
            )
            # The row of a task that has ended may not say so yet; that of an open one never says how far it is.
            and (
                self.state is None
                or not row.has_ended
                or (not is_open_asked and _state_in(row) == self.state)
            )
        )

    @property
    def pieces(self) -> list[tuple[bytes, ...]]:
        """Bytes of rows that may fit: one of each."""
        named = {"o": self.tenant, "u": self.user, "p": self.parent_id, "x": self.error}
        found: list[tuple[bytes, ...]] = [
            (b'"%s":%s' % (name.encode(), to_json(value)),)
            for name, value in named.items()
            if value is not None
        ]
        if self.state in END_STATES:
            words = [self.state, "accepted"]
            words += [FORGOTTEN] if self.state == "cancelled" else []
            found.append(tuple(f'"s":"{one}"'.encode() for one in words))
        return found

    @property
    def is_selective(self) -> bool:
        """Whether rows are dropped, beside those of another time."""
        return self.is_open or any(
            (
                self.state,
                self.tenant,
                self.user,
                self.parent_id,
                self.error,
                self.ended_from_ms,
            )
        )

    @property
    def is_among_open(self) -> bool:
        """Whether all that fits is among the open ones."""
        return self.is_open or self.state in OPEN_STATES


class ListedTask(BaseModel):
    """A task of the list, in its newest generation; its fields are those of a traced one.

    `state` is `accepted`, `running`, `waiting` (for its next run), `cancelling`, the status of its report, `gone` when
    the ledger has nothing of an open one any more, or `other` for a word of a newer writer. `began_ms` is when it was
    created, ms since 1970. `error` is the class of the error that ended it. `waits_for` is why it waits and since when,
    left out where that is not known.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    task_id: str
    agent_id: str
    task: str
    state: RunState | Literal["gone", "other"]
    generation: int = 1
    attempts: int | None = Field(default=None, exclude_if=is_none)
    began_ms: int
    ended_ms: int | None = Field(default=None, exclude_if=is_none)
    run_ms: int | None = Field(default=None, exclude_if=is_none)
    memory: MemoryOutcome | None = Field(default=None, exclude_if=is_none)
    error: str | None = Field(default=None, exclude_if=is_none)
    tenant: str | None = Field(default=None, exclude_if=is_none)
    user: str | None = Field(default=None, exclude_if=is_none)
    parent_id: str | None = Field(default=None, exclude_if=is_none)
    waits_for: RunWait | None = Field(default=None, exclude_if=is_none)


class TaskPage(BaseModel):
    """A page of tasks; `after` is what to ask for the next one with, None at the end. It may be short, or empty."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    tasks: tuple[ListedTask, ...]
    after: str | None


class OpenTaskCounts(NamedTuple):
    """How many tasks of some agents are open, and when the oldest was created, ms since 1970; None without any."""

    number: int
    oldest_ms: int | None


class _Place(NamedTuple):
    """A place in the list: behind *passed* runs of *agent_id* with *score*, and all with a higher score.

    Of one score the agents come by their names.
    """

    score: int
    passed: int
    agent_id: str

    @property
    def order(self) -> tuple[int, str, int]:
        """What sorts places from the beginning of the list to its end."""
        return -self.score, self.agent_id, self.passed

    def spell(self) -> str:
        """Return it as a page gives it."""
        return f"{self.score}.{self.passed}.{self.agent_id}"


class _Candidate(NamedTuple):
    """A run that may fit, and the place behind it."""

    row: TaskRow
    place: _Place


@dataclass(slots=True)
class _Walk:
    """The way through one list of one agent, from *highest* down, behind *passed* runs of that score."""

    agent_id: str
    key: str
    highest: str
    lowest: str
    passed: int
    chunk: int
    found: deque[_Candidate] = field(default_factory=deque)
    is_over: bool = False
    #: Runs read so far.
    read: int = 0

    @property
    def range(self) -> TaskRange:
        """The next rows to be read."""
        return TaskRange(self.highest, self.lowest, self.passed, self.chunk)

    def fill(self, reply: Sequence[bytes | None], asked: "TaskFilter") -> None:
        """Note *reply*, and keep the rows that may fit."""
        pieces = asked.pieces
        for task_id, score, body in zip(
            reply[::3], reply[1::3], reply[2::3], strict=True
        ):
            spelled = (score or b"0").decode()
            self.passed = self.passed + 1 if spelled == self.highest else 1
            self.highest = spelled
            # Most are dropped by a look at their bytes, which costs a tenth of reading them.
            if body is None or not all(
                any(one in body for one in either) for either in pieces
            ):
                continue
            name = (task_id or b"").decode(errors="replace")
            row = read_row(self.agent_id, name, body)
            if row is not None and asked.may_fit(row):
                self.found.append(_Candidate(row, self.place))
        count = len(reply) // 3
        self.read += count
        self.is_over = count < self.chunk
        self.chunk = min(MOST_AT_ONCE, 2 * self.chunk)

    @property
    def place(self) -> _Place:
        """The place behind all that was read."""
        return _Place(int(float(self.highest)), self.passed, self.agent_id)

    @property
    def next_place(self) -> _Place | None:
        """The place of the next run that may fit, else that behind all that was read; None at the end."""
        if self.found:
            return self.found[0].place
        return None if self.is_over else self.place


class TaskList:
    """Reads pages of tasks; MemoryUnavailable after *deadline_s* for each round trip."""

    def __init__(self, client: Redis, *, deadline_s: float = 5.0) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)
        self._index = TaskIndex(client, deadline_s=deadline_s)
        self._ledger = Ledger(client, deadline_s=deadline_s)

    async def read(
        self,
        asked: TaskFilter,
        *,
        after: str = "",
        limit: int = 50,
        has_glances: bool = True,
    ) -> TaskPage:
        """Return at most *limit* tasks that are as *asked*, from *after* on, the `after` of the page before.

        Without *has_glances* the ledger is not asked for each, which is for sums over those that ended: their rows say
        what they knew at the end, and nothing of attempts.

        Raises:
            InvalidInput: *after* or the state is none, or *limit* is not 1 to 200.
            MemoryUnavailable: the ledger did not answer in time.
        """
        if asked.state is not None and asked.state not in OPEN_STATES + END_STATES:
            known = ", ".join(OPEN_STATES + END_STATES)
            raise InvalidInput(f"state {asked.state!r} must be one of {known}")
        if not 1 <= limit <= MOST_OF_PAGE:
            raise InvalidInput(f"limit {limit} must be 1 to {MOST_OF_PAGE}")
        agents = await self._agents(asked)
        walks = self._begin(asked, agents, _read_place(after), limit)
        await self._fill(walks, asked)
        found: list[ListedTask] = []
        seen = 0
        while len(found) < limit:
            wanted = min(limit - len(found), MOST_AT_ONCE)
            batch, last = await self._take(walks, asked, wanted)
            rows = [one.row for one in batch]
            found += await self._fitting(asked, rows, has_glances=has_glances)
            seen += len(batch)
            is_short = len(batch) < wanted or seen >= MOST_ASKED
            if last is None or is_short:
                break
        return TaskPage(tasks=tuple(found), after=last.spell() if last else None)

    async def count_open(self, agent_id: str | None = None) -> OpenTaskCounts:
        """Return how many tasks of everybody are open, of one agent or of all; no row is read.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        agents = await self._agents(TaskFilter(agent_id=agent_id))
        opened = [keys.runs(one).open for one in agents]
        if not opened:
            return OpenTaskCounts(0, None)
        replies = await self._batch.run(
            [
                command
                for key in opened
                for command in (
                    ("ZCARD", key),
                    ("ZRANGE", key, 0, 0, "WITHSCORES"),
                )
            ]
        )
        # Protocol 3 sends pairs, protocol 2 a flat list.
        oldest = (
            first[0] if isinstance(first[0], list | tuple) else first
            for first in replies[1::2]
            if first
        )
        scores = [int(float(score)) for _, score in oldest]
        return OpenTaskCounts(sum(replies[::2]), min(scores, default=None))

    async def _take(
        self, walks: Sequence[_Walk], asked: TaskFilter, most: int
    ) -> tuple[list[_Candidate], _Place | None]:
        """Return the next runs of *walks* that may fit, in order, and the place behind them; None at the end.

        There are fewer than *most* where so many rows were read for them.
        """
        heap = [
            (place.order, number)
            for number, walk in enumerate(walks)
            if (place := walk.next_place) is not None
        ]
        heapq.heapify(heap)
        batch: list[_Candidate] = []
        while heap and len(batch) < most:
            _, number = heapq.heappop(heap)
            walk = walks[number]
            if walk.found:
                batch.append(walk.found.popleft())
            elif sum(one.read for one in walks) >= MOST_READ:
                return batch, walk.place
            else:
                await self._fill([walk], asked)
            if (place := walk.next_place) is not None:
                heapq.heappush(heap, (place.order, number))
        return batch, batch[-1].place if heap else None

    async def _agents(self, asked: TaskFilter) -> list[str]:
        if asked.agent_id is not None:
            return [asked.agent_id]
        return sorted(await self._index.agents())

    def _begin(
        self,
        asked: TaskFilter,
        agents: Sequence[str],
        place: _Place | None,
        limit: int,
    ) -> list[_Walk]:
        """Return the ways through the lists of *agents*, each from *place* on."""
        is_of_user = asked.user is not None
        lowest = "-inf"
        highest = "+inf"
        # The set of a user has other scores.
        if not is_of_user and asked.created_from_ms is not None:
            lowest = str(asked.created_from_ms)
        if not is_of_user and asked.created_before_ms is not None:
            highest = f"({asked.created_before_ms}"
        whole = MOST_AT_ONCE if asked.is_selective else limit
        chunk = whole if len(agents) < 2 else max(_FEWEST_READ, whole // len(agents))
        walks = []
        for agent_id in agents:
            own = keys.runs(agent_id)
            key = own.listed
            if is_of_user:
                key = own.of_user(asked.user or "")
            elif asked.is_among_open:
                key = own.open
            walk = _Walk(agent_id, key, highest, lowest=lowest, passed=0, chunk=chunk)
            if place is not None:
                is_behind = agent_id < place.agent_id
                walk.highest = f"({place.score}" if is_behind else str(place.score)
                walk.passed = place.passed if agent_id == place.agent_id else 0
            walks.append(walk)
        return walks

    async def _fill(self, walks: Sequence[_Walk], asked: TaskFilter) -> None:
        """Read on in each of *walks*."""
        commands = [walk.range.command(walk.agent_id, walk.key) for walk in walks]
        for walk, reply in zip(walks, await self._batch.run(commands), strict=True):
            walk.fill(reply, asked)

    async def _fitting(
        self, asked: TaskFilter, rows: Sequence[TaskRow], *, has_glances: bool
    ) -> list[ListedTask]:
        """Return the tasks of *rows* whose state, as the ledger has it, is as *asked*; as the row does without."""
        glances: Sequence[RunGlance | None] = [None] * len(rows)
        if has_glances:
            glances = await self._ledger.glance(
                [(row.agent_id, row.task_id, row.generation) for row in rows]
            )
        now = datetime.now(UTC)
        tasks = (
            _task_of(row, seen, now) for row, seen in zip(rows, glances, strict=True)
        )
        return [
            one
            for one in tasks
            if asked.state in (None, one.state)
            and not (asked.is_open and one.state in END_STATES)
        ]


def _read_place(after: str) -> _Place | None:
    """Return the place that *after* names, None for the beginning.

    Raises:
        InvalidInput: it is none.
    """
    if not after:
        return None
    if (match := _AFTER.fullmatch(after)) is None:
        raise InvalidInput(
            f"after {after[:100]!r} is not a cursor of this list; use the `after` of "
            "the previous page, or omit it"
        )
    score, passed, agent_id = match.groups()
    return _Place(int(score), int(passed), agent_id)


def _state_in(row: TaskRow) -> str:
    return "cancelled" if row.state == FORGOTTEN else row.state


def _task_of(row: TaskRow, seen: RunGlance | None, now: datetime) -> ListedTask:
    """Return the task of *row* as the ledger has *seen* it."""
    known: dict[str, Any] = {
        "task_id": row.task_id,
        "agent_id": row.agent_id,
        "task": row.task,
        "state": _state_in(row) if row.has_ended else GONE,
        "generation": row.generation,
        "began_ms": row.created_ms,
        "ended_ms": row.ended_ms,
        "run_ms": row.run_ms,
        "memory": row.memory,
        "error": row.error,
        "tenant": row.tenant,
        "user": _user_in(row),
        "parent_id": row.parent_id,
    }
    if seen is not None:
        known |= {
            "state": seen.state,
            "attempts": seen.attempts or None,
            "waits_for": _explain(row, seen, now),
        }
    if known["state"] not in _STATES:
        known["state"] = "other"
    return ListedTask(**known)


def _explain(row: TaskRow, seen: RunGlance, now: datetime) -> RunWait | None:
    """Return why the task of *row* waits, as its trace and HTTP have it."""
    if seen.state != "accepted":
        return seen.waits_for
    created_ms = min(row.created_ms, _LAST_MS)
    return explain_wait(
        seen.waits_for,
        agent_id=row.agent_id,
        sent_at=EPOCH + created_ms * MILLISECOND,
        begins_at=EPOCH + min(seen.due_ms or created_ms, _LAST_MS) * MILLISECOND,
        now=now,
    )


def _user_in(row: TaskRow) -> str | None:
    try:
        return user_of(row.user) or None
    except InvalidInput:
        return None
