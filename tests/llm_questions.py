"""What tests of language models share: a question, its answer, a meter that remembers, time that only pauses move."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from tasklore.runtime.models.llm import Expense, Llm, Reply

#: The key that no log, error or repr may ever show.
KEY = "sk-very-secret-7f3a"
#: An answer that fits `Colour`.
GOOD = {"reasoning": "grass is green", "colour": "green"}

#: What the fixture `open_llm` gives: settings as keywords, and a meter.
Opener = Callable[..., Llm]


class Colour(BaseModel):
    """A colour somebody named."""

    reasoning: str
    colour: Literal["red", "green"]
    shade: str | None = None


async def ask(llm: Llm, role: str = "editor", **options: Any) -> Reply[Colour]:
    """Ask for a colour."""
    return await llm.ask(
        role, Colour, system="Name the colour.", user="grass", **options
    )


@dataclass
class Book:
    """A meter that keeps what it is told."""

    lines: list[tuple[str, str, Expense, str | None]] = field(default_factory=list)
    first_chunks: list[float] = field(default_factory=list)

    def record(
        self,
        role: str,
        model: str,
        usage: Expense,
        duration_s: float,
        error_class: str | None,
        first_chunk_s: float | None = None,
    ) -> None:
        """Keep one line."""
        assert duration_s >= 0
        if first_chunk_s is not None:
            self.first_chunks.append(first_chunk_s)
        self.lines.append((role, model, usage, error_class))

    def watch_models(
        self,
        open_seconds: Callable[[], Mapping[str, float]],
        troubles: Callable[[], Mapping[str, str]],
    ) -> None:
        """Ask for nothing."""


class Pauses:
    """Time that passes only by pausing; remembers every pause."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        """Return the present."""
        return self.now_s

    async def sleep(self, pause_s: float) -> None:
        """Let *pause_s* seconds pass at once."""
        self.pauses.append(pause_s)
        self.now_s += pause_s
