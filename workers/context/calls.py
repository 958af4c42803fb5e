"""Calling other tasks: the part of a context that does so."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pydantic import BaseModel

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import TaskAssignment
from tasklore.contracts.parameters.model import Parameters
from tasklore.workers.context.children import AT_ONCE, Children, find_callee

if TYPE_CHECKING:
    from tasklore.workers.context.branches import Branches
    from tasklore.workers.context.children import Lend
    from tasklore.workers.context.recorder import RunRecorder
    from tasklore.workers.context.services import Services

R = TypeVar("R")


class ChildCaller:
    """Calls other tasks from a run, number *run_number* of its *generation*, and lends its slot meanwhile."""

    _assignment: TaskAssignment
    _services: "Services"
    _branches: "Branches"
    recorder: "RunRecorder | None"

    def __init__(self, generation: int, run_number: int, lend: "Lend | None") -> None:
        self._generation = generation
        self._run_number = run_number
        self._lend = lend

    @property
    def assignment(self) -> TaskAssignment:
        """The assignment as the task may see it."""
        raise NotImplementedError

    @overload
    async def call(
        self,
        task: Callable[..., Awaitable[R]],
        parameters: Parameters,
        /,
        *,
        within: timedelta | None = None,
    ) -> R: ...

    @overload
    async def call(
        self,
        agent_id: str,
        task_name: str,
        /,
        *,
        within: timedelta | None = None,
        **parameters: Any,
    ) -> Any: ...

    async def call(
        self,
        task: str | Callable[..., Any],
        what: "str | Parameters",
        /,
        *,
        within: timedelta | None = None,
        **parameters: Any,
    ) -> Any:
        """Return the result of another task, asked of whichever worker serves it.

        Called as `call("PaperFinder", "find", topic="bees")`, or typed as `call(find_papers, Topic(topic="bees"))`. A
        child is asked once for its place and parameters: a later run of this task finds its report. While this task
        waits, another one has its slot. Deadline, user, conversation, memory mode and cancellation go down to the
        child; a task whose answers are shared tells it no user. Children that have not ended with this task are
        cancelled.

        Args:
            task: A function with `@agent.task` on it, or the id of an agent.
            what: The parameters of that function, or the name of a task of that agent.
            within: How long the child may take, no longer than this task.
            parameters: The parameters by name.

        Raises:
            CallFailed: the child ended otherwise than completed.
            InvalidInput: there is no such task, it would wait for itself, 32 tasks are above it, or its parameters
                are no JSON.
            NotAccepted: its queue took no task; this task is run again.
            MemoryUnavailable: it is not known whether it was asked for; this task is run again.
        """
        await self._branches.demand_going()
        if isinstance(task, str):
            return await self._children.call(
                find_callee(f"{task}.{what}"), parameters, within
            )
        if not isinstance(what, BaseModel):
            raise InvalidInput(
                f"call takes a task's function and an instance of its Parameters, not {what!r}"
            )
        return await self._children.call(find_callee(task), what, within)

    @overload
    async def map(
        self,
        task: Callable[..., Awaitable[R]],
        items: Iterable[Parameters],
        /,
        *,
        at_once: int = AT_ONCE,
        within: timedelta | None = None,
    ) -> list[R]: ...

    @overload
    async def map(
        self,
        task: str | Callable[..., Any],
        items: Iterable[Mapping[str, Any] | Parameters],
        /,
        *,
        at_once: int = AT_ONCE,
        within: timedelta | None = None,
        keep_failures: bool = False,
    ) -> list[Any]: ...

    async def map(
        self,
        task: str | Callable[..., Any],
        items: Iterable[Mapping[str, Any] | Parameters],
        /,
        *,
        at_once: int = AT_ONCE,
        within: timedelta | None = None,
        keep_failures: bool = False,
    ) -> list[Any]:
        """Return the results of *task* for each of *items*, in their order; each is a `call`.

        Args:
            task: A function with `@agent.task` on it, or "Agent.task".
            items: The parameters of each call, at most 10,000.
            at_once: How many are under way at the same time.
            within: As in `call`, for each.
            keep_failures: Put the CallFailed of a child into its place; otherwise the first one is raised.

        Raises:
            CallFailed: a child ended otherwise than completed; those not yet called are not.
            InvalidInput, NotAccepted, MemoryUnavailable: as `call`.
        """
        await self._branches.demand_going()
        return await self._children.map(
            find_callee(task),
            items,
            at_once=at_once,
            within=within,
            keep_failures=keep_failures,
        )

    async def call_in_words(
        self,
        task: str | Callable[..., Any],
        parameters: Parameters,
        /,
        *,
        words: str = "",
        within: timedelta | None = None,
    ) -> object:
        """Return the result of a task that a model chose by *words*, as `call`, once those agreed who must.

        Their question shows *words* beside the parameters. This task keeps its delivery meanwhile, and lends its slot.

        Raises:
            CallFailed, InvalidInput, NotAccepted, MemoryUnavailable: as `call`; a no is the child's status `rejected`.
        """
        await self._branches.demand_going()
        return await self._children.call(find_callee(task), parameters, within, words)

    @cached_property
    def _children(self) -> Children:
        return Children(
            self._assignment,
            self.assignment,
            self._services,
            generation=self._generation,
            run_number=self._run_number,
            lend=self._lend,
            recorder=self.recorder,
        )

    async def cancel_children(self) -> None:
        """Cancel the children of a task that has ended; for the host."""
        if "_children" in self.__dict__:
            await self._children.cancel_open("its parent has ended")
