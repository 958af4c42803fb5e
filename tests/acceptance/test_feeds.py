"""Clients that are cut off at random and come back elsewhere get the same events as one that never was."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.acceptance.system import AGENTS, NAPPER, Served, System
from tests.http_client import Connection, ask

NARRATOR = str(AGENTS / "narrator.py")
#: Seconds after which a client is cut off at the latest, and until it comes back.
LONGEST_S = 0.4
AWAY_S = 0.05
#: Of these a client that is away misses some.
KEPT_NOWHERE = {"progress", "phase_progress", ":"}
ENDS = {"done", "[DONE]"}

Event = tuple[str, str, Any]


@dataclass
class Doors:
    """The addresses of supervisors that serve, and how often clients were cut off from them."""

    urls: list[str]
    rng: random.Random
    cuts: int = 0

    def choose(self) -> str:
        return self.rng.choice(self.urls)


@dataclass
class Stream:
    """One stream: how it is asked for, by the id of the last event that a client has."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether a client goes on where it was; else the stream begins anew.
    goes_on: bool = True

    @asynccontextmanager
    async def open(
        self, url: str, after: str = ""
    ) -> AsyncIterator[tuple[int, AsyncIterator[Event]]]:
        """Open it at *url* and give its status and events, behind the one with the id *after*."""
        headers = dict(self.headers)
        if after:
            headers["Last-Event-ID"] = after
        async with Connection(url) as connection:
            connection.send(self.method, self.path, self.body, headers)
            status, _ = await connection.head()
            yield status, events_of(connection)

    async def read(self, url: str) -> list[Event]:
        """Return all events of a client that stays."""
        async with self.open(url) as (status, events):
            assert status == 200
            return [event async for event in events]

    async def read_in_pieces(self, doors: Doors) -> list[Event]:
        """Return all events of a client that is cut off at random, and comes back to any supervisor."""
        found: list[Event] = []
        after = ""
        while True:
            most = doors.rng.randrange(1, 12)
            with suppress(OSError, EOFError, TimeoutError):
                async with (
                    asyncio.timeout(doors.rng.uniform(0.02, LONGEST_S)),
                    self.open(doors.choose(), after) as (status, events),
                ):
                    if status == 204:
                        return found
                    if status in (429, 503):
                        raise TimeoutError
                    assert status == 200
                    if not self.goes_on:
                        found = []
                        most = 10_000
                    async for event in events:
                        found.append(event)
                        after = event[0] or after
                        if event[1] in ENDS:
                            return found
                        most -= 1
                        if not most:
                            break
            doors.cuts += 1
            await asyncio.sleep(doors.rng.uniform(0, AWAY_S))


async def events_of(connection: Connection) -> AsyncIterator[Event]:
    """Yield each event of *connection*; a comment is left out, and so is the end of a chat."""
    name = kind = ""
    while True:
        line = (await connection.reader.readline()).decode()
        if not line:
            return
        key, _, value = line.rstrip("\r\n").partition(": ")
        if key == "id":
            name = value
        elif key == "event":
            kind = value
        elif key == "data":
            is_end = value == "[DONE]"
            yield (
                name,
                "[DONE]" if is_end else kind,
                None if is_end else json.loads(value),
            )
            if is_end or kind in ENDS:
                return
            name = kind = ""


def what_remains(events: list[Event]) -> list[Any]:
    """Return *events* as a reader has them: pieces of text together, without those that are kept nowhere.

    Nor those of questions, which are shown only while they are open.
    """
    found: list[Any] = []
    for _, kind, data in events:
        if kind in KEPT_NOWHERE or (kind == "partial" and "kind" not in data):
            continue
        if kind == "question":
            continue
        if kind == "done" and "reply" in data:
            # How long an answer took is known where it was given.
            data = {**data, "reply": {**data["reply"], "elapsed_ms": 0}}
        if kind == "text" and found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + data["text"])
        else:
            found.append((kind, data["text"] if kind == "text" else data))
    return found


def said_in_chat(events: list[Event]) -> list[Any]:
    """Return the words of a chat, and what it says for programs at its end."""
    deltas = [
        choice["delta"].get("content") or ""
        for _, kind, data in events
        if kind != "[DONE]"
        for choice in data["choices"]
    ]
    about = [data["tasklore"] for _, _, data in events if data and "tasklore" in data]
    kinds = [one.get("event", "end") for one in about]
    # It begins anew each time, and shows a question only while it is open.
    return ["".join(deltas), [kind for kind in kinds if kind != "question"]]


def steps_of_run(events: list[Event]) -> list[Any]:
    """Return the steps of a run behind the first phase, during which clients come, by their times."""
    steps = [
        (kind, data["phase"] or "", data["run_ms"] or 0, data["at"])
        for _, kind, data in events
        if kind not in KEPT_NOWHERE | {"state", "done"}
    ]
    ended = next(
        place for place, one in enumerate(steps) if one[:2] == ("phase_done", "p0")
    )
    assert [step[3] for step in steps] == sorted(step[3] for step in steps)
    return [*steps[ended:], events[-1][2]["state"]]


async def send_task(url: str, number: int) -> Stream:
    body = {
        "agent_id": "NarratorAgent",
        "task": "narrate",
        "parameters": {"words": 30},
        "wait_seconds": 0,
    }
    key = {"Idempotency-Key": f"task-{number}"}
    sent = await ask(url, "POST", "/v1/tasks", body, key)
    return Stream("GET", f"/v1/tasks/{sent.body['task_id']}/output")


