"""The application of a process with the rights of `operator`: its own operations, and a supervisor for the rest."""

from collections.abc import Callable, Sequence
from typing import Any, Never

from fastapi import FastAPI
from starlette.routing import compile_path
from starlette.types import Scope

from tasklore.supervisor.http.app import begin_app, guard_app
from tasklore.supervisor.http.console import routes as console_pages
from tasklore.supervisor.http.console.calls import OperationCalls
from tasklore.supervisor.http.dependencies import Admission
from tasklore.supervisor.http.hand_over import HandOver, HandOverMiddleware
from tasklore.supervisor.http.mount import mount_bound
from tasklore.supervisor.operations.console import ConsoleServices
from tasklore.supervisor.operations.table import (
    BoundOperation,
    Operation,
    Operations,
)


def make_operations_app(
    door: Admission,
    hand_over: HandOver,
    own: Sequence[BoundOperation],
    table: Operations[Never],
    console: ConsoleServices | None = None,
) -> FastAPI:
    """Return the application behind *door*.

    It runs its *own* operations by its own rights, and hands the others of the *table* over; so it does with every
    other path below `/v1/`. Without *console* it has no pages.

    Raises:
        ValueError: one that needs an operator's rights is not run here.
    """
    app = begin_app()
    runs = {one.operation.id: one for one in own}
    for operation in table:
        if operation.id not in runs and not may_hand_over(operation):
            msg = f"{operation.id} is to be run here; name its services"
            raise ValueError(msg)
        handed = BoundOperation(operation=operation, run=_is_handed_over)
        app.include_router(mount_bound((runs.get(operation.id, handed),)))
    if console is not None:
        calls = OperationCalls(own, console=console, table=table, hand_over=hand_over)
        app.include_router(console_pages.routes(door, calls))
    app.add_middleware(
        HandOverMiddleware,
        hand_over=hand_over,
        answers_itself=_find_own(table, set(runs)),
    )
    return guard_app(app, door)


def may_hand_over(operation: Operation[Never, ..., Any]) -> bool:
    """Return whether supervisors run *operation*, too: what needs more rights than theirs is not handed over."""
    return operation.mounted == "supervisor"


async def _is_handed_over(*_given: object, **_named: object) -> None:
    raise AssertionError("a supervisor was to run this")


def _find_own(table: Operations[Never], own: set[str]) -> Callable[[Scope], bool]:
    """Return a function of a scope: whether the first operation that fits its request is one of *own*, by their ids."""
    known = [
        (method, compile_path(path)[0], one.id in own)
        for one in table
        for method, _, path in [one.http.partition(" ")]
    ]

    def is_own(scope: Scope) -> bool:
        for method, pattern, is_run_here in known:
            if method == scope["method"] and pattern.match(scope["path"]):
                return is_run_here
        return False

    return is_own
