"""The kit that tests an agent without a system: the worker's own reading, running and writing, on a Valkey of the kit.

```python
report = await run_task(agent, "share_trip", {"hotel": "300", "travellers": 3})
assert report.result == {"each": 100, "dearest_ticket": None}

heard = await listen(agent, "I love omelettes")
assert [fact.text for fact in heard.facts] == ["User loves omelettes"]
```
"""

import asyncio
import contextvars
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import APPROVED_WITHIN
from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import (
    ChatTurn,
    CompletionReport,
    MemoryMode,
    RequiredApproval,
    TaskAssignment,
)
from tasklore.contracts.parameters.model import Parameters
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.long_term.entries import CachedResult
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.agent import Agent
from tasklore.workers.context.branches import RunParked
from tasklore.workers.context.context import Context
from tasklore.workers.context.phase_outputs import entries_of
from tasklore.workers.context.recorder import open_recorder
from tasklore.workers.execution.job import Job, UnfitJob
from tasklore.workers.execution.job_reader import JobReader
from tasklore.workers.execution.outcome import TaskOutcome, elapsed_ms, outcome_of
from tasklore.workers.execution.recall import NearMatches
from tasklore.workers.execution.remembered_result import remember
from tasklore.workers.execution.retry_decision import RetryPolicy, decide_retry
from tasklore.workers.middleware import Hooks, call_task, notify, notify_async
from tasklore.workers.testing.children import Called, KitChildren
from tasklore.workers.testing.fakes import (
    Asked,
    KitServices,
    ScriptedLlm,
)
from tasklore.workers.testing.history import KitHistory
from tasklore.workers.testing.session import KitSession
from tasklore.workers.testing.story import KitStory
from tasklore.workers.testing.waits import KitWaits

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasklore.memory.documents.items import Body
    from tasklore.memory.projects.records import Record
    from tasklore.workers.context.services import Services

__all__ = [
    "NOW",
    "AgentKit",
    "Asked",
    "Called",
    "KitHistory",
    "KitServices",
    "KitStory",
    "ScriptedLlm",
    "run_task",
]

#: The time in a kit unless another is given: fixed, so that a test says the same every day.
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

_CONVERSATION = "conversation-1"
R = TypeVar("R")


