"""`tasklore dead-letters` on tasks that a worker gave up: seen, sent again so that each runs once more, deleted."""

import asyncio
import base64
import json
import os
import pty
import signal
import sys
import tempfile
import unicodedata
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from nats.aio.msg import Msg

from tests.acceptance.command import PATIENCE_S
from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.process_pool import fork
from tests.acceptance.system import AGENTS, Served, System, running_system
from tests.interrupts import hear_interrupts

MORTAL = str(AGENTS / "mortal.py")
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACE = f"00-{TRACE_ID}-b7ad6b7169203331-01"

#: Letters of the tests that send many.
MANY = 1000


@dataclass(frozen=True)
class LettersSystem:
    """A system whose worker gives tasks up until they are cured, and a directory to run commands in."""

    processes: System
    worker: Served
    supervisor: Served
    cwd: Path

    async def letters(self, *arguments: str) -> "CompletedProcess[str]":
        """Run `tasklore dead-letters` by an operator's rights."""
        words = "--direct", "dead-letters", *arguments
        return await asyncio.to_thread(self.processes.command, *words)

    def cure(self, label: str) -> None:
        """Let tasks of *label* live from now on."""
        (self.processes.folder / "runs" / f"{label}.cured").touch()

    def runs(self, label: str) -> Counter[int]:
        """Return how often each task of *label* ran, by its number."""
        return Counter(int(number) for number in self.processes.runs(label))


@dataclass(frozen=True)
class Operator:
    """An operator of a system without dead letters, and a program that gives it tasks."""

    system: LettersSystem
    program: Outside

    async def lose(self, label: str, **fields: Any) -> str:
        """Give it a task that is given up, and return its id once it is."""
        report = await self.program.ask(
            "MortalAgent", "live", {"label": label}, **fields
        )
        assert report["status"] == "failed", report
        return str(report["task_id"])

    async def lose_many(self, label: str, number: int) -> set[str]:
        """Give it so many tasks that are given up, and return their ids once all are."""
        lost = await asyncio.gather(
            *(
                self.program.assign(
                    "MortalAgent", "live", {"label": label, "number": n}
                )
                for n in range(number)
            )
        )
        await self.reported(set(lost), generation=1)
        return set(lost)

    async def reported(self, task_ids: set[str], generation: int) -> list[Json]:
        """Return every report of *generation* that passed by, once each of *task_ids* has one.

        A report whose receipt is late is published again, word for word: that is one report.
        """

        def found() -> list[Json]:
            mine = (
                report
                for report in self.program.heard
                if report["generation"] == generation
            )
            return list(
                {json.dumps(report, sort_keys=True): report for report in mine}.values()
            )

        await self.program.until(
            lambda: task_ids <= {report["task_id"] for report in found()}
        )
        return found()

    async def waiting(self) -> int:
        """Return how many letters lie in DEAD."""
        return int((await self.program.api("STREAM.INFO.DEAD"))["state"]["messages"])


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LettersSystem]:
    """Run a system for this file alone: DEAD is emptied by its tests."""
    folder = tmp_path_factory.mktemp("dead_letters")
    with running_system(folder) as processes:
        worker = processes.worker(MORTAL)
        supervisor = processes.supervisor()
        yield LettersSystem(processes, worker.ready(), supervisor.ready(), folder)


@pytest.fixture
async def operator(system: LettersSystem) -> AsyncIterator[Operator]:
    """Begin with an empty DEAD."""
    async with outside(system.processes.servers.nats_url) as program:
        await program.api("STREAM.PURGE.DEAD")
        yield Operator(system, program)


def rows(done: "CompletedProcess[str]") -> list[Json]:
    """Return the letters of a list with --json."""
    return list(rows_of_one(done)["letters"])


