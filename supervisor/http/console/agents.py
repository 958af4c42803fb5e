"""Agents and their workers: who is alive, what waits, how long it takes, and the form that starts a task."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable, Unreachable
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import TaskCard
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
)
from tasklore.supervisor.http.console.parameter_forms import (
    PREFIX,
    ParameterField,
    make_fields,
    read_parameters,
    read_typed,
)
from tasklore.supervisor.operations.agents import (
    AgentLoad,
    AgentView,
    list_agents,
    list_loads,
    show_agent,
)
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found
from tasklore.supervisor.operations.schedules import add_schedule
from tasklore.supervisor.operations.table import Unfinished
from tasklore.supervisor.operations.tasks import Send, send

#: Agents of a page.
_PAGE = 50
#: Fields of the form beside the parameters.
_OPTIONS = ("user", "tenant", "priority", "memory", "at", "after")


async def show(visit: Visit) -> RenderedPage:
    """Return a page of agents, each with its load."""
    after = visit.after or None
    listed, loads = await asyncio.gather(
        visit.call(list_agents, limit=_PAGE, after=after),
        read_loads(visit, after=after),
    )
    return RenderedPage(
        values={
            "agents": listed.agents,
            "paging": visit.paging("agents", listed.after),
            "loads": loads,
            "now_ms": time.time_ns() // 1_000_000,
        }
    )


async def read_loads(
    visit: Visit, *, after: str | None = None, agent: str | None = None
) -> Mapping[str, AgentLoad] | None:
    """Return the loads of agents by id; None while the ledger does not answer, as cards are shown without it."""
    try:
        found = await visit.call(list_loads, limit=_PAGE, after=after, agent=agent)
    except (MemoryUnavailable, Unreachable):
        return None
    return {one.agent_id: one for one in found.agents}


async def show_one(visit: Visit) -> RenderedPage:
    """Return the card of an agent, with its workers and its tasks.

    Raises:
        Refused: 404, there is none.
    """
    agent = await visit.call(show_agent, visit.path["agent_id"])
    loads = await read_loads(visit, agent=agent.agent_id)
    return RenderedPage(
        title=f"{agent.agent_id} · agent",
        values={
            "agent": agent,
            "load": None if loads is None else loads.get(agent.agent_id),
            "now_ms": time.time_ns() // 1_000_000,
            "may_send": visit.may(send),
            "here": address(f"agents/{agent.agent_id}"),
        },
    )


async def show_task_form(visit: Visit) -> RenderedPage:
    """Return the form that starts a task.

    Raises:
        Refused: 404, there is no such agent or task.
    """
    agent = await visit.call(show_agent, visit.path["agent_id"])
    card = demand_card(agent, visit.path["task"])
    typed = {
        name.removeprefix(PREFIX): value
        for name, value in visit.query.items()
        if name.startswith(PREFIX)
    }
    return _make_form(visit, agent, card, make_fields(card.parameters, typed))


def demand_card(agent: AgentView, name: str) -> TaskCard:
    """Return the card of the task *name* of *agent*.

    Raises:
        Refused: 404, it has none.
    """
    for card in agent.tasks:
        if card.name == name:
            return card
    known = ", ".join(card.name for card in agent.tasks)
    raise not_found(f"{agent.agent_id} has no task {name!r}; it has {known}")


def _make_form(
    visit: Visit,
    agent: AgentView,
    card: TaskCard,
    fields: Sequence[ParameterField],
    *,
    faults: Sequence[str] = (),
) -> RenderedPage:
    return RenderedPage(
        title=f"Start {agent.agent_id}.{card.name}",
        template="task_form.html",
        values={
            "agent": agent,
            "card": card,
            "fields": fields,
            "faults": faults,
            "options": {name: visit.one(name) for name in _OPTIONS},
            "may_send": visit.may(send),
            "may_schedule": visit.may(add_schedule),
            # The same form sent twice starts one task.
            "key": new_id(time.time_ns() // 1_000_000),
        },
    )


async def start(visit: Visit) -> Notice | RenderedPage:
    """Start a task with the parameters of the form; where they do not fit, it is shown again with its faults."""
    agent = await visit.call(show_agent, visit.one("agent_id"))
    card = demand_card(agent, visit.one("task"))
    key = visit.one("key")
    parameters, fields = read_parameters(
        make_fields(card.parameters, read_typed(visit.fields))
    )
    faults: list[str] = []
    if not any(one.fault for one in fields):
        try:
            new = Send.model_validate(
                {
                    "agent_id": agent.agent_id,
                    "task": card.name,
                    "parameters": parameters,
                    "wait_seconds": 0,
                    **read_options(visit, _OPTIONS),
                }
            )
            made = await visit.call(send, new, idempotency_key=key or None)
        except (ValidationError, InvalidInput, Refused) as error:
            faults, fields = read_faults(error, fields)
        else:
            view = made.view if isinstance(made, Unfinished) else made
            return Notice(to=address(f"runs/{view.task_id}"), text="It is started.")
    # What is sent next says something else, and is another task.
    return _make_form(
        visit, agent, card, fields, faults=faults or ["Nothing was started."]
    )


def read_options(visit: Visit, names: Sequence[str]) -> dict[str, Any]:
    """Return those of the fields *names* that say something."""
    return {name: visit.one(name) for name in names if visit.one(name)}


def read_faults(
    error: ValidationError | InvalidInput | Refused, fields: Sequence[ParameterField]
) -> tuple[list[str], tuple[ParameterField, ...]]:
    """Return the faults of the form as a whole in *error*, and *fields* with the fault of each.

    Raises:
        Refused: the fault is not in the form.
    """
    if isinstance(error, ValidationError):
        wrong = error.errors(include_url=False, include_input=False)
        return [fault_of(one) for one in wrong], tuple(fields)
    if isinstance(error, InvalidInput):
        return [str(error)], tuple(fields)
    if error.problem.status not in (404, 409, 413, 422, 429):
        raise error
    by_name = {
        one.where.removeprefix("parameters."): one.message
        for one in error.problem.problems
        if one.where.startswith("parameters.")
    }
    known = {one.name for one in fields}
    rest = [
        _spell_fault(one)
        for one in error.problem.problems
        if one.where.removeprefix("parameters.") not in known
    ]
    return rest or [error.problem.detail], tuple(
        replace(one, fault=by_name.get(one.name, "")) for one in fields
    )


def _spell_fault(fault: Fault) -> str:
    return f"{fault.where}: {fault.message}"


PAGE = ConsolePage(
    path="agents",
    title="Agents",
    operation=list_agents,
    show=show,
    template="agents.html",
    group="System",
)
AGENT = ConsolePage(
    path="agents/{agent_id}",
    title="Agent",
    operation=show_agent,
    show=show_one,
    template="agent.html",
)
TASK = ConsolePage(
    path="agents/{agent_id}/{task}",
    title="Start a task",
    operation=send,
    show=show_task_form,
    template="task_form.html",
    actions=(FormAction(path="agents/start", operation=send, run=start),),
)
