"""What 0.2 left, opened by today's code: everything is there, and goes on."""

import asyncio
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from redis.asyncio import Redis

from tasklore.memory.ledger.migration import Migration
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.restored import FIXTURE, expected, restored
from tests.acceptance.system import AGENTS, Served, System, running_system
from tests.http_client import Answer, ask
from tests.llm_double import Asked, Canned, ScriptedLlm, answer
from tests.receiver import SECRET

KEEPER = str(AGENTS / "keeper.py")
#: Seconds for whatever goes on: it takes one, and more on a busy machine.
PATIENCE_S = 40.0

Json = dict[str, Any]


@dataclass(frozen=True)
class Upgraded:
    """Today's processes on what 0.2 left; *seen* is what the seed saw of it."""

    system: System
    supervisor: Served
    taken: list[tuple[str, Json]]
    limits: Json
    seen: Json

    async def get(self, path: str) -> Json:
        """Return what there is at *path*."""
        answered = await ask(self.supervisor.api, "GET", path)
        assert answered.status == 200, (path, answered.body)
        return dict(answered.body)

    async def post(self, path: str, body: Json) -> Answer:
        """Return what *path* answers to *body*."""
        return await ask(self.supervisor.api, "POST", path, body)

    async def report(self, task_id: str, generation: int = 1) -> Json:
        """Return the report on a task, once it has one of that generation."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = (await self.get(f"/v1/tasks/{task_id}")).get("report")
                if found is not None and found["generation"] == generation:
                    return dict(found)
                await asyncio.sleep(0.05)

    async def outcome(self, session_id: str) -> Json:
        """Return how a pipeline ended, once it has."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.get(f"/v1/pipelines/{session_id}")
                if found["state"] not in ("running", "failed"):
                    return dict(found["outcome"])
                await asyncio.sleep(0.05)

    async def command(self, *words: str) -> str:
        """Return what a command says."""
        done = await asyncio.to_thread(self.system.command, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def told(self, *words: str) -> Any:
        """Return what a command says in JSON."""
        return json.loads(await self.command(*words, "--json"))

    def allow(self, name: str) -> None:
        """Put the file there without which a task does not go on."""
        (self.system.folder / "runs" / name).touch()

    def ran(self, label: str) -> int:
        """Return how often a run or step of *label* was begun since the upgrade."""
        file = self.system.folder / "runs" / label
        return len(file.read_text().split()) if file.exists() else 0

    def heard(self, path: str) -> list[Json]:
        """Return the webhooks that arrived at *path*."""
        return [event for where, event in self.taken if where == f"/{path}"]


@contextmanager
def taking() -> Iterator[tuple[str, list[tuple[str, Json]]]]:
    """Take every webhook in threads of its own; return its address and what arrives, with its path."""
    taken: list[tuple[str, Json]] = []

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, json.loads(body)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()


def blue(_asked: Asked) -> Canned:
    """Say blue, as a model."""
    return answer({"reasoning": "", "colour": "blue"})


async def move_ledger(servers: EmbeddedServers) -> int:
    """Take the ledger to layout 2, with nobody who has to hear of it; return how many entries were moved."""
    async with Redis.from_url(servers.redis_url) as redis:
        migration = Migration(redis, settled_s=0, named_within_s=0)
        moved = await migration.run(lambda _: None)
    assert moved.unknown == []
    return moved.entries


@pytest.fixture(
    scope="module",
    params=[(timedelta(), 1), (timedelta(days=60), 1), (timedelta(), 2)],
    ids=["at once", "60 days later", "carried into layout 2"],
)
def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgraded]:
    """Restore what 0.2 left, that many days after it was left, and start today's processes on it.

    With layout 2 its ledger is taken there first.
    """
    age, layout = request.param
    seen = expected()
    soon = ("scheduled", "resting", "parked")
    hooks = [one["id"] for one in seen["waiting_webhooks"]["webhooks"]]
    with (
        running_system(tmp_path_factory.mktemp("upgraded")) as system,
        ScriptedLlm(blue) as model,
        taking() as (address, taken),
    ):
        restored(
            system.servers,
            age,
            elsewhere=address,
            soon=(
                *(seen[name] for name in soon),
                *hooks,
                address.removeprefix("http://"),
                "ticking",
            ),
        )
        if layout == 2:
            assert asyncio.run(move_ledger(system.servers)) > 0
        limits = json.loads(
            system.command("--direct", "limits", "show", "--json").stdout
        )
        # Before the parked task is due: without room it would look again in minutes.
        raised = system.command(
            *("--direct", "limits", "set", "daily", "--agent", "KeeperAgent"),
            *("--requests", "100", "--every", "day", "--at-limit", "park"),
        )
        assert raised.returncode == 0, raised.stderr
        supervisor = system.supervisor(
            webhook_secret=SECRET,
            webhook_networks="127.0.0.1/32",
            api_rate=10_000,
            api_burst=10_000,
        )
        keeper = system.worker(
            KEEPER,
            llm_base_url=model.base_url,
            llm_api_key="sk-none",
            llm_prices="gpt-6.1-terra=1/1",
        )
        others = system.worker("budget", "memory", "switchboard")
        for process in (supervisor, keeper, others):
            process.ready()
        yield Upgraded(system, supervisor, taken, limits, seen)


