"""What understanding one request spends on language models, for whoever has to tell it to the one who asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from pydantic import BaseModel

from runtime.llm import Reply, Spent

T = TypeVar("T", bound=BaseModel)

_SPENT: ContextVar[Spent | None] = ContextVar("spent_on_understanding", default=None)


@contextmanager
def counting() -> Iterator[Spent]:
    """Count in the yielded account whatever is asked of a `Counted` model within the block, by this task of asyncio."""
    spent = Spent()
    before = _SPENT.set(spent)
    try:
        yield spent
    finally:
        _SPENT.reset(before)


class _Model(Protocol):
    """What is needed of a language model: `runtime.llm.Llm` fits."""

    @property
    def configured(self) -> bool:
        """Whether there is one to ask."""

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,
        spent: Spent | None = None,
    ) -> Reply[T]:
        """Return an answer of type *answer*, and add every attempt to *spent*."""


class Counted:
    """A language model whose questions are counted by `counting`, as nobody between here and there has to know."""

    def __init__(self, llm: _Model) -> None:
        self._llm = llm

    @property
    def configured(self) -> bool:
        """Whether there is a model to ask."""
        return self._llm.configured

    async def ask(
        self, role: str, answer: type[T], *, system: str, user: str, deadline_s: float | None = None
    ) -> Reply[T]:
        """Return an answer of type *answer*.

        Raises:
            LlmError: there is none.
        """
        return await self._llm.ask(role, answer, system=system, user=user, deadline_s=deadline_s, spent=_SPENT.get())
