"""Usage of models: tokens, cost and time, by task and for the process."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol

from tasklore.contracts.admission.limits import Payer
from tasklore.runtime.models.answer_reader import T
from tasklore.runtime.models.prices import Expense, Tokens


class Meter(Protocol):
    """Counts attempts for the whole process; `error_class` is None for an attempt that succeeded."""

    def record(
        self,
        role: str,
        model: str,
        usage: Expense,
        duration_s: float,
        error_class: str | None,
        first_chunk_s: float | None = None,
    ) -> None:
        """Count one attempt; *first_chunk_s* is when the first chunk of a streamed answer came."""

    def watch_models(
        self,
        open_seconds: Callable[[], Mapping[str, float]],
        troubles: Callable[[], Mapping[str, str]],
    ) -> None:
        """Export by model for how long its provider has been away, and say by role why it has no answer."""


@dataclass
class Spent:
    """What one task has spent so far: hand the same one to every `ask` of the task, and read it also after errors."""

    usage: Expense = field(default_factory=Expense)
    attempts: int = 0
    #: For whom models are asked.
    payer: Payer = field(default_factory=Payer)

    def add(self, usage: Expense) -> None:
        """Count one more attempt."""
        self.usage += usage
        self.attempts += 1


@dataclass(frozen=True)
class Reply(Generic[T]):
    """An answer, and what all attempts for it took together; `model` is the one that was asked."""

    value: T
    usage: Expense
    model: str
    attempts: int
    duration_ms: float


@dataclass(kw_only=True)
class SentRequest:
    """One request of another client; fill it in when its answer is there. None is the address of the settings."""

    tokens: Tokens = field(default_factory=Tokens)
    base_url: str | None = None
    provider: str = ""
    asked_at: float = field(default_factory=time.monotonic)
    first_chunk_s: float | None = None
    #: Text of a streamed answer so far, which is paid for also when the stream breaks.
    text: str = ""

    def note_chunk(self) -> None:
        """Note that a chunk of a streamed answer came."""
        if self.first_chunk_s is None:
            self.first_chunk_s = time.monotonic() - self.asked_at
