"""`tasklore tasks`: the list of tasks, of all agents or by filters."""

import sys
from datetime import UTC, datetime
from typing import NamedTuple

from tasklore.commands.places import open_redis
from tasklore.commands.render.columns import Column, print_records
from tasklore.commands.render.durations import parse_when
from tasklore.commands.render.screen import patience, print_json, printable
from tasklore.commands.render.task_states import RECALLED
from tasklore.commands.render.words import age, duration, one_line
from tasklore.contracts.identifiers import checked_name, user_token
from tasklore.memory.ledger.run_list import (
    MOST_OF_PAGE,
    ListedTask,
    RunFilter,
    TaskList,
    TaskPage,
)

#: Seconds for one look: a person waits, and an answer late is better than none.
_LEDGER_S = 5.0
#: Characters of why a task waits; `--json` has all.
_WIDTH = 160


class TaskOptions(NamedTuple):
    """The options that filter; None is any."""

    agent: str | None = None
    state: str | None = None
    tenant: str | None = None
    user: str | None = None
    since: str | None = None
    until: str | None = None
    parent: str | None = None
    error: str | None = None

    def as_filter(self, now: datetime) -> RunFilter:
        """Return which runs are asked for.

        Raises:
            InvalidInput: an agent or a task is no name, or a time is none.
        """
        if self.agent is not None:
            checked_name(self.agent, "--agent")
        if self.parent is not None:
            checked_name(self.parent, "--parent")
        return RunFilter(
            agent_id=self.agent,
            state=self.state,
            tenant=self.tenant,
            user=user_token(self.user) if self.user else None,
            created_from_ms=_in_ms(self.since, now, "--since"),
            created_before_ms=_in_ms(self.until, now, "--until"),
            parent_id=self.parent,
            error=self.error,
        )


def _in_ms(text: str | None, now: datetime, option: str) -> int | None:
    if text is None:
        return None
    return int(parse_when(text, now, option).timestamp() * 1000)


_COLUMNS = (
    Column[ListedTask]("ID", lambda one: one.task_id, whole=True),
    Column[ListedTask]("TASK", lambda one: printable(f"{one.agent_id}.{one.task}")),
    Column[ListedTask]("STATE", lambda one: printable(one.state)),
    Column[ListedTask]("AGE", lambda one: age(one.began_ms), right=True),
    Column[ListedTask](
        "RAN", lambda one: duration(one.run_ms) if one.run_ms else "", right=True
    ),
    Column[ListedTask]("WHY", lambda one: _why(one), optional=True),
    Column[ListedTask](
        "TENANT", lambda one: printable(one.tenant or ""), optional=True
    ),
    Column[ListedTask]("USER", lambda one: printable(one.user or ""), optional=True),
)


async def print_tasks(
    options: TaskOptions, after: str, limit: int, *, as_json: bool
) -> None:
    """Print at most *limit* tasks that are as *options* say, behind the place *after*.

    Raises:
        InvalidInput: an option is none of its kind.
        Unreachable: no system runs here, or its Redis does not answer.
    """
    asked = options.as_filter(datetime.now(UTC))
    async with (
        open_redis("tasklore-tasks", _LEDGER_S) as redis,
        patience("reading the tasks"),
    ):
        page = await _read(
            TaskList(redis, deadline_s=_LEDGER_S), asked, after=after, limit=limit
        )
    if as_json:
        print_json(page.model_dump(mode="json"))
        return
    if page.tasks:
        print_records(_COLUMNS, page.tasks)
    else:
        print("There are no such tasks.")
    if page.after is not None:
        print(f"There may be more: go on with --after {page.after}", file=sys.stderr)


async def _read(
    tasks: TaskList, asked: RunFilter, *, after: str, limit: int
) -> TaskPage:
    """Return a page that is full, or the last one: of those that come back short several are one."""
    found: list[ListedTask] = []
    while True:
        left = min(MOST_OF_PAGE, limit - len(found))
        page = await tasks.read(asked, after=after, limit=left)
        found += page.tasks
        if page.after is None or len(found) >= limit:
            return TaskPage(tasks=tuple(found), after=page.after)
        after = page.after


def _why(task: ListedTask) -> str:
    """Return why a task waits and since when, or the class of the error that ended it, or that it was recalled."""
    waits = task.waits_for
    if waits is not None:
        since = age(waits.since.timestamp() * 1000)
        return one_line(f"for {since}: {waits.sentence}", _WIDTH)
    if task.error is not None:
        return printable(task.error)
    return RECALLED["hit"] if task.memory == "hit" else ""
