"""Single flight where one process is all there is, for agents under test."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from redis.asyncio import Redis

from memory.long_term.single_flight import Joined, Place, SingleFlight

T = TypeVar("T")


class FakeSingleFlight(SingleFlight[T]):
    """Stands for `long_term.single_flight.SingleFlight` where one process is all there is: no lease, no server."""

    def __init__(self) -> None:
        super().__init__(Redis(), owner="fake")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def _compete(
        self,
        key: str | Place,  # noqa: ARG002 - as in the class it stands for
        token: str,  # noqa: ARG002
        recall: Callable[[], Awaitable[T | None]],
        deadline: float,  # noqa: ARG002
    ) -> Joined[T] | bool:
        value = await recall()
        return False if value is None else Joined(value)
