"""Waiting for a person, a signal or a time: the part of a context that does so."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pydantic import BaseModel

from tasklore.contracts.admission.waits import APPROVED_WITHIN, Approval
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import TaskAssignment
from tasklore.workers.context.access import DeclaredAccess
from tasklore.workers.context.children import MARGIN, aware
from tasklore.workers.context.waits.waits import TaskWaits

if TYPE_CHECKING:
    from tasklore.memory.ledger.runs import RunName
    from tasklore.workers.context.branches import Branches
    from tasklore.workers.context.recorder import RunRecorder
    from tasklore.workers.context.services import Services
    from tasklore.workers.context.steps import Steps

R = TypeVar("R")

_WEEK = APPROVED_WITHIN


class TaskAsker:
    """Asks persons and waits; the run ends meanwhile, and a later one goes on from the task's journal."""

    _task: DeclaredAccess
    _assignment: TaskAssignment
    _services: "Services"
    _run: "RunName | None"
    _steps: "Steps | None"
    _branches: "Branches"
    recorder: "RunRecorder | None"

    @overload
    async def ask_person(
        self,
        question: str,
        /,
        *,
        who: str | None = None,
        within: timedelta = _WEEK,
        otherwise: Any = None,
        remind: timedelta | None = None,
        escalate: tuple[str, timedelta] | None = None,
        **arguments: Any,
    ) -> Approval: ...

    @overload
    async def ask_person(
        self,
        question: str,
        answer: type[R],
        /,
        *,
        who: str | None = None,
        within: timedelta = _WEEK,
        otherwise: Any = None,
        remind: timedelta | None = None,
        escalate: tuple[str, timedelta] | None = None,
        **arguments: Any,
    ) -> R: ...

    async def ask_person(
        self,
        question: str,
        answer: type[Any] = Approval,
        /,
        *,
        who: str | None = None,
        within: timedelta = _WEEK,
        otherwise: Any = None,
        remind: timedelta | None = None,
        escalate: tuple[str, timedelta] | None = None,
        **arguments: Any,
    ) -> Any:
        """Return a person's answer to *question*, which may take days: the run ends, and a later one goes on.

        Questions that are asked side by side (`asyncio.gather`) are open at once; the run ends when none of its
        branches can go on, and each answer begins another one.

        Asked as `ask_person("Pay {amount} to {payee}?", who="role:finance", amount=12, payee="Ana")`. Nothing is held
        meanwhile: no slot, no delivery. The first answer counts, for this very question and these arguments alone. As
        a step it is known by its place, so that a later run does not ask again.

        Args:
            question: With arguments in braces; those that it does not name are shown behind it.
            answer: `Approval`, a yes or no with a note, or a model of the answer.
            who: `user:ana` or `role:finance` may answer; None for everybody with a key that may ask.
            within: How long it waits, at most 29 days.
            otherwise: The answer when there is none in time; "reject" for an Approval.
            remind: The time after which a notice is sent again, each time.
            escalate: Who may answer as well, and after how long.
            arguments: Texts, numbers or models.

        Raises:
            NotAnswered: there was no answer in time, and there is no *otherwise*.
            ApprovalChanged: it was answered for another question or other arguments.
            InvalidInput: a wait of over 29 days, past the deadline of the task, or within a step.
            UndeclaredAccess: the task's answers are remembered.
        """
        return await self._waits.ask(
            question,
            answer,
            arguments,
            who=who,
            within=within,
            otherwise=otherwise,
            remind=remind,
            escalate=escalate,
        )

    @overload
    async def signal(
        self, name: str, /, *, within: timedelta = _WEEK, otherwise: Any = None
    ) -> Any: ...

    @overload
    async def signal(
        self,
        name: str,
        model: type[R],
        /,
        *,
        within: timedelta = _WEEK,
        otherwise: Any = None,
    ) -> R: ...

    async def signal(
        self,
        name: str,
        model: type[Any] | None = None,
        /,
        *,
        within: timedelta = _WEEK,
        otherwise: Any = None,
    ) -> Any:
        """Return the value of the signal *name* of this task, as *model*; waits as `ask_person`.

        The first value that is sent under a name counts, also one that came before the wait: a loop gives each its own
        name.

        Raises:
            NotAnswered: it did not come in time, and there is no *otherwise*.
            InvalidInput, UndeclaredAccess: as `ask_person`.
        """
        return await self._waits.signal(name, model, within=within, otherwise=otherwise)

    async def sleep(self, span: timedelta, /) -> None:
        """Return when *span*, at most 29 days, is over since a run first came here; waits as `ask_person`."""
        await self._waits.sleep(span)

    @property
    def can_wait(self) -> bool:
        """Whether the task may wait: its answers are not remembered."""
        return (
            self._task.remember == "never"
            and self._steps is not None
            and self._branches.can_wait
        )

    @property
    def has_waited(self) -> bool:
        """Whether this run came to a wait; for the host."""
        return "_waits" in vars(self)

    def longest_wait(self, span: timedelta) -> timedelta:
        """Return *span*, or less where the deadline of the task comes before."""
        deadline = self._assignment.deadline
        return (
            span
            if deadline is None
            else min(span, aware(deadline) - self._services.now() - MARGIN)
        )

    async def demand_start(self, parameters: BaseModel) -> datetime:
        """Return when the person agreed whose yes the assignment needs before anything else; for the host.

        Raises:
            NotApproved: they said no, or nothing in time.
            ApprovalChanged: they agreed to other parameters.
            InvalidInput: the question cannot be put.
        """
        return await self._make_waits().demand_start(parameters)

    @cached_property
    def _waits(self) -> TaskWaits:
        self._task.demand_unremembered("ask_person, signal or sleep", "the answer")
        return self._make_waits()

    def _make_waits(self) -> TaskWaits:
        if self._steps is None or self._run is None or not self._branches.can_wait:
            raise InvalidInput(
                "only a task can wait, in a worker or in the testing kit"
            )
        services = self._services
        return TaskWaits(
            store=services.waits,
            steps=self._steps,
            branches=self._branches,
            assignment=self._assignment,
            run=self._run,
            now=services.now,
            recorder=self.recorder,
        )
