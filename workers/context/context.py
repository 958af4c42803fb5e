"""The context of a running task: its assignment, progress, cancellation, and the stores that it declared to use."""

import math
import time
from collections.abc import AsyncIterable, Awaitable, Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from pydantic import BaseModel

from tasklore.contracts.admission.limits import NANO_USD, Payer
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    UndeclaredAccess,
)
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import Progress, TaskAssignment, Usage
from tasklore.contracts.parameters.model import Parameters
from tasklore.runtime.models.llm import Spent
from tasklore.workers.context.access import DeclaredAccess
from tasklore.workers.context.branches import Branches
from tasklore.workers.context.calls import ChildCaller
from tasklore.workers.context.children import aware
from tasklore.workers.context.conversation import Conversation
from tasklore.workers.context.conversion import convert_amounts
from tasklore.workers.context.documents import UserDocuments
from tasklore.workers.context.edits import UserEdits
from tasklore.workers.context.history import TaskHistory
from tasklore.workers.context.llm import TaskLlm
from tasklore.workers.context.project import TaskProject
from tasklore.workers.context.session import TaskSession
from tasklore.workers.context.steps import Steps
from tasklore.workers.context.story import TaskStory
from tasklore.workers.context.user_memory import UserMemory
from tasklore.workers.context.waits.asks import TaskAsker

if TYPE_CHECKING:
    from pathlib import Path

    from tasklore.contracts.admission.waits import RunWait
    from tasklore.contracts.quantities.amounts.rates import ConvertedAmount
    from tasklore.contracts.run_messages import RunMessageKind
    from tasklore.memory.ledger.runs import RunName
    from tasklore.workers.context.branches import RunParked
    from tasklore.workers.context.children import Lend
    from tasklore.workers.context.output import TaskOutputWriter
    from tasklore.workers.context.recorder import RunRecorder
    from tasklore.workers.context.services import Services

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

#: Characters of a word on progress: one that is too large for the server would end the connection of all.
_PROGRESS_TEXT = 4_000

#: What tells who asked; a result that serves everybody must not depend on it.
_WHO_ASKED = (
    "user_id",
    "conversation_id",
    "session_id",
    "phase",
    "writes",
    "keep_ms",
    "request_id",
    "parent_id",
    "root_id",
    "ancestors",
    "story_id",
    "response_number",
    "approval",
)


