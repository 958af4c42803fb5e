"""Operations as pages call them: run here, or handed over to a supervisor, and always as one caller.

A page knows nothing else: no store, no stream, no key.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Never, ParamSpec, TypeVar, cast, get_type_hints
from urllib.parse import quote, urlencode

from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.warnings import UnsupportedFieldAttributeWarning

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.contracts.faults import complaint_of
from tasklore.contracts.handed_requests import HandedRequest, HandedResponse
from tasklore.supervisor.http.hand_over import HandOver
from tasklore.supervisor.http.mount import mount, read_views
from tasklore.supervisor.operations.console import ConsoleServices
from tasklore.supervisor.operations.refusals import (
    Fault,
    Problem,
    Refused,
    unusable,
)
from tasklore.supervisor.operations.table import (
    BoundOperation,
    Operation,
    Operations,
    Unfinished,
)

P = ParamSpec("P")
R = TypeVar("R")

#: Seconds in which a supervisor answers what is handed over: a person waits for the page.
_WITHIN_S = 20.0


class OperationCalls:
    """Calls its *own* operations, and hands the others of the *table* over, where *hand_over* can.

    *console* knows which links have been used.
    """

    def __init__(
        self,
        own: Iterable[BoundOperation],
        *,
        console: ConsoleServices,
        table: Operations[Never] = (),
        hand_over: HandOver | None = None,
    ) -> None:
        self._own = {one.operation.id: one for one in own}
        self.console = console
        self._known = {one.id for one in table}
        self._hand_over = hand_over

    def may(self, caller: Caller, operation: Operation[Any, ..., Any]) -> bool:
        """Return whether *caller* may run *operation*, and it can be run from here."""
        is_here = operation.id in self._own
        if not is_here and (operation.id not in self._known or self._hand_over is None):
            return False
        try:
            caller.demand_role(*operation.roles)
        except NotPermitted:
            return False
        return True

    async def call(
        self,
        operation: Operation[Any, P, R],
        caller: Caller,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Return what *operation* returns to *caller*.

        Raises:
            NotPermitted: the caller has none of its roles.
            Refused: it refuses, 422, it takes no such value, or 404, it is not served here.
        """
        operation.demand_role(caller)
        bound = inspect.signature(operation.function).bind(
            None, caller, *args, **kwargs
        )
        _demand_values(operation, bound.arguments)
        if operation.id in self._own:
            run = self._own[operation.id].run
            return cast("R", await run(*bound.args[1:], **bound.kwargs))
        if operation.id not in self._known or self._hand_over is None:
            raise Refused(
                404,
                "elsewhere",
                "only a process that runs with `tasklore supervisor --operations` serves this; open the console there",
            )
        given = dict(list(bound.arguments.items())[2:])
        answer = await self._hand_over.ask(_write_request(operation, caller, given))
        return cast("R", _read_answer(operation, answer))


def _demand_values(operation: Operation[Any, ..., Any], given: dict[str, Any]) -> None:
    """Make each value in *given* what *operation* declares it to be, as HTTP does of a path and a query.

    Raises:
        Refused: 422, names the one that is none.
    """
    for name, reader in _readers_of(operation.function).items():
        value = given.get(name)
        if value is None or isinstance(value, BaseModel):
            continue
        try:
            given[name] = reader.validate_python(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            fault = Fault(where=name, message=complaint_of(first))
            raise unusable([fault]) from error


@cache
def _readers_of(function: Callable[..., Any]) -> Mapping[str, TypeAdapter[Any]]:
    """Return what reads each value of an operation's *function*, behind its services and its caller."""
    hints = get_type_hints(function, include_extras=True)
    names = list(inspect.signature(function).parameters)[2:]
    with warnings.catch_warnings():
        # A page passes values by name: the other name that one has in a query is of no use.
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        return {name: TypeAdapter(hints[name]) for name in names}


def _write_request(
    operation: Operation[Any, ..., Any], caller: Caller, given: Mapping[str, Any]
) -> HandedRequest:
    """Return the request that runs *operation* with the values *given*, by the names that its route has for them."""
    route = cast("APIRoute", mount(None, (operation,)).routes[0])
    method, _, path = operation.http.partition(" ")
    query: dict[str, Any] = {}
    body = b""
    places = route.dependant
    for field in places.path_params:
        path = path.replace(f"{{{field.name}}}", quote(str(given[field.name]), safe=""))
    for field in places.query_params:
        value = given.get(field.name)
        if isinstance(value, BaseModel):
            query |= value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        elif value is not None:
            query[field.alias] = value
    headers = [
        (field.alias.lower(), str(value))
        for field in places.header_params
        if (value := given.get(field.name)) is not None
    ]
    for field in places.body_params:
        value = given[field.name]
        body = value.model_dump_json(by_alias=True, exclude_unset=True).encode()
        headers.append(("content-type", "application/json"))
    return HandedRequest(
        method=method,
        path=path,
        query=urlencode(
            {name: value for name, value in query.items() if value is not None},
            doseq=True,
        ),
        headers=tuple(headers),
        caller=caller,
        within_s=_WITHIN_S,
        body=body,
    )


def _read_answer(operation: Operation[Any, ..., Any], answer: HandedResponse) -> object:
    """Return the view in *answer*.

    Raises:
        Refused: it is a problem.
    """
    if answer.status >= 400:
        problem = Problem.model_validate_json(answer.body)
        raise Refused(
            problem.status,
            problem.type.rpartition(":")[2],
            problem.detail,
            faults=[Fault.model_validate(one) for one in problem.problems],
        )
    view, later = read_views(operation)
    if answer.status == 202 and later is not None:
        location = dict(answer.headers).get("location", "")
        found = TypeAdapter(later).validate_json(answer.body)
        return Unfinished(view=found, location=location)
    return None if view is None else TypeAdapter(view).validate_json(answer.body)
