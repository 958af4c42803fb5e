"""How a testing kit has a store of its own, made when a test first needs it and for the event loop that runs then."""

import asyncio
from collections.abc import Callable
from typing import Generic, Self, TypeVar, overload

S = TypeVar("S")
T = TypeVar("T")

#: Seconds for one answer of a store: a machine that runs tests may be busy, and no test is about how long it takes.
PATIENCE_S = 60.0


class OnServer(Generic[S, T]):
    """A store on a kit's database, made anew for each event loop; a test may put another in its place.

    *S* has the attribute `database`.
    """

    def __init__(self, make: Callable[[S], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, services: None, owner: type[S]) -> Self: ...
    @overload
    def __get__(self, services: S, owner: type[S]) -> T: ...
    def __get__(self, services: S | None, owner: type[S]) -> T | Self:
        if services is None:
            return self
        kept = vars(services)
        if self._name in kept:
            placed: T = kept[self._name]
            return placed
        loop = asyncio.get_running_loop()
        made: tuple[asyncio.AbstractEventLoop, T] | None = kept.get(f"{self._name} on")
        if made is None or made[0] is not loop:
            made = loop, self._make(services)
            # Whoever has nothing but the store still has the database.
            vars(made[1])["database of the kit"] = kept.get("database")
            kept[f"{self._name} on"] = made
        return made[1]

    def __set__(self, services: S, store: T) -> None:
        vars(services)[self._name] = store
