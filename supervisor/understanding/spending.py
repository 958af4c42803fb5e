"""What language models cost while one request is understood."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from pydantic import BaseModel

from runtime.llm import Llm, Reply, Spent

T = TypeVar("T", bound=BaseModel)

_SPENT: ContextVar[Spent | None] = ContextVar("spent_on_understanding", default=None)


@contextmanager
def counting() -> Iterator[Spent]:
    """Count in the yielded account what this asyncio task asks of a `Counted` model within the block."""
    spent = Spent()
    before = _SPENT.set(spent)
    try:
        yield spent
    finally:
        _SPENT.reset(before)


class Counted:
    """A language model whose questions are counted by `counting`."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    @property
    def configured(self) -> bool:
        """Whether there is a model to ask."""
        return self._llm.configured

    async def ask(
        self, role: str, answer: type[T], *, system: str, user: str, deadline_s: float | None = None
    ) -> Reply[T]:
        """Return an answer of type *answer*; raises LlmError when there is none."""
        return await self._llm.ask(role, answer, system=system, user=user, deadline_s=deadline_s, spent=_SPENT.get())
