"""Live output of real workers: one is killed in the middle, and clients see the restart and then one whole answer."""

import asyncio
import contextlib
import os
import pty
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.acceptance.conftest import Standing
from tests.acceptance.system import AGENTS, System, running_system
from tests.http_client import Connection, ask
from tests.interrupts import hear_interrupts

TELLER = str(AGENTS / "teller.py")
WORDS = 60


async def follow(
    url: str, task_id: str, after: str | None = None, most: int = 10_000
) -> list[tuple[str, str, Any]]:
    """Return events after the one with id *after*, up to the end or to the number of *most*."""
    found: list[tuple[str, str, Any]] = []
    async with Connection(url) as connection:
        headers = {"Last-Event-ID": after} if after else {}
        connection.send("GET", f"/v1/tasks/{task_id}/output", headers=headers)
        assert (await connection.head())[0] == 200
        async for event in connection.events():
            if event[1] != ":":
                found.append(event)
            if len(found) == most:
                break
    return found


def at_terminal(
    variables: Mapping[str, str], folder: Path, *words: str, leaves: bool = False
) -> tuple[int, list[str]]:
    """Run `tasklore` at a terminal; return its exit code, and what it showed piece by piece.

    Who *leaves* presses Ctrl-C at the first piece.
    """
    process, terminal = pty.fork()
    if process == 0:
        hear_interrupts()
        os.chdir(folder)
        arguments = [sys.executable, "-m", "tasklore", *words]
        # Without colours nothing is painted over what was shown.
        os.execve(sys.executable, arguments, {**variables, "NO_COLOR": "1"})  # noqa: S606
    pieces: list[bytes] = []
    # A terminal whose process has ended is read with an error.
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 65536):
            pieces.append(piece)
            if leaves and len(pieces) == 1:
                os.write(terminal, b"\x03")
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), [
        one.decode(errors="replace") for one in pieces
    ]


def text_after_restart(events: list[tuple[str, str, Any]]) -> str:
    last = max(
        (place for place, event in enumerate(events) if event[1] == "restarted"),
        default=-1,
    )
    return "".join(
        data["text"] for _, kind, data in events[last + 1 :] if kind == "text"
    )


async def test_a_worker_that_is_killed_restarts_the_answer_and_never_mixes_it(
    own_system: System,
) -> None:
    """For a client that stays and for one that comes back to another supervisor."""
    struck = own_system.worker(TELLER, ack_wait_s=1).ready()
    one = own_system.supervisor().ready()
    two = own_system.supervisor().ready()
    body = {
        "agent_id": "TellerAgent",
        "task": "tell",
        "parameters": {"words": WORDS},
        "wait_seconds": 0,
    }
    task_id = (await ask(one.api, "POST", "/v1/tasks", body)).body["task_id"]
    staying = asyncio.create_task(follow(one.api, task_id))
    begun = await follow(two.api, task_id, most=6)
    await asyncio.to_thread(struck.kill)
    own_system.worker(TELLER, ack_wait_s=1)
    events = await staying
    resumed = await follow(one.api, task_id, after=begun[-1][0])
    whole = "".join(f"2:{number}é " for number in range(WORDS))
    for found in (events, resumed):
        kinds = [kind for _, kind, _ in found]
        assert kinds.count("restarted") == 1
        assert "gap" not in kinds
        assert kinds[-1] == "done"
        assert found[-1][2]["report"]["status"] == "completed"
        assert text_after_restart(found) == whole == found[-1][2]["report"]["result"]
    before = "".join(
        data["text"]
        for _, kind, data in events[: [k for _, k, _ in events].index("restarted")]
        if kind == "text"
    )
    assert before
    assert "".join(f"1:{number}é " for number in range(WORDS)).startswith(before)
    assert begun[0][1:] == (
        "value",
        {"kind": "tool_call", "value": {"name": "remember_tales"}},
    )


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """Give a worker and a supervisor to all tests that kill neither."""
    with running_system(tmp_path_factory.mktemp("telling")) as system:
        worker = system.worker(TELLER)
        supervisor = system.supervisor().ready()
        yield Standing(system, worker.ready(), supervisor)


