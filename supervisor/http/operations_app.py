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


@dataclass(frozen=True, kw_only=True)
class Noun(Generic[Services]):
    """All *operations* of a noun, and those *run_here*, with the *services* that this process has for them."""

    operations: Operations[Any]
    run_here: Operations[Services] = ()
    services: Services | None = None


def make_operations_app(
    door: Door, hand_over: HandOver, nouns: Sequence[Noun[Any]]
) -> FastAPI:
    """Return the application behind *door*.

    It runs operations of *nouns* by its own rights, and hands the others over; so it does with every other path below
    `/v1/`.

    Raises:
        ValueError: one that needs an operator's rights is not run here.
    """
    app = begin_app()
    for noun in nouns:
        for operation in noun.operations:
            is_own = operation in noun.run_here
            if not is_own and not may_hand_over(operation):
                msg = f"{operation.id} is to be run here; name its services"
                raise ValueError(msg)
            app.include_router(mount(noun.services if is_own else None, (operation,)))
    app.add_middleware(
        HandOverMiddleware, hand_over=hand_over, answers_itself=_find_own(nouns)
    )
    return guard_app(app, door)


def may_hand_over(operation: Operation[Any, ..., Any]) -> bool:
    """Return whether supervisors run *operation*, too: what needs more rights than theirs is not handed over."""
    return operation.mounted == "supervisor"


def _find_own(nouns: Sequence[Noun[Any]]) -> Callable[[Scope], bool]:
    """Return a function of a scope: whether the first operation that fits its request is run here."""
    known = [
        (method, compile_path(path)[0], one in noun.run_here)
        for noun in nouns
        for one in noun.operations
        for method, _, path in [one.http.partition(" ")]
    ]

    def is_own(scope: Scope) -> bool:
        for method, pattern, is_run_here in known:
            if method == scope["method"] and pattern.match(scope["path"]):
                return is_run_here
        return False

    return is_own