class AgentKit:
    """One agent, with stores as a worker has them; its memory lives as long as the kit.

    The agent's middleware is called as in a worker, but for `on_deliveries` and `before_acknowledge`: here nothing is
    delivered. No deadline of a task is kept, no run is cut short, and none waits for a place (`at_most`).

    Args:
        agent: whose tasks to run.
        llm: answers of the model, in order; an LlmError among them is raised instead.
        now: the time that tasks see; change it with `kit.services.at = ...`.
        conversation: what was said before, oldest first; a string is something the person said.
        documents: the JSON memory of whoever asks, bodies by resource id; templates stand for the others.
        session: what earlier phases wrote, values by key; None, without a phase or standards: tasks have no session.
        phase: the phase that tasks run as.
        writes: what of a result goes into the session, as in an assignment; look with `entries`.
        story: the response that tasks analyse, with its story; None: they analyse none.
        history: what the agent has heard, said and observed; None, without a conversation: tasks have none.
        calls: results of the tasks that tasks call, by "Agent.task"; a function is called with the parameters, and a
            CallFailed is raised. See `called`.
        answers: answers of persons whom tasks ask, in order: a bool for an Approval, a model or JSON; None lets the
            time of the question pass. Nobody waits: the clock jumps. See `questions`.
        signals: signals that tasks wait for, by name; the time of one that is not here passes.
        standards: what is in force in the session's project: texts, or tuples of a text and its tags.
        remembers: the agent's memory switch.
    """

    __test__ = False

    def __init__(
        self,
        agent: Agent,
        *,
        llm: Iterable[BaseModel | LlmError] = (),
        now: datetime = NOW,
        conversation: Iterable[ChatTurn | str] = (),
        documents: "Mapping[str, Body] | None" = None,
        session: "Mapping[str, JsonValue] | None" = None,
        phase: str | None = None,
        writes: Sequence[str] | None = None,
        standards: Iterable[str | tuple[str, ...]] = (),
        story: KitStory | None = None,
        history: KitHistory | None = None,
        calls: Mapping[str, Any] | None = None,
        answers: Iterable[Any] = (),
        signals: Mapping[str, Any] | None = None,
        remembers: bool = True,
    ) -> None:
        self.agent = agent
        turns = tuple(
            turn_of(number, said, now)
            for number, said in enumerate(conversation, start=1)
        )
        self.services = KitServices(
            ScriptedLlm(llm), now, turns, bodies=documents or {}
        )
        self.services.children = KitChildren(calls or {})
        self.services.waits = KitWaits(answers, signals)
        self.progress = self.services.progress
        """The progress that tasks published, in order."""
        self.emitted = self.services.emitted
        """The events that tasks emitted, in order."""
        self.raised: list[Exception] = []
        self._session = KitSession(
            self.services,
            given=session,
            phase=phase,
            writes=writes,
            standards=tuple(standards),
        )
        self._story = story
        self._history = history
        self._conversation_id = (
            turns[-1].conversation_id
            if turns
            else _CONVERSATION
            if history is not None
            else None
        )
        self._reader = JobReader(agent, remembers=remembers)
        self._hooks = Hooks(agent.middleware)
        self._preparing: asyncio.Lock | None = asyncio.Lock()
        self._effects: set[tuple[str, str]] = set()
        self._runs = 0

    @property
    def called(self) -> list[Called]:
        """The tasks that tasks called, in order, with their parameters as JSON."""
        return self.services.children.called

    @property
    def questions(self) -> list[str]:
        """What persons were asked, in order."""
        return self.services.waits.questions

    @property
    def asked(self) -> list[Asked]:
        """What the model was asked, in order."""
        return self.services.llm.asked

    async def entries(self) -> "dict[str, JsonValue]":
        """Return the values in the session by key; it counts as no use of them."""
        await self._prepare()
        return await self._session.entries()

    async def decisions(self) -> "list[Record]":
        """Return the decisions in the session's project, newest first."""
        await self._prepare()
        return await self._session.decisions()

    async def run(
        self,
        task_name: str,
        parameters: Mapping[str, Any] | Parameters,
        *,
        user_id: str | None = None,
        memory: MemoryMode = "use",
        max_attempts: int = 5,
        in_words: str | None = None,
    ) -> CompletionReport:
        """Return the report of one assignment, as a supervisor would receive it.

        A task that raises is run again at once, as often as it and *max_attempts* allow; `raised` keeps every
        exception with its traceback. An AssertionError is the test's own and is not caught. With *in_words*, those of a
        person who asked for it, a task that names who must agree asks them first, see `answers`.
        """
        job = self._read(
            task_name,
            parameters=parameters,
            user_id=user_id,
            memory=memory,
            max_attempts=max_attempts,
            in_words=in_words,
        )
        if isinstance(job, UnfitJob):
            self.raised.append(job.problem)
            assignment = job.assignment
            assert assignment is not None, job.problem  # noqa: S101 - the kit wrote it itself
            return self._report(
                TaskOutcome(
                    delivery=job.delivery,
                    assignment=assignment,
                    generation=1,
                    attempt=1,
                    status="rejected",
                    worker_id="kit",
                    memory="off",
                    error=job.problem,
                )
            )
        notify(self._hooks.after_read, job)
        await self._prepare()
        if job.memory == "miss":
            await self._recall(job)
            if job.recalled is not None:
                return await self._serve(job, job.recalled)
        return await self._compute(job)

    async def _prepare(self) -> None:
        """Store the turns, session and history given to the kit, once; other callers wait until that is done."""
        preparing = self._preparing
        if preparing is None:
            return
        async with preparing:
            if self._preparing is None:
                return
            await self._session.open()
            if self._story is not None:
                await self._story.put_into(self.services)
            for turn in self.services.turns:
                await self.services.conversations.append(
                    turn.conversation_id, turn.model_dump_json().encode(), turn.turn_id
                )
            if self._history is not None:
                owner = self._conversation_id or _CONVERSATION
                await self._history.put_into(self.services, owner)
            self._preparing = None

    async def _recall(self, job: Job) -> None:
        """Give *job* the answer that is remembered of it, or of its nearest neighbour, as its `recalled`."""
        memory = self.services.long_term
        began_ns = time.time_ns()
        job.recalled = await memory.recall(job.memory_key or "")
        hooks = Hooks([NearMatches(memory), *self.agent.middleware])
        await notify_async(hooks.after_recall, [job], began_ns)

    def _read(
        self,
        task_name: str,
        parameters: Mapping[str, Any] | Parameters,
        user_id: str | None,
        memory: MemoryMode,
        max_attempts: int,
        in_words: str | None = None,
    ) -> Job | UnfitJob:
        self._runs += 1
        declared = self.agent.tasks.get(task_name)
        approval = None
        if (
            in_words is not None
            and declared is not None
            and declared.approver is not None
        ):
            until = self.services.now() + APPROVED_WITHIN
            approval = RequiredApproval(
                who=declared.approver, words=in_words, until=until
            )
        raw = (
            parameters.model_dump(mode="json")
            if isinstance(parameters, Parameters)
            else dict(parameters)
        )
        assignment = TaskAssignment.model_validate(
            {
                "task_id": f"task-{self._runs}",
                "agent_id": self.agent.agent_id,
                "supervisor_id": "kit",
                "task": {"name": task_name, "parameters": raw},
                "created_at": self.services.now(),
                "max_attempts": max_attempts,
                "memory": memory,
                "user_id": user_id,
                "conversation_id": self._conversation_id,
                "approval": approval,
                **self._session.fields,
                **(self._story.fields if self._story is not None else {}),
            }
        )
        subject = subjects.task(self.agent.agent_id, task_name)
        delivery = Delivery(
            subject=subject,
            body=assignment.model_dump_json().encode(),
            headers=None,
            reply="",
            deliveries=1,
            sequence=self._runs,
            arrived_at=time.monotonic(),
        )
        return self._reader.read(delivery, self.services.now())

    @property
    def effects(self) -> set[tuple[str, str]]:
        """Which effects were made: pairs of task id and the name given to `context.once`."""
        return self._effects

    def _context(
        self, job: Job, park: Callable[[RunParked], None] | None = None
    ) -> Context:
        async def claim(name: str) -> bool:
            effect = job.assignment.task_id, name
            is_first = effect not in self._effects
            self._effects.add(effect)
            return is_first

        run = RunName(job.assignment.task_id, job.generation, "kit")
        return Context(
            job.task,
            job.assignment.model_copy(update={"deadline": job.deadline}),
            cast("Services", self.services),
            settings=self.agent.settings,
            attempt=job.attempt,
            claim=claim,
            run=run,
            park=park,
            recorder=open_recorder(
                self.services.recording, job.assignment, run, job.attempt
            ),
        )

    async def _serve(self, job: Job, answer: CachedResult) -> CompletionReport:
        job.memory = "hit" if job.near is None else "near"
        try:
            await self._put_into_session(job, answer.result_json, answer.computed_ms)
        except Exception as error:  # noqa: BLE001 - as below
            return self._failure(job, error) or await self._compute(job)
        outcome = outcome_of(job, "completed", "kit", result_json=answer.result_json)
        outcome.age_ms = self._now_ms() - answer.created_at_ms
        return self._report(outcome)

    def _now_ms(self) -> int:
        return int(self.services.now().timestamp() * 1000)

    async def _compute(self, job: Job) -> CompletionReport:
        while True:
            run = _KitRun()
            context = self._context(job, run.park)
            try:
                if job.assignment.approval is not None:
                    await run.call(
                        partial(context.demand_start, job.parameters),
                        contextvars.copy_context(),
                    )
                result = await call_task(
                    job, context, self._hooks, partial(_call_noted, run, context)
                )
                run_ms = elapsed_ms(context.started)
                if job.memory_key is not None and job.memory in ("miss", "refreshed"):
                    await remember(
                        self.services.long_term,
                        job,
                        key=job.memory_key,
                        result=result,
                        run_ms=run_ms,
                        now=self.services.now(),
                        nano_usd=context.nano_usd,
                    )
                await self._put_into_session(job, result, run_ms)
            except RunParked as waiting:
                self.services.at = self.services.waits.end(
                    job.assignment.task_id, waiting.waits, self.services.now()
                )
                job.attempt = job.attempt + 1
                job.excused = job.excused + 1
                continue
            except (AssertionError, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a task raises becomes its report
                failure = self._failure(job, error, context)
                if failure is not None:
                    return failure
                job.attempt += 1
                continue
            outcome = outcome_of(
                job, "completed", "kit", result_json=result, run_ms=run_ms
            )
            outcome.usage = context.usage
            return self._report(outcome)

    async def _put_into_session(
        self, job: Job, result: bytes, computed_ms: int
    ) -> None:
        assignment = job.assignment
        if assignment.writes:
            entries = entries_of(assignment, result, computed_ms)
            await self.services.sessions.set_many(
                assignment.session_id or "", entries, task_id=assignment.task_id
            )

    def _failure(
        self, job: Job, error: Exception, context: Context | None = None
    ) -> CompletionReport | None:
        """Keep *error* and return the report it leads to, None when the task runs again."""
        self.raised.append(error)
        decision = decide_retry(
            error,
            task=job.task,
            attempt=job.tries,
            max_attempts=job.runs_allowed,
            retry=RetryPolicy().of(job.task),
            now=self.services.now(),
        )
        if decision.pause_s is not None:
            notify(self._hooks.before_retry, job, decision, error)
            return None
        outcome = outcome_of(job, decision.status, "kit")
        outcome.error = error
        outcome.usage = context.usage if context is not None else None
        return self._report(outcome)

    def _report(self, outcome: TaskOutcome) -> CompletionReport:
        notify(self._hooks.on_reports, (outcome,))
        return CompletionReport.model_validate_json(outcome.body("none"))


class _KitRun:
    """One run of a task, which ends when the task waits."""

    def __init__(self) -> None:
        self._run: asyncio.Task[Any] | None = None
        self._waiting: RunParked | None = None

    async def call(
        self, call: Callable[[], Coroutine[Any, Any, R]], variables: contextvars.Context
    ) -> R:
        """Return the result of *call*, or raise the wait it ended at."""
        self._run = run = asyncio.create_task(call(), context=variables)
        try:
            return await run
        finally:
            if self._waiting is not None:
                raise self._waiting

    def park(self, waiting: RunParked) -> None:
        """End the run."""
        self._waiting = self._waiting or waiting
        assert self._run is not None  # noqa: S101 - only the run calls it
        self._run.cancel()


async def _call_noted(
    run: _KitRun,
    context: Context,
    call: Callable[[], Coroutine[Any, Any, bytes]],
    variables: contextvars.Context,
) -> bytes:
    """Return the result of *call*, and keep the messages of its run where any are kept."""
    try:
        return await context.follow(run.call(call, variables))
    finally:
        if context.recorder is not None:
            await context.recorder.close()


async def run_task(
    agent: Agent,
    task_name: str,
    parameters: Mapping[str, Any] | Parameters,
    *,
    llm: Iterable[BaseModel | LlmError] = (),
    now: datetime = NOW,
    conversation: Iterable[ChatTurn | str] = (),
    documents: "Mapping[str, Body] | None" = None,
    session: "Mapping[str, JsonValue] | None" = None,
    phase: str | None = None,
    standards: Iterable[str | tuple[str, ...]] = (),
    story: KitStory | None = None,
    history: KitHistory | None = None,
    calls: Mapping[str, Any] | None = None,
    answers: Iterable[Any] = (),
    signals: Mapping[str, Any] | None = None,
    user_id: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CompletionReport:
    """Return the report of one task of *agent*, run with nothing remembered; arguments as in `AgentKit`.

    Raises:
        ConfigurationError: *settings* do not fit the agent.
    """
    configured = agent.configured(settings) if settings is not None else agent
    kit = AgentKit(
        configured,
        llm=llm,
        now=now,
        conversation=conversation,
        documents=documents,
        session=session,
        phase=phase,
        standards=standards,
        story=story,
        history=history,
        calls=calls,
        answers=answers,
        signals=signals,
    )
    return await kit.run(task_name, parameters, user_id=user_id)


def turn_of(
    number: int, said: ChatTurn | str, now: datetime, user_id: str | None = None
) -> ChatTurn:
    """Return *said* as a turn: a text is the *number*th of the kit's conversation."""
    if isinstance(said, ChatTurn):
        return said
    name = f"turn-{number}"
    return ChatTurn(
        turn_id=name,
        conversation_id=_CONVERSATION,
        user_id=user_id,
        speaker="person",
        text=said,
        at=now,
    )
