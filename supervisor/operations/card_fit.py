"""Checks a task against the card of its agent as far as names tell; the agent reads values, in any spelling."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from tasklore.contracts.faults import nearest
from tasklore.contracts.messages import TaskCard
from tasklore.supervisor.catalogue import Catalogue, Offer
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found, unusable

#: Names and faults that are listed, and characters of a name.
_MOST_NAMES = 20
_LONGEST_NAME = 64


def demand_offer(catalogue: Catalogue, agent_id: str, task_name: str) -> Offer:
    """Return the offer of *agent_id* called *task_name*.

    Raises:
        Refused: 404, there is no such agent, or it has no such task.
    """
    if (offer := catalogue.find(agent_id, task_name)) is not None:
        return offer
    card = catalogue.cards.get(agent_id)
    if card is None:
        raise no_such_agent(agent_id, catalogue)
    names = [task.name for task in card.tasks]
    raise not_found(
        f"{agent_id!r} has no task {task_name!r}; it has {_list(names)}{nearest(task_name, names)}"
    )


def demand_task(catalogue: Catalogue, agent_id: str | None, task_name: str) -> Offer:
    """Return the offer called *task_name* of *agent_id*, of the one agent that has it where none is named.

    Raises:
        Refused: 404, nobody has it; 422, several agents have it, and none is named.
    """
    if agent_id is not None:
        return demand_offer(catalogue, agent_id, task_name)
    able = [one for one in catalogue.cards if catalogue.find(one, task_name)]
    if not able:
        raise not_found(
            f"no agent has a task {task_name!r}; GET /v1/agents lists what they have"
        )
    if len(able) > 1:
        told = f"{_list(able)} have a task {task_name!r}; name one of them"
        raise unusable([Fault(where="agent_id", message=told)])
    return demand_offer(catalogue, able[0], task_name)


def no_such_agent(agent_id: str, catalogue: Catalogue) -> Refused:
    """Return the refusal of an unknown agent, with the name that is most alike."""
    near = nearest(agent_id, catalogue.cards)
    return not_found(f"there is no agent {agent_id!r}; GET /v1/agents lists them{near}")


def demand_fit(
    card: TaskCard, parameters: Mapping[str, Any], place: str = "parameters."
) -> None:
    """Return when every required parameter is there and every one that is there is known; *place* is before each.

    Raises:
        Refused: 422, with one fault a parameter.
    """
    # Cut before it is made: each unknown name is compared with all that are known.
    if faults := list(islice(_find_faults(card, parameters, place), _MOST_NAMES)):
        raise unusable(faults)


def _find_faults(
    card: TaskCard, parameters: Mapping[str, Any], place: str
) -> Iterator[Fault]:
    spellings: dict[str, str] = {}
    properties = card.parameters.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        aliases = schema.get("aliases") if isinstance(schema, dict) else None
        spellings |= (
            {str(alias): name for alias in aliases} if isinstance(aliases, list) else {}
        )
        spellings[name] = name
    if card.parameters.get("additionalProperties") is False:
        takes = f"{card.name} takes {_list(spellings)}"
        for name in parameters:
            if name not in spellings:
                message = (
                    f"is not known; {takes}{nearest(name[:_LONGEST_NAME], spellings)}"
                )
                yield Fault(where=f"{place}{name[:_LONGEST_NAME]}", message=message)
    if isinstance(required := card.parameters.get("required"), list):
        given = {spellings.get(name, name) for name in parameters}
        yield from (
            Fault(where=f"{place}{name}", message="is needed")
            for name in required
            if name not in given
        )


def _list(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return (", ".join(found[:_MOST_NAMES]) or "nothing") + more