async def test_a_task_that_gave_up_is_seen_sent_again_and_runs_once_more(
    operator: Operator,
) -> None:
    """From the table to the report of its second generation, as an operator goes."""
    system = operator.system
    label = uuid.uuid4().hex
    assignment = operator.program.assignment(
        "MortalAgent", "live", {"label": label}, user_id="ann"
    )
    task_id = assignment["task_id"]
    await operator.program.publish(
        "tasks.MortalAgent.live",
        json.dumps(assignment).encode(),
        {"traceparent": TRACE},
    )
    assert (await operator.program.report_of(task_id))["status"] == "failed"

    listed = await system.letters(
        "list", "--agent", "MortalAgent", "--reason", "gave_up", "--since", "2h"
    )
    assert listed.returncode == 0, listed.stderr
    head, row = listed.stdout.splitlines()
    assert head.split()[0] == "SEQUENCE"
    assert "GiveUp" in row
    [mine] = rows(await system.letters("list", "--user", "ann", "--json"))
    assert mine["error"]["message"] == f"there is no cure for {label} yet"
    sequence = str(mine["sequence"])

    shown = await system.letters("show", sequence)
    assert shown.returncode == 0, shown.stderr
    for told in (
        task_id,
        TRACE_ID,
        "gave_up",
        "Traceback (most recent call last)",
        "in live",
        '"user_id": "ann"',
        f"To send it again: tasklore dead-letters redrive {sequence}",
        f"tasklore trace {task_id}",
    ):
        assert told in shown.stdout
    error, frame = shown.stdout.splitlines()[:2]
    assert error == f"GiveUp: there is no cure for {label} yet"
    assert frame.startswith(f"  at {MORTAL}, line ")
    document = rows_of_one(await system.letters("show", task_id, "--json"))
    assert (document["task_id"], document["trace_id"], document["generation"]) == (
        task_id,
        TRACE_ID,
        1,
    )
    assert document["payload"] == assignment
    assert document["worker_id"]
    assert None not in (
        document["queued_ms"],
        document["run_ms"],
        document["created_at"],
    )

    system.cure(label)
    sent = await system.letters("redrive", sequence, "--yes")
    assert (sent.returncode, sent.stdout) == (0, "Sent 1 dead letter again.\n")
    [report] = await operator.reported({task_id}, generation=2)
    assert (report["status"], report["attempt"], report["fence"]) == (
        "completed",
        1,
        "ledger",
    )
    assert system.runs(label) == {0: 2}
    assert await operator.waiting() == 0
    assert (await system.letters("list")).stdout == "There are no dead letters.\n"


async def test_a_redrive_that_was_killed_is_repeated_and_runs_nothing_twice(
    operator: Operator,
) -> None:
    """Killed somewhere in the middle, with some sent, some deleted and some neither."""
    system = operator.system
    label = uuid.uuid4().hex
    lost = await operator.lose_many(label, MANY)
    system.cure(label)
    sent = asyncio.Event()

    async def hear(_message: Msg) -> None:
        sent.set()

    # Told by the first task that is sent again: whoever looked now and then might come when all were.
    hearing = await operator.program.client.subscribe("tasks.MortalAgent.live", cb=hear)
    await operator.program.client.flush()
    command = (
        *(sys.executable, "-P", "-m", "tasklore", "--direct"),
        *("dead-letters", "redrive", "--all", "--yes"),
    )
    first = await asyncio.create_subprocess_exec(
        *command, cwd=system.cwd, env=system.processes.environment
    )
    async with asyncio.timeout(PATIENCE_S):
        await sent.wait()
    first.kill()
    assert await first.wait() == -signal.SIGKILL
    await hearing.unsubscribe()
    again = await system.letters("redrive", "--all", "--yes")
    assert again.returncode == 0, again.stderr
    reports = await operator.reported(lost, generation=2)
    assert Counter(report["task_id"] for report in reports) == dict.fromkeys(lost, 1)
    assert system.runs(label) == dict.fromkeys(range(MANY), 2)
    assert await operator.waiting() == 0


async def test_on_a_terminal_everything_is_confirmed_first(operator: Operator) -> None:
    await operator.lose(uuid.uuid4().hex)
    done = await asyncio.to_thread(
        on_a_terminal, operator.system, b"n\n", "redrive", "--all"
    )
    assert "MortalAgent" in done
    assert "GiveUp" in done
    assert "Dead letters to send again: 1. Continue? [y/N]" in done
    assert await operator.waiting() == 1
    declined = await asyncio.to_thread(
        on_a_terminal, operator.system, b"n\n", "purge", "--error", "GiveUp"
    )
    assert "Dead letters to delete: 1. Continue? [y/N]" in declined
    assert await operator.waiting() == 1
    agreed = await asyncio.to_thread(
        on_a_terminal, operator.system, b"y\n", "purge", "--agent", "MortalAgent"
    )
    assert "Deleted 1 dead letter." in agreed
    assert await operator.waiting() == 0


async def interrupt_redrive(operator: Operator) -> tuple[int | None, bytes]:
    """Redrive all letters, with Ctrl-C once the first is sent; return how it ended, and its last words."""
    sent = asyncio.Event()

    async def hear(_message: Msg) -> None:
        sent.set()

    hearing = await operator.program.client.subscribe("tasks.MortalAgent.live", cb=hear)
    await operator.program.client.flush()
    first = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tasklore", "--direct"),
        *("dead-letters", "redrive", "--all", "--yes"),
        cwd=operator.system.cwd,
        env=operator.system.processes.environment,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    async with asyncio.timeout(PATIENCE_S):
        await sent.wait()
        first.send_signal(signal.SIGINT)
        _, said = await first.communicate()
    await hearing.unsubscribe()
    return first.returncode, said


