"""The tree of a task: what it called, and what those called, as far as the ledger has it.

Read breadth first, a round trip a level (or for each 50 tasks of it), without results and parameters of any length.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import (
    Kind,
    RunWait,
    explain_wait,
    to_run_wait,
    wait_id,
)
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import (
    CompletionReport,
    MemoryOutcome,
    TaskAssignment,
    Usage,
)
from tasklore.contracts.task_messages import MOST_ANCESTORS
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.key_parts import is_name
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.journal import read_head
from tasklore.memory.ledger.layouts import Entries
from tasklore.memory.ledger.ledger import number_in, read_lost, read_wait
from tasklore.memory.ledger.waits import Waits, WaitState

#: Tasks above one another, and tasks of one tree, that are read.
MOST_LEVELS = MOST_ANCESTORS + 1
MOST_TASKS = 2_000
#: Children with one name, steps and open waits of one task, that are shown one by one.
MOST_ALIKE = MOST_STEPS = MOST_WAITS = 20
#: Tasks read in one round trip, some 7 ms of work, in which nothing else is served.
_BATCH = 50
#: Children of one task that are asked for when its level has many.
_SOME_CHILDREN = 100
#: Bytes beyond which results and parameters are left where they are.
_LONG = 16_384
#: Characters of an error.
_MOST_OF_ERROR = 200
_EXPIRED = "its report has expired"

#: The state of a task of which the ledger has nothing any more.
GONE = "gone"
_OPEN = ("accepted", "running", "waiting", "cancelling")
#: Why a task waits of which its own code asked: there may be several, each with words of its own.
_OWN_REASONS = ("person", "signal", "time")


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)


class TaskSums(_Part):
    """Sums over `tasks` tasks. `cost_usd` leaves out unpriced ones; `unpriced` says that there are some.

    `run_ms` adds up the times of tasks that ran side by side or waited for each other; `saved_ms` is computing time
    that `recalled` remembered answers spared. `estimated_tokens` are those of both that no provider counted.
    """

    tasks: int
    states: dict[str, int]
    run_ms: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced: bool
    recalled: int
    saved_ms: int
    estimated_tokens: int = 0


class TracedStep(_Part):
    """A step in the journal of a task, with the bytes of its result.

    *at_ms* is when it was done, ms since 1970, left out where the ledger did not note that.
    """

    name: str
    bytes: int
    at_ms: int | None = Field(default=None, exclude_if=lambda at_ms: at_ms is None)


class TracedWait(_Part):
    """An open wait of a task, in words as `sentence`; `id` and `question` are those of an answer, else None."""

    kind: Kind
    id: str | None
    question: str | None
    sentence: str
    until: datetime


class AlikeTasks(_Part):
    """Children with one name that are not shown one by one; `sums` has them, `below` the tasks below them."""

    agent_id: str
    task: str
    sums: TaskSums
    below: TaskSums


class TracedTask(_Part):
    """A task of the tree, in its newest generation.

    `state` is `accepted`, `running`, `waiting` (for its next run), `cancelling`, the status of its report, or `gone`
    when the ledger has nothing of it. Times are None where they are not known; of an open task they run up to now.
    `usage` and `run_ms` are those of the last run. `more_steps` and `more_children` are counted and not read, `alike`
    are children that were read and are not in `children`. `waits_for` is why an accepted or waiting one waits; `waits`
    are the persons, signals and times that it waits for, of which `more_waits` are not shown. `worker_id` is the worker
    that runs it; `silent_ms` is the time since its lease ended, None while it is heard. Of its runs `crashes` ended
    without a word, the last of them with `lost_worker_id`, which is silent since `lost_ms`.
    """

    task_id: str
    agent_id: str = ""
    task: str = ""
    state: str = GONE
    generation: int = 1
    attempts: int = 0
    queued_ms: int | None = None
    run_ms: int | None = None
    began_ms: int | None = None
    ended_ms: int | None = None
    memory: MemoryOutcome | None = None
    saved_ms: int | None = None
    usage: Usage = Usage()
    error: str | None = None
    waits_for: RunWait | None = None
    waits: tuple[TracedWait, ...] = ()
    more_waits: int = 0
    worker_id: str | None = None
    silent_ms: int | None = None
    crashes: int = 0
    lost_worker_id: str | None = None
    lost_ms: int | None = None
    steps: tuple[TracedStep, ...] = ()
    more_steps: int = 0
    children: tuple["TracedTask", ...] = ()
    alike: tuple[AlikeTasks, ...] = ()
    more_children: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it has no report yet."""
        return self.state in _OPEN


