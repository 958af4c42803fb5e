"""The models: the supervisor, which chooses among all agents, each agent, and each task of an agent with several."""

import difflib

from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.chat.forms import MODEL, refuse_field

#: Ids among which one like a mistyped one is looked for.
_MOST_COMPARED = 200


def list_models(catalogue: Catalogue) -> list[str]:
    """Return the id of each model: `tasklore`, `AGENT`, and `AGENT/TASK` of an agent with several tasks."""
    tasks: dict[str, list[str]] = {}
    for offer in catalogue.tasks():
        tasks.setdefault(offer.agent.agent_id, []).append(offer.task.name)
    found = [MODEL]
    for agent_id, names in tasks.items():
        if agent_id != MODEL:
            found.append(agent_id)
        if len(names) > 1 or agent_id == MODEL:
            found += [f"{agent_id}/{name}" for name in names]
    return found


def demand_model(catalogue: Catalogue, model: str) -> Catalogue | None:
    """Return the part of *catalogue* that *model* is, None where it is all of it.

    Raises:
        Refused: 404, there is no such model.
    """
    if model == MODEL:
        return None
    agent_id, slash, task_name = model.partition("/")
    found = catalogue.narrow(agent_id, task_name if slash else None)
    if found is not None:
        return found
    near = _find_near(model, list_models(catalogue))
    cure = f"did you mean {near!r}? " if near is not None else ""
    raise refuse_field(
        404,
        "model_not_found",
        "model",
        f"there is no model {model!r}; {cure}use {MODEL!r}, or another one that GET /v1/models lists",
    )


def _find_near(model: str, known: list[str]) -> str | None:
    """Return the one of *known* that was probably meant, None where none is like it."""
    by_case = {name.lower(): name for name in known}
    if (same := by_case.get(model.lower())) is not None:
        return same
    own = [name for name in known if name.split("/")[0] == model.split("/")[0]]
    close = difflib.get_close_matches(model, (own or known)[:_MOST_COMPARED], n=1)
    return next(iter(close or own), None)
