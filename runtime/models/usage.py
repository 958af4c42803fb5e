"""Usage of models: tokens, cost and time, by task and for the process."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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


class ModelWatcher(Protocol):
    """Hears of the requests to models of one task, and of the answers."""

    def note_prompt(self, role: str, model: str, text: str) -> None:
        """Note that *model* is shown *text* now, for *role*."""

    def note_answer(self, model: str, text: str, tokens: Tokens) -> None:
        """Note that *model* said *text*."""

    def note_failure(self, model: str, error: Exception) -> None:
        """Note that the request to *model* ended with *error*."""


@dataclass
class Spent:
    """What one task has spent so far: hand the same one to every `ask` of the task, and read it also after errors."""

    usage: Expense = field(default_factory=Expense)
    attempts: int = 0
    #: For whom models are asked.
    payer: Payer = field(default_factory=Payer)
    #: Who is told what the models see; None where nobody wants to know.
    watcher: ModelWatcher | None = None

    def add(self, usage: Expense) -> None:
        """Count one more attempt."""
        self.usage += usage
        self.attempts += 1

    def note_prompt(self, role: str, model: str, prompt: Callable[[], str]) -> None:
        """Let the watcher, if there is one, hear of a *prompt* to *model*."""
        if self.watcher is not None:
            self.watcher.note_prompt(role, model, prompt())

    def note_answer(self, model: str, text: str, tokens: Tokens) -> None:
        """Let the watcher hear of an answer of *model*."""
        if self.watcher is not None:
            self.watcher.note_answer(model, text, tokens)

    def note_failure(self, model: str, error: Exception) -> None:
        """Let the watcher hear of the *error* of a request to *model*."""
        if self.watcher is not None:
            self.watcher.note_failure(model, error)


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
    #: The whole answer in words, for who watches; "" where `text` is all.
    answer: str = ""

    def note_chunk(self) -> None:
        """Note that a chunk of a streamed answer came."""
        if self.first_chunk_s is None:
            self.first_chunk_s = time.monotonic() - self.asked_at


def spell_question(system: str, user: str, fault: str = "") -> str:
    """Return a question to a model as a person reads it; *fault* is that of its last answer."""
    said = f"[system]\n{system}\n\n[user]\n{user}"
    return f"{said}\n\n[your answer did not fit]\n{fault}" if fault else said


@contextmanager
def watched(
    spent: Spent, sent: SentRequest, role: str, model: str, prompt: Callable[[], str]
) -> Iterator[None]:
    """Note the *prompt* to *model* before the block, and behind it the answer in *sent*, or the error."""
    spent.note_prompt(role, model, prompt)
    try:
        yield
    except Exception as error:
        spent.note_failure(model, error)
        raise
    spent.note_answer(model, sent.answer or sent.text, sent.tokens)
