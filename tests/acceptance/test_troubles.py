"""Whoever has a task in trouble finds the cause by the pages alone: real processes, the commands as they stand there.

Each section of the two pages that has commands is tried on a task that is in this very trouble. Words in capitals are
read as a person reads them: the task is known, everything else stands in the output of a command before.
"""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import (
    AGENTS,
    NAPPER,
    PROBE,
    ROOT,
    Served,
    System,
    running_system,
)
from tests.acceptance.test_budgets import ASKER, Provider, settings
from tests.acceptance.test_waits import PAYER
from tests.golden.consoles import FOLDER, ShownCommand, fits, read_commands
from tests.golden.normal import Normaliser
from tests.http_client import PATIENCE_S
from tests.http_client import ask as http

GUIDE = ROOT / "docs" / "guide"
TROUBLED = str(AGENTS / "troubled.py")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n.*?^```$", re.MULTILINE | re.DOTALL)
#: Commands of a section until the cause stands there; those of its later blocks mend it.
MOST_COMMANDS = 3
#: What needs a model or another system than stands here has no commands on a page.
PAGES = ("my-task-failed.md", "what-waits-and-why.md")

#: Words of the agents here, and those of the pages, which tell of one that everybody knows.
ON_PAGES = (
    (str(AGENTS / "troubled.py"), "/home/ana/shop/trip.py"),
    ("TroubledAgent.nap", "TripAgent.share_trip"),
    ("TroubledAgent.add", "TripAgent.share_trip"),
    ("TroubledAgent.alone", "TripAgent.book"),
    ("TroubledAgent.call", "TripAgent.call"),
    ("TroubledAgent", "TripAgent"),
    ("passed while nap ran", "passed while share_trip ran"),
    ("in add:", "in share_trip:"),
)

#: How a person finds what a word of a command stands for in what was printed before.
READ = {
    "SEQUENCE": re.compile(r"^(?:sequence)? +(\d+)(?= |$)", re.MULTILINE),
    "QUESTION": re.compile(r"\(question (\S+?)\)"),
}


@dataclass
class Scene:
    """A system with a supervisor and a worker, and a provider of models."""

    system: System
    supervisor: Served
    provider: Provider

    async def send(self, agent: str, task: str, **body: Any) -> str:
        """Send a task by HTTP and return its id at once."""
        order = {"agent_id": agent, "task": task, "wait_seconds": 0, **body}
        sent = await http(self.supervisor.api, "POST", "/v1/tasks", order)
        assert sent.status in (200, 202), sent.body
        return str(sent.body["task_id"])

    async def see(self, task_id: str) -> dict[str, Any]:
        """Return the task as HTTP has it."""
        return dict(
            (await http(self.supervisor.api, "GET", f"/v1/tasks/{task_id}")).body
        )

    async def await_that(
        self, task_id: str, holds: Callable[[dict[str, Any]], bool]
    ) -> str:
        """Return *task_id* once what HTTP says of the task *holds*."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds(await self.see(task_id)):  # noqa: ASYNC110 - a server's state makes no event here
                await asyncio.sleep(0.05)
        return task_id

    async def await_status(self, task_id: str, status: str) -> str:
        """Return *task_id* once it has *status*."""
        return await self.await_that(task_id, lambda seen: seen["status"] == status)

    async def await_wait(self, task_id: str, kind: str) -> str:
        """Return *task_id* once it waits for one of *kind*."""
        return await self.await_that(
            task_id, lambda seen: seen.get("waits_for", {}).get("kind") == kind
        )

    async def find_in_list(self, task_id: str, agent: str) -> dict[str, Any] | None:
        """Return the task as the list has it, None where it is not there."""
        path = f"/v1/tasks?agent={agent}&limit=200"
        listed = (await http(self.supervisor.api, "GET", path)).body["tasks"]
        return next((one for one in listed if one["task_id"] == task_id), None)

    @asynccontextmanager
    async def program(self) -> AsyncIterator[Outside]:
        """Connect a program that publishes to NATS itself."""
        async with outside(self.system.servers.nats_url) as program:
            yield program

    async def start(self, reference: str, agent: str) -> Served:
        """Start another worker, and return once it takes tasks of *agent*, which the supervisor knows."""
        worker = await asyncio.to_thread(self.system.worker(reference).ready)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                known = await http(self.supervisor.api, "GET", "/v1/agents")
                if agent in {one["agent_id"] for one in known.body["agents"]}:
                    return worker
                await asyncio.sleep(0.05)


class Reader:
    """A person with a task, its agent, and a page: all else they read in what its commands print."""

    def __init__(self, system: System, task: str, agent: str) -> None:
        self._system = system
        self._known = {"TASK": task, "AGENT": agent}
        self.printed: list[str] = []

    async def run(self, command: str) -> int:
        """Run *command* as it stands on the page, with the words in capitals that are known; return its status."""
        program, *words = shlex.split(command)
        assert program == "tasklore"
        given = [self._find(word) for word in words]
        done = await asyncio.to_thread(self._system.command, "--direct", *given)
        if "not a terminal: pass --yes to confirm" in done.stderr:
            # At a terminal they are asked, and say yes.
            given.append("--yes")
            done = await asyncio.to_thread(self._system.command, "--direct", *given)
        self.printed.append(f"{done.stdout}{done.stderr}")
        return done.returncode

    def demand_shown(self, command: ShownCommand) -> None:
        """Return when the page shows behind *command* what was printed last, in the words of the page."""
        said = self.printed[-1].replace(str(self._system.folder), FOLDER)
        for ours, theirs in ON_PAGES:
            said = said.replace(ours, theirs)
        # Without the line of the audit, which `--direct` writes on stderr.
        lines = [
            line.rstrip() for line in said.splitlines() if not line.startswith('{"')
        ]
        assert fits(command.shown, lines, Normaliser()), "\n".join(
            [f"$ {command.line}", *lines]
        )

    def _find(self, word: str) -> str:
        if word in self._known:
            return self._known[word]
        if word not in READ:
            return word
        found = [match for said in self.printed for match in READ[word].findall(said)]
        assert found, f"nothing that was printed says which {word} is meant"
        return str(found[-1])


def sections(page: str) -> dict[str, list[list[ShownCommand]]]:
    """Return the blocks of commands of each section of *page* that has some, by its heading."""
    _, *rest = _SECTION.split((GUIDE / page).read_text("utf-8"))
    found = {}
    for heading, text in zip(rest[::2], rest[1::2], strict=True):
        blocks = [list(read_commands(block)) for block in _CONSOLE.findall(text)]
        if blocks:
            found[heading] = blocks
    return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Run a supervisor, and a worker of the agents that get into trouble here."""
    provider = Provider()
    asyncio.run(provider.llm.__aenter__())
    with running_system(tmp_path_factory.mktemp("troubles")) as system:
        for name, every in (("acme", "day"), ("rush", "minute")):
            words = ("--tenant", name, "--requests", "2", "--every", every)
            done = system.command("--direct", "limits", "set", name, *words)
            assert done.returncode == 0, done.stderr
        quiet = settings(provider, ack_wait_s=30)
        worker = system.worker(TROUBLED, PAYER, ASKER, **quiet)
        supervisor = system.supervisor(ack_wait_s=30)
        worker.ready()
        supervisor.ready().await_agents(3)
        yield Scene(system, supervisor, provider)
    asyncio.run(provider.llm.__aexit__(None, None, None))


async def reject(scene: Scene) -> str:
    """Publish a task whose parameters its agent does not take."""
    async with scene.program() as program:
        report = await program.ask("TroubledAgent", "nap", {"ms": "soon"})
    assert report["status"] == "rejected"
    return str(report["task_id"])


async def expire(scene: Scene) -> str:
    """Send a task with a deadline while no worker of its agent is there."""
    async with scene.program() as program:
        deadline = datetime.now(UTC) + timedelta(seconds=1)
        sent = {"label": "late"}
        task = await program.assign(
            "ProbeAgent", "fresh", sent, deadline=deadline.isoformat()
        )
        await asyncio.sleep((deadline - datetime.now(UTC)).total_seconds())
        with await scene.start(PROBE, "ProbeAgent"):
            await program.report_of(task)
    return task


async def run_out_of_time(scene: Scene) -> str:
    """Send a task that takes longer than it may."""
    task = await scene.send(
        "TroubledAgent", "nap", parameters={"ms": 60_000}, within_seconds=1
    )
    return await scene.await_status(task, "expired")


async def leave_no_time(scene: Scene) -> str:
    """Send a task that fails, and has to be done before its next run."""
    task = await scene.send("TroubledAgent", "call", within_seconds=30)
    return await scene.await_status(task, "failed")


async def fail(scene: Scene) -> str:
    """Send a task that has a bug."""
    words = {"ms": 3, "label": "three"}
    task = await scene.send("TroubledAgent", "add", parameters=words)
    return await scene.await_status(task, "failed")


async def lose_worker(scene: Scene) -> str:
    """Kill the only worker of an agent while it runs a task, and wait until its lease has ended."""
    with await scene.start(PROBE, "ProbeAgent") as worker:
        task = await scene.send(
            "ProbeAgent", "fresh", parameters={"label": "lost", "ms": 600_000}
        )
        await scene.await_status(task, "running")
        worker.kill()

    async def is_lost() -> bool:
        path = f"/v1/tasks/{task}/trace"
        traced = await http(scene.supervisor.api, "GET", path)
        return traced.body["root"]["silent_ms"] is not None

    async with scene.program() as program:
        await program.eventually(is_lost)
    return task


async def poison(scene: Scene) -> str:
    """Publish half a task."""
    async with scene.program() as program:
        await program.publish("tasks.TroubledAgent.nap", b'{"task_id": "half-a-task')
        subject = "dead.tasks.TroubledAgent.nap"

        async def is_dead() -> bool:
            return subject in await program.counts("DEAD")

        await program.eventually(is_dead)
    return "half-a-task"


async def forget(scene: Scene) -> str:
    """Forget the user of a task that waited for a person."""
    task = await scene.send(
        "PayerAgent", "pay", parameters={"label": "forgotten"}, user="zed"
    )
    await scene.await_wait(task, "person")
    words = ("memory", "forget", "zed", "--yes")
    done = await asyncio.to_thread(scene.system.command, "--direct", *words)
    assert done.returncode == 0, done.stderr
    return task


async def spend(scene: Scene, tenant: str) -> str:
    """Spend the two requests of *tenant*, and ask for another."""
    for number in (1, 2):
        first = await scene.send(
            "AskerAgent", "colour", parameters={"number": number}, tenant=tenant
        )
        await scene.await_status(first, "completed")
    task = await scene.send(
        "AskerAgent", "colour", parameters={"number": 3}, tenant=tenant
    )
    return await scene.await_wait(task, "limit")


async def spend_budget(scene: Scene) -> str:
    """Spend the budget of a day."""
    return await spend(scene, "acme")


async def spend_rate(scene: Scene) -> str:
    """Spend a minute's requests."""
    return await spend(scene, "rush")


async def take_place(scene: Scene) -> str:
    """Take the only place, and want another."""
    first = await scene.send("TroubledAgent", "alone", parameters={"ms": 20_000})
    await scene.await_status(first, "running")
    task = await scene.send("TroubledAgent", "alone")
    return await scene.await_wait(task, "bound")


async def stand_in_line(scene: Scene) -> str:
    """Send a task to an agent whose last worker has left."""
    with await scene.start(NAPPER, "NapAgent") as worker:
        worker.terminate()
        await asyncio.to_thread(worker.wait)
    task = await scene.send("NapAgent", "take_nap", parameters={"ms": 0})
    return await scene.await_wait(task, "turn")


async def retry(scene: Scene) -> str:
    """Send a task that calls what does not answer."""
    task = await scene.send("TroubledAgent", "call")
    return await scene.await_wait(task, "retry")


async def ask_person(scene: Scene) -> str:
    """Send a task that asks a person."""
    task = await scene.send("PayerAgent", "pay", parameters={"label": "paid"})
    return await scene.await_wait(task, "person")


async def await_signal(scene: Scene) -> str:
    """Send a task that waits for a signal, after a while."""
    task = await scene.send("PayerAgent", "order", parameters={"label": "ordered"})
    return await scene.await_wait(task, "signal")


async def begin_later(scene: Scene) -> str:
    """Send a task that begins in an hour."""
    task = await scene.send("TroubledAgent", "nap", after=3600)
    return await scene.await_wait(task, "time")


class Trouble(NamedTuple):
    """How a task gets into it, its agent, the words of the cause, and what becomes of it once it is mended."""

    begin: Callable[[Scene], Awaitable[str]]
    agent: str
    words: tuple[str, ...]
    mended: str | None = None


TROUBLES = {
    "I have no id": Trouble(
        fail,
        "TroubledAgent",
        ("TroubledAgent.add", "failed", "TypeError"),
    ),
    "List all waiting tasks": Trouble(
        retry,
        "TroubledAgent",
        ("TroubledAgent.call", "waits for its next run, as run "),
    ),
    "It was rejected": Trouble(
        reject,
        "TroubledAgent",
        ("rejected, ", "InvalidParameters: ms: ", "  ms (default 0)"),
    ),
    "It expired before it began": Trouble(
        expire,
        "ProbeAgent",
        (
            "expired, queued ",
            "TaskExpired: the deadline, 20",
            " UTC, passed in the queue, where it had waited ",
            " for a worker of ProbeAgent that is free",
        ),
    ),
    "Its time passed while it ran": Trouble(
        run_out_of_time,
        "TroubledAgent",
        (
            "expired in ",
            "TaskExpired: the deadline, 20",
            " UTC, passed while nap ran, ",
            " after this run began",
        ),
    ),
    "No time was left for another run": Trouble(
        leave_no_time,
        "TroubledAgent",
        (
            "TroubledAgent.call  failed",
            "AwayError: no other run fits before the deadline, 20",
            " UTC: the warehouse does not answer",
            "reason      deadline",
        ),
    ),
    "It failed by an error": Trouble(
        fail,
        "TroubledAgent",
        (
            "TroubledAgent.add  failed",
            "TypeError: unsupported operand",
            "code_error",
            "troubled.py, line ",
            ', in add: "return nap.ms + nap.label',
        ),
        mended="failed",
    ),
    "A worker was lost": Trouble(
        lose_worker,
        "ProbeAgent",
        ("running for ", "on worker ", " that is lost: its lease expired "),
    ),
    "No task of that id is known": Trouble(
        poison,
        "TroubledAgent",
        (
            "there is no task 'half-a-task'",
            "was not a readable task",
            "tasks.TroubledAgent.nap",
            "this is not a task assignment",
        ),
    ),
    "Its user was forgotten": Trouble(
        forget,
        "PayerAgent",
        (
            "cancelled, ",
            "UserForgotten: its user was forgotten at 20",
            "no word of the task is kept",
        ),
    ),
    "Waiting for a budget": Trouble(
        spend_budget,
        "AskerAgent",
        (
            "waiting, waits for the budget of tenant acme (2 requests a day), until 20",
            "100%        1",
        ),
        mended="completed",
    ),
    "Waiting for a rate limit": Trouble(
        spend_rate,
        "AskerAgent",
        (
            "waiting, waits for the rate limit of tenant rush (2 requests a minute), until 20",
            "2 requests a minute",
        ),
        mended="completed",
    ),
    "Waiting for a concurrency slot": Trouble(
        take_place,
        "TroubledAgent",
        ("waits for a concurrency slot of TroubledAgent.alone (at most 1 at once)",),
    ),
    "Waiting for a free worker": Trouble(
        stand_in_line,
        "NapAgent",
        (
            "accepted for ",
            "waits for a free worker: no worker of NapAgent has picked it up yet",
            "1 task waits for NapAgent, of which no worker is alive",
        ),
    ),
    "Waiting for its next run": Trouble(
        retry,
        "TroubledAgent",
        (
            "waits for its next run, as run ",
            "ended with AwayError (it said: the warehouse does not answer)",
            "runs again at 20",
        ),
    ),
    "Waiting for a person": Trouble(
        ask_person,
        "PayerAgent",
        (
            "waiting, waits for the answer of role:finance (question ",
            "Pay 12?",
            "role:finance",
        ),
        mended="completed",
    ),
    "Waiting for a signal": Trouble(
        await_signal,
        "PayerAgent",
        ("waiting, waits for signal 'paid', until 20",),
    ),
    "Waiting for a time": Trouble(
        begin_later,
        "TroubledAgent",
        ("waits for the time set by its sender, until 20",),
        mended="cancelled",
    ),
}


def test_every_section_of_the_pages_is_tried() -> None:
    """And no trouble is tried that no page has; each cause is found by three commands at most."""
    found = {page: sections(page) for page in PAGES}
    headings = [heading for page in found.values() for heading in page]
    assert sorted(headings) == sorted(TROUBLES)
    longest = max(len(blocks[0]) for page in found.values() for blocks in page.values())
    assert longest <= MOST_COMMANDS


@pytest.mark.parametrize("heading", TROUBLES)
async def test_the_page_leads_to_the_cause(scene: Scene, heading: str) -> None:
    """Its first commands print it, in the words that HTTP has too; those that follow mend it."""
    trouble = TROUBLES[heading]
    asking, *mending = next(
        found[heading] for page in PAGES if heading in (found := sections(page))
    )
    task = await trouble.begin(scene)
    reader = Reader(scene.system, task, trouble.agent)
    for command in asking:
        await reader.run(command.line)
        reader.demand_shown(command)
    said = "\n".join(reader.printed)
    assert [words for words in trouble.words if words not in said] == [], said
    seen = await scene.see(task)
    await reader.run("tasklore trace TASK")
    for word in words_of(seen):
        assert word in reader.printed[-1]
    listed = await scene.find_in_list(task, trouble.agent)
    if listed is not None:
        assert listed["state"] == seen["status"]
        error = (seen.get("report") or {}).get("error") or {}
        assert listed.get("error") == error.get("type")
        # The list has times to the millisecond.
        words = [
            {name: one.get(name) for name in ("kind", "name", "text", "said")}
            for one in (listed.get("waits_for", {}), seen.get("waits_for", {}))
        ]
        assert words[0] == words[1]
    elif heading != "Its user was forgotten":
        # A worker that hears of it first ends it, and then the list knows it no more.
        assert seen["status"] == 404
    for block in mending:
        for command in block:
            assert await reader.run(command.line) == 0, reader.printed[-1]
            reader.demand_shown(command)
    if trouble.mended is not None:
        await scene.await_status(task, trouble.mended)


def words_of(seen: dict[str, Any]) -> Iterator[str]:
    """Yield the words that HTTP has for a task: how it stands, why it waits, and the beginning of its error."""
    if seen["status"] == 404:
        return
    yield f"{seen['status']} " if seen["status"] == "running" else seen["status"]
    if (wait := seen.get("waits_for")) is not None:
        yield wait["text"]
    if (report := seen.get("report")) is not None:
        yield f"{report['error']['type']}: {report['error']['message'][:100]}"
