"""A noun of the table: its operations, and how each process makes their services."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Never, TypeVar

from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.table import (
    BoundOperation,
    Operations,
    Services,
    bind,
)

D = TypeVar("D")


def serve(
    make: Callable[[D], Services], operations: Operations[Services]
) -> Callable[[D], tuple[BoundOperation, ...]]:
    """Return a function of a process's dependencies: *operations*, with the services that *make* makes of these."""

    def bound(dependencies: D) -> tuple[BoundOperation, ...]:
        return bind(make(dependencies), operations)

    return bound


def _serve_none(_dependencies: object) -> tuple[BoundOperation, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class NounDeclaration:
    """What a new noun says of itself; its line in `tasklore.supervisor.operations.nouns` puts it into every door.

    Args:
        operations: All of them.
        supervisor: Those that a supervisor runs: each that is `mounted` there.
        operator: Those that a process with the rights of `operator` runs itself. The others it hands over to a
            supervisor.
    """

    operations: Operations[Never]
    supervisor: Callable[[SupervisorDependencies], tuple[BoundOperation, ...]] = (
        _serve_none
    )
    operator: Callable[[OperatorDependencies], tuple[BoundOperation, ...]] = _serve_none
