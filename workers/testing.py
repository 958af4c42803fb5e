"""The kit that tests an agent without servers: the worker's own reading, running and writing, on fakes.

```python
report = await run_task(agent, "share_trip", {"hotel": "300", "travellers": 3})
assert report.result == {"each": 100, "dearest_ticket": None}
```
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from contracts import subjects
from contracts.errors import LlmError
from contracts.messages import ChatTurn, CompletionReport, MemoryMode, Progress, TaskAssignment
from contracts.parameters import Parameters
from runtime.llm import Expense, Reply, Spent, check_answer_model
from runtime.llm_wire import T
from runtime.pull import Delivery
from workers.agent import Agent
from workers.context import Context
from workers.judgement import RetryPolicy, judge
from workers.order import Order, Unfit, read_order
from workers.verdict import Verdict, elapsed_ms, verdict_on

#: The time in a kit unless another is given: fixed, so that a test says the same every day.
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

_CONVERSATION = "conversation-1"


@dataclass(frozen=True)
class Asked:
    """One question that a task put to a model."""

    role: str
    answer: type[BaseModel]
    system: str
    user: str


class ScriptedLlm:
    """A model that gives prepared answers in order and notes what it was asked; an LlmError in the script is raised."""

    def __init__(self, script: Iterable[BaseModel | LlmError] = ()) -> None:
        self._script = deque(script)
        self.asked: list[Asked] = []
        self.configured = bool(self._script)

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,  # noqa: ARG002 - the script never waits
        spent: Spent | None = None,
    ) -> Reply[T]:
        """Return the next answer of the script.

        Raises:
            AssertionError: the script is at its end, or its next answer is of another class than asked for.
        """
        check_answer_model(answer)
        self.asked.append(Asked(role, answer, system, user))
        if not self._script:
            msg = f"the task asks {role!r} for a {answer.__name__}, but the script has no answer left; add one to llm="
            raise AssertionError(msg)
        said = self._script.popleft()
        if spent is not None:
            spent.add(Expense())
        if isinstance(said, LlmError):
            raise said
        if not isinstance(said, answer):
            msg = f"the task asks {role!r} for a {answer.__name__}, but the script holds {said!r}"
            raise AssertionError(msg)  # noqa: TRY004 - the test is wrong, not a type at run time
        return Reply(said, Expense(), "scripted", 1, 0.0)


@dataclass
class KitServices:
    """What the kit lends to contexts; fits `workers.context.Services`."""

    llm: ScriptedLlm
    at: datetime
    turns: tuple[ChatTurn, ...] = ()
    progress: list[Progress] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the time that was set."""
        return self.at

    async def publish_progress(self, supervisor_id: str, progress: Progress) -> None:  # noqa: ARG002 - no subject here
        """Keep *progress* for the test to look at."""
        self.progress.append(progress)

    async def recent_turns(self, conversation_id: str, count: int) -> Sequence[ChatTurn]:
        """Return the last *count* prepared turns of *conversation_id*."""
        return [turn for turn in self.turns if turn.conversation_id == conversation_id][-count:]