def without_times(told: Any) -> Any:
    """Return *told* without what tells of times, which moved with the restore."""
    moved = {"at", "at_ms", "added", "last_updated", "created_at", "died_at"}
    if isinstance(told, dict):
        return {
            name: without_times(value)
            for name, value in told.items()
            if name not in moved
        }
    return [without_times(one) for one in told] if isinstance(told, list) else told


async def test_reports_on_what_was_finished_failed_and_rejected_are_there(
    upgraded: Upgraded,
) -> None:
    for task_id, report in upgraded.seen["reports"].items():
        found = (await upgraded.get(f"/v1/tasks/{task_id}"))["report"]
        for name in ("status", "result", "error", "attempt", "usage", "worker_id"):
            assert found[name] == report[name], (task_id, name)
    rejected = await upgraded.get(f"/v1/tasks/{upgraded.seen['rejected']}")
    assert rejected["report"]["status"] == "rejected"


async def test_a_dead_letter_is_there_and_its_task_works_when_it_is_sent_again(
    upgraded: Upgraded,
) -> None:
    told = await upgraded.told("--direct", "dead-letters", "list")
    letters = told["letters"]
    names = ("task_id", "task", "reason", "error", "attempts", "supervisor_id")
    assert [[one[name] for name in names] for one in letters] == [
        [one[name] for name in names] for one in upgraded.seen["dead"]
    ]
    failed = upgraded.seen["failed"][1]
    letter = next(one for one in letters if one["task_id"] == failed)
    upgraded.allow("live1.cured")
    await upgraded.command(
        "--direct", "dead-letters", "redrive", str(letter["sequence"]), "--yes"
    )
    report = await upgraded.report(failed, generation=2)
    assert (report["status"], report["result"], upgraded.ran("live1")) == (
        "completed",
        1,
        1,
    )


async def test_a_task_for_later_runs_when_it_is_due(upgraded: Upgraded) -> None:
    report = await upgraded.report(upgraded.seen["scheduled"])
    assert (report["result"], upgraded.ran("scheduled")) == (42, 1)


async def test_a_task_that_rested_makes_its_second_run(upgraded: Upgraded) -> None:
    report = await upgraded.report(upgraded.seen["resting"])
    assert (report["result"], report["attempt"], upgraded.ran("rest")) == (2, 2, 1)


async def test_a_parked_task_goes_on_once_its_budget_allows(upgraded: Upgraded) -> None:
    assert upgraded.limits["version"] == 1
    assert upgraded.limits["limits"] == upgraded.seen["limits"]["limits"]
    report = await upgraded.report(upgraded.seen["parked"])
    assert (report["status"], report["result"]) == ("completed", "blue")
    assert (await upgraded.told("--direct", "limits", "show"))["version"] == 2
    history = await upgraded.told("--direct", "limits", "history")
    assert len(history["versions"]) == 2


async def test_what_was_spent_is_in_the_books(upgraded: Upgraded) -> None:
    await upgraded.report(upgraded.seen["parked"])
    book = await upgraded.told("--direct", "budget", "--days", "62", "--by", "model")
    lines = [line for period in book["periods"] for line in period["lines"]]
    assert max(line["spending"]["calls"] for line in lines) == 2


