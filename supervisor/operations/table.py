"""The table of operations: a typed function, the role that it needs, and its place in every door.

FastAPI alone reads the signatures (`tasklore.supervisor.http.mount`). The command line, clients, reference pages
and the matrix of tests read the OpenAPI document that comes out. What runs in this process calls the operation itself:
`await add_schedule(services, caller, new)`.
"""

import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
)
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    Never,
    ParamSpec,
    TypeVar,
    cast,
)

from tasklore.contracts.callers import Caller, Role
from tasklore.supervisor.operations.audit import Audited

#: An operation that needs less may stand in the table of a noun whose services have more.
Services = TypeVar("Services", contravariant=True)
P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

#: Who serves an operation: each supervisor, or only the process that has the rights of an operator at the servers.
Mounted = Literal["supervisor", "operations"]


@dataclass(frozen=True, kw_only=True)
class Shows:
    """How a person sees an operation at a command line.

    Args:
        rows: The field of the view that is shown as a table; without it the view is shown as facts.
        columns: The fields of a row that are shown, in this order.
        confirm: A question before it, "" for none. It may name fields in braces, such as `Remove {schedule_id}?`.
        arguments: Fields of the query or the body that are given by position, behind those of the path.
        shortcut: A word at the top of the command line that is this operation, beside its noun and verb; with an option
            behind it, such as `trace --messages`, it is what that command does with it.
        picture: The name of a renderer of its own.
        example: A command line, without `tasklore`, that shows its use.
    """

    rows: str = ""
    columns: tuple[str, ...] = ()
    confirm: str = ""
    arguments: tuple[str, ...] = ()
    shortcut: str = ""
    picture: str = ""
    example: str = ""


@dataclass(frozen=True, kw_only=True)
class Unfinished(Generic[V]):
    """The view of work that is under way, and the path to ask for its end."""

    view: V
    location: str


@dataclass(frozen=True, kw_only=True)
class Operation(Generic[Services, P, R]):
    """One operation: a function of its services, its caller and its values.

    Args:
        function: What it does.
        noun: What it is about, in the plural, as paths spell it: `schedules`, `dead-letters`.
        verb: What it does with it.
        http: Method and path, such as `GET /v1/schedules/{schedule_id}`.
        roles: The roles of which its caller needs one; `admin` holds every other.
        mounted: Who serves it.
        status: The HTTP status when it is done.
        problems: The statuses of RFC 9457 that it answers with, beside those of every operation.
        waits: Whether it may wait long, and is given up when its client goes.
        shows: How a person sees it.
    """

    function: Callable[Concatenate[Services, Caller, P], Awaitable[R]]
    noun: str
    verb: str
    http: str
    roles: tuple[Role, ...]
    mounted: Mounted = "supervisor"
    status: int = 200
    problems: tuple[int, ...] = ()
    waits: bool = False
    shows: Shows = field(default_factory=Shows)

    @property
    def id(self) -> str:
        """Its name for programs, such as `schedules_add`."""
        return f"{self.noun}_{self.verb}".replace("-", "_")

    async def __call__(
        self, services: Services, caller: Caller, /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Check the caller, run it, and note that in the log, of a stream at its end: every door passes here.

        Raises:
            NotPermitted: the caller has none of its roles.
        """
        self.demand_role(caller)
        began = time.monotonic()
        with self._audited.noting(caller, began) as ending:
            result = await self.function(services, caller, *args, **kwargs)
            ending.goes_on = isinstance(result, AsyncIterator)
        if isinstance(result, AsyncIterator):
            return cast("R", self._note_stream(result, caller, began))
        return result

    async def _note_stream(
        self, views: AsyncIterator[V], caller: Caller, began: float
    ) -> AsyncGenerator[V, None]:
        """Yield *views*; how the stream ended is noted, with the time that it took from *began* on."""
        with self._audited.noting(caller, began):
            async for view in views:
                yield view

    def demand_role(self, caller: Caller) -> None:
        """Return when *caller* may run it; a refusal is noted as a run is.

        Raises:
            NotPermitted: the caller has none of its roles.
        """
        self._audited.demand_role(caller)

    @cached_property
    def _audited(self) -> Audited:
        return Audited(
            id=self.id,
            roles=self.roles,
            is_look=self.http.startswith("GET "),
            status=self.status,
        )


#: The operations of one noun, which work with the same services.
Operations = tuple[Operation[Services, ..., Any], ...]


@dataclass(frozen=True, kw_only=True)
class BoundOperation:
    """An operation with its services: `run` takes its caller and its values."""

    operation: Operation[Never, ..., Any]
    run: Callable[..., Coroutine[Any, Any, Any]]


def bind(
    services: Services, operations: Operations[Services]
) -> tuple[BoundOperation, ...]:
    """Return *operations* with their *services*."""
    return tuple(
        BoundOperation(operation=one, run=partial(one, services)) for one in operations
    )


def operation(
    noun: str,
    verb: str,
    http: str,
    *,
    roles: tuple[Role, ...],
    mounted: Mounted = "supervisor",
    status: int = 200,
    problems: tuple[int, ...] = (),
    waits: bool = False,
    shows: Shows | None = None,
) -> Callable[
    [Callable[Concatenate[Services, Caller, P], Awaitable[R]]],
    Operation[Services, P, R],
]:
    """Turn a function into an operation; its first two parameters are its services and its caller."""

    def make(
        function: Callable[Concatenate[Services, Caller, P], Awaitable[R]],
    ) -> Operation[Services, P, R]:
        return Operation(
            function=function,
            noun=noun,
            verb=verb,
            http=http,
            roles=roles,
            mounted=mounted,
            status=status,
            problems=problems,
            waits=waits,
            shows=shows or Shows(),
        )

    return make
