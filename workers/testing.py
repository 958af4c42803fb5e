"""The kit that tests an agent without servers: the worker's own reading, running and writing, on fakes.

```python
report = await run_task(agent, "share_trip", {"hotel": "300", "travellers": 3})
assert report.result == {"each": 100, "dearest_ticket": None}

heard = await listen(agent, "I love omelettes")
assert [fact.text for fact in heard.facts] == ["User loves omelettes"]
```
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from contracts import subjects
from contracts.errors import ConfigurationError, LlmError
from contracts.messages import ChatTurn, CompletionReport, Fact, MemoryMode, Progress, TaskAssignment
from contracts.parameters import Parameters
from memory.documents.draft import Draft
from memory.documents.guard import LIMITS
from memory.documents.kinds import Kinds
from runtime.llm import Expense, LlmRole, Reply, Spent, check_answer_model
from runtime.llm_wire import T
from runtime.pull import Delivery
from workers.agent import Agent
from workers.context import Context
from workers.fakes import FakeDocuments
from workers.judgement import RetryPolicy, judge
from workers.listening.context import ListenContext
from workers.listening.declaration import Listener
from workers.listening.rulings import closings_of
from workers.listening.values import FactBatch, PendingFact, Ruling
from workers.order import Order, Unfit, read_order
from workers.verdict import Verdict, elapsed_ms, verdict_on

if TYPE_CHECKING:
    from memory.documents.items import Body

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

    def role(self, name: str) -> LlmRole:  # noqa: ARG002 - one script answers for all
        """Return a model of that name: scripted."""
        return LlmRole(model="scripted", temperature=None)

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
    documents: FakeDocuments = field(default_factory=FakeDocuments)

    @property
    def kinds(self) -> Kinds:
        """Return the kinds that its documents have."""
        return self.documents.kinds

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
        documents: the JSON memory of whoever asks, bodies by resource id; templates stand for the others.
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
        remembers: bool = True,
    ) -> None:
        self.agent = agent
        turns = tuple(_turn(number, said, now) for number, said in enumerate(conversation, start=1))
        self.services = KitServices(ScriptedLlm(llm), now, turns, documents=FakeDocuments(documents))
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
    documents: "Mapping[str, Body] | None" = None,
    user_id: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CompletionReport:
    """Return the report of one task of *agent*, run on fakes with nothing remembered; arguments as in `AgentKit`.

    Raises:
        ConfigurationError: *settings* do not fit the agent.
    """
    configured = agent.configured(settings) if settings is not None else agent
    kit = AgentKit(configured, llm=llm, now=now, conversation=conversation, documents=documents)
    return await kit.run(task_name, parameters, user_id=user_id)


@dataclass(frozen=True)
class Heard:
    """What a listener made of what it was told: `facts` of a turn, or `rulings` on facts and `documents` after them."""

    facts: tuple[Fact, ...] = ()
    rulings: tuple[Ruling, ...] = ()
    documents: "Mapping[str, Body]" = field(default_factory=dict)
    draft: Draft | None = None
    asked: Sequence[Asked] = ()

    def ruling_on(self, number: int) -> Ruling:
        """Return the ruling on fact *number*, 0 for the first, in whatever order they were returned."""
        return next(ruling for ruling in self.rulings if ruling.fact_id == f"fact-{number + 1}")


async def listen(
    agent: Agent,
    said: ChatTurn | str | Sequence[Fact | str],
    *,
    llm: Iterable[BaseModel | LlmError] = (),
    now: datetime = NOW,
    documents: "Mapping[str, Body] | None" = None,
    user_id: str = "user-1",
    settings: Mapping[str, Any] | None = None,
) -> Heard:
    """Return what the listener of *agent* makes of *said*: of a turn, or of facts in the order in which they came.

    Arguments are as in `AgentKit`; a text among facts is what one says, and they are called `fact-1` and on. What the
    host would not store is refused here too.

    Raises:
        ConfigurationError: *agent* has no such listener, or *settings* do not fit it.
        TaskloreError: the rulings do not fit the facts or the draft.
        Exception: whatever the listener raises.
    """
    agent = agent.configured(settings) if settings is not None else agent
    services = KitServices(ScriptedLlm(llm), now, documents=FakeDocuments(documents))
    if isinstance(said, str | ChatTurn):
        turn = _turn(1, said, now, user_id)
        context = ListenContext(user_id, services, settings=agent.settings)
        facts = await _listener(agent, "turns").learn(turn, context)
        return Heard(facts, asked=services.llm.asked)
    draft = Draft(await services.documents.of(user_id).snapshot(), LIMITS, now)
    context = ListenContext(user_id, services, draft=draft, settings=agent.settings)
    pending = [_pending(number, fact) for number, fact in enumerate(said, start=1)]
    batch, listener = FactBatch(user_id, tuple(pending)), _listener(agent, "facts")
    rulings = await listener.rule(batch, context)
    closings_of(listener.label, batch, rulings, draft.applied)
    bodies = {name: document.body for name, document in draft.documents.items()}
    return Heard(rulings=rulings, documents=bodies, draft=draft, asked=services.llm.asked)


def _listener(agent: Agent, queue: str) -> Listener:
    if queue not in agent.listeners:
        msg = f"{agent.agent_id} does not listen to {queue!r}; decorate a function with @agent.listen({queue!r})"
        raise ConfigurationError(msg)
    return agent.listeners[queue]


def _pending(number: int, said: Fact | str) -> PendingFact:
    fact = said if isinstance(said, Fact) else Fact(fact_id=f"fact-{number}", text=said, evidence=said)
    return PendingFact(fact, f"turn-{number}")


def _report(verdict: Verdict) -> CompletionReport:
    return CompletionReport.model_validate_json(verdict.body("none"))


def _turn(number: int, said: ChatTurn | str, now: datetime, user_id: str | None = None) -> ChatTurn:
    if isinstance(said, ChatTurn):
        return said
    name = f"turn-{number}"
    return ChatTurn(turn_id=name, conversation_id=_CONVERSATION, user_id=user_id, speaker="person", text=said, at=now)