async def test_a_question_is_open_and_its_answer_lets_the_task_go_on(
    upgraded: Upgraded,
) -> None:
    (question,) = (await upgraded.get("/v1/approvals"))["approvals"]
    (before,) = upgraded.seen["approvals"]["approvals"]
    for name in ("id", "question", "who", "digest", "state"):
        assert question[name] == before[name]
    await upgraded.command(
        *("--direct", "approvals", "approve", question["id"], "--yes"),
    )
    report = await upgraded.report(upgraded.seen["paying"])
    assert report["result"]["approved"] is True
    assert report["result"]["by"].startswith("key:operator:")
    assert [upgraded.ran(f"pay-{part}") for part in ("before", "after")] == [0, 1]


async def test_a_task_takes_only_the_steps_that_it_had_not_taken(
    upgraded: Upgraded,
) -> None:
    """Its mail was sent, and three of five steps are in its journal."""
    upgraded.allow("walk.go")
    report = await upgraded.report(upgraded.seen["walking"])
    assert report["result"] == [1, 11, 21, 31, 41]
    labels = ("mail", "0", "1", "2", "3", "4")
    assert [upgraded.ran(f"walk-{one}") for one in labels] == [0, 0, 0, 0, 1, 1]


async def test_a_pipeline_that_ran_goes_on_with_the_phase_it_was_in(
    upgraded: Upgraded,
) -> None:
    upgraded.allow("halfway.go")
    outcome = await upgraded.outcome("halfway")
    assert (outcome["state"], outcome["result"]) == ("completed", {"steps": [1, 2, 3]})
    assert upgraded.ran("halfway-p1") == 0


async def test_a_pipeline_that_failed_is_resumed_where_it_failed(
    upgraded: Upgraded,
) -> None:
    assert (await upgraded.get("/v1/pipelines/broken"))["state"] == "failed"
    upgraded.allow("broken.cured")
    answered = await upgraded.post("/v1/pipelines/broken/resume", {})
    assert answered.status in (200, 202), answered.body
    outcome = await upgraded.outcome("broken")
    assert (outcome["state"], outcome["result"]) == ("completed", {"steps": [1, 2, 3]})
    assert [upgraded.ran(f"broken-p{one}") for one in (1, 2, 3)] == [0, 1, 1]


async def test_sessions_and_the_end_of_a_pipeline_are_there(upgraded: Upgraded) -> None:
    found = await upgraded.told("--direct", "sessions", "list")
    assert {one["session_id"] for one in found["sessions"]} == {
        "whole",
        "broken",
        "halfway",
    }
    outcome = (await upgraded.get("/v1/pipelines/whole"))["outcome"]
    assert (outcome["state"], outcome["result"]) == ("completed", {"steps": [1, 2, 3]})


async def test_webhooks_that_were_not_delivered_arrive(upgraded: Upgraded) -> None:
    """One waited for its next attempt; one was given up, and is sent again by hand."""
    (failed,) = upgraded.seen["webhooks"]["webhooks"]
    listed = (await upgraded.get("/v1/webhooks"))["webhooks"]
    assert [(one["id"], one["problem"]) for one in listed] == [
        (failed["id"], failed["problem"])
    ]
    await upgraded.post(f"/v1/webhooks/{failed['id']}/retry", {})
    async with asyncio.timeout(PATIENCE_S):
        while not (upgraded.heard("gone") and upgraded.heard("unavailable")):  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.05)
    for path, task_id in upgraded.seen["hooks"].items():
        (event,) = upgraded.heard(path)
        assert (event["type"], event["data"]["task_id"]) == ("task.completed", task_id)


def documents_in(view: Json) -> Json:
    """Return the documents of a memory as 0.2 printed them."""
    return {one["resource"]: one["body"] for one in view["documents"]}


def plans_in(view: Json) -> list[Json]:
    """Return the plans of a history as 0.2 printed them, as far as both say the same."""
    same = ("kind", "plan_id", "revisions", "state", "undoes", "undone_by")
    return [
        {name: one[name] for name in same}
        | {
            "changes": {
                name: list(map(change_in, all_))
                for name, all_ in one["changes"].items()
            }
        }
        for one in view["plans"]
    ]


def change_in(change: Json) -> Json:
    """Return a change with the values that there were."""
    ends = {"before": "had", "after": "has"}
    return {"path": change["path"]} | {
        name: change[name] for name, is_there in ends.items() if change[is_there]
    }