@pytest.mark.timeout(400)
async def test_a_redrive_that_is_interrupted_is_repeated_and_runs_nothing_twice(
    operator: Operator,
) -> None:
    """The same command sends the rest, and none twice."""
    system = operator.system
    # On a busy machine the first may have sent all before it hears of its end.
    for _ in range(5):
        label = uuid.uuid4().hex
        lost = await operator.lose_many(label, MANY)
        system.cure(label)
        first, said = await interrupt_redrive(operator)
        if first != 0:
            break
    assert first == 128 + signal.SIGINT, said
    again = await system.letters("redrive", "--all", "--yes")
    assert again.returncode == 0, again.stderr
    reports = await operator.reported(lost, generation=2)
    assert Counter(report["task_id"] for report in reports) == dict.fromkeys(lost, 1)
    assert system.runs(label) == dict.fromkeys(range(MANY), 2)


async def test_two_operators_at_once_send_each_letter_once(operator: Operator) -> None:
    """Together they say as many as there were, and each task runs once more."""
    system = operator.system
    label = uuid.uuid4().hex
    lost = await operator.lose_many(label, 300)
    system.cure(label)
    both = await asyncio.gather(
        *(system.letters("redrive", "--all", "--yes", "--json") for _ in range(2))
    )
    outcomes = [rows_of_one(done) for done in both]
    assert sum(outcome["concerns"] for outcome in outcomes) == 300
    assert [outcome["kept"] for outcome in outcomes] == [[], []]
    reports = await operator.reported(lost, generation=2)
    assert Counter(report["task_id"] for report in reports) == dict.fromkeys(lost, 1)
    assert system.runs(label) == dict.fromkeys(range(300), 2)
    assert await operator.waiting() == 0


async def test_letters_are_filtered_counted_and_previewed(operator: Operator) -> None:
    """By agent, error, age and whom they were for; nothing is sent or deleted by a preview."""
    system = operator.system
    label = uuid.uuid4().hex
    await operator.lose(label, user_id="ann", tenant="acme")
    await operator.lose(label, user_id="bob", tenant="acme")
    counted = await system.letters("groups")
    assert counted.returncode == 0, counted.stderr
    head, row, *_ = counted.stdout.splitlines()
    assert head.split()[:5] == ["AGENT", "ID", "ERROR", "TYPE", "COUNT"]
    assert row.split()[:3] == ["MortalAgent", "GiveUp", "2"]
    for options, users in (
        (("--error", "GiveUp", "--tenant", "acme"), ["bob", "ann"]),
        (("--user", "ann"), ["ann"]),
        (("--until", "1h"), []),
        (("--since", "1h", "--oldest"), ["ann", "bob"]),
    ):
        listed = rows(await system.letters("list", "--json", *options))
        assert [one["user"] for one in listed] == users
    trial = await system.letters("redrive", "--user", "ann", "--dry-run")
    assert "Would send 1 dead letter again." in trial.stdout
    assert "MortalAgent  GiveUp" in trial.stdout
    trial = await system.letters("purge", "--tenant", "acme", "--dry-run")
    assert "Would delete 2 dead letters." in trial.stdout
    assert await operator.waiting() == 2