class AgentKit:
    """One agent on fakes: what it remembers lives as long as the kit.

    Args:
        agent: whose tasks to run.
        llm: answers of the model, in order; an LlmError among them is raised instead.
        now: the time that tasks see; change it with `kit.services.at = ...`.
        conversation: what was said before, oldest first; a string is something the person said.
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
        remembers: bool = True,
    ) -> None:
        self.agent = agent
        turns = tuple(_turn(number, said, now) for number, said in enumerate(conversation, start=1))
        self.services = KitServices(ScriptedLlm(llm), now, turns)
        self.raised: list[Exception] = []
        self._conversation_id = turns[-1].conversation_id if turns else None
        self._remembers = remembers
        self._answers: dict[str, tuple[bytes, datetime]] = {}
        self._effects: set[tuple[str, str]] = set()
        self._runs = 0

    @property
    def progress(self) -> list[Progress]:
        """What the tasks told while they ran, in order."""
        return self.services.progress

    @property
    def asked(self) -> list[Asked]:
        """What the model was asked, in order."""
        return self.services.llm.asked

    async def run(
        self,
        task_name: str,
        parameters: Mapping[str, Any] | Parameters,
        *,
        user_id: str | None = None,
        memory: MemoryMode = "use",
        max_attempts: int = 5,
    ) -> CompletionReport:
        """Return the report of one assignment, as a supervisor would receive it.

        A task that raises is run again at once, as often as it and *max_attempts* allow; `raised` keeps every
        exception with its traceback. An AssertionError is the test's own and is not caught.
        """
        order = self._read(task_name, parameters, user_id, memory, max_attempts)
        if isinstance(order, Unfit):
            self.raised.append(order.problem)
            assignment = order.assignment
            assert assignment is not None, order.problem  # noqa: S101 - the kit wrote it itself
            return _report(Verdict(order.delivery, assignment, 1, 1, "rejected", "kit", "off", error=order.problem))
        if order.outcome == "miss" and order.memory_key in self._answers:
            stored, since = self._answers[order.memory_key]
            order.outcome = "hit"
            verdict = verdict_on(order, "completed", "kit", result_json=stored)
            verdict.age_ms = int((self.services.now() - since).total_seconds() * 1000)
            return _report(verdict)
        return await self._compute(order)

    def _read(
        self,
        task_name: str,
        parameters: Mapping[str, Any] | Parameters,
        user_id: str | None,
        memory: MemoryMode,
        max_attempts: int,
    ) -> Order | Unfit:
        self._runs += 1
        raw = parameters.model_dump(mode="json") if isinstance(parameters, Parameters) else dict(parameters)
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
            }
        )
        subject = subjects.task(self.agent.agent_id, task_name)
        delivery = Delivery(subject, assignment.model_dump_json().encode(), None, "", 1, self._runs, time.monotonic())
        return read_order(delivery, self.agent, self.services.now(), remembers=self._remembers)

    @property
    def effects(self) -> set[tuple[str, str]]:
        """Which effects were made: pairs of task id and the name given to `context.once`."""
        return self._effects

    def _context(self, order: Order) -> Context:
        async def claim(name: str) -> bool:
            effect = order.assignment.task_id, name
            is_first = effect not in self._effects
            self._effects.add(effect)
            return is_first

        return Context(
            order.task,
            order.assignment,
            self.services,
            settings=self.agent.settings,
            attempt=order.attempt,
            claim=claim,
        )

    async def _compute(self, order: Order) -> CompletionReport:
        while True:
            context = self._context(order)
            started = time.monotonic()
            try:
                result = await order.task.run(order.parameters, context)
            except (AssertionError, asyncio.CancelledError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a task raises becomes its report
                self.raised.append(error)
                judgement = judge(
                    error,
                    attempt=order.attempt,
                    max_attempts=order.runs_allowed,
                    retry=RetryPolicy().of(order.task),
                    now=self.services.now(),
                )
                if judgement.pause_s is None:
                    verdict = verdict_on(order, judgement.status, "kit")
                    verdict.error, verdict.usage = error, context.usage
                    return _report(verdict)
                order.attempt += 1
                continue
            if order.memory_key is not None:
                self._answers[order.memory_key] = result, self.services.now()
            verdict = verdict_on(order, "completed", "kit", result_json=result, run_ms=elapsed_ms(started))
            verdict.usage = context.usage
            return _report(verdict)


async def run_task(
    agent: Agent,
    task_name: str,
    parameters: Mapping[str, Any] | Parameters,
    *,
    llm: Iterable[BaseModel | LlmError] = (),
    now: datetime = NOW,
    conversation: Iterable[ChatTurn | str] = (),
    user_id: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CompletionReport:
    """Return the report of one task of *agent*, run on fakes with nothing remembered; arguments as in `AgentKit`.

    Raises:
        ConfigurationError: *settings* do not fit the agent.
    """
    configured = agent.configured(settings) if settings is not None else agent
    kit = AgentKit(configured, llm=llm, now=now, conversation=conversation)
    return await kit.run(task_name, parameters, user_id=user_id)


def _report(verdict: Verdict) -> CompletionReport:
    return CompletionReport.model_validate_json(verdict.body("none"))


def _turn(number: int, said: ChatTurn | str, now: datetime) -> ChatTurn:
    if isinstance(said, ChatTurn):
        return said
    return ChatTurn(turn_id=f"turn-{number}", conversation_id=_CONVERSATION, speaker="person", text=said, at=now)
