"""A whole system on guarded servers: everything works with the rights of each role, and a refusal is told at once."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import httpx2
import nkeys  # type: ignore[import-untyped]
import pytest

from deploy.privileges.roles import Cast
from tasklore.commands.operations.entries import load_manifest
from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import (
    Forbidden,
    MemoryUnavailable,
    NotAccepted,
    Unreachable,
)
from tasklore.contracts.manifest import OperationEntry
from tasklore.contracts.messages import PersonReply, PersonRequest, TaskAssignment
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_tree import TaskTree
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.servers.valkey import connect
from tasklore.supervisor.program_client import asking
from tests.acceptance.command import environment, tasklore
from tests.acceptance.guarded import Guarded, guarded
from tests.acceptance.system import (
    AGENTS,
    BUDGET,
    NAPPER,
    PATIENCE_S,
    PROBE,
    Served,
    System,
)
from tests.http_client import Connection, ask, until

CAST = Cast(
    workers={
        "budget": ("BudgetTrackerAgent",),
        "nap": ("NapAgent", "ProbeAgent"),
        "tree": ("TreeAgent",),
        "bound": ("BoundAgent",),
    },
    calls={"tree": ("TreeAgent", "NapAgent")},
)
TREE = str(AGENTS / "tree.py")
BOUNDED = str(AGENTS / "bounded.py")
MEMORY = (
    "tasklore.workers.agents.switchboard",
    "tasklore.workers.agents.memory_worker",
)
#: Agents whose code the bootstrap does not have.
NAPS = (
    "--agent-id",
    "NapAgent",
    "--agent-id",
    "ProbeAgent",
    "--agent-id",
    "Pipeline",
    "--agent-id",
    "TreeAgent",
    "--agent-id",
    "BoundAgent",
)
PIPELINE = """
name = "naps"
description = "Siesta: one sleep after the other."
examples = ["have a siesta", "time for a siesta"]

[[phase]]
name = "first"
agent = "NapAgent"
task = "take_nap"
parameters = {ms = 5}
writes = ["ms"]

[[phase]]
name = "second"
agent = "NapAgent"
task = "take_nap"
parameters = {ms = "${first:ms}"}
writes = ["ms"]
"""
#: Seconds in which a refusal is told, however busy the machine is; and those that are waited for an answer, which it
#: must not wait for.
AT_ONCE_S = 50.0
PATIENT_S = 110.0


#: Cards that there are: of the agents of CAST, of pipelines, and of the two that keep a memory.
CARDS = 8


class Guests:
    """A system on guarded servers, with every process that there is under its own role."""

    def __init__(self, pair: Guarded, folder: Path) -> None:
        self.pair = pair
        self.system = System(pair, folder)  # type: ignore[arg-type]  # of its servers it asks the addresses alone
        self.folder = folder
        self.answering: Served
        self.napping: Served

    def run(self, role: str, *arguments: str) -> "CompletedProcess[str]":
        """Run a command with the rights of *role*; its API is that of the supervisor."""
        env = environment(**self.pair.environment(role), TASKLORE_ACK_WAIT_S="2")
        if api := self.system.environment.get("TASKLORE_API_URL"):
            env["TASKLORE_API_URL"] = api
        return tasklore(*arguments, cwd=self.folder, env=env)

    def worker(self, role: str, *references: str) -> Served:
        """Start a worker with the rights of *role*."""
        return self.system.worker(*references, **self.pair.settings(role))

    def supervisor(self, role: str = "supervisor") -> Served:
        """Start a supervisor with the rights of *role*."""
        limits = self.folder / "limits.toml"
        limits.write_text("[[limits]]\nname = 'all'\nat_once = 50\n", "utf-8")
        settings = self.pair.settings(role)
        return self.system.supervisor(
            **settings, pipelines_dir=self.folder / "declared", limits_file=limits
        )


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    """Bootstrap, then run a supervisor, two workers and a memory worker, each with its own rights."""
    folder = tmp_path_factory.mktemp("guests")
    (folder / "declared").mkdir()
    (folder / "declared" / "naps.toml").write_text(PIPELINE, "utf-8")
    with guarded(folder, CAST) as pair:
        guests = Guests(pair, folder)
        try:
            for _ in range(2):
                done = guests.run("bootstrap", "bootstrap", BUDGET, *MEMORY, *NAPS)
                assert done.returncode == 0, done.stderr
            started = [
                guests.supervisor(),
                guests.worker("worker-budget", BUDGET),
                guests.worker("worker-nap", NAPPER, PROBE),
                guests.worker("memory", *MEMORY),
                guests.worker("worker-tree", TREE),
                guests.system.worker(
                    BOUNDED,
                    **guests.pair.settings("worker-bound"),
                    retry_schedule_s=86400,
                ),
            ]
            for process in started:
                process.ready()
            guests.answering = started[0]
            guests.answering.await_agents(CARDS)
            guests.napping = started[2]
            yield guests
            for process in started:
                assert "nats_refused" not in process.log()
                assert "NOPERM" not in process.log()
        finally:
            guests.system.close()


@pytest.fixture
def as_role(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Return a function that gives this very process the rights of a role."""

    def become(role: str) -> None:
        for name, value in guests.pair.environment(role).items():
            monkeypatch.setenv(name, value)

    return become


