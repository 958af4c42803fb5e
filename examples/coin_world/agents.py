"""Asking everybody in the world, all at once and over NATS, what they do next."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from contracts.errors import NotAccepted, TaskExpired
from examples.coin_world.running import Answer
from examples.coin_world.world import Choice, Place, World
from supervisor.asking import Asker

AGENT, TASK = "DecisionAgent", "decide"
#: How long a step waits for an agent. A worker that dies is missed after 30 s, and another one decides then.
PATIENCE = timedelta(seconds=60)


class Agents:
    """Asks the agents of one world: every agent has a conversation of its own, into which the others' texts go.

    Args:
        asker: What asks; see `supervisor.asking`.
        world_id: Tells the conversations and tasks of this world from those of any other.
        tell_prompts: Whether each answer comes with what the agent was shown.
        patience: How long a step waits; who has not answered by then waits in that step.
    """

    def __init__(
        self, asker: Asker, world_id: str, *, tell_prompts: bool = False, patience: timedelta = PATIENCE
    ) -> None:
        self._asker = asker
        self._world_id = world_id
        self._tell_prompts = tell_prompts
        self._patience = patience

    async def decide(self, world: World) -> Mapping[str, Answer]:
        """Return what everybody in *world* answers.

        Raises:
            TaskExpired: nobody answered in the first step: there is no worker that runs the agent.
        """
        names = world.plan.names
        answers = await asyncio.gather(*(self._answer(world, number, name) for number, name in enumerate(names)))
        if world.step == 0 and not any(answer.choice for answer in answers):
            msg = f"nobody answered: {answers[0].problem}; start one with `tasklore worker workers.agents.decision`"
            raise TaskExpired(msg)
        return dict(zip(names, answers, strict=True))

    def conversation_of(self, name: str) -> str:
        """Return the id of the conversation of *name*."""
        return f"{self._world_id}.{name}"

    async def _answer(self, world: World, number: int, name: str) -> Answer:
        others = {other: self.conversation_of(other) for other in world.plan.names if other != name}
        moment = {**world.moment(name), "conversations": others, "tell_prompt": self._tell_prompts}
        try:
            report = await self._asker.ask(
                AGENT,
                TASK,
                moment,
                # The same step asked about again is the same task, and is decided once.
                task_id=f"{self._world_id}-{world.step}-{number}",
                conversation_id=self.conversation_of(name),
                within=self._patience,
            )
        except (TaskExpired, NotAccepted) as error:
            return Answer(None, problem=str(error))
        if report.status != "completed" or not isinstance(report.result, dict):
            return Answer(None, problem=report.error.message if report.error is not None else report.status)
        return Answer(choice_of(report.result), prompt=report.result.get("prompt"))


def choice_of(decision: Mapping[str, Any]) -> Choice:
    """Return what an agent decided as a choice in this world."""
    target = decision.get("target") or {}
    return Choice(
        action=decision["action"],
        target=Place(target["x"], target["z"]) if "x" in target else None,
        to=target.get("agent"),
        said=decision["utterance"],
        reasoning=decision["reasoning"],
        by=decision["by"],
    )
