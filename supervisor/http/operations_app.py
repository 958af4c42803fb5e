"""The application of a process with the rights of `operator`: its own operations, and a supervisor for the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from fastapi import FastAPI
from starlette.routing import compile_path
from starlette.types import Scope

from tasklore.supervisor.http.app import begin_app, guard_app
from tasklore.supervisor.http.hand_over import HandOver, HandOverMiddleware
from tasklore.supervisor.http.mount import mount
from tasklore.supervisor.http.parts import Door
from tasklore.supervisor.operations.table import Operation, Operations, Services

#: Roles of those who start work, or answer a question of it: what they alone may do is run by a supervisor.
_HANDED_ROLES = frozenset({"ask", "approve"})


@dataclass(frozen=True, kw_only=True)
class Noun(Generic[Services]):
    """The operations of a noun, and the services that they are run with here: None where all are handed over."""

    operations: Operations[Services]
    services: Services | None = None


def make_operations_app(
    door: Door, hand_over: HandOver, nouns: Sequence[Noun[Any]]
) -> FastAPI:
    """Return the application behind *door*.

    It runs the operations of *nouns* by its own rights, but for those that are handed over; so is every other path
    below `/v1/`, as long as it is no operation of the table.

    Raises:
        ValueError: a noun has no services, and an operation that is run here.
    """
    app = begin_app()
    for noun in nouns:
        if noun.services is None and not all(map(is_handed, noun.operations)):
            msg = f"{noun.operations[0].noun} has an operation that is run here, and no services"
            raise ValueError(msg)
        app.include_router(mount(noun.services, noun.operations))
    mounted = [one for noun in nouns for one in noun.operations]
    app.add_middleware(
        HandOverMiddleware, hand_over=hand_over, answers_itself=_find_own(mounted)
    )
    return guard_app(app, door)


def is_handed(operation: Operation[Any, ..., Any]) -> bool:
    """Return whether a process of the role `operator` hands *operation* over to a supervisor."""
    return operation.mounted == "supervisor" and _HANDED_ROLES.issuperset(
        operation.roles
    )


def _find_own(
    mounted: Sequence[Operation[Any, ..., Any]],
) -> Callable[[Scope], bool]:
    """Return what says whether the first of *mounted* that fits the request of a scope is run here."""
    known = [
        (method, compile_path(path)[0], not is_handed(one))
        for one in mounted
        for method, _, path in [one.http.partition(" ")]
    ]

    def is_own(scope: Scope) -> bool:
        for method, pattern, is_run_here in known:
            if method == scope["method"] and pattern.match(scope["path"]):
                return is_run_here
        return False

    return is_own