async def send_request(url: str, number: int) -> Stream:
    key = {"Idempotency-Key": f"request-{number}"}
    body = {"text": "narrate a story, words 30", "wait_seconds": 0}
    sent = await ask(url, "POST", "/v1/requests", body, key)
    assert sent.status == 202, sent.body
    return Stream("GET", f"/v1/requests/request-{number}/events")


async def send_chat(_url: str, number: int) -> Stream:
    body = {
        "model": "tasklore",
        "stream": True,
        "messages": [{"role": "user", "content": "narrate a story, words 30"}],
    }
    key = {"Idempotency-Key": f"chat-{number}"}
    return Stream("POST", "/v1/chat/completions", body, key, goes_on=False)


async def send_pipeline(url: str, number: int) -> Stream:
    phases = [
        {
            "name": f"p{place}",
            "agent": "NapAgent",
            "task": "take_nap",
            "parameters": {"ms": 400 + place},
            "after": [f"p{place - 1}"] if place else [],
        }
        for place in range(6)
    ]
    pipeline = {"name": "napping", "phases": phases}
    body = {"pipeline": pipeline, "session_id": f"naps-{number}"}
    sent = await ask(url, "POST", "/v1/pipelines", body)
    assert sent.status == 202, sent.body
    return Stream("GET", f"/v1/pipelines/naps-{number}/events")


Send = Callable[[str, int], Awaitable[Stream]]
Normalise = Callable[[list[Event]], list[Any]]
KINDS: dict[str, tuple[Send, Normalise]] = {
    "output": (send_task, what_remains),
    "requests": (send_request, what_remains),
    "chat": (send_chat, said_in_chat),
    "pipelines": (send_pipeline, steps_of_run),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "cuts", [40, pytest.param(200, marks=pytest.mark.long)], ids="{} cuts".format
)
async def test_a_client_that_is_cut_off_gets_the_same_events_as_one_that_is_not(
    cuts: int, own_system: System
) -> None:
    """Of tasks, requests, chats and pipelines, at two supervisors, of which one is killed and another comes."""
    for agent in (NARRATOR, NAPPER):
        own_system.worker(agent, ack_wait_s=5)
    stays = own_system.supervisor().ready()
    dies = own_system.supervisor().ready()
    stays.await_agents(2)
    dies.await_agents(2)
    rng = random.Random(cuts)
    doors = Doors([stays.api, dies.api], rng)
    numbers = iter(range(1000))

    async def compare(kind: str) -> None:
        send, normalise = KINDS[kind]
        stream = await send(stays.api, next(numbers))
        # A chat's words are asked for once, and then found again.
        whole, *cut = await asyncio.gather(
            stream.read(stays.api),
            *(stream.read_in_pieces(doors) for _ in range(2)),
        )
        asked = [data for _, event, data in whole if event == "question"]
        assert len(asked) == (kind in ("output", "requests")), kind
        for found in cut:
            assert normalise(found) == normalise(whole), kind
            assert [data for _, event, data in found if event == "question"] in (
                [],
                asked,
            )

    async def kill() -> None:
        await asyncio.sleep(1.5)
        doors.urls.remove(dies.api)
        await asyncio.to_thread(dies.kill)
        later: Served = await asyncio.to_thread(own_system.supervisor().ready)
        doors.urls.append(later.api)

    killing = asyncio.create_task(kill())
    while doors.cuts < cuts:
        async with asyncio.TaskGroup() as group:
            for kind in KINDS:
                group.create_task(compare(kind))
    await killing
    assert doors.cuts >= cuts


async def test_the_output_of_a_run_that_waited_for_room_is_followed_by_that_of_the_next(
    own_system: System,
) -> None:
    """Both are one attempt; a client that comes back goes on in either, and hears why the task waited."""
    own_system.worker(NARRATOR).ready()
    served = own_system.supervisor().ready()
    served.await_agents(1)
    body = {
        "agent_id": "NarratorAgent",
        "task": "narrate_poorly",
        "parameters": {"words": 3},
        "wait_seconds": 0,
    }
    sent = await ask(served.api, "POST", "/v1/tasks", body)
    stream = Stream("GET", f"/v1/tasks/{sent.body['task_id']}/output")
    whole = await stream.read(served.api)
    remains = what_remains(whole)
    assert len(remains) == 5, remains
    first, waiting, restarted, then, done = remains
    assert first == ("text", "first 0, first 1, first 2, ")
    assert (waiting[0], waiting[1]["text"]) == ("waiting", "the budget of the day")
    assert restarted[1] == {"generation": 1, "attempt": 1, "waited": True}
    assert then == ("text", "then 0, then 1, then 2, ")
    assert (done[0], done[1]["report"]["attempt"]) == ("done", 1)
    for place, (name, _, _) in enumerate(whole[:-1]):
        async with stream.open(served.api, name) as (status, events):
            rest = [event async for event in events]
        assert status == 200
        texts = [event for event in rest if event[1] == "text"]
        missed = [event for event in whole[place + 1 :] if event[1] == "text"]
        assert "".join(one[2]["text"] for one in texts) == "".join(
            one[2]["text"] for one in missed
        )
