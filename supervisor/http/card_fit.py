"""Whether a task fits the card of its agent, as far as names tell: the agent reads values, in any spelling."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from contracts.messages import TaskCard
from supervisor.catalogue import Catalogue, Offer
from supervisor.http.problems import Fault, Refused, not_found

#: Names that are told as those there are, and characters of one that is told.
_MOST_NAMES, _LONGEST_NAME = 20, 64


def demand_offer(catalogue: Catalogue, agent_id: str, task_name: str) -> Offer:
    """Return what *agent_id* offers under *task_name*.

    Raises:
        Refused: 404, there is no such agent, or it has no such task.
    """
    offer = catalogue.find(agent_id, task_name)
    if offer is not None:
        return offer
    card = catalogue.cards.get(agent_id)
    if card is None:
        raise no_such_agent(agent_id, catalogue)
    names = [task.name for task in card.tasks]
    raise not_found(f"{agent_id!r} has no task {task_name!r}; it has {_listed(names)}{_instead(task_name, names)}")


def no_such_agent(agent_id: str, catalogue: Catalogue) -> Refused:
    """Return the refusal of an agent that is not there, with the name that is most alike."""
    near = _instead(agent_id, catalogue.cards)
    return not_found(f"there is no agent {agent_id!r}; GET /v1/agents lists them{near}")


def demand_fit(card: TaskCard, parameters: Mapping[str, Any]) -> None:
    """Return when every needed parameter is there and every one that is there is known.

    Raises:
        Refused: 422, with one fault a parameter.
    """
    # What is told is all that is looked for: each unknown name is compared with all that are known.
    faults = list(islice(chain(_unknown(card, parameters), _missing(card, parameters)), _MOST_NAMES))
    if faults:
        told = "; ".join(f"{fault.where}: {fault.message}" for fault in faults)
        raise Refused(422, "unusable", told, faults=faults)


def _unknown(card: TaskCard, parameters: Mapping[str, Any]) -> Iterator[Fault]:
    names = _names(card)
    if card.parameters.get("additionalProperties") is not False:
        return
    takes = f"{card.name} takes {_listed(names)}"
    for name in parameters:
        if name not in names:
            message = f"is not known; {takes}{_instead(name[:_LONGEST_NAME], names)}"
            yield Fault(where=f"parameters.{name[:_LONGEST_NAME]}", message=message)


def _missing(card: TaskCard, parameters: Mapping[str, Any]) -> Iterator[Fault]:
    required = card.parameters.get("required")
    if not isinstance(required, list):
        return
    spellings = _names(card)
    given = {spellings.get(name, name) for name in parameters}
    yield from (Fault(where=f"parameters.{name}", message="is needed") for name in required if name not in given)


def _names(card: TaskCard) -> dict[str, str]:
    """Return every name that a parameter goes by, with its own."""
    properties = card.parameters.get("properties")
    found: dict[str, str] = {}
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        aliases = schema.get("aliases") if isinstance(schema, dict) else None
        found |= {str(alias): name for alias in aliases} if isinstance(aliases, list) else {}
        found[name] = name
    return found


def _instead(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return (", ".join(found[:_MOST_NAMES]) or "nothing") + more
