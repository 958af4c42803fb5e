"""The list of runs: filters, errors in the row, pages, and actions on several at once."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tasklore.contracts.faults import fault_of
from tasklore.supervisor.http.console.pages import (
    Action,
    Page,
    Said,
    Shown,
    Visit,
    address,
)
from tasklore.supervisor.operations.agents import list_agents
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


async def show(visit: Visit) -> Shown:
    """Return a page of runs; a filter that cannot be used is shown with its fault."""
    wanted = read_filter(visit.query)
    after = visit.query.get("after", "")
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
    return Shown(
        values={
            "tasks": found.tasks if found is not None else (),
            "after": found.after if found is not None else None,
            "wanted": wanted,
            "is_first": not after,
            "fault": fault,
            "agents": agents,
            "states": (OPEN, *STATES),
            "here": address("runs", **wanted),
            "may_cancel": visit.may(cancel),
        }
    )


async def cancel_runs(visit: Visit) -> Said | Shown:
    """Cancel the runs that were chosen, once they were shown and it was said so."""
    chosen = visit.many("task_id")[:MOST_AT_ONCE]
    back = _way_back(visit)
    if not chosen:
        return Said(to=back, text="No run was chosen.", tone="bad")
    if visit.one("sure") != "yes":
        return Shown(
            title="Cancel runs",
            template="confirm.html",
            values={
                "question": f"Cancel {len(chosen)} run{'s' if len(chosen) > 1 else ''}?",
                "explained": "One that waits never starts, and one that runs is asked to stop. "
                "What has ended stays as it is.",
                "to": address("runs/cancel"),
                "chosen": chosen,
                "back": back,
                "verb": "Cancel them" if len(chosen) > 1 else "Cancel it",
                "kept": {"back": back},
            },
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
    return Said(
        to=back, text=f"{said}.", tone="good" if "cancelled" in outcomes else "bad"
    )


def _way_back(visit: Visit) -> str:
    """Return the page of the console from which a form came, never another address."""
    back = visit.one("back")
    return back if back.startswith("/console/") else address("runs")


PAGE = Page(
    path="runs",
    title="Runs",
    operation=list_tasks,
    show=show,
    template="runs.html",
    group="Work",
    actions=(Action(path="runs/cancel", operation=cancel, run=cancel_runs),),
)