class Trace(_Part):
    """The tree below a task; `sums` is over all tasks that were read, of which `wall_ms` passed from first to last."""

    root: TracedTask
    sums: TaskSums
    wall_ms: int | None
    more_tasks: int


class TaskTree:
    """Reads trees of tasks; MemoryUnavailable after *deadline_s* for each round trip."""

    def __init__(
        self,
        client: Redis,
        *,
        deadline_s: float = 5.0,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s)
        self._waits = Waits(client, deadline_s=deadline_s)
        self._entries = Entries(client, self._batch)
        self._now_ms = now_ms

    async def read(self, task_id: str) -> Trace | None:
        """Return the tree of *task_id*, None when the ledger does not know it.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        now_ms = self._now_ms()
        task_id = await self._entries.name(task_id)
        tasks: dict[str, TracedTask] = {}
        below: dict[str, list[str]] = {}
        names = {task_id: ""}
        level = [task_id]
        for depth in range(MOST_LEVELS):
            left = MOST_TASKS - len(names) if depth + 1 < MOST_LEVELS else 0
            most = min(left, max(_SOME_CHILDREN, 2 * left // max(1, len(level))))
            for first in range(0, len(level), _BATCH):
                page = level[first : first + _BATCH]
                replies = await self._ask(page, most)
                for one, reply in zip(page, replies, strict=True):
                    task, children, count = _task_in(one, names[one], reply, now_ms)
                    # A task has one parent: a list that says otherwise makes no circle.
                    fresh = [
                        (child, name) for child, name in children if child not in names
                    ][:left]
                    names |= dict(fresh)
                    left -= len(fresh)
                    below[one] = [child for child, _ in fresh]
                    tasks[one] = task.model_copy(
                        update={"more_children": count - len(fresh)}
                    )
                tasks |= await self._with_waits([tasks[one] for one in page])
            level = [
                _named(child, names[child]) for one in level for child in below[one]
            ]
        if tasks[task_id].state == GONE:
            return None
        return await asyncio.to_thread(_assemble, task_id, tasks, below, now_ms)

    async def _with_waits(self, page: Sequence[TracedTask]) -> dict[str, TracedTask]:
        """Return those of *page* that wait for a person, a signal or a time, with their waits."""
        waiting: dict[str, TracedTask] = {
            TaskName(one.agent_id, one.task_id) if one.agent_id else one.task_id: one
            for one in page
            if one.state == "waiting"
            and (one.waits_for is None or one.waits_for.kind in _OWN_REASONS)
        }
        found = await self._waits.of_many(list(waiting)) if waiting else []
        return {
            task_id: task.model_copy(
                update={
                    "waits": tuple(
                        _show(task_id, one) for one in open_ones[:MOST_WAITS]
                    ),
                    "more_waits": max(0, len(open_ones) - MOST_WAITS),
                }
            )
            for (task_id, task), open_ones in zip(waiting.items(), found, strict=True)
            if open_ones
        }

    async def _ask(
        self, task_ids: Sequence[str], most_children: int
    ) -> list[Sequence[Any]]:
        """Return what the script TRACE says of each of *task_ids*."""
        entries = await self._entries.find_many(task_ids)
        limits = most_children, MOST_STEPS, _LONG
        asked = [
            entry.ask(scripts.TRACE, *limits, more=entry.children)
            for entry in entries
            if entry is not None
        ]
        found = iter(await self._batch.run(asked))
        return [(0,) if entry is None else next(found) for entry in entries]


def _show(task_id: str, state: WaitState) -> TracedWait:
    wait = state.wait
    is_question = wait.kind == "ask"
    return TracedWait(
        kind=wait.kind,
        id=wait_id(task_id, wait.slot) if is_question else None,
        question=wait.text if is_question else None,
        sentence=to_run_wait(task_id, wait).sentence,
        until=wait.until,
    )


def _named(task_id: str, name: str) -> str:
    """Return *task_id* with the agent in *name*, "Agent.task": a worker may have written any text there."""
    agent_id = name.partition(".")[0]
    return TaskName(agent_id, task_id) if is_name(agent_id) else task_id


def _task_in(
    task_id: str, name: str, reply: Sequence[Any], now_ms: int
) -> tuple[TracedTask, list[tuple[str, str]], int]:
    """Return the task that *reply* of the script TRACE describes, its children with their names, and their count."""
    agent_id, _, task = name.partition(".")
    known: dict[str, Any] = {"task_id": task_id, "agent_id": agent_id, "task": task}
    generation = reply[0]
    if not generation:
        return TracedTask(**known), [], 0
    state, attempts, started, cancel, assignment, body, waits_for = reply[1:8]
    worker, leased_until, crashes, lost, clock_ms = reply[8:13]
    count, members, steps, heads, *end = reply[13:]
    known |= {"generation": generation, "attempts": number_in(attempts) or 0}
    known["state"] = "unknown" if state is None else state.decode(errors="replace")
    known["steps"] = tuple(
        _step_in(head.decode(errors="replace"), size)
        for head, size in zip(heads[::2], heads[1::2], strict=True)
    )
    known["more_steps"] = max(0, steps - len(known["steps"]))
    known["crashes"] = number_in(crashes) or 0
    if (lost_worker := read_lost(lost)) is not None:
        known["lost_worker_id"] = lost_worker.worker_id
        known["lost_ms"] = _in_ms(lost_worker.silent_since)
    if body is not None:
        known |= _ended(body)
    elif end and end[0] is not None:
        known["ended_ms"] = number_in(end[0])
        error = (end[1] or b"").decode(errors="replace")
        known["error"] = f"{error}; {_EXPIRED}" if error else _EXPIRED
    else:
        is_running = known["state"] == "running"
        known |= _open(
            assignment,
            number_in(started),
            now_ms,
            is_running=is_running,
            is_accepted=known["state"] == "accepted",
            kept=read_wait(waits_for),
        )
        if is_running and worker is not None:
            known["worker_id"] = worker.decode(errors="replace")
            silent_ms = clock_ms - (number_in(leased_until) or clock_ms)
            known["silent_ms"] = silent_ms if silent_ms > 0 else None
            known["waits_for"] = None
        if cancel is not None and known["state"] in _OPEN:
            known["state"] = "cancelling"
    children = [member.decode(errors="replace").partition(" ") for member in members]
    return (
        TracedTask(**known),
        [(child, called) for child, _, called in children],
        count,
    )


def _step_in(spelled: str, size: int) -> TracedStep:
    at_ms, head = read_head(spelled)
    return TracedStep(name=head.partition(" ")[2], bytes=size, at_ms=at_ms)


def _ended(body: bytes) -> dict[str, Any]:
    """Return the fields of a task whose report is *body*."""
    try:
        report = CompletionReport.model_validate(from_json(body))
    except ValueError:
        return {"error": "its report cannot be read"}
    ended_ms = _in_ms(report.finished_at)
    error = report.error
    why = (
        None
        if error is None
        else f"{error.type}: {error.message}".strip().partition("\n")[0][
            :_MOST_OF_ERROR
        ]
    )
    return {
        "agent_id": report.agent_id,
        "task": report.task_name,
        "state": report.status,
        "attempts": report.attempt,
        "queued_ms": report.queued_ms,
        "run_ms": report.run_ms,
        "began_ms": ended_ms - report.run_ms - report.queued_ms,
        "ended_ms": ended_ms,
        "memory": report.memory.outcome,
        "saved_ms": report.memory.saved_ms,
        "usage": report.usage,
        "error": why,
    }


def _open(
    assignment: bytes | None,
    started_ms: int | None,
    now_ms: int,
    *,
    is_running: bool,
    is_accepted: bool,
    kept: RunWait | None,
) -> dict[str, Any]:
    """Return the fields of a task without a report, and why it waits where it does; that was *kept* of it."""
    fields: dict[str, Any] = {"began_ms": started_ms, "waits_for": kept}
    if is_running and started_ms is not None:
        fields["run_ms"] = max(0, now_ms - started_ms)
    try:
        read = TaskAssignment.model_validate(from_json(assignment or b""))
    except ValueError:
        return fields
    began_ms = _in_ms(read.created_at)
    fields |= {"agent_id": read.agent_id, "task": read.task.name, "began_ms": began_ms}
    if started_ms is None or is_running:
        fields["queued_ms"] = max(0, (started_ms or now_ms) - began_ms)
    if is_accepted:
        fields["waits_for"] = explain_wait(
            kept,
            agent_id=read.agent_id,
            sent_at=read.created_at,
            begins_at=read.waits_from,
            now=datetime.fromtimestamp(now_ms / 1000, UTC),
        )
    return fields


def _in_ms(moment: datetime) -> int:
    # Other programs may leave the zone out; the wire is in UTC.
    return int(
        (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
    )


def _assemble(
    root_id: str, tasks: dict[str, TracedTask], below: dict[str, list[str]], now_ms: int
) -> Trace:
    """Return the tree of *tasks*, which are in the order of their levels, with tasks that are alike folded."""
    whole: dict[str, list[TracedTask]] = {}
    for task_id in reversed(tasks):
        children = [tasks[child] for child in below[task_id]]
        shown, alike = fold_alike(children, whole)
        whole[task_id] = [
            tasks[task_id],
            *(one for child in children for one in whole[child.task_id]),
        ]
        tasks[task_id] = tasks[task_id].model_copy(
            update={"children": shown, "alike": alike}
        )
    every = whole[root_id]
    began = [one.began_ms for one in every if one.began_ms is not None]
    ended = [
        one.ended_ms or now_ms
        for one in every
        if one.is_open or one.ended_ms is not None
    ]
    return Trace(
        root=tasks[root_id],
        sums=sum_tasks(every),
        wall_ms=max(0, max(ended) - min(began)) if began and ended else None,
        more_tasks=sum(one.more_children for one in every),
    )


def fold_alike(
    children: Sequence[TracedTask], whole: dict[str, list[TracedTask]]
) -> tuple[tuple[TracedTask, ...], tuple[AlikeTasks, ...]]:
    """Return the children to be shown, and the others summed up by name; failures are shown first, then open ones.

    *whole* has for each child itself and all below it.
    """
    by_name: dict[tuple[str, str], list[TracedTask]] = {}
    for child in children:
        by_name.setdefault((child.agent_id, child.task), []).append(child)
    folded = set[str]()
    alike = []
    for (agent_id, task), group in by_name.items():
        rest = sorted(
            group,
            key=lambda one: 2 if one.state in ("completed", GONE) else one.is_open,
        )[MOST_ALIKE:]
        folded |= {one.task_id for one in rest}
        if rest:
            below = (one for child in rest for one in whole[child.task_id][1:])
            alike.append(
                AlikeTasks(
                    agent_id=agent_id,
                    task=task,
                    sums=sum_tasks(rest),
                    below=sum_tasks(below),
                )
            )
    return tuple(one for one in children if one.task_id not in folded), tuple(alike)


def sum_tasks(tasks: Iterable[TracedTask]) -> TaskSums:
    """Return the sums over *tasks*, without the tasks below them."""
    found = list(tasks)
    return TaskSums(
        tasks=len(found),
        states=dict(Counter(one.state for one in found)),
        run_ms=sum(one.run_ms or 0 for one in found),
        input_tokens=sum(one.usage.input_tokens for one in found),
        output_tokens=sum(one.usage.output_tokens for one in found),
        cost_usd=float(sum(Decimal(str(one.usage.cost_usd or 0)) for one in found)),
        unpriced=any(one.usage.unpriced for one in found),
        recalled=sum(one.memory in ("hit", "near") for one in found),
        saved_ms=sum(one.saved_ms or 0 for one in found),
        estimated_tokens=sum(one.usage.estimated_tokens for one in found),
    )
