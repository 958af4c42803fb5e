"""The language models as a task sees them: its deadline and its account go with every question."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING

from tasklore.contracts.errors import LlmError
from tasklore.runtime.models.answer_reader import T

if TYPE_CHECKING:
    from tasklore.runtime.models.llm import (
        Llm,
        LlmRole,
        LlmSettings,
        SentRequest,
        Spent,
    )


class TaskLlm:
    """The language models of one task."""

    def __init__(
        self,
        model: "Llm",
        spent: "Spent",
        deadline: datetime | None,
        now: Callable[[], datetime],
    ) -> None:
        self._model = model
        self._spent = spent
        self._deadline = deadline
        self._now = now

    @property
    def configured(self) -> bool:
        """Say whether asking can succeed; when not, answer by rules."""
        return self._model.configured

    @property
    def has_room(self) -> bool:
        """Say whether half of the worker's questions at once stay free for others when one more is asked now."""
        return self._model.has_room

    def role(self, name: str) -> "LlmRole":
        """Return the model of the role *name*, to be named as the author of its answers."""
        return self._model.role(name)

    @property
    def settings(self) -> "LlmSettings":
        """The models by role, for another client than this one."""
        return self._model.settings

    @property
    def _left_s(self) -> float | None:
        return (
            None
            if self._deadline is None
            else (self._deadline - self._now()).total_seconds()
        )

    def request(
        self,
        role: str,
        model: str,
        *,
        text: str = "",
        prompt: Callable[[], str] | None = None,
    ) -> "AbstractAsyncContextManager[SentRequest]":
        """Account to the task for a request that another client sends in the block; see `Llm.request`."""
        return self._model.request(role, model, self._spent, text=text, prompt=prompt)

    def fallback(self, model: str, error: LlmError) -> str | None:
        """Return the model that may answer in place of *model*, of which *error* is, None without one."""
        return self._model.fallback(model, error)

    def pause_s(self, attempt: int, error: LlmError) -> float | None:
        """Return the seconds after which that request may be sent again, None when it is not; see `Llm.pause_s`."""
        return self._model.pause_s(attempt, error, self._left_s)

    async def ask(self, role: str, answer: type[T], *, system: str, user: str) -> T:
        """Return what the model of *role* says, as an *answer*, whose first field must be `reasoning`.

        Its shape is checked, its content is not: look up every value in the text you gave before you trust it.

        Raises:
            LlmNotConfigured: no model is configured.
            LlmError: it refused, was cut off, did not answer before the task's deadline, or answered another shape.
        """
        reply = await self._model.ask(
            role,
            answer,
            system=system,
            user=user,
            deadline_s=self._left_s,
            spent=self._spent,
        )
        return reply.value
