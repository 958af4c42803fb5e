"""The tasks that one run of a task calls: each is asked once for its place in the task and its parameters."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from tasklore.contracts.admission.waits import APPROVED_WITHIN
from tasklore.contracts.errors import CallFailed, InvalidInput
from tasklore.contracts.messages import (
    CompletionReport,
    RequiredApproval,
    TaskAssignment,
    TaskCall,
)
from tasklore.contracts.task_messages import MOST_ANCESTORS

if TYPE_CHECKING:
    from tasklore.workers.context.recorder import RunRecorder
    from tasklore.workers.context.services import Services

#: Children that `map` waits for at once, unless it is told another number.
AT_ONCE = 32
#: Items of one `map`.
MOST_ITEMS = 10_000
#: How long before its deadline a task goes on that waits for as long as it can.
MARGIN = timedelta(seconds=10)

Lend = Callable[[], AbstractAsyncContextManager[None]]


class Callee(NamedTuple):
    """A task that can be called, and the type of its result."""

    agent_id: str
    task_name: str
    result: TypeAdapter[Any]


#: Callees by the function that `@agent.task` was put on.
_DECLARED: "WeakKeyDictionary[Callable[..., Any], Callee]" = WeakKeyDictionary()
_JSON = TypeAdapter[Any](Any)


def declare_callable(function: Callable[..., Any], callee: Callee) -> None:
    """Let tasks call *callee* by its *function*."""
    _DECLARED[function] = callee


def find_callee(task: str | Callable[..., Any]) -> Callee:
    """Return the callee that *task* names, as a function or as "Agent.task".

    Raises:
        InvalidInput: it is neither.
    """
    if isinstance(task, str):
        agent_id, _, task_name = task.partition(".")
        if agent_id and task_name:
            return Callee(agent_id, task_name, _JSON)
    elif (callee := _DECLARED.get(task)) is not None:
        return callee
    msg = f"{task!r} is not a task; pass a function with @agent.task on it, or its name as 'Agent.task'"
    raise InvalidInput(msg)


class Children:
    """The children of one run of *assignment*; *shown* is what the task may tell them of who asked.

    *run_number* counts the runs of *generation*; in the first of all no child can be known yet.
    """

    def __init__(
        self,
        assignment: TaskAssignment,
        shown: TaskAssignment,
        services: "Services",
        *,
        generation: int,
        run_number: int,
        lend: Lend | None,
        recorder: "RunRecorder | None" = None,
    ) -> None:
        self._assignment = assignment
        self._recorder = recorder
        self._shown = shown
        self._services = services
        self._generation = generation
        self._may_be_known = generation > 1 or run_number > 1
        self._lend: Lend = lend or _lend_nothing
        self._ancestors = _ancestors_for_children(assignment)
        self._calls: Counter[str] = Counter()
        self._open: set[str] = set()

    async def call(
        self,
        callee: Callee,
        parameters: Mapping[str, Any] | BaseModel,
        within: timedelta | None,
        words: str | None = None,
    ) -> Any:
        """Return the result of one call; one that a model chose by *words* needs the yes that the callee's card names.

        Raises:
            CallFailed: it ended otherwise than completed.
            InvalidInput: see `Context.call`.
        """
        assignment = self._assign(callee, parameters, within)
        card = (
            None
            if words is None
            else await self._services.children.demand_task(
                callee.agent_id, callee.task_name
            )
        )
        if card is not None and card.approver is not None:
            until = self._services.now() + APPROVED_WITHIN
            if assignment.deadline is not None:
                until = min(until, assignment.deadline - MARGIN)
            approval = RequiredApproval(
                who=card.approver, words=words or "", until=until
            )
            assignment = assignment.model_copy(update={"approval": approval})
        return await self._result_of(callee, assignment)

    async def map(
        self,
        callee: Callee,
        items: Iterable[Mapping[str, Any] | BaseModel],
        *,
        at_once: int,
        within: timedelta | None,
        keep_failures: bool,
    ) -> list[Any]:
        """Return the results of one call for each of *items*, in their order; *at_once* of them are under way."""
        if at_once < 1:
            raise InvalidInput(
                f"at_once is {at_once}; at least one call has to be under way"
            )
        given = list(islice(items, MOST_ITEMS + 1))
        if len(given) > MOST_ITEMS:
            raise InvalidInput(
                f"map got more than {MOST_ITEMS:,} items; call it in parts"
            )
        assigned = [self._assign(callee, parameters, within) for parameters in given]
        results: list[Any] = [None] * len(assigned)
        places = iter(range(len(assigned)))

        async def work() -> None:
            for place in places:
                try:
                    results[place] = await self._result_of(callee, assigned[place])
                except CallFailed as failure:
                    if not keep_failures:
                        raise
                    results[place] = failure

        workers = [
            asyncio.ensure_future(work()) for _ in range(min(at_once, len(assigned)))
        ]
        try:
            # The slot is lent as long as any of them waits.
            async with self._lend():
                await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return results

    async def cancel_open(self, reason: str) -> None:
        """Cancel the children that have not ended: their parent has, which no longer waits for them."""
        await asyncio.gather(
            *(self._services.children.cancel(task_id, reason) for task_id in self._open)
        )
        self._open.clear()

    def _assign(
        self,
        callee: Callee,
        parameters: Mapping[str, Any] | BaseModel,
        within: timedelta | None,
    ) -> TaskAssignment:
        """Return the assignment of the next call with these *parameters*: the same in every run of the task."""
        parent = self._assignment
        name = f"{callee.agent_id}.{callee.task_name}"
        spelled, digest = _spell(name, parameters)
        ancestors = self._ancestors
        if (itself := f"{name}:{digest}") in ancestors:
            way = " -> ".join(
                [
                    *(
                        one.partition(":")[0]
                        for one in ancestors[ancestors.index(itself) :]
                    ),
                    name,
                ]
            )
            raise InvalidInput(
                f"{name} would wait for itself, with the same parameters: {way}; end the circle"
            )
        if len(ancestors) > MOST_ANCESTORS:
            raise InvalidInput(
                f"{name} would be task number {len(ancestors) + 1} above one another; call it higher up"
            )
        self._calls[itself] += 1
        named = f"{parent.task_id} {itself} {self._calls[itself]}"
        deadline = None if within is None else self._services.now() + within
        if parent.deadline is not None:
            deadline = min(deadline or aware(parent.deadline), aware(parent.deadline))
        return TaskAssignment(
            task_id=f"c-{hashlib.blake2b(named.encode(), digest_size=20).hexdigest()}",
            agent_id=callee.agent_id,
            supervisor_id=self._services.children.caller_id,
            task=TaskCall(name=callee.task_name, parameters=spelled),
            created_at=self._services.now(),
            deadline=deadline,
            memory=parent.memory,
            parent_id=parent.task_id,
            root_id=parent.root_id or parent.task_id,
            ancestors=ancestors,
            user_id=self._shown.user_id,
            caller=parent.asked_by,
            priority=parent.priority if parent.priority != "other" else None,
            conversation_id=self._shown.conversation_id,
        )

    async def _result_of(self, callee: Callee, assignment: TaskAssignment) -> Any:
        await self._services.children.demand_task(callee.agent_id, callee.task_name)
        self._open.add(assignment.task_id)
        async with self._lend():
            report = await self._services.children.ask(
                assignment, self._generation, may_be_known=self._may_be_known
            )
            if report.status == "cancelled":
                # The child may have heard sooner than this task that both are.
                await self._services.children.raise_if_cancelled(self._assignment)
        self._open.discard(assignment.task_id)
        if self._recorder is not None:
            error = report.error
            self._recorder.note(
                "child",
                to_json(report.result if error is None else error.message),
                name=f"{callee.agent_id}.{callee.task_name}",
                given=to_json(assignment.task.parameters),
                task_id=assignment.task_id,
                status=report.status,
                memory=report.memory.outcome,
                error=None if error is None else error.type,
            )
        return _result_in(report, callee)


def _result_in(report: CompletionReport, callee: Callee) -> Any:
    if report.status == "completed":
        return (
            callee.result.validate_python(report.result)
            if callee.result is _JSON
            else _read(callee, report.result)
        )
    error = report.error
    why = f"{error.type}: {error.message}" if error is not None else "without a word"
    msg = f"{callee.agent_id}.{callee.task_name} ({report.task_id}) {report.status}: {why}"
    raise CallFailed(msg, report.status, error.type if error is not None else None)


def _read(callee: Callee, result: Any) -> Any:
    # As JSON, since what is strict takes other types of it than of Python.
    return callee.result.validate_json(json.dumps(result))


def _spell(
    name: str, parameters: Mapping[str, Any] | BaseModel
) -> tuple[dict[str, Any], str]:
    """Return *parameters* as JSON, and their digest."""
    try:
        spelled = to_jsonable_python(
            parameters.model_dump(mode="json")
            if isinstance(parameters, BaseModel)
            else dict(parameters)
        )
        text = json.dumps(spelled, sort_keys=True)
    except (PydanticSerializationError, TypeError, ValueError) as error:
        msg = f"the parameters of {name} are not JSON ({error}); pass a mapping of plain values, or its Parameters"
        raise InvalidInput(msg) from error
    return spelled, hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _ancestors_for_children(parent: TaskAssignment) -> tuple[str, ...]:
    return (*(parent.ancestors or ()), identity_of(parent))


def identity_of(assignment: TaskAssignment) -> str:
    """Return the word by which those below a task know it: "Agent.task", and a digest of its parameters."""
    name = f"{assignment.agent_id}.{assignment.task.name}"
    return f"{name}:{_spell(name, assignment.task.parameters)[1]}"


def aware(moment: datetime) -> datetime:
    """Return *moment* with its zone, UTC where other programs left it out."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@asynccontextmanager
async def _lend_nothing() -> AsyncIterator[None]:
    yield
