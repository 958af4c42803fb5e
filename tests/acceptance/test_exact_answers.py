"""A task that returns a text is answered with it, byte for byte, at every door, streamed once and never twice."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import openai
import pytest

from tasklore.client import AsyncClient
from tasklore.commands.ask.ask import ask_and_print
from tasklore.commands.operations.entries import find_shortcut
from tasklore.contracts import subjects
from tasklore.contracts.messages import PersonReply, PersonRequest
from tasklore.runtime.messaging.connection import connected
from tasklore.supervisor.program_client import Asker, asking
from tests.acceptance.system import AGENTS, Served, System
from tests.answer_texts import TEXTS
from tests.http_client import Connection, ask, until
from tests.receiver import SECRET, Receiver, receiving

LETTERS = str(AGENTS / "letters.py")
SCRIBE = str(AGENTS / "scribe.py")
#: Texts that are tried at a door at once.
AT_ONCE = 8
#: Texts that a command prints: Markdown, line breaks of Windows, controls, emoji, right to left, and 60 kB.
PRINTED = (3, 18, 19, 21, 25, 38)
#: Characters of the longest note of a person, and of the longest question of a task.
NOTE = 2_000
#: Bytes of the largest signal.
SIGNAL = 65_536


@dataclass(frozen=True)
class Doors:
    """What the doors of one system are asked by."""

    system: System
    served: Served
    other: Served
    openai: openai.AsyncOpenAI
    client: AsyncClient
    program: Asker
    receiver: Receiver

    async def call(
        self, method: str, path: str, body: Any = None, *, at: Served | None = None
    ) -> Any:
        """Return the body of an answer over HTTP, which is none of a refusal."""
        answer = await ask((at or self.served).api, method, path, body)
        assert answer.status in (200, 202), answer
        return answer.body

    async def task(
        self, agent: str, task: str, within: float, **parameters: Any
    ) -> Any:
        """Return a task that was sent, after *within* seconds at most."""
        body = {
            "agent_id": agent,
            "task": task,
            "parameters": parameters,
            "wait_seconds": within,
        }
        return await self.call("POST", "/v1/tasks", body)

    async def events(self, path: str) -> list[tuple[str, Any]]:
        """Return the events of a stream to its end."""
        async with Connection(self.served.api) as connection:
            connection.send("GET", path)
            assert (await connection.head())[0] == 200
            return [(name, data) async for _, name, data in connection.events()]


def words_for(number: int, told: str = "no") -> str:
    """Return a sentence that asks for a text, told bit by bit or at once."""
    return f"write the letter number {number}, told {told}"


async def by_request(doors: Doors, number: int) -> list[Any]:
    """Ask, look, at another supervisor too, and listen; what was asked and how are fields beside the text."""
    body = {"text": f"write the letter number {number}", "wait_seconds": 60}
    reply = (await doors.call("POST", "/v1/requests", body))["reply"]
    assert reply["heading"] == f"Write (number {number})"
    assert reply["origin"].startswith("Computed in ")
    place = f"/v1/requests/{reply['request_id']}"
    looked = (await doors.call("GET", place))["reply"]
    elsewhere = (await doors.call("GET", place, at=doors.other))["reply"]
    talk = f"/v1/conversations/{reply['conversation_id']}"
    said = (await doors.call("GET", talk))["messages"]
    heard = [
        data for name, data in await doors.events(f"{place}/events") if name == "done"
    ]
    assert len(heard) == 1
    return [
        reply["text"],
        reply["report"]["result"],
        looked["text"],
        elsewhere["text"],
        elsewhere["report"]["result"],
        heard[0]["reply"]["text"],
        said[-1]["message"],
    ]


async def by_task(doors: Doors, number: int) -> list[Any]:
    """Send a task, look, and follow its output, which has the text once."""
    sent = await doors.task("LetterAgent", "write", 60, number=number, told=True)
    place = f"/v1/tasks/{sent['task_id']}"
    looked = await doors.call("GET", place)
    events = await doors.events(f"{place}/output")
    text = "".join(data["text"] for name, data in events if name == "text")
    kinds = {name for name, _ in events} - {":"}
    assert kinds <= {"text", "done"}
    return [
        sent["report"]["result"],
        looked["report"]["result"],
        text,
        events[-1][1]["report"]["result"],
    ]


async def by_parameter(doors: Doors, number: int) -> list[Any]:
    """Give the text to a task that returns it."""
    sent = await doors.task("ScribeAgent", "copy", 60, text=TEXTS[number])
    return [sent["report"]["result"]]


async def from_memory(doors: Doors, number: int) -> list[Any]:
    """Have it computed, and then recalled."""
    first = await doors.task("ScribeAgent", "keep", 60, number=number)
    again = await doors.task("ScribeAgent", "keep", 60, number=number)
    assert again["report"]["memory"]["outcome"] == "hit"
    return [first["report"]["result"], again["report"]["result"]]


def chat(model: str) -> Callable[[Doors, int], Awaitable[list[Any]]]:
    """Return the door of *model*: whole, the same once more, streamed at once, and streamed as it comes."""

    async def by_chat(doors: Doors, number: int) -> list[Any]:
        create: Any = doors.openai.chat.completions.create
        said = [{"role": "user", "content": words_for(number)}]
        key = {"Idempotency-Key": f"{model.replace('/', '-')}-{number}"}
        found = []
        for _ in ("first", "again"):
            done = await create(model=model, messages=said, extra_headers=key)
            found.append(done.choices[0].message.content)
        for told in ("no", "yes"):
            said = [{"role": "user", "content": words_for(number, told)}]
            stream = await create(model=model, messages=said, stream=True)
            pieces = [
                chunk.choices[0].delta.content or ""
                async for chunk in stream
                if chunk.choices
            ]
            found.append("".join(pieces))
        return found

    return by_chat


async def by_chat_as_json(doors: Doors, number: int) -> list[Any]:
    """Ask for JSON of a schema, which is the text as a text of JSON."""
    schema = {"name": "letter", "schema": {"type": "string"}}
    done = await doors.openai.chat.completions.create(
        model="LetterAgent/write",
        messages=[{"role": "user", "content": words_for(number)}],
        response_format={"type": "json_schema", "json_schema": schema},
    )
    return [json.loads(str(done.choices[0].message.content))]


async def by_python_client(doors: Doors, number: int) -> list[Any]:
    """Ask in words, and for a task by name."""
    reply = await doors.client.ask(words_for(number))
    done = await doors.client.run("LetterAgent", "write", {"number": number})
    return [reply.text, reply.result, done.result]


async def by_program(doors: Doors, number: int) -> list[Any]:
    """Ask over NATS, without a supervisor."""
    report = await doors.program.ask("LetterAgent", "write", {"number": number})
    return [report.result]


async def by_wire(doors: Doors, number: int) -> list[Any]:
    """Ask a supervisor over NATS."""
    request = PersonRequest(text=words_for(number, "yes"), wait_ms=60_000)
    async with connected(doors.system.servers.nats_url, "tests") as client:
        heard = await client.request(
            subjects.requests("SupervisorAgent"),
            request.model_dump_json().encode(),
            timeout=90,
        )
    return [PersonReply.model_validate_json(heard.data).text]


async def by_webhook(doors: Doors, number: int) -> list[Any]:
    """Be called back at the end of a task; the result that makes a body too large is left out of it."""
    path = f"/letter-{number}"
    body = {
        "agent_id": "LetterAgent",
        "task": "write",
        "parameters": {"number": number},
        "callback_url": doors.receiver.url(path),
        "wait_seconds": 0,
    }
    await doors.call("POST", "/v1/tasks", body)

    def heard() -> list[Any]:
        return [one.event for one in doors.receiver.heard if one.path == path]

    await until(lambda: bool(heard()))
    data = heard()[0]["data"]
    assert (data["result"] is None) == data.get("truncated", False)
    looked = await doors.call("GET", f"/v1/tasks/{data['task_id']}")
    shown = looked["report"]["result"]
    return [shown if data["result"] is None else data["result"], shown]


async def by_pipeline(doors: Doors, number: int) -> list[Any]:
    """Have one phase write it and the next one copy it; both are the result of the run."""
    session = f"letter-{number}"
    phases = [
        {
            "name": "writing",
            "agent": "LetterAgent",
            "task": "write",
            "parameters": {"number": number},
        },
        {
            "name": "copying",
            "agent": "ScribeAgent",
            "task": "copy",
            "parameters": {"text": "${writing:results}"},
        },
    ]
    wish = {"pipeline": {"name": "letters", "phases": phases}, "session_id": session}
    await doors.call("POST", "/v1/pipelines", wish)
    place = f"/v1/pipelines/{session}"
    *_, (name, told) = await doors.events(f"{place}/events")
    assert (name, told["state"]) == ("done", "completed")
    looked = await doors.call("GET", place)
    return [
        *told["outcome"]["result"].values(),
        *looked["outcome"]["result"].values(),
    ]


async def by_person(doors: Doors, number: int) -> list[Any]:
    """Ask a person with it, who answers with it; a question and a note are shorter than other texts."""
    if not 0 < len(TEXTS[number]) <= NOTE:
        return [TEXTS[number]]
    sent = await doors.task("ScribeAgent", "wonder", 0, number=number)
    place = f"/v1/approvals/{sent['task_id']}.0"
    async with asyncio.timeout(60):
        while (await ask(doors.served.api, "GET", place)).status != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    question = await doors.call("GET", place)
    answer = {"approved": True, "note": TEXTS[number]}
    answered = await doors.call("POST", place, {"answer": answer})
    *_, (_, done) = await doors.events(f"/v1/tasks/{sent['task_id']}/output")
    return [
        question["question"],
        answered["answer"]["value"]["note"],
        done["report"]["result"],
    ]


async def by_signal(doors: Doors, number: int) -> list[Any]:
    """Send it to a task that waits for it; a signal has 64 KiB at most."""
    if len(json.dumps(TEXTS[number])) > SIGNAL:
        return [TEXTS[number]]
    sent = await doors.task("ScribeAgent", "listen", 0, number=number)
    place = f"/v1/tasks/{sent['task_id']}"
    await doors.call(
        "POST", f"{place}/signals/letter-{number}", {"value": TEXTS[number]}
    )
    *_, (_, done) = await doors.events(f"{place}/output")
    return [done["report"]["result"]]


DOORS: dict[str, Callable[[Doors, int], Awaitable[list[Any]]]] = {
    "requests": by_request,
    "tasks": by_task,
    "a parameter": by_parameter,
    "memory": from_memory,
    "chat with all agents": chat("tasklore"),
    "chat with an agent": chat("LetterAgent"),
    "chat with a task": chat("LetterAgent/write"),
    "chat in JSON": by_chat_as_json,
    "the Python client": by_python_client,
    "a program on NATS": by_program,
    "a request on NATS": by_wire,
    "a webhook": by_webhook,
    "a pipeline": by_pipeline,
    "a person": by_person,
    "a signal": by_signal,
}


@asynccontextmanager
async def opened(system: System, receiver: Receiver) -> AsyncIterator[Doors]:
    """Run a system with every door, and open clients of each."""
    system.worker(LETTERS, SCRIBE, llm_base_url="", llm_api_key="").ready()
    served, other = [
        system.supervisor(
            webhook_secret=SECRET,
            webhook_networks="127.0.0.1/32",
            api_rate=10_000,
            api_burst=10_000,
            llm_base_url="",
            llm_api_key="",
        ).ready()
        for _ in range(2)
    ]
    for one in (served, other):
        await asyncio.to_thread(one.await_agents, 2)
    nats_url = system.servers.nats_url
    redis_url = system.servers.redis_url
    async with (
        openai.AsyncOpenAI(base_url=f"{served.api}/v1", api_key="none") as chats,
        AsyncClient(served.api) as client,
        asking("MyScript", nats_url=nats_url, redis_url=redis_url) as program,
    ):
        yield Doors(
            system=system,
            served=served,
            other=other,
            openai=chats,
            client=client,
            program=program,
            receiver=receiver,
        )


async def test_a_text_is_the_answer_at_every_door(own_system: System) -> None:
    """All that differ are named, by door, number and which of its answers it was."""
    gate = asyncio.Semaphore(AT_ONCE)
    wrong: list[tuple[str, int, int]] = []

    async def tried(doors: Doors, door: str, number: int) -> None:
        async with gate:
            found = await DOORS[door](doors, number)
        assert found
        wrong.extend(
            (door, number, place)
            for place, text in enumerate(found)
            if text != TEXTS[number]
        )

    async with (
        receiving() as receiver,
        opened(own_system, receiver) as doors,
        asyncio.TaskGroup() as group,
    ):
        for door in DOORS:
            for number in range(len(TEXTS)):
                group.create_task(tried(doors, door, number))
    assert sorted(wrong) == []


async def test_ask_prints_every_text_byte_for_byte(
    own_system: System,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """One line break ends it; with `--json` it is a field."""
    own_system.worker(LETTERS).ready()
    own_system.supervisor().ready()
    for name, value in own_system.environment.items():
        monkeypatch.setenv(name, value)
    capsysbinary.readouterr()
    entry = find_shortcut("ask")
    assert entry is not None
    for number, text in enumerate(TEXTS):
        typed = {"field_text": (words_for(number),)}
        await asyncio.to_thread(ask_and_print, entry, typed)
        printed = capsysbinary.readouterr().out
        await asyncio.to_thread(ask_and_print, entry, {**typed, "is_json": True})
        told = json.loads(capsysbinary.readouterr().out)["reply"]
        assert (number, printed) == (number, f"{text}\n".encode())
        assert (number, told["text"]) == (number, text)
        assert told["report"]["result"] == text


async def test_ask_prints_a_text_byte_for_byte(own_system: System) -> None:
    """One line break ends it; with `--verbose` the rest stands on stderr."""
    own_system.worker(LETTERS).ready()
    own_system.supervisor().ready()

    def printed(number: int) -> "subprocess.CompletedProcess[bytes]":
        words = f"write the letter number {number}"
        return subprocess.run(
            [sys.executable, "-m", "tasklore", "ask", words, "--verbose"],
            env=own_system.environment,
            cwd=own_system.folder,
            capture_output=True,
            check=True,
        )

    for number in PRINTED:
        done = await asyncio.to_thread(printed, number)
        assert done.stdout == f"{TEXTS[number]}\n".encode()
        assert f"Write (number {number}). Computed in " in done.stderr.decode()
