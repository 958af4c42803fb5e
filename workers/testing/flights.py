"""Flights in which one of the tasks of a testing kit computes for all: a kit is one process, and needs no lease."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from redis.asyncio import Redis

from tasklore.memory.long_term.single_flight import FlightPlace, Joined, SingleFlight

T = TypeVar("T")


class KitFlights(SingleFlight[T]):
    """Stands for `long_term.single_flight.SingleFlight` where one process is all there is: nothing runs beside it."""

    def __init__(self) -> None:
        # A client that never connects.
        super().__init__(Redis(), owner="kit")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    async def _compete(
        self,
        key: str | FlightPlace,  # noqa: ARG002 - as in the class it stands for
        token: str,  # noqa: ARG002
        recall: Callable[[], Awaitable[T | None]],
        deadline: float,  # noqa: ARG002
    ) -> Joined[T] | bool:
        value = await recall()
        return False if value is None else Joined(value)