def facts_in(view: Json) -> list[Json]:
    """Return facts without what 0.2 did not print."""
    return [as_known(one, one, without=("text", "at")) for one in view["facts"]]


def as_known(one: Json, other: Json, without: tuple[str, ...] = ()) -> Json:
    """Return the fields of *one* that *other* has, too."""
    return {
        name: value
        for name, value in one.items()
        if name in other and name not in without
    }


#: How what a command says now is told as 0.2 did.
AS_IN_0_2: dict[str, Callable[[Json], Any]] = {
    "facts": facts_in,
    "history": plans_in,
    "show": documents_in,
}


@pytest.mark.parametrize("user", ["ana", "ben"])
async def test_what_is_known_of_a_person_is_there_with_its_history(
    upgraded: Upgraded, user: str
) -> None:
    for name, before in upgraded.seen["people"][user].items():
        found = AS_IN_0_2[name](await upgraded.told("--direct", "memory", name, user))
        known = (
            before if name == "show" else [as_known(one, found[0]) for one in before]
        )
        assert found
        assert without_times(found) == without_times(known), name


async def test_a_person_is_found_in_what_was_said_and_learned_of_anew(
    upgraded: Upgraded,
) -> None:
    found = await upgraded.told("--direct", "memory", "search", "ben", "mushrooms")
    memories = {one["source"]: one["text"] for one in found["memories"]}
    assert memories == {"item": "Mushrooms", "turn": "I hate mushrooms"}
    await upgraded.command("--direct", "memory", "tell", "ben", "I live in Lisbon")
    assert "Lisbon" in await upgraded.command("--direct", "memory", "show", "ben")


async def test_decisions_are_there_and_another_one_gets_the_next_number(
    upgraded: Upgraded,
) -> None:
    found = await upgraded.told("--direct", "projects", "search", "shop")
    before = upgraded.seen["decisions"]
    assert without_times(found["records"]) == without_times(before)
    words = ("--direct", "projects", "decide", "shop", "Trips end at noon")
    assert (await upgraded.told(*words))["record_id"] == "d2"


async def test_a_schedule_makes_its_next_tick_and_one_by_the_clock_keeps_its_hour(
    upgraded: Upgraded,
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not upgraded.ran("ticked"):  # noqa: ASYNC110 - another process runs it
            await asyncio.sleep(0.05)
    listed = await upgraded.told("schedules", "list")
    found = {one["id"]: one for one in listed["schedules"]}
    assert found["ticking"]["last_task"] is not None
    assert upgraded.ran("ticked") == 1
    # The next one was moved with the rest.
    later = found["clocked"]["next"][1:]
    berlin = ZoneInfo("Europe/Berlin")
    times = [datetime.fromisoformat(one).astimezone(berlin) for one in later]
    assert [(one.hour, one.minute) for one in times] == [(9, 0)] * 4


async def test_remembered_results_are_there(upgraded: Upgraded) -> None:
    listed = await upgraded.told("--direct", "results", "list")
    found = {one["key"] for one in listed["results"]}
    for before in upgraded.seen["remembered"]:
        assert before["key"] in found
        shown = await upgraded.told("--direct", "results", "show", before["key"])
        assert shown["result"] == before["result"]


async def test_a_conversation_goes_on_where_it_was(upgraded: Upgraded) -> None:
    wanted = {
        "text": "the same with 45k spent",
        "conversation": "trip",
        "user": "ana",
    }
    answered = await upgraded.post("/v1/requests", wanted)
    assert answered.body["reply"]["report"]["result"]["remaining"] == 5000


async def test_the_data_of_both_servers_is_opened_as_0_2_left_it(
    tmp_path: Path,
) -> None:
    """Only what never expires is sure to be there: the files grow old."""
    with tarfile.open(FIXTURE / "data.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    async with EmbeddedServers(tmp_path / "data") as servers:
        with System(servers, tmp_path) as system:
            await asyncio.to_thread(system.supervisor().ready)
            words = ("--direct", "projects", "search", "shop", "--json")
            found = await asyncio.to_thread(system.command, *words)
    records = json.loads(found.stdout)["records"]
    before = expected()["decisions"]
    assert without_times(records) == without_times(before)
    times = [
        [datetime.fromisoformat(one["at"]) for one in some]
        for some in (records, before)
    ]
    assert times[0] == times[1]