class Context(ChildCaller, TaskAsker):
    """What the host hands to a handler that asks for it; one for every run of a task.

    Whatever can make two runs differ is declared: the clock and the LLM with `uses`, the person who asks with
    `remember="user"` (or False), since a shared answer is served to everybody, and session and project with
    `remember=False`. `started` is when the run began, a reading of `time.monotonic`.
    """

    def __init__(
        self,
        task: DeclaredAccess,
        assignment: TaskAssignment,
        services: "Services",
        *,
        settings: BaseModel | None = None,
        attempt: int = 1,
        claim: Callable[[str], Awaitable[bool]] | None = None,
        run: "RunName | None" = None,
        lend: "Lend | None" = None,
        park: "Callable[[RunParked], None] | None" = None,
        waited_for: "RunWait | None" = None,
        recorder: "RunRecorder | None" = None,
    ) -> None:
        super().__init__(run.generation if run is not None else 1, attempt, lend)
        self._task = task
        self._assignment = assignment
        self._services = services
        self._settings = settings
        self._attempt = attempt
        self._claim = claim
        self._output: TaskOutputWriter | None = None
        # Why the last run let the task wait, unless it is not this run that follows.
        self._waited_for = (
            waited_for if waited_for is not None and waited_for.run == attempt else None
        )
        self._before = 0 if self._waited_for is None else self._waited_for.emitted
        self._run = run
        #: Notes what the run sees, None where nothing of it is kept; for the host.
        self.recorder = recorder
        self._branches = Branches(park)
        self._steps = (
            Steps(services.journal, run, self.once, self._branches, recorder=recorder)
            if run is not None
            else None
        )
        self._cancelled = False
        self._converted: tuple[ConvertedAmount, ...] = ()
        self._spent = Spent(
            payer=_payer_of(
                assignment, run.generation if run is not None else 1, attempt
            ),
            watcher=recorder,
        )
        self.started = time.monotonic()

    @cached_property
    def assignment(self) -> TaskAssignment:
        """The assignment as it came; for a task whose answers are shared, without the fields that tell who asked."""
        if self._task.remember != "shared":
            return self._assignment
        return self._assignment.model_copy(update=dict.fromkeys(_WHO_ASKED))

    @property
    def settings(self) -> BaseModel | None:
        """The agent's settings, None when it has none; a handler that takes its settings class gets them typed."""
        return self._settings

    @property
    def converted(self) -> "tuple[ConvertedAmount, ...]":
        """The amounts that were given in another currency than the task takes, each with its rate, in order."""
        return self._converted

    async def convert_amounts(self, parameters: Parameters) -> Parameters:
        """Return *parameters* with each amount in the currency that its field declares; for the host.

        A rate is asked for once a run, as a step: a later run of the task reads it from the journal.

        Raises:
            GiveUp: what was returned is no rate.
            InvalidAmount: an amount has too many digits.
            Exception: whatever the function of the field raises.
        """
        ready, self._converted = await convert_amounts(parameters, self.step)
        return ready

    @property
    def attempt(self) -> int:
        """Which run of the task this is, 1 for the first."""
        return self._attempt

    @property
    def user_id(self) -> str | None:
        """The user who asked; None for an unknown one, where the task is not remembered per user.

        Raises:
            UndeclaredAccess: the task's answers are shared.
        """
        self._task.demand_owner("user_id")
        return self._assignment.user_id

    @property
    def conversation(self) -> Conversation:
        """The conversation the task was asked in.

        Raises:
            UndeclaredAccess: the task's answers are shared.
        """
        self._task.demand_owner("conversation")
        return Conversation(self._assignment.conversation_id, self._services)

    @property
    def documents(self) -> UserDocuments:
        """The JSON memory of the user who asked, to be read.

        Raises:
            UndeclaredAccess: the task's answers are shared.
            InvalidInput: the user is unknown.
        """
        self._task.demand_owner("documents")
        services = self._services
        return UserDocuments(
            self._assignment.user_id,
            services.documents,
            services.kinds,
            services.now(),
            recorder=self.recorder,
        )

    @property
    def memory(self) -> UserMemory:
        """The memory of the user who asked: items and turns, to be searched and shown in a prompt.

        Raises:
            UndeclaredAccess: the task's answers are shared.
            InvalidInput: the user is unknown.
        """
        self._task.demand_owner("memory")
        return UserMemory(self.documents, self._services.episodes)

    @property
    def edits(self) -> UserEdits:
        """Changes of the memory of the user who asked: edits, undoing them, forgetting all.

        Raises:
            UndeclaredAccess: the task does not declare `uses=("edits",)`, or its answers are remembered.
            InvalidInput: the user is unknown.
        """
        self._task.demand_use("edits", "edits")
        self._task.demand_unremembered("edits", "what is done to documents")
        lent = self._services
        user_id = self._assignment.user_id
        return UserEdits(
            user_id=user_id,
            store=lent.edits,
            attempt=self._attempt,
            now=lent.now(),
            parts=lent.words,
            episodes=lent.episodes,
            hiding=lent.hiding,
            is_forgotten_in_chat=lent.forgets_in_chat,
        )

    @cached_property
    def session(self) -> TaskSession:
        """The session of the pipeline run that the task is a phase of.

        Raises:
            UndeclaredAccess: the task's answers are remembered.
            InvalidInput: it was asked for outside of any session.
        """
        return TaskSession(
            self._assignment, self._demand_session("session"), self._services
        )

    @property
    def waited_ms(self) -> int:
        """Milliseconds in which it waited for values that other tasks of its session computed; for the host."""
        session: TaskSession | None = vars(self).get("session")
        return 0 if session is None else session.waited_ms

    @cached_property
    def project(self) -> TaskProject:
        """The memory of the project that the task's session belongs to.

        Raises:
            UndeclaredAccess: the task's answers are remembered.
            InvalidInput: it was asked for outside of any session.
        """
        session_id = self._demand_session("project")
        services = self._services
        return TaskProject(
            self._assignment, session_id, services.projects, services.sessions
        )

    @cached_property
    def story(self) -> TaskStory:
        """The story whose response the task analyses, as it stood then.

        Raises:
            UndeclaredAccess: the task's answers are remembered.
            InvalidInput: it was asked for outside of any analysis.
        """
        self._task.demand_unremembered("story", "the story")
        story_id = self._assignment.story_id
        number = self._assignment.response_number
        if story_id is None or number is None:
            msg = f"{self._task.name} analyses a response of a story; ask for it with `tasklore analyses run`"
            raise InvalidInput(msg)
        lent = self._services
        run = self._assignment.request_id or self._assignment.created_at.isoformat()
        return TaskStory(story_id, number, lent.stories, lent.story_answers, run=run)

    @cached_property
    def history(self) -> TaskHistory:
        """The task's conversation, with its new messages, and the agent's observations.

        Raises:
            UndeclaredAccess: the task's answers are remembered.
            InvalidInput: it was asked for outside of any conversation.
        """
        self._task.demand_unremembered("history", "the conversation")
        conversation_id = self._assignment.conversation_id
        if not conversation_id:
            msg = f"conversation_id is missing; {self._task.name} reads the conversation, so send it with one"
            raise InvalidInput(msg)
        return TaskHistory(self._assignment, conversation_id, self._services.inbox)

    @property
    def agent_files(self) -> "Path | None":
        """The folder that the operator laid over the agents' own files, for `workers.agent_files`; None without one."""
        return self._services.agent_files

    @property
    def llm(self) -> TaskLlm:
        """The language models.

        Raises:
            UndeclaredAccess: the task does not declare `uses=("llm",)`.
        """
        self._task.demand_use("llm", "llm")
        deadline = self._assignment.deadline
        return TaskLlm(
            self._services.llm,
            self._spent,
            deadline and aware(deadline),
            self._services.now,
        )

    @property
    def usage(self) -> Usage:
        """What this run has spent on language models so far; the host puts it on the report."""
        return self._spent.usage.as_usage()

    @property
    def nano_usd(self) -> int:
        """What this run has spent so far, in billionths of a dollar, as far as prices are known."""
        return math.ceil(self._spent.usage.cost_usd * NANO_USD)

    @property
    def cancelled(self) -> bool:
        """Whether the task was asked to stop; a long one looks here now and then and returns."""
        return self._cancelled

    async def once(self, name: str) -> bool:
        """Return True in the one run of this task that may make the effect called *name*, False in every other one.

        It holds over workers, retries and redrives. The right is given before the effect: a run that is killed between
        the two leaves it undone. What must not be left undone belongs to a system that knows idempotency keys, such as
        `effect_id`.

        Raises:
            UndeclaredAccess: the task is remembered without a time to live of its own: a served answer makes no effect.
            RunReplaced: another worker has taken the task meanwhile.
            MemoryUnavailable: the ledger did not answer; the task is run again.
        """
        if self._task.remember != "never" and not self._task.says_how_long:
            msg = (
                f"{self._task.name} uses context.once, but its results are cached, and "
                "a cached result has no effect; omit remember, or say with "
                "remember_for=timedelta(...) for how long the effect is not repeated"
            )
            raise UndeclaredAccess(msg)
        if not name:
            raise InvalidInput(
                "context.once takes the name of an effect, which must not be empty"
            )
        await self._branches.demand_going()
        return self._claim is None or await self._claim(name)

    async def step(
        self,
        name: str,
        function: Callable[[*Ts], Awaitable[R]],
        /,
        *arguments: *Ts,
        once: bool = False,
    ) -> R:
        """Return `await function(*arguments)`, from the task's journal when an earlier run did it.

        The result is journaled, as JSON by the function's annotation, before it is returned; a later run of the task
        (a retry, another worker, a redrive) reads it. A step is known by its place in the order of calls, its name and
        its arguments: where one of them differs, it and all later steps run again. A step inside a step is part of it.

        Args:
            name: Names the step in the journal, traces and logs.
            function: Does the work; a coroutine function.
            arguments: Given to *function*; models or JSON, so that the step is known again.
            once: Ask for the right to the effect before *function* is called, as `once` does.

        Raises:
            EffectUncertain: *once*, and an earlier run ended between the right and the result.
            InvalidInput: arguments or result are no JSON, the result is over 8 MiB, or the task has 5,000 steps.
            RunReplaced: another worker has taken the task meanwhile.
            MemoryUnavailable: the journal did not answer; the task is run again.
        """
        return await self.step_noted_as("step", name, function, *arguments, once=once)

    async def step_noted_as(
        self,
        kind: "RunMessageKind | None",
        name: str,
        function: Callable[[*Ts], Awaitable[R]],
        /,
        *arguments: *Ts,
        once: bool = False,
    ) -> R:
        """Take a `step` that is noted as a *kind* of message, or not at all for None; for agents of pydantic-ai."""
        if self._steps is None:
            return await function(*arguments)
        return await self._steps.run(name, function, arguments, once=once, kind=kind)

    async def end(self) -> None:
        """Remove the journal of a task that has ended, and cancel its open children; for the host."""
        if self._steps is not None:
            await self._steps.drop_journal()
        await self.cancel_children()

    def effect_id(self, name: str) -> str:
        """Return an idempotency key for the effect called *name*: the same in every run of this task, no other's."""
        return f"{self._assignment.task_id}:{name}"

    def now(self) -> datetime:
        """Return the current time in UTC.

        Raises:
            UndeclaredAccess: the task does not declare `uses=("clock",)`.
        """
        self._task.demand_use("clock", "now()")
        return self._services.now().astimezone(UTC)

    async def progress(self, fraction: float | None, text: str = "") -> None:
        """Publish how far the task is: *fraction* from 0 to 1 (cut to that), None when the end is not known.

        *text* is cut to 4,000 characters. It is kept nowhere, and never fails a task.
        """
        if fraction is not None:
            fraction = None if math.isnan(fraction) else min(1.0, max(0.0, fraction))
        assignment = self._assignment
        told = Progress(
            task_id=assignment.task_id,
            agent_id=assignment.agent_id,
            fraction=fraction,
            text=text[:_PROGRESS_TEXT],
            at=self._services.now(),
        )
        await self._services.publish_progress(assignment.supervisor_id, told)

    async def emit(self, event: Any, *, kind: str | None = None) -> None:
        """Show *event* at once to all who follow the task: a piece of its text, or a value in JSON called *kind*.

        Stored for an hour by run and number; a new run of the task begins anew. A slow server makes it wait up to 5 s;
        then events are left out, which readers see. It never fails a task. A remembered answer shows nothing.
        """
        if self._output is None:
            assignment = self._assignment
            name = (
                assignment.supervisor_id,
                assignment.task_id,
                self._generation,
                self._attempt,
            )
            has_waited = await self._has_waited()
            # Another coroutine of the task may have opened it meanwhile.
            self._output = self._output or self._services.open_output(
                *name, has_waited=has_waited, before=self._before
            )
        await self._output.emit(event, kind)

    async def emit_all(self, deltas: AsyncIterable[str]) -> str:
        """Emit each of *deltas*, such as the stream of a model, as it comes; return the whole text."""
        pieces = []
        async for delta in deltas:
            pieces.append(delta)
            await self.emit(delta)
        return "".join(pieces)

    async def _has_waited(self) -> bool:
        """Return whether the run before this one ended to wait, and did not break off."""
        if self._waited_for is not None or self._attempt == 1:
            return self._waited_for is not None
        task_id = self._assignment.named
        try:
            return await self._services.waits.is_last_waiting(
                task_id, self._generation, run=self._attempt - 1
            )
        except MemoryUnavailable:
            return False

    @property
    def emitted(self) -> int:
        """The number after that of the last event of this attempt, 0 where there is none; for the host."""
        return self._before if self._output is None else self._output.numbered + 1

    async def follow(self, run: Awaitable[bytes]) -> bytes:
        """Return the result of *run*, and note it, or its error, among its messages; for the host."""
        return await (run if self.recorder is None else self.recorder.follow(run))

    async def close_output(self) -> None:
        """Store the rest of the output and of the messages before the run is reported; for the host."""
        if self._output is not None:
            await self._output.close()
        if self.recorder is not None:
            await self.recorder.close()

    def enter(self) -> None:
        """Let the next asyncio task of the current context be the run's; for the host."""
        self._branches.enter()

    def leave(self) -> None:
        """Let hooks in the current context use it behind the run; for the host."""
        self._branches.leave()

    def set_deadline(self, deadline: datetime | None) -> None:
        """Set the end of its time, which counts from a person's yes; for the host, before the task sees it."""
        self._assignment = self._assignment.model_copy(update={"deadline": deadline})

    def request_stop(self) -> None:
        """Make `cancelled` true; for the host."""
        self._cancelled = True

    def _demand_session(self, what: str) -> str:
        self._task.demand_unremembered(what, "the session")
        if not self._assignment.session_id:
            msg = f"session_id is missing; {self._task.name} works on a session, so send it as a phase of a pipeline"
            raise InvalidInput(msg)
        return self._assignment.session_id


def _payer_of(assignment: TaskAssignment, generation: int, attempt: int) -> Payer:
    """Return the payer of the models that the run of *assignment* asks."""
    user = user_token(assignment.user_id) if assignment.user_id else ""
    task_id = assignment.task_id
    run = f"{task_id}:{generation}:{attempt}"
    root = assignment.root_id or task_id
    return Payer(
        assignment.tenant or "",
        user=user,
        agent=assignment.agent_id,
        task=assignment.task.name,
        task_id=task_id,
        root_id=root,
        run=run,
    )
