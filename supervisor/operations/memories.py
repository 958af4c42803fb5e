"""Every operation on memories: looks at them, changes by the memory agent, and edits by an operator's hand."""

from typing import Any

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
from tasklore.supervisor.operations.memory.services import MemoryLooks, MemoryServices
from tasklore.supervisor.operations.table import Operation, Operations

LOOKS: Operations[MemoryLooks] = (
    *documents.LOOKS,
    *search.LOOKS,
    *turns.LOOKS,
    *items.LOOKS,
    *history.LOOKS,
    *review.LOOKS,
)
CHANGES: Operations[MemoryServices] = (
    *search.CHANGES,
    *items.CHANGES,
    *history.CHANGES,
)
EDITS: Operations[OperatorMemory] = (*turns.OPERATORS, *hand_edits.EDITS)
OPERATIONS: tuple[Operation[Any, ..., Any], ...] = (*CHANGES, *LOOKS, *EDITS)
