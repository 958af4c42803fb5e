"""How flows become methods: of a client that waits in its thread, and of one that is awaited."""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tasklore.client.calls import Events, Flow, JsonLines, Pages

P = ParamSpec("P")
T = TypeVar("T")


class Driver(Protocol):
    """A client that waits."""

    def drive(self, flow: Flow[T]) -> T:
        """Return the result of *flow*, after the calls and pauses that it asks for."""

    def iterate(self, stream: Events[T] | JsonLines[T] | Pages[T]) -> Iterator[T]:
        """Yield the events, lines or rows of *stream*."""


class AsyncDriver(Protocol):
    """A client of an event loop."""

    async def drive(self, flow: Flow[T]) -> T:
        """Return the result of *flow*, after the calls and pauses that it asks for."""

    def iterate(self, stream: Events[T] | JsonLines[T] | Pages[T]) -> AsyncIterator[T]:
        """Yield the events, lines or rows of *stream*."""


class Noun:
    """The operations on one noun, of a client that waits."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver


class AsyncNoun:
    """The operations on one noun, of a client of an event loop."""

    def __init__(self, driver: AsyncDriver) -> None:
        self.driver = driver


def waiting(
    flow: Callable[Concatenate[Any, P], Flow[T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return *flow* as a method that waits."""

    @functools.wraps(flow)
    def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        result: T = self.driver.drive(flow(None, *arguments, **options))
        return result

    return method


def awaited(
    flow: Callable[Concatenate[Any, P], Flow[T]],
) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """Return *flow* as a method that is awaited."""

    @functools.wraps(flow)
    async def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        result: T = await self.driver.drive(flow(None, *arguments, **options))
        return result

    return method


def iterated(
    stream: Callable[Concatenate[Any, P], Events[T] | JsonLines[T] | Pages[T]],
) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Return *stream* as a method for `for`."""

    @functools.wraps(stream)
    def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> Iterator[T]:
        found: Iterator[T] = self.driver.iterate(stream(None, *arguments, **options))
        return found

    return method


def iterated_async(
    stream: Callable[Concatenate[Any, P], Events[T] | JsonLines[T] | Pages[T]],
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """Return *stream* as a method for `async for`."""

    @functools.wraps(stream)
    def method(
        self: Any, /, *arguments: P.args, **options: P.kwargs
    ) -> AsyncIterator[T]:
        found: AsyncIterator[T] = self.driver.iterate(
            stream(None, *arguments, **options)
        )
        return found

    return method
