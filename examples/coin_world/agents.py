"""Asking everybody in the world, all at once, what they do next: over NATS, or by the HTTP API (`over_http`)."""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from examples.coin_world.running import Answer
from examples.coin_world.world import Choice, Place, World
from tasklore.contracts.errors import (
    ConfigurationError,
    Forbidden,
    InvalidInput,
    NotAccepted,
    TaskExpired,
)
from tasklore.contracts.faults import fault_of
from tasklore.contracts.messages import CompletionReport
from tasklore.supervisor.program_client import Asker

AGENT = "DecisionAgent"
TASK = "decide"
#: How long a step waits for an agent. A worker that dies is missed after 30 s, and another one decides then.
PATIENCE = timedelta(seconds=60)

_CURE = "start one with `tasklore worker tasklore.workers.agents.decision`"


class Asks(Protocol):
    """The way to one agent: `OverNats`, or `examples.coin_world.over_http.OverHttp`."""

    async def answer(
        self,
        moment: Mapping[str, Any],
        *,
        task_id: str,
        conversation_id: str,
        within: timedelta,
    ) -> Answer:
        """Return what the agent answers to *moment*, once for one *task_id*.

        Raises:
            TaskExpired: it did not within that time.
            NotAccepted: it could not be asked now.
        """


class OverNats:
    """Asks with *asker*, as a program beside the system does."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def answer(
        self,
        moment: Mapping[str, Any],
        *,
        task_id: str,
        conversation_id: str,
        within: timedelta,
    ) -> Answer:
        """Send the agent a task, and return what its report says."""
        report = await self._asker.ask(
            AGENT,
            TASK,
            moment,
            task_id=task_id,
            conversation_id=conversation_id,
            within=within,
        )
        return answer_of(report)


class Agents:
    """Asks the agents of one world: every agent has a conversation of its own, into which the others' texts go.

    Args:
        way: How one agent is asked.
        world_id: Tells the conversations and tasks of this world from those of any other.
        tell_prompts: Whether each answer comes with what the agent was shown.
        patience: How long a step waits; who has not answered by then waits in that step.
    """

    def __init__(
        self,
        way: Asks,
        world_id: str,
        *,
        tell_prompts: bool = False,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._way = way
        self._world_id = world_id
        self._tell_prompts = tell_prompts
        self._patience = patience
        self._is_heard = False

    async def decide(self, world: World) -> Mapping[str, Answer]:
        """Return what everybody in *world* answers.

        Raises:
            TaskExpired: nobody was ever heard of: there is no worker that runs the agent.
        """
        names = world.plan.names
        answers = await asyncio.gather(
            *(self._answer(world, number, name) for number, name in enumerate(names))
        )
        if not self._is_heard:
            raise TaskExpired(f"nobody answered: {answers[0].problem}; {_CURE}")
        return dict(zip(names, answers, strict=True))

    def conversation_of(self, name: str) -> str:
        """Return the id of the conversation of *name*."""
        return f"{self._world_id}.{name}"

    async def _answer(self, world: World, number: int, name: str) -> Answer:
        others = {
            other: self.conversation_of(other)
            for other in world.plan.names
            if other != name
        }
        moment = {
            **world.moment(name),
            "conversations": others,
            "tell_prompt": self._tell_prompts,
        }
        try:
            answer = await self._way.answer(
                moment,
                # The same step asked about again is the same task, and is decided once.
                task_id=f"{self._world_id}-{world.step}-{number}",
                conversation_id=self.conversation_of(name),
                within=self._patience,
            )
        except (TaskExpired, NotAccepted) as error:
            return Answer(None, problem=str(error))
        self._is_heard = True
        return answer


async def demand_worker(asker: Asker) -> None:
    """Refuse a system in which nobody decides, before it is asked and its queue holds tasks that nobody takes.

    Raises:
        ConfigurationError: no worker of the agent is alive.
        Unreachable: NATS does not answer.
    """
    # Who may ask, and not look, finds it out by asking.
    with contextlib.suppress(Forbidden):
        if not await asker.has_worker(AGENT):
            msg = f"no worker of {AGENT} is alive in the system that runs here; {_CURE}, or stop that system"
            raise ConfigurationError(f"{msg}: without one a world starts its own")


def answer_of(report: CompletionReport) -> Answer:
    """Return what *report* says, or why that is no answer."""
    if report.status != "completed":
        return Answer(
            None,
            problem=report.error.message if report.error is not None else report.status,
        )
    return answer_in(report.result)


def answer_in(decision: Any) -> Answer:
    """Return what *decision* says, or why it cannot be read."""
    try:
        choice = choice_of(decision)
    except InvalidInput as error:
        return Answer(None, problem=str(error))
    prompt = decision.get("prompt")
    return Answer(choice, prompt=prompt if isinstance(prompt, str) else None)


class _Form(BaseModel):
    """What we read of an answer; it may hold more."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="ignore", strict=True
    )


class _Target(_Form):
    x: FiniteFloat | None = None
    z: FiniteFloat | None = None
    agent: str | None = None


class _Decision(_Form):
    action: str
    target: _Target | None = None
    utterance: str | None = None
    reasoning: str
    by: str


def choice_of(decision: Any) -> Choice:
    """Return what an agent decided as a choice in this world.

    Raises:
        InvalidInput: it is in another form; the message names the field and the cure.
    """
    try:
        read = _Decision.model_validate(decision)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        msg = f"the answer of {AGENT} cannot be read ({fault_of(first, 'result')}); is another agent called so, too?"
        raise InvalidInput(msg) from error
    target = read.target or _Target()
    return Choice(
        action=read.action,
        target=Place(target.x, target.z)
        if target.x is not None and target.z is not None
        else None,
        to=target.agent,
        said=read.utterance,
        reasoning=read.reasoning,
        by=read.by,
    )