def on_a_terminal(system: LettersSystem, typed: bytes, *arguments: str) -> str:
    """Run `tasklore dead-letters` on a terminal on which *typed* was typed ahead, and return what it showed."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    with tempfile.TemporaryFile() as said:
        process = fork(
            ("--direct", "dead-letters", *arguments),
            system.processes.environment | {"TERM": "dumb"},
            system.cwd,
            (theirs, said.fileno(), said.fileno()),
            leads=False,
        )
        process.wait(PATIENCE_S)
        said.seek(0)
        shown = said.read().decode()
    os.close(theirs)
    os.close(ours)
    return shown


async def test_the_supervisor_exports_how_many_lie_there_and_for_how_long(
    operator: Operator,
) -> None:
    await operator.lose(uuid.uuid4().hex)
    supervisor = operator.system.supervisor

    async def waiting(number: float) -> None:
        async def is_seen() -> bool:
            return (
                await asyncio.to_thread(supervisor.metric, "tasklore_dead_letters ")
                == number
            )

        await operator.program.eventually(is_seen)

    await waiting(1)
    assert supervisor.metric("tasklore_dead_letters_oldest_seconds") > 0
    assert (await operator.system.letters("purge", "--all", "--yes")).returncode == 0
    await waiting(0)
    assert supervisor.metric("tasklore_dead_letters_oldest_seconds") == 0
    assert (
        operator.system.worker.metric('tasklore_dead_letters_total{reason="gave_up"}')
        > 0
    )


async def test_purging_deletes_what_fits(operator: Operator) -> None:
    """By number, by filter, and everything only when it is said twice."""
    system = operator.system
    label = uuid.uuid4().hex
    await operator.lose_many(label, 4)
    oldest = await system.letters("list", "--oldest", "--limit", "1", "--json")
    first = str(rows(oldest)[0]["sequence"])
    assert (
        await system.letters("purge", first, "--yes")
    ).stdout == "Deleted 1 dead letter.\n"
    gone = await system.letters("purge", first, "--yes")
    assert gone.returncode == 2
    assert f"there is no dead letter {first}" in gone.stderr
    assert (
        await system.letters("purge", "--reason", "crashes")
    ).stdout == "Nothing fits; nothing was deleted.\n"
    assert (await system.letters("purge", "--all")).returncode == 2
    assert await operator.waiting() == 3
    assert (
        await system.letters("purge", "--all", "--yes")
    ).stdout == "Deleted 3 dead letters.\n"
    assert await operator.waiting() == 0


#: Erases the screen, begins a link and a title of the window, also in eight bits, and turns writing around.
STEERING = "\x1b[2J\x1b]8;;http://evil\x07\x9b31m\x9d0;evil\x9c\r\x08\u202eevil\u202d\nfaked: line"


#: A task of nine hundred levels, which would be indented by as many for each of its numbers.
DEEP = b"[" * 900 + b"1," * 100_000 + b"1" + b"]" * 900


async def test_hostile_letters_steer_no_terminal_and_keep_nobody_from_the_others(
    operator: Operator,
) -> None:
    """Whoever runs a worker may have written them: they are listed, counted, shown and stay."""
    system = operator.system
    label = uuid.uuid4().hex
    await operator.lose(label)
    [mine] = rows(await system.letters("list", "--json"))
    whole = rows_of_one(await system.letters("show", str(mine["sequence"]), "--json"))
    hostile = {
        "reason": STEERING,
        "error": {"type": STEERING, "message": STEERING},
        "traceback": STEERING * 1_000,
        "place": STEERING * 1_000,
        "subject": "tasks.MortalAgent.live",
        "sequence": 1,
        "attempts": 10**4000,
        "headers": {STEERING: STEERING, "traceparent": STEERING},
        "body": base64.b64encode(f'{{"user_id": "{STEERING}'.encode()).decode(),
        "body_bytes": 1,
        "body_digest": STEERING,
        "task_id": STEERING,
        "task_name": STEERING,
        "worker_id": STEERING,
        "supervisor_id": STEERING,
        "died_at": "0001-01-01T00:00:00+14:00",
        "created_at": "9999-12-31T23:59:59-12:00",
        "queued_ms": -(10**18),
        "run_ms": 10**4000,
        "usage": {"cost_usd": -1e308, "input_tokens": 10**25},
    }
    letters = [
        json.dumps(hostile),
        json.dumps(hostile | {"agent_id": "OtherAgent"}),
        json.dumps(hostile | {"task_id": mine["task_id"], "body": "$$$"}),
        json.dumps(hostile | {"body": "W1tbW1tb" * 60_000}),
        json.dumps(hostile | {"body": base64.b64encode(DEEP).decode()}),
        STEERING,
        "[" * 100_000,
        "",
    ]
    stream = operator.program.client.jetstream()
    for letter in letters:
        await stream.publish("dead.tasks.MortalAgent.live", letter.encode())
    numbers = [
        str(one["sequence"]) for one in rows(await system.letters("list", "--json"))
    ]
    assert len(numbers) == 1 + len(letters)
    said = [
        await system.letters("list"),
        await system.letters("list", "--json"),
        await system.letters("groups"),
        await system.letters("groups", "--json"),
        *[await system.letters("show", number) for number in numbers],
        *[await system.letters("show", number, "--json") for number in numbers],
        await system.letters("show", whole["task_id"]),
        await system.letters("redrive", "--all", "--dry-run"),
        await system.letters("redrive", "--all", "--dry-run", "--force", "--json"),
        await system.letters("purge", "--all", "--dry-run"),
    ]
    for done in said:
        assert "Traceback (most recent call last):\n  File" not in done.stderr
        assert done.returncode in (0, 1), done.stderr
        text = done.stdout + done.stderr
        assert {one for one in text if steers(one)} == set(), text
    assert all("\nfaked:" not in done.stdout for done in said[:4])
    system.cure(label)
    sent = await system.letters("redrive", "--all", "--force", "--yes")
    assert "Sent 1 dead letter again." in sent.stdout
    [report] = await operator.reported({mine["task_id"]}, generation=2)
    assert report["status"] == "completed"
    assert await operator.waiting() == len(letters)


def rows_of_one(done: "CompletedProcess[str]") -> Json:
    """Return the one document that a command said with --json."""
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def steers(letter: str) -> bool:
    """Return whether a terminal may do something else with *letter* than show it."""
    return letter in "\u202d\u202e" or (
        unicodedata.category(letter) == "Cc" and letter not in "\n\t"
    )
