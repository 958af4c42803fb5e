"""A small world for tests of decisions: Ana with Bob and Carol."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasklore.contracts.conversations import History, TakenMessages, Utterance
from tasklore.contracts.errors import LlmError
from tasklore.contracts.observations import Action, AgentTarget, Observation
from tasklore.workers.agents.decision import Decision, Moment, decision_agent
from tasklore.workers.agents.decision.answer import Wish
from tasklore.workers.testing import AgentKit, KitHistory

#: The conversation of the kit.
CONVERSATION = "conversation-1"
AGENT = decision_agent()
WORLD = {"low": {"x": 0, "z": 0}, "high": {"x": 10, "z": 10}}


def at(x: float, z: float) -> dict[str, float]:
    """Return a place."""
    return {"x": x, "z": z}


def coins(*places: tuple[float, float]) -> list[dict[str, Any]]:
    """Return coins at these places."""
    return [{"type": "coin", "position": at(*place)} for place in places]


def asking(sensed: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return what the world sends: Ana at (2, 1), with these parts in place of others."""
    return {
        "name": "Ana",
        "sensory_data": {"position": at(2, 1), **(sensed or {})},
        "simulation_time": 7,
        "agents": ["Ana", "Bob", "Carol"],
        "bounds": WORLD,
        "step": 1,
        **more,
    }


def moment(sensed: Mapping[str, Any] | None = None, **more: Any) -> Moment:
    """Return the same, read."""
    return Moment.read(asking(sensed, **more))


def said(number: int, text: str, speaker: str = "Bob") -> Utterance:
    """Return what somebody said at the time *number*."""
    return Utterance(
        message_id=f"m{number}", speaker=speaker, message=text, time=number
    )


def texted(time: float, to: str = "Bob") -> Observation:
    """Return that Ana texted somebody."""
    return Observation(
        time=time,
        did=Action(action="text", target=AgentTarget(agent=to), utterance="Hello."),
    )


def known(
    *messages: Utterance, new: int = 0, seen: Sequence[Observation] = ()
) -> TakenMessages:
    """Return what Ana knows, of which the last *new* messages are new."""
    return TakenMessages(History(messages, new), tuple(seen))


def wish(action: str, **parts: Any) -> Wish:
    """Return what a model wishes."""
    return Wish(reasoning="It is good.", action=action, **parts)


def kit(
    *answers: Wish | LlmError, history: KitHistory | None = None, **more: Any
) -> AgentKit:
    """Return Ana's agent on fakes, with a model that gives these answers when there are any."""
    return AgentKit(
        more.pop("agent", AGENT), llm=answers, history=history or KitHistory(), **more
    )


async def decided(
    stand: AgentKit, sensed: Mapping[str, Any] | None = None, **more: Any
) -> Decision:
    """Return what is decided."""
    report = await stand.run("decide", asking(sensed, **more))
    assert report.status == "completed", report.error
    return Decision.model_validate(report.result)
