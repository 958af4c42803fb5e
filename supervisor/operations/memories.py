"""Every operation on memories: looks at them, changes by the memory agent, and edits by an operator's hand."""

from typing import Any

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.memory import (
    documents,
    hand_edits,
    history,
    items,
    review,
    search,
    turns,
)
from tasklore.supervisor.operations.memory.hand_edits import OperatorMemory
from tasklore.supervisor.operations.memory.services import (
    MemoryLooks,
    MemoryServices,
    look_at_memories,
)
from tasklore.supervisor.operations.memory.tasks import send_by
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.table import Operation, Operations

OPERATOR_OPERATIONS: Operations[MemoryLooks] = (
    *documents.OPERATOR_OPERATIONS,
    *search.OPERATOR_OPERATIONS,
    *turns.OPERATOR_OPERATIONS,
    *items.OPERATOR_OPERATIONS,
    *history.OPERATOR_OPERATIONS,
    *review.OPERATOR_OPERATIONS,
)
CHANGES: Operations[MemoryServices] = (
    *search.CHANGES,
    *items.CHANGES,
    *history.CHANGES,
)
EDITS: Operations[OperatorMemory] = (*turns.OPERATORS, *hand_edits.EDITS)
OPERATIONS: tuple[Operation[Any, ..., Any], ...] = (
    *CHANGES,
    *OPERATOR_OPERATIONS,
    *EDITS,
)


def for_supervisor(parts: SupervisorDependencies) -> MemoryServices:
    """Return the services of operations on memories in a supervisor."""
    looks = look_at_memories(parts.redis, parts.kinds, parts.turns_kept)
    return MemoryServices(
        **vars(looks),
        dispatch=parts.dispatch,
        records=parts.records,
        catalogue=parts.catalogue,
        send=send_by(parts.for_tasks),
    )


def for_operator(parts: OperatorDependencies) -> OperatorMemory:
    """Return the services of operations on memories by the rights of an operator."""
    settings = parts.settings
    kinds = Kinds.load(*filter(None, [settings.kinds_dir]))
    looks = look_at_memories(parts.redis, kinds, settings.episodes_kept)
    dispatch = Dispatch(parts.outbox, parts.ledger)
    return OperatorMemory(
        **vars(looks),
        dispatch=dispatch,
        records=RequestRecords(parts.redis),
        hands=parts.hands,
    )


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, (*CHANGES, *OPERATOR_OPERATIONS)),
    operator=serve(for_operator, (*OPERATOR_OPERATIONS, *EDITS)),
)
