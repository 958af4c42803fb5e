"""Schedules: what begins by itself and when, paused, run at once, removed, and one added by the form of a task."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import ValidationError

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.http.console.agents import (
    demand_card,
    read_faults,
    read_options,
)
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
    ask_first,
)
from tasklore.supervisor.http.console.parameter_forms import (
    ParameterField,
    make_fields,
    read_parameters,
    read_typed,
)
from tasklore.supervisor.operations.agents import AgentView, list_agents, show_agent
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.schedules import (
    NewSchedule,
    ScheduleView,
    add_schedule,
    list_schedules,
    pause_schedule,
    remove_schedule,
    resume_schedule,
    run_schedule,
    show_schedule,
)

#: Schedules of a page.
_PAGE = 50
#: The fields by which times are said, each with an example.
TIMES = (
    ("every", "every so often", "6h"),
    ("cron", "by a cron expression", "0 7 * * 1-5"),
    ("at", "once, at a time", "2026-12-24T18:00"),
)
#: Fields of the form beside the parameters and the times.
_OPTIONS = ("time_zone", "missed", "id", "user")
_REMOVED = "The schedule and its next queued task are removed. Running tasks continue."
_DECLARED = (
    " It is defined in an agent's code and is recreated when the agent restarts; pause "
    "it instead."
)


async def show(visit: Visit) -> RenderedPage:
    """Return a page of schedules, each with its next five times."""
    user = visit.query.get("user", "").strip()
    found = await visit.call(
        list_schedules,
        user=user or None,
        after=visit.after,
        limit=_PAGE,
    )
    return RenderedPage(
        values={
            "schedules": found.schedules,
            "paging": visit.paging("schedules", found.after, user=user),
            "user": user,
            "here": address("schedules", user=user),
            "may_change": visit.may(pause_schedule),
            "may_add": visit.may(add_schedule) and visit.may(list_agents),
        }
    )


async def show_form(visit: Visit) -> RenderedPage:
    """Return the form that adds a schedule of a task, or first the list of tasks.

    Raises:
        Refused: 404, there is no such agent or task.
    """
    target = visit.query.get("task", "")
    if not target:
        listed = await visit.call(list_agents)
        tasks = [
            f"{agent.agent_id}.{card.name}"
            for agent in listed.agents
            for card in agent.tasks
        ]
        return RenderedPage(values={"tasks": tasks, "agent": None})
    agent_id, _, task = target.partition(".")
    agent = await visit.call(show_agent, agent_id)
    card = demand_card(agent, task)
    return _make_form(visit, agent, task, make_fields(card.parameters))


def _make_form(
    visit: Visit,
    agent: AgentView,
    task: str,
    fields: Sequence[ParameterField],
    *,
    faults: Sequence[str] = (),
    preview: ScheduleView | None = None,
) -> RenderedPage:
    return RenderedPage(
        title=f"Schedule {agent.agent_id}.{task}",
        values={
            "agent": agent,
            "card": demand_card(agent, task),
            "fields": fields,
            "faults": faults,
            "preview": preview,
            "times": TIMES,
            "kind": visit.one("kind") or "every",
            "when": visit.one("when"),
            "options": {name: visit.one(name) for name in _OPTIONS},
        },
    )


async def add(visit: Visit) -> Notice | RenderedPage:
    """Add a schedule, or only show its next times; where the form does not fit, it is shown again with its faults."""
    agent = await visit.call(show_agent, visit.one("agent_id"))
    task = visit.one("task")
    card = demand_card(agent, task)
    is_tried = visit.one("dry_run") == "yes"
    parameters, fields = read_parameters(
        make_fields(card.parameters, read_typed(visit.fields))
    )
    if any(one.fault for one in fields):
        return _make_form(visit, agent, task, fields, faults=["Nothing was kept."])
    kind = visit.one("kind")
    wanted: dict[str, Any] = {
        "agent_id": agent.agent_id,
        "task": task,
        "parameters": parameters,
        "dry_run": is_tried,
        **read_options(visit, _OPTIONS),
    }
    if kind in (name for name, _, _ in TIMES) and visit.one("when"):
        wanted[kind] = visit.one("when")
    try:
        kept = await visit.call(add_schedule, NewSchedule.model_validate(wanted))
    except (ValidationError, InvalidInput, Refused) as error:
        faults, fields = read_faults(error, fields)
        return _make_form(visit, agent, task, fields, faults=faults)
    if is_tried:
        return _make_form(visit, agent, task, fields, preview=kept)
    return Notice(to=address("schedules"), text=f"{kept.id} is kept: {kept.when}.")


def _change(operation: Any, words: str) -> Callable[[Visit], Awaitable[Notice]]:
    """Return the action that does *operation* to one schedule and says *words* of it."""

    async def change(visit: Visit) -> Notice:
        changed = await visit.call(operation, visit.one("schedule_id"))
        return Notice(to=visit.back("schedules"), text=f"{changed.id} {words}.")

    return change


async def run_now(visit: Visit) -> Notice:
    """Run a schedule once more, now."""
    schedule_id = visit.one("schedule_id")
    begun = await visit.call(run_schedule, schedule_id)
    return Notice(
        to=visit.back("schedules"), text=f"{schedule_id} runs now, as {begun.task_id}."
    )


async def remove(visit: Visit) -> Notice | RenderedPage:
    """Remove a schedule, once it was said so."""
    schedule_id = visit.one("schedule_id")
    back = visit.back("schedules")
    if visit.one("sure") != "yes":
        found = await visit.call(show_schedule, schedule_id)
        return ask_first(
            question=f"Remove {found.id}?",
            explained=f"{_REMOVED}{_DECLARED if found.declared else ''}",
            concerns=1,
            lines=[f"{found.target}, {found.when}"],
            to="schedules/remove",
            verb="Remove it",
            kept=[("schedule_id", found.id)],
            back=back,
            is_grave=True,
        )
    gone = await visit.call(remove_schedule, schedule_id)
    return Notice(to=back, text=f"{gone.id} is removed.")


PAGE = ConsolePage(
    path="schedules",
    title="Schedules",
    operation=list_schedules,
    show=show,
    template="schedule_list.html",
    group="System",
    actions=(
        FormAction(
            path="schedules/pause",
            operation=pause_schedule,
            run=_change(pause_schedule, "is paused"),
        ),
        FormAction(
            path="schedules/resume",
            operation=resume_schedule,
            run=_change(resume_schedule, "goes on"),
        ),
        FormAction(path="schedules/run", operation=run_schedule, run=run_now),
        FormAction(path="schedules/remove", operation=remove_schedule, run=remove),
    ),
)
NEW = ConsolePage(
    path="schedules/new",
    title="Add a schedule",
    operation=add_schedule,
    show=show_form,
    template="schedule_form.html",
    actions=(FormAction(path="schedules/add", operation=add_schedule, run=add),),
)
