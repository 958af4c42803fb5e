"""Near matches at a worker: the answer to a neighbouring question, for a task whose parameters allow it.

An exact answer comes first, so this is asked of the rest alone; and what is served from here is stored nowhere again.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import structlog

from contracts.errors import MemoryUnavailable
from contracts.parameters.model import Parameters
from contracts.parameters.neighbours import Neighbourhood
from memory.long_term.entries import Near, Remembered
from workers.execution.job import Neighbour, Order

log = structlog.get_logger(__name__)


class NearMemory(Protocol):
    """Where neighbours are looked for: `memory.long_term.store.LongTermMemory` fits."""

    async def nearest(self, asked: Sequence[tuple[str, Neighbourhood]]) -> list[Near | None]:
        """Return the nearest remembered neighbour of each question, None without one."""


async def find_neighbours(orders: Sequence[Order], memory: NearMemory) -> list[Order]:
    """Give those of *orders* that have a remembered neighbour its answer, as `near`, and return them.

    All are orders whose own question is not remembered. A memory that does not answer has no neighbours.
    """
    asking = [(order, order.neighbourhood) for order in orders if order.neighbourhood is not None]
    if not asking:
        return []
    try:
        found = await memory.nearest([(order.memory_key or "", near) for order, near in asking])
    except MemoryUnavailable as error:
        log.info("memory_unavailable", agent=asking[0][0].assignment.agent_id, error=str(error))
        return []
    for (order, neighbourhood), near in zip(asking, found, strict=True):
        if near is not None:
            order.near = _neighbour(order, neighbourhood, near)
    return [order for order, _ in asking if order.near is not None]


def _neighbour(order: Order, neighbourhood: Neighbourhood, near: Near) -> Neighbour | None:
    try:
        return neighbour_at(order.parameters, neighbourhood, near.place, near.key, near.answer)
    except Exception:
        # A serializer of the user's may raise anything: what cannot be labelled is not served.
        log.exception("neighbour_not_served", agent=order.assignment.agent_id)
        return None


def neighbour_at(
    asked: Parameters, neighbourhood: Neighbourhood, place: str, key: str, answer: Remembered
) -> Neighbour:
    """Return *answer*, the one remembered at *key*, as that of a neighbour at *place*."""
    distances = neighbourhood.distances(place)
    farthest = float(max(number for number, _ in distances.values()))
    told = {name: text for name, (_, text) in distances.items()}
    return Neighbour(key, answer, told, farthest, parameters_of(asked, neighbourhood, place))


def parameters_of(asked: Parameters, neighbourhood: Neighbourhood, place: str) -> dict[str, Any]:
    """Return the parameters that the answer at *place* was computed for, as JSON holds them."""
    return asked.model_copy(update=neighbourhood.values_at(place)).model_dump(mode="json")
