"""What no agent can be asked or told comes back with its field and a cure, and leaves nothing behind."""

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from contracts.errors import InvalidInput, MessageTooLarge
from contracts.identifiers import partition_of, user_token
from runtime.servers import valkey
from runtime.servers.embedded import EmbeddedServers
from supervisor.program_client import asking
from tests.acceptance.house import House
from tests.acceptance.outside import Outside, outside

NAN = float("nan")
MEGABYTE = "x" * 1_000_000
#: What fits into a message, and into no conversation.
LONG = "x" * 900_000

BOUNDS = {"low": {"x": 0, "z": 0}, "high": {"x": 10, "z": 10}}
GOOD: dict[str, Any] = {
    "name": "Ana",
    "sensory_data": {"position": {"x": 2, "z": 1}},
    "simulation_time": 7,
    "agents": ["Bob"],
    "bounds": BOUNDS,
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Run a worker that decides and a supervisor that delivers."""
    folder = tmp_path_factory.mktemp("bad")
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    house = House(servers, folder)
    try:
        started = [house.worker("workers.agents.decision", llm_base_url="", llm_api_key=""), house.supervisor()]
        for one in started:
            one.ready()
        yield house
    finally:
        house.close()
        asyncio.run(servers.stop())


@dataclass(frozen=True)
class Bad:
    """What is wrong in a request or a message, and what is said of it: the field, and then the cure."""

    changes: dict[str, Any]
    field: str
    cure: str


def new(**message: Any) -> dict[str, Any]:
    """Return a request that holds this message."""
    return {"new_messages": [{"sender": "Bob", "message": "hi", **message}]}


def sensed(**data: Any) -> dict[str, Any]:
    """Return a request with these senses."""
    return {"sensory_data": GOOD["sensory_data"] | data}


ASKED = {
    "an unknown action": Bad({"allowed": ["move", "fly"]}, "allowed holds 'fly'", "known are move.*: use these"),
    "a place outside": Bad(sensed(position={"x": 11, "z": 1}), "sensory_data.position (11, 1)", "outside the world"),
    "a bound that is none": Bad({"bounds": BOUNDS | {"high": {"x": NAN, "z": 1}}}, "bounds.high.x", "finite"),
    "NaN as a number": Bad(sensed(position={"x": NAN, "z": 1}), "sensory_data.position.x", "finite"),
    "NaN as a string": Bad(sensed(position={"x": "NaN", "z": 1}), "sensory_data.position.x", "finite"),
    "a time that is none": Bad({"simulation_time": NAN}, "simulation_time", "finite"),
    "a message to nobody": Bad({"conversations": {"Zoe": "bad.Zoe"}}, "conversations.Zoe", "agents are 'Bob'"),
    "a message of nobody known": Bad(new(sender="Zoe"), "new_messages.0.sender", "add it there, or leave"),
    "its own voice": Bad(new(sender="ANA"), "new_messages.0.sender", "send only what others said"),
    "a long message": Bad(new(message=LONG), "new_messages.0.message", "2,?000"),
    "control characters": Bad(new(message="ring\x07"), "new_messages.0.message", "leave it out"),
    "a message that is sensed": Bad(sensed(receivedTexts=["hi"]), "receivedTexts", "send it in new_messages"),
}  # fmt: skip

SAID = {
    "another sender": Bad({"sender": "Eve"}, "sender", "speak as yourself"),
    "nobody to hear it": Bad({"conversation_id": ""}, "conversation_id", "it takes the conversation of the agent"),
    "a time that is none": Bad({"time": NAN}, "time", "a number from 0 to 1e12"),
    "a time in letters": Bad({"time": "NaN"}, "time", "a number from 0 to 1e12"),
    "a long message": Bad({"message": LONG}, "message", "say more in several messages"),
    "control characters": Bad({"message": "ring\x07"}, "message", "leave it out"),
}


async def keys_of(house: House, conversation_id: str) -> list[bytes]:
    """Return every key that tells of a conversation."""
    async with valkey.connect(house.servers.redis_url) as client:
        return [key async for key in client.scan_iter(match=f"*{conversation_id}*")]


@pytest.mark.parametrize("case", ASKED)
async def test_a_request_that_cannot_be_true_is_refused_and_stores_nothing(house: House, case: str) -> None:
    """As a program in any language sends it; one that can be true, a moment later, is decided and stored."""
    bad, conversation_id = ASKED[case], f"bad.{list(ASKED).index(case)}"
    async with outside(house.servers.nats_url) as program:
        report = await program.ask("DecisionAgent", "decide", GOOD | bad.changes, conversation_id=conversation_id)
        assert report["status"] == "rejected", report
        assert bad.field in report["error"]["message"]
        assert re.search(bad.cure, report["error"]["message"])
        assert LONG[:3_000] not in report["error"]["message"]
        assert await keys_of(house, conversation_id) == []
        report = await program.ask("DecisionAgent", "decide", GOOD | new(), conversation_id=conversation_id)
    assert report["status"] == "completed", report
    assert await keys_of(house, conversation_id) != []


@pytest.mark.parametrize("case", SAID)
async def test_a_message_that_cannot_be_true_is_set_aside_and_stores_nothing(house: House, case: str) -> None:
    """Its letter names the field and the cure; what is said right after it in the same place arrives."""
    bad, conversation_id = SAID[case], f"said.{list(SAID).index(case)}"
    token = user_token(conversation_id)
    subject = f"messages.{partition_of(conversation_id)}.{token}.{user_token('Bob')}"
    said = {"message_id": "b1", "conversation_id": conversation_id, "sender": "Bob", "message": "hi", "time": 1}
    async with outside(house.servers.nats_url) as program:
        await program.publish(subject, json.dumps(said | bad.changes).encode())
        letter = await letter_from(program, subject)
        assert await keys_of(house, conversation_id) == []
        await program.publish(subject, json.dumps(said).encode())

        async def is_delivered() -> bool:
            return await keys_of(house, conversation_id) != []

        await program.eventually(is_delivered)
    assert (letter["reason"], letter["supervisor_id"]) == ("unreadable", "SupervisorAgent")
    assert letter["error"]["message"].startswith(bad.field)
    assert bad.cure in letter["error"]["message"]
    assert base64.b64decode(letter["body"]).startswith(b'{"message_id": "b1"')


async def test_a_megabyte_is_refused_before_it_is_sent(house: House) -> None:
    """In what is asked and in what is said, since no message holds so much."""
    servers = house.servers
    async with asking("World", nats_url=servers.nats_url, redis_url=servers.redis_url) as asker:
        with pytest.raises(MessageTooLarge, match="send a reference instead"):
            await asker.ask("DecisionAgent", "decide", GOOD | new(message=MEGABYTE), conversation_id="bad.large")
        with pytest.raises(InvalidInput, match=r"message is not usable.*say more in several messages"):
            await asker.tell("bad.large", "Bob", MEGABYTE, time=1)
    assert await keys_of(house, "bad.large") == []


async def letter_from(program: Outside, subject: str) -> dict[str, Any]:
    """Return the dead letter of what was said on *subject*."""
    found: dict[str, Any] = {}

    async def lies_there() -> bool:
        if await program.counts("DEAD", f"dead.{subject}"):
            found.update(await program.last("DEAD", f"dead.{subject}"))
        return bool(found)

    await program.eventually(lies_there)
    return found
