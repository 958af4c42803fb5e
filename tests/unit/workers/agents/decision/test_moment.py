"""A moment from the world is taken or refused as a whole, with the fault and the cure."""

from typing import Any

import pytest

from tasklore.contracts.errors import InvalidParameters
from tasklore.workers.agents.decision import Moment
from tasklore.workers.testing import KitHistory
from tests.unit.workers.agents.decision.sample_world import (
    CONVERSATION,
    asking,
    at,
    coins,
    kit,
    said,
)


def new(sender: str = "Bob", message: str = "Hello!", **more: Any) -> dict[str, Any]:
    """Return one new message."""
    return {"new_messages": [{"sender": sender, "message": message, **more}]}


def sensing(**parts: Any) -> dict[str, Any]:
    """Return what is sensed at (2, 1)."""
    return {"sensory_data": {"position": at(2, 1), **parts}}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown action": ({"allowed": ["fly", "wait"]}, "allowed holds 'fly'; known are move, text, collect and wait"),
    "no action": ({"allowed": []}, "allowed: .*at least 1"),
    "place outside": ({"sensory_data": {"position": at(2, 11)}}, r"position \(2, 11\) is outside .*to \(10, 10\)"),
    "object outside": (sensing(worldObjects=coins((1, 1), (-1, 1))), r"worldObjects.1.position \(-1, 1\) is outside"),
    "agent outside": (sensing(nearbyAgents=[{"name": "Bob", "position": at(2, 99)}]), "nearbyAgents.0.position"),
    "NaN": ({"sensory_data": {"position": at(2, float("nan"))}}, "sensory_data.position.z: .*finite"),
    "infinite time": ({"simulation_time": float("inf")}, "simulation_time"),
    "NaN in a further sense": (sensing(wind=[float("nan")]), "sensory_data.wind"),
    "message from nobody": (new(sender="Dan"), "'Dan', who is not one of the agents; agents are 'Bob' and 'Carol'"),
    "message without a sender": ({"new_messages": [{"message": "Hello!"}]}, "new_messages.0.sender is missing"),
    "text delivered to nobody": ({"conversations": {"Dan": "dan"}}, "Dan is not the name of an agent"),
    "its own message": (new(sender="Ana"), "sender is 'Ana', the agent itself"),
    "itself in sight": (sensing(nearbyAgents=[{"name": "Ana"}]), "nearbyAgents.0 is 'Ana', the agent itself; leave it"),
    "a megabyte": (new(message="x" * 1_000_000), "new_messages.0.message: .*at most 2000"),
    "a page sensed": (sensing(smell="x" * 50_000), "smell take 50012 bytes as JSON; send at most 20000"),
    "control characters": (new(message="Hel\x00lo"), r"message: holds the control character '\\x00'; leave it out"),
    "half a sign": (new(message="\ud800"), "new_messages.0.message"),
    "a hidden sign in a name": ({"agents": ["Bo\u200bb"]}, "agents.0: .*names appear in sentences"),
    "a sentence as a name": (new(sender="Bob said: 'Hi' and Carol"), "new_messages.0.sender: .*holds ': '"),
    "a name that is shown otherwise": ({"agents": ["Bo\u00bbb"]}, "agents.0 is .* which a prompt can only show as"),
    "a name that is nobody's": ({"name": "I"}, "name: 'I' is what an agent calls itself"),
    "an empty message": (new(message=" \n"), "new_messages.0.message: says nothing"),
    "messages among senses": (sensing(receivedTexts=[]), "'receivedTexts' holds .* send it in new_messages, as sender"),
    "a world turned over": ({"bounds": {"low": at(5, 5), "high": at(0, 9)}}, "bounds: low .* lies beyond high"),
    "too many messages": ({"new_messages": [{"sender": "Bob", "message": "x"}] * 201}, "new_messages: .*at most 200"),
}  # fmt: skip


#: What the wire itself changes or refuses: it comes from whoever calls the agent in the same process.
NOT_SENT = {"NaN in a further sense", "a megabyte", "half a sign"}


@pytest.mark.parametrize("case", sorted(NOT_SENT))
def test_what_cannot_be_sent_is_refused(case: str) -> None:
    """The error names the field and the cure."""
    wrong, told = BAD[case]
    with pytest.raises(InvalidParameters, match=told):
        Moment.read({**asking(), **wrong})


@pytest.mark.parametrize("case", sorted(BAD.keys() - NOT_SENT))
async def test_nothing_is_stored_of_what_is_refused(case: str) -> None:
    """The conversation is as it was, what waits stays new, and the task is not run again."""
    wrong, told = BAD[case]
    stand = kit(
        history=KitHistory(past=(said(0, "Before."),), waiting=(said(1, "Hello!"),))
    )
    report = await stand.run("decide", {**asking(), **wrong})

    assert report.status in ("failed", "rejected")
    with pytest.raises(InvalidParameters, match=told):
        raise stand.raised[0]
    assert len(stand.raised) == 1
    await stand.run("decide", asking())
    [page, seen] = [
        await stand.services.inbox.page(CONVERSATION),
        await stand.services.inbox.recent_observations(CONVERSATION, 9),
    ]
    assert [one.message for one in page.messages] == ["Before.", "Hello!"]
    assert len(seen) == 1


async def test_what_can_be_is_taken() -> None:
    """Everything at its bounds: a world of one place, signs of every script, lines in a message."""
    edge = {
        **asking(
            sensing(worldObjects=coins((2, 1)), texture="rough", unreadMessages=3)[
                "sensory_data"
            ]
        ),
        **new(
            sender="Bob",
            message="Hel\u00adlo \U0001f9d1\u200d\U0001f680\n\t\u5f7c\u5973",
            message_id="a-1",
            time=0,
        ),
        "bounds": {"low": at(2, 1), "high": at(2, 1)},
        "agents": ["Bob", "O'Brien", "npc:42", "\u6613\u601d", "\u2728"],
        "conversations": {"Bob": "bob"},
        "reach": "0",
        "simulation_time": 0.15000000000000002,
    }
    report = await kit().run("decide", edge)

    assert report.status == "completed", report.error
    assert report.result["action"] == "collect"  # type: ignore[index,call-overload]
