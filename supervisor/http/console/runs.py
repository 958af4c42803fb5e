"""The list of runs: filters, errors in the row, pages, and actions on several at once."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tasklore.contracts.faults import fault_of
from tasklore.supervisor.http.console.dead_letters import preview_redrive
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
    ask_first,
)
from tasklore.supervisor.operations.agents import list_agents
from tasklore.supervisor.operations.dead_letters import (
    LettersToRedrive,
    redrive_dead_letters,
    show_dead_letter,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.tasks import STATES, TaskQuery, cancel, list_tasks

#: The fields of the filter, in their order.
FILTERS = (
    "agent",
    "state",
    "error",
    "user",
    "tenant",
    "created_after",
    "created_before",
    "ended_after",
    "parent",
)
#: What can be chosen as a state beside those of one task.
OPEN = "open"
#: Tasks to which one form does something.
MOST_AT_ONCE = 200
#: Those whose dead letters are looked for at once.
MOST_RETRIED = 50


def read_filter(given: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the filter that say something."""
    return {
        name: given[name].strip() for name in FILTERS if given.get(name, "").strip()
    }


def make_query(given: Mapping[str, str], **more: Any) -> TaskQuery:
    """Return the query of the filter in *given*.

    Raises:
        InvalidInput: a field cannot be used; names it.
    """
    fields: dict[str, Any] = read_filter(given)
    if fields.get("state") == OPEN:
        del fields["state"]
        fields["open"] = True
    return TaskQuery.model_validate({**fields, **more})


async def show(visit: Visit) -> RenderedPage:
    """Return a page of runs; a filter that cannot be used is shown with its fault."""
    wanted = read_filter(visit.query)
    after = visit.after
    fault = ""
    found = None
    try:
        query = make_query(visit.query, **({"after": after} if after else {}))
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False, include_input=False)[0])
    else:
        found = await visit.call(list_tasks, query)
    agents: tuple[str, ...] = ()
    if visit.may(list_agents):
        listed = await visit.call(list_agents)
        agents = tuple(one.agent_id for one in listed.agents)
    return RenderedPage(
        is_unusable=bool(fault),
        values={
            "tasks": found.tasks if found is not None else (),
            "wanted": wanted,
            "paging": visit.paging("runs", found.after if found else None, **wanted),
            "fault": fault,
            "agents": agents,
            "states": (OPEN, *STATES),
            "here": address("runs", **wanted),
            "may_cancel": visit.may(cancel),
            "may_retry": visit.may(redrive_dead_letters),
        },
    )


async def cancel_runs(visit: Visit) -> Notice | RenderedPage:
    """Cancel the runs that were chosen, once they were shown and it was said so."""
    chosen = visit.many("task_id")[:MOST_AT_ONCE]
    back = visit.back("runs")
    if not chosen:
        return Notice(to=back, text="No run was chosen.", tone="bad")
    if visit.one("sure") != "yes":
        return ask_first(
            question=f"Cancel {len(chosen)} run{'s' if len(chosen) > 1 else ''}?",
            explained="Waiting runs are cancelled, running ones are asked to stop, "
            "finished ones are unchanged.",
            concerns=len(chosen),
            lines=chosen,
            to="runs/cancel",
            verb="Cancel them" if len(chosen) > 1 else "Cancel it",
            kept=[("task_id", one) for one in chosen],
            back=back,
            is_grave=True,
        )
    outcomes: dict[str, int] = {}
    for task_id in chosen:
        outcome: str
        try:
            outcome = (await visit.call(cancel, task_id)).outcome
        except Refused as refused:
            if refused.problem.status >= 500:
                raise
            outcome = "unknown"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    words = {
        "cancelled": "cancelled",
        "too_late": "had ended before",
        "noted": "noted",
        "unknown": "not found",
    }
    said = ", ".join(f"{count} {words[name]}" for name, count in outcomes.items())
    return Notice(
        to=back, text=f"{said}.", tone="good" if "cancelled" in outcomes else "bad"
    )


async def retry_runs(visit: Visit) -> Notice | RenderedPage:
    """Ask whether to send the dead letters of the chosen runs again, for those that have one."""
    chosen = visit.many("task_id")[:MOST_RETRIED]
    back = visit.back("runs")
    found = await asyncio.gather(*(_find_letter(visit, one) for one in chosen))
    sequences = tuple(one for one in found if one is not None)
    if not sequences:
        said = "None of these runs has a dead letter, which is what is sent again."
        return Notice(
            to=back, text=said if chosen else "No run was chosen.", tone="bad"
        )
    return await preview_redrive(visit, LettersToRedrive(sequences=sequences), back)


async def _find_letter(visit: Visit, task_id: str) -> int | None:
    try:
        return (await visit.call(show_dead_letter, task_id)).sequence
    except Refused:
        return None


PAGE = ConsolePage(
    path="runs",
    title="Runs",
    operation=list_tasks,
    show=show,
    template="runs.html",
    group="Work",
    actions=(
        FormAction(path="runs/cancel", operation=cancel, run=cancel_runs),
        FormAction(path="runs/retry", operation=redrive_dead_letters, run=retry_runs),
    ),
)