async def test_a_task_that_runs_again_emits_again_and_a_client_that_leaves_stops_nothing(
    telling: Standing,
) -> None:
    """The output of the failed run is stored whole before the next one begins."""
    served = telling.supervisor
    parameters = {"words": 10, "pause_ms": 1, "break_off": True}
    body = {
        "agent_id": "TellerAgent",
        "task": "tell",
        "parameters": parameters,
        "wait_seconds": 0,
    }
    task_id = (await ask(served.api, "POST", "/v1/tasks", body)).body["task_id"]
    await follow(served.api, task_id, most=1)
    await ask(served.api, "GET", f"/v1/tasks/{task_id}")
    events = await follow(served.api, task_id)
    texts = ["".join(f"{run}:{number}é " for number in range(10)) for run in (1, 2)]
    restarted = next(
        place for place, event in enumerate(events) if event[1] == "restarted"
    )
    first = events[:restarted]
    second = events[restarted:]
    assert [text_after_restart(one) for one in (first, second)] == texts
    assert events[-1][2]["report"]["attempt"] == 2


async def test_a_chat_streams_the_words_of_the_task_that_answers_as_they_come(
    telling: Standing,
) -> None:
    """A call of a tool is shown, a run that breaks off is announced, and the answer is not said twice."""
    served = telling.supervisor
    client = openai.AsyncOpenAI(base_url=f"{served.api}/v1", api_key="none")
    asked = [{"role": "user", "content": "tell me a tale, words 12, break off yes"}]
    stream = await client.chat.completions.create(
        model="tasklore", messages=asked, stream=True
    )  # type: ignore[call-overload]
    chunks = [chunk async for chunk in stream]
    await client.close()
    words = [
        chunk.choices[0].delta.content
        for chunk in chunks
        if chunk.choices and chunk.choices[0].delta.content
    ]
    about = [
        chunk.model_dump()["tasklore"]
        for chunk in chunks
        if "tasklore" in chunk.model_dump()
    ]
    whole = ["".join(f"{run}:{number}é " for number in range(12)) for run in (1, 2)]
    assert "".join(words).split("\n\n[broke off, and begins again]\n\n") == whole
    assert len(words) > 4
    # Why it waits for its next run is said where it still waits at the next look.
    events = [one.get("event") for one in about if one.get("event") != "waiting"]
    assert events == ["value", "restarted", "value", None]
    assert about[0]["kind"] == "tool_call"


async def test_a_person_at_a_terminal_reads_the_words_as_they_come(
    telling: Standing,
) -> None:
    """And no more beside them, where the answer says the same; to a pipe the answer goes alone."""
    words = "tell me a tale, words 30, break off yes"
    code, pieces = await asyncio.to_thread(
        at_terminal, telling.system.environment, telling.system.folder, "ask", words
    )
    whole = ["".join(f"{run}:{number}é " for number in range(30)) for run in (1, 2)]
    shown = "".join(pieces).replace("\r\n", "\n").removesuffix("\n")
    assert code == 0
    assert shown.split("\n\n[broke off, and begins again]\n\n") == whole
    assert len(pieces) > 4


async def test_who_leaves_in_the_middle_is_told_how_to_go_on(
    telling: Standing,
) -> None:
    """By Ctrl-C at a terminal; the command that is printed finds the answer."""
    words = "tell me a tale, words 40, pause ms 100"
    code, pieces = await asyncio.to_thread(
        at_terminal,
        telling.system.environment,
        telling.system.folder,
        "ask",
        words,
        leaves=True,
    )
    shown = " ".join("".join(pieces).split())
    assert code == 130
    assert "it may still be running; for the answer:" in shown
    _, *again = shlex.split(shown.partition("for the answer: ")[2])
    fetched = await asyncio.to_thread(telling.system.command, *again)
    whole = "".join(f"1:{number}é " for number in range(40))
    assert (fetched.returncode, fetched.stdout) == (0, f"{whole}\n")


async def test_words_to_a_pipe_are_the_answer_alone(telling: Standing) -> None:
    done = await asyncio.to_thread(
        telling.system.command, "ask", "tell me a tale, words 3"
    )
    assert "1:0é 1:1é 1:2é" in done.stdout