def test_a_question_is_asked_computed_and_remembered(guests: Guests) -> None:
    """The second wording is answered from memory: supervisor, worker and operator have what they need."""
    first = guests.run(
        "operator", "ask", "--json", "limit 50k, spent 42000: how is my budget?"
    )
    again = guests.run(
        "operator", "ask", "--json", "limit 50,000, spent 42k: how is my budget?"
    )
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    memory = json.loads(again.stdout)["reply"]["report"]["memory"]
    assert memory["outcome"] == "hit", memory


def test_a_supervisor_may_count_what_a_user_and_a_task_keep(guests: Guests) -> None:
    """Words at a door, a task, and its end: all three are counted where roles are enforced."""
    words = "limit 60k, spent 42000: how is my budget?"
    done = guests.run("operator", "ask", "--user", "kim", words)
    assert done.returncode == 0, done.stderr
    assert "holdings_away" not in guests.answering.log()


def test_what_a_person_tells_is_kept_read_and_forgotten(guests: Guests) -> None:
    """The switchboard finds the fact, the memory worker keeps it, the operator reads it and has it forgotten."""
    told = guests.run(
        "operator", "--direct", "memory", "tell", "ann", "I like omelettes", "--json"
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert [fact["state"] for fact in json.loads(told.stdout)["facts"]] == ["done"]
    forgotten = guests.run(
        "operator", "--direct", "memory", "forget", "ann", "--yes", "--json"
    )
    assert forgotten.returncode == 0, forgotten.stdout + forgotten.stderr
    assert json.loads(forgotten.stdout)["left"] == {}


def test_a_chat_forgets_somebody_for_a_day_and_they_come_back(guests: Guests) -> None:
    """By the memory worker's own rights; the operator ends the day, and finds nothing left."""

    def ask(words: str) -> str:
        options = ("--user", "eve", "--conversation", "eve's", "--json")
        done = guests.run("operator", "ask", *options, words)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(json.loads(done.stdout)["reply"]["text"])

    def memory(*words: str) -> Any:
        done = guests.run("operator", "--direct", "memory", *words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    memory("tell", "eve", "I like omelettes")
    likes = [one["text"] for one in memory("items", "eve")["items"]]
    assert "items in them: 1," in ask("forget everything about me")
    assert "I have forgotten all of it" in ask("I want my whole memory erased")
    assert memory("items", "eve")["items"] == []
    assert ask("bring my memory back").startswith("It is all back")
    assert [one["text"] for one in memory("items", "eve")["items"]] == likes
    assert "items in them: 1," in ask("forget everything about me")
    assert "I have forgotten all of it" in ask("I want my whole memory erased")
    purged = memory("forget", "eve", "--now", "--yes")
    assert purged["removed"]["hidden keys"] > 0
    assert (purged["now"], purged["left"]) == (True, {})
    assert ask("bring my memory back").startswith("Nothing of yours is hidden")
    assert memory("forget", "eve", "--yes")["left"] == {}


@pytest.mark.parametrize(
    "looked",
    [
        one
        for one in load_manifest()["operations"]
        if one["mounted"] == "supervisor" and one["method"] == "GET"
    ],
    ids=lambda one: f"{one['noun']} {one['verb']}",
)
def test_a_supervisor_may_do_what_it_serves(
    guests: Guests, looked: OperationEntry
) -> None:
    """No look that it serves needs a right at the servers that it has not."""
    path = looked["path"]
    for field in looked["fields"]:
        path = path.replace(f"{{{field['name']}}}", "any")
    needed = [
        f"{field['name']}=x"
        for field in looked["fields"]
        if field["required"] and field["place"] == "query"
    ]
    address = f"{guests.answering.api}{path}?{'&'.join(needed)}"
    with httpx2.stream("GET", address, timeout=60) as answer:
        assert answer.status_code < 500, answer.read()


def test_doctor_finds_nothing_that_it_may_not_look_at(guests: Guests) -> None:
    done = guests.run(
        "operator",
        "doctor",
        "--json",
        "--monitor",
        f"http://127.0.0.1:{guests.pair.nats.monitor_port}",
    )
    report = json.loads(done.stdout)
    amiss = {
        one["check"] for one in report["findings"] if one["mark"] not in ("ok", "note")
    }
    # Tests hurry; everything else is as it should be.
    assert amiss == {"settings.ack_wait"}, report["findings"]


def test_a_dead_letter_is_seen_sent_again_and_deleted(guests: Guests) -> None:
    assert guests.run("operator", "ask", "take a nap of 13").returncode == 1
    listed = guests.run("operator", "--direct", "dead-letters", "list", "--json")
    assert "thirteen" in listed.stdout, listed.stderr
    again = guests.run(
        "operator", "--direct", "dead-letters", "redrive", "--all", "--yes"
    )
    assert again.returncode == 0, again.stdout + again.stderr
    purged = guests.run(
        "operator", "--direct", "dead-letters", "purge", "--all", "--yes"
    )
    assert purged.returncode == 0, purged.stdout + purged.stderr


async def test_limits_are_applied_watched_and_changed(guests: Guests) -> None:
    """By a supervisor out of its file, and by the operator."""
    direct = ("operator", "--direct")
    shown = guests.run(*direct, "limits", "show", "--json")
    assert json.loads(shown.stdout)["who"] == "file:limits.toml"
    made = guests.run(
        *(*direct, "limits", "set", "day"),
        *("--usd", "5", "--every", "day"),
    )
    assert made.returncode == 0, made.stdout + made.stderr
    accounts = json.loads(guests.run(*direct, "budget", "--json").stdout)["accounts"]
    assert [one["limit"] for one in accounts] == ["all", "day"]
    await until(
        lambda: (
            'tasklore_budget_used_ratio{limit="day"} 0.0'
            in guests.answering.get("/metrics")[1]
        )
    )


async def test_a_program_asks_and_tells_and_a_long_task_keeps_its_lease(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    """Longer than the acknowledgement wait, and run once: the worker may renew what it holds."""
    as_role("program")
    async with asking("program") as asker:
        report = await asker.ask(
            "NapAgent", "take_nap", {"ms": 3000}, within=timedelta(seconds=30)
        )
        await asker.tell("coins.Alice", "program", "Found coins!", time=5)
        # Read from the stream: no hint of it comes again.
        again = await asker.ask("NapAgent", "take_nap", {}, task_id=report.task_id)
    assert (report.status, report.attempt) == ("completed", 1)
    assert again == report


async def test_a_client_hears_how_far_a_task_is_that_was_sent_by_name(
    guests: Guests,
) -> None:
    """Worker and supervisor have accounts of their own, and one nats-server."""
    body = {
        "agent_id": "ProbeAgent",
        # Its sign of progress is written once the block is over.
        "task": "block",
        "parameters": {"label": "heard", "ms": 1500},
        "wait_seconds": 0,
    }
    api = guests.answering.api
    task_id = (await ask(api, "POST", "/v1/tasks", body)).body["task_id"]
    kinds: list[str] = []
    async with Connection(api) as connection, asyncio.timeout(PATIENCE_S):
        connection.send("GET", f"/v1/tasks/{task_id}/output")
        assert (await connection.head())[0] == 200
        async for _, kind, _ in connection.events():
            kinds += [kind] if kind != ":" else []
    assert kinds[-2:] == ["progress", "done"]


async def test_a_task_of_a_killed_worker_goes_to_another(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    as_role("program")
    async with asking("program") as asker:
        wanted = {"label": "killed", "ms": 1500}
        asked = asyncio.ensure_future(
            asker.ask(
                "ProbeAgent", "fresh", wanted, within=timedelta(seconds=PATIENCE_S)
            )
        )
        while not guests.system.runs("killed"):  # noqa: ASYNC110 - a file is the only sign
            await asyncio.sleep(0.01)
        other = guests.worker("worker-nap", NAPPER, PROBE)
        guests.napping.kill()
        guests.napping = await asyncio.to_thread(other.ready)
        report = await asked
    assert (report.status, len(guests.system.runs("killed"))) == ("completed", 2)


async def test_tasks_call_the_agents_that_their_worker_may_call(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    as_role("program")
    async with asking("program") as asker:
        within = timedelta(seconds=PATIENCE_S)
        report = await asker.ask(
            "TreeAgent", "spread", {"label": "spread", "width": 5}, within=within
        )
        assert report.result == [0, 2, 4, 6, 8]
    traced = guests.run("operator", "--direct", "trace", "--json", report.task_id)
    assert json.loads(traced.stdout)["sums"]["states"] == {"completed": 6}, (
        traced.stderr
    )
    # The key of a supervisor shows children, and changes none.
    as_role("supervisor")
    async with connect(guests.pair.redis_url) as redis:
        trace = await TaskTree(redis).read(report.task_id)
        assert trace is not None
        assert trace.sums.tasks == 6
        with pytest.raises(MemoryUnavailable):
            await Ledger(redis).accept_many([], [(report.task_id, "c-forged", "A.b")])


async def test_a_task_that_runs_ends_when_the_operator_cancels_it(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    """Its worker hears the wish, which another role said on the same server."""
    as_role("program")
    async with asking("program") as asker:
        wanted = {"label": "cancelled", "ms": int(PATIENT_S * 1000)}
        asked = asyncio.ensure_future(
            asker.ask(
                "ProbeAgent",
                "fresh",
                wanted,
                task_id="r-cancelled",
                within=timedelta(seconds=PATIENT_S),
            )
        )
        while not guests.system.runs("cancelled"):  # noqa: ASYNC110 - a file is the only sign
            await asyncio.sleep(0.01)
        done = await asyncio.to_thread(
            guests.run,
            "operator",
            "--direct",
            "cancel",
            "r-cancelled",
            "--reason",
            "no more",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        report = await asked
    assert report.status == "cancelled"
    # The run was ended, too: the worker is free.
    await asyncio.to_thread(guests.napping.await_metric, "tasklore_slots_used", 0)


async def test_bounded_tasks_run_one_by_one_though_workers_have_no_access_to_later(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    """They are offered again from their queue."""
    as_role("program")
    async with asking("program") as asker:
        within = timedelta(seconds=PATIENCE_S)
        tasks = [
            asker.ask(
                "BoundAgent",
                "one",
                {"account": "role", "number": number},
                within=within,
            )
            for number in range(4)
        ]
        assert {report.status for report in await asyncio.gather(*tasks)} == {
            "completed"
        }
    lines = (guests.system.folder / "runs" / "role").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["begin", "end"] * 4


def test_a_pipeline_runs_to_its_end(guests: Guests) -> None:
    """Sessions, events and the history of a project, asked for and watched over the API of the supervisor."""
    api = guests.answering.api
    done = guests.run(
        "operator", "pipelines", "run", "declared/naps.toml", "--api", api
    )
    assert done.returncode == 0, done.stderr


def test_a_declared_pipeline_is_asked_for_in_words(guests: Guests) -> None:
    done = guests.run("operator", "ask", "--json", "have a siesta")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["reply"]["report"]["agent_id"] == "Pipeline"


async def test_a_program_cannot_ask_as_a_caller_whose_key_it_has_not(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    """Its request is of the tenant that it names, as the assignment says that waits for its time."""
    as_role("program")
    request = PersonRequest(
        text="have a siesta",
        request_id="forged",
        caller=Caller(name="boss", roles=frozenset({"admin"}), tenant="acme"),
        not_before=datetime.now(UTC) + timedelta(days=1),
        wait_ms=0,
    )
    async with connected(guests.pair.nats_url, "outside") as client:
        answered = await client.request(
            subjects.requests("SupervisorAgent"),
            request.model_dump_json().encode(),
            timeout=PATIENCE_S,
        )
    reply = PersonReply.model_validate_json(answered.data)
    assert reply.kind == "pending", reply
    as_role("supervisor")
    async with connect(guests.pair.redis_url) as redis:
        found = [
            TaskAssignment.model_validate_json(assignment)
            async for key in redis.scan_iter("tl:task:{*}")
            if (assignment := await redis.hget(key, "assignment:1")) is not None
        ]
    waiting = [one for one in found if one.not_before == request.not_before]
    assert [(one.tenant, one.caller) for one in waiting] == [
        ("acme", Caller(tenant="acme", named=True))
    ]


async def test_a_program_cannot_speak_as_somebody_else(guests: Guests, as_role) -> None:  # type: ignore[no-untyped-def]
    as_role("program")
    async with asking("program") as asker:
        # Said by the refusal itself: who waits in vain is told that nobody said a thing.
        with pytest.raises(
            NotAccepted,
            match=r": not stored: .*role 'program' publish to 'messages\.[^']*'; use the credentials",
        ):
            await asker.tell("coins.Alice", "Bob", "I am Bob", time=5)


async def test_what_its_publisher_did_not_sign_is_set_aside(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    """Another program's library signs with the nkey alone (docs/reference/security.md); unsigned, it is not heard."""
    as_role("program")
    access = guests.pair.access("program")
    key = nkeys.from_seed(bytearray(access.nats_options()["nkeys_seed_str"].encode()))
    subject = "messages.0.Y29pbnMuQWxpY2U.cHJvZ3JhbQ"
    assert subject == subjects.messages("coins.Alice", "program")
    async with connected(guests.pair.nats_url, "outside") as client:
        for number, is_signed in enumerate((True, False)):
            said = {
                "schema_version": 1,
                "message_id": f"p-{number}",
                "conversation_id": "coins.Alice",
                "time": 5,
            }
            body = json.dumps(
                said | {"sender": "program", "message": f"Found {number} coins!"}
            ).encode()
            headers = {"Nats-Msg-Id": f"outside-{number}"}
            if is_signed:
                proof = key.sign(f"{subject}\noutside-{number}\n".encode() + body)
                headers["Tasklore-Signature"] = (
                    f"program {base64.b64encode(proof).decode()}"
                )
            await client.request(subject, body, headers=headers, timeout=PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            listed = await asyncio.to_thread(
                guests.run,
                *("operator", "--direct", "dead-letters", "list", "--json"),
                *("--reason", "unproven"),
            )
            if "Tasklore-Signature" in listed.stdout:
                break
    (letter,) = json.loads(listed.stdout)["letters"]
    assert (letter["reason"], letter["subject"]) == ("unproven", subject)
    again = await asyncio.to_thread(
        guests.run,
        *("operator", "--direct", "dead-letters", "redrive", "--all", "--yes"),
    )
    assert "not a task" in again.stdout + again.stderr


async def test_a_worker_is_told_at_once_what_it_may_not_do(
    guests: Guests, as_role
) -> None:  # type: ignore[no-untyped-def]
    as_role("worker-budget")
    async with (
        connected(guests.pair.nats_url, "trying") as client,
        open_outbox(Link(client)) as outbox,
    ):
        began = time.monotonic()
        for call in (
            "STREAM.DELETE.TASKS",
            "CONSUMER.MSG.NEXT.TASKS.NapAgent",
            "STREAM.INFO.TASKS",
        ):
            with pytest.raises(
                Forbidden,
                match=rf"'worker-budget' publish to '\$JS.API.{call}'; use the credentials",
            ):
                await ask_jetstream(client, call, within_s=PATIENT_S)
        with pytest.raises(
            NotAccepted, match="let the role 'worker-budget' publish to"
        ):
            await outbox.put(
                "tasks.NapAgent.take_nap", b"{}", "x", patience_s=PATIENT_S
            )
        assert time.monotonic() - began < AT_ONCE_S


async def test_answers_that_cannot_be_heard_are_told_of_at_once(
    guests: Guests, as_role, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    """A process whose name is not that of its key asks below a prefix that is another's."""
    as_role("operator")
    monkeypatch.setenv("TASKLORE_ROLE", "bootstrap")
    async with connected(guests.pair.nats_url, "trying") as client:
        began = time.monotonic()
        with pytest.raises(Forbidden, match="subscribe to '_inbox_bootstrap"):
            await ask_jetstream(client, "INFO", within_s=PATIENT_S)
        assert time.monotonic() - began < AT_ONCE_S


def test_a_command_with_the_rights_of_another_role_ends_with_the_reason(
    guests: Guests,
) -> None:
    began = time.monotonic()
    asked = guests.run(
        "worker-budget",
        "--direct",
        "ask",
        "--wait",
        f"{PATIENT_S}",
        "limit 50k, spent 42000: how is my budget?",
    )
    made = guests.run(
        "bootstrap", "--direct", "ask", "--wait", f"{PATIENT_S}", "anything"
    )
    assert time.monotonic() - began < 2 * AT_ONCE_S
    for done, role in ((asked, "worker-budget"), (made, "bootstrap")):
        assert done.returncode == 3, done.stderr
        assert f"role '{role}' publish to 'operations.supervisoragent'" in done.stderr


def test_processes_with_the_rights_of_another_role_do_not_start(guests: Guests) -> None:
    """A worker of another agent, and a supervisor that may not be asked, end and say why."""
    refused = [
        guests.worker("worker-budget", NAPPER),
        guests.supervisor("worker-budget"),
    ]
    for process in refused:
        assert process.wait() != 0
        assert "does not let the role 'worker-budget'" in process.log()


async def test_valkey_tells_whom_it_does_not_know(
    guests: Guests, as_role, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    """A role with another's password is refused with the cure, not taken for a server that is away."""
    as_role("supervisor")
    monkeypatch.setenv("TASKLORE_ROLE", "operator")
    async with connect(guests.pair.redis_url) as client:
        with pytest.raises(Unreachable, match="refuses the user or password"):
            await client.check()
