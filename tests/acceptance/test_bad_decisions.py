"""What no agent can be asked or told comes back with its field and a cure, and leaves nothing behind."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tasklore.contracts.identifiers import partition_of, user_token
from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import System, running_system

NAN = float("nan")
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
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run a worker that decides and a supervisor that delivers."""
    folder = tmp_path_factory.mktemp("bad")
    with running_system(folder) as system:
        started = [
            system.worker(
                "tasklore.workers.agents.decision", llm_base_url="", llm_api_key=""
            ),
            system.supervisor(),
        ]
        for one in started:
            one.ready()
        yield system


#: What is wrong in a request, the field that is named, and what the cure says.
ASKED: tuple[tuple[dict[str, Any], str, str], ...] = (
    (
        {"allowed": ["move", "fly"]},
        "allowed holds 'fly'",
        "known are move.*: use these",
    ),
    ({"simulation_time": NAN}, "simulation_time", "finite"),
    (
        {"new_messages": [{"sender": "ANA", "message": "hi"}]},
        "new_messages.0.sender",
        "send only what others said",
    ),
    (
        {"new_messages": [{"sender": "Bob", "message": LONG}]},
        "new_messages.0.message",
        "2,?000",
    ),
)
#: The same of a message.
SAID: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"sender": "Eve"}, "sender", "speak as yourself"),
    ({"time": NAN}, "time", "a number from 0 to 1e12"),
    ({"message": LONG}, "message", "say more in several messages"),
)


async def keys_of(system: System, conversation_id: str) -> list[bytes]:
    """Return every key that tells of a conversation."""
    async with valkey.connect(system.servers.redis_url) as client:
        return [key async for key in client.scan_iter(match=f"*{conversation_id}*")]


async def test_a_request_that_cannot_be_true_is_refused_and_stores_nothing(
    system: System,
) -> None:
    async with outside(system.servers.nats_url) as program:
        for number, (changes, field, cure) in enumerate(ASKED):
            conversation = f"bad.{number}"
            report = await program.ask(
                "DecisionAgent", "decide", GOOD | changes, conversation_id=conversation
            )
            assert report["status"] == "rejected", report
            assert field in report["error"]["message"]
            assert re.search(cure, report["error"]["message"])
            assert LONG[:3_000] not in report["error"]["message"]
            assert await keys_of(system, conversation) == []
        heard = {"new_messages": [{"sender": "Bob", "message": "hi"}]}
        report = await program.ask(
            "DecisionAgent", "decide", GOOD | heard, conversation_id=conversation
        )
    assert report["status"] == "completed", report
    assert await keys_of(system, conversation) != []


async def test_a_message_that_cannot_be_true_is_set_aside_and_stores_nothing(
    system: System,
) -> None:
    """Its letter names the field and the cure; what is said right after it in the same place arrives."""
    async with outside(system.servers.nats_url) as program:
        for number, (changes, field, cure) in enumerate(SAID):
            conversation = f"said.{number}"
            token = user_token(conversation)
            subject = (
                f"messages.{partition_of(conversation)}.{token}.{user_token('Bob')}"
            )
            said = {
                "message_id": "b1",
                "conversation_id": conversation,
                "sender": "Bob",
                "message": "hi",
                "time": 1,
            }
            await program.publish(subject, json.dumps(said | changes).encode())
            letter = await letter_from(program, subject)
            assert await keys_of(system, conversation) == []
            await program.publish(subject, json.dumps(said).encode())
            await program.eventually(
                lambda place=conversation: is_stored(system, place)
            )  # type: ignore[misc]
            assert (letter["reason"], letter["supervisor_id"]) == (
                "unreadable",
                "SupervisorAgent",
            )
            assert letter["error"]["message"].startswith(field)
            assert cure in letter["error"]["message"]
            assert base64.b64decode(letter["body"]).startswith(b'{"message_id": "b1"')


async def is_stored(system: System, conversation_id: str) -> bool:
    """Return whether anything is kept of a conversation."""
    return await keys_of(system, conversation_id) != []


async def letter_from(program: Outside, subject: str) -> dict[str, Any]:
    """Return the dead letter of what was said on *subject*."""
    found: dict[str, Any] = {}

    async def lies_there() -> bool:
        if await program.counts("DEAD", f"dead.{subject}"):
            found.update(await program.last("DEAD", f"dead.{subject}"))
        return bool(found)

    await program.eventually(lies_there)
    return found
