"""Calls that several tasks make in one turn of the event loop, carried out as one."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class GatheredCalls(Generic[Item, Answer]):
    """Answers items by *carry_out*, which gets those of all tasks that asked in one turn of the event loop.

    *carry_out* returns an answer to each, in their order. A call for each task would cost it a deadline and a list of
    commands, and the list of runs a script.
    """

    def __init__(
        self, carry_out: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]
    ) -> None:
        self._carry_out = carry_out
        #: What was asked in this turn so far, None where nothing was.
        self._asked: list[Item] | None = None
        self._answers: asyncio.Task[Sequence[Answer]]

    async def ask(self, items: Sequence[Item]) -> Sequence[Answer]:
        """Return the answer to each of *items*, or raise what *carry_out* raises for all that asked.

        Whoever is cancelled meanwhile does not end the call of the others.
        """
        if (asked := self._asked) is None:
            asked = self._asked = []
            # The others have nothing of the context of whoever comes first.
            self._answers = asyncio.create_task(
                self._answer(asked), context=contextvars.Context()
            )
        first = len(asked)
        asked += items
        answers = await asyncio.shield(self._answers)
        return answers[first : first + len(items)]

    async def _answer(self, asked: list[Item]) -> Sequence[Answer]:
        self._asked = None
        return await self._carry_out(asked)
