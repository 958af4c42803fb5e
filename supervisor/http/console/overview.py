"""The first page: open tasks, their waits, failures, models that are away, spending, and questions to persons."""

import asyncio
import functools
from datetime import UTC, datetime

from tasklore.contracts.errors import NotPermitted
from tasklore.supervisor.approvals.questions import ApprovalQuestion
from tasklore.supervisor.http.console.money import UNITS
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    RenderedPage,
    Visit,
    address,
)
from tasklore.supervisor.operations.agents import list_outages
from tasklore.supervisor.operations.approvals import list_approvals
from tasklore.supervisor.operations.budget import show_budget
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.tasks import TaskCounts, WaitCount, count_tasks

#: Questions and accounts that are shown; their own pages have all.
_MOST_QUESTIONS = 5
_MOST_ACCOUNTS = 6


async def show(visit: Visit) -> RenderedPage:
    """Return how everything stands, as far as this person may see it."""
    counts, budget, questions, models = await asyncio.gather(
        visit.call(count_tasks),
        _read_budget(visit),
        _read_questions(visit),
        visit.call(list_outages),
    )
    return RenderedPage(
        values={
            "counts": counts,
            "now": datetime.now(UTC),
            "tiles": _make_tiles(counts),
            "page_of": functools.partial(_page_of, visit),
            "budget": budget,
            "units": UNITS,
            "questions": questions,
            "models": models,
        }
    )


def _make_tiles(counts: TaskCounts) -> tuple[tuple[str, int], ...]:
    """Return how many open tasks are in each state, of those that were looked at."""
    words = ("running", "waiting", "accepted", "cancelling")
    return tuple(
        (state, counts.states.get(state, 0))
        for state in words
        if state != "cancelling" or state in counts.states
    )


def _page_of(visit: Visit, wait: WaitCount) -> str:
    """Return where those that wait so are shown one by one."""
    if wait.kind == "person" and visit.may(list_approvals):
        return address("approvals")
    if wait.kind == "turn":
        return address("runs", agent=wait.name, state="accepted")
    # What has not begun once is queued, although it waits.
    is_waiting = wait.kind not in ("limit", "bound")
    return address("runs", state="waiting" if is_waiting else "open")


async def _read_budget(visit: Visit) -> object:
    """Return spending and limits; None for a key of one user or tenant: they are of the whole deployment."""
    if not visit.may(show_budget) or visit.is_bound:
        return None
    try:
        return await visit.call(show_budget, limit=_MOST_ACCOUNTS)
    except (NotPermitted, Refused):
        return None


async def _read_questions(visit: Visit) -> tuple[ApprovalQuestion, ...]:
    if not visit.may(list_approvals):
        return ()
    found = await visit.call(list_approvals, limit=_MOST_QUESTIONS)
    return found.approvals


PAGE = ConsolePage(
    path="",
    title="Overview",
    operation=count_tasks,
    show=show,
    template="overview.html",
    group="Work",
)
