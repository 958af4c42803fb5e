"""What an outside program may rely on: one correct report for what it publishes, and a worker that nothing stops."""

import ast
import asyncio
import json
import random
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Standing
from tests.acceptance.outside import PATIENCE_S, Json, Outside, publish_raw

BUDGET = {"budget_limit": 50000, "spent": 42000, "history": [5000, 7000, 8000, 6000]}
OUTSIDE = Path(__file__).with_name("outside.py")


def test_the_outside_program_imports_nothing_of_ours() -> None:
    """What it proves holds for a program in any language."""
    tree = ast.parse(OUTSIDE.read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {name.partition(".")[0] for name in imported} <= {*sys.stdlib_module_names, "nats"}


def test_a_program_that_knows_only_the_wire_gets_exactly_one_correct_report(standing: Standing) -> None:
    """Run in an interpreter of its own, from elsewhere, it reads the seed's first answer."""
    done = subprocess.run(
        [sys.executable, "-I", str(OUTSIDE), standing.house.servers.nats_url],
        cwd="/",
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    found = json.loads(done.stdout)
    report = found["report"]
    assert report["status"] == "completed"
    assert report["error"] is None
    assert report["result"]["remaining"] == 8000
    assert report["result"]["spending_rate"] == 6500
    assert report["result"]["overshoot_risk"] is True
    assert report["result"]["predicted_spending"] == 68000
    assert report["memory"]["key"] == "analyze_budget:50000:42000:5000,7000,8000,6000"
    assert report["fence"] == "ledger"
    assert list(found["stored"].values()) == [1]
    assert found["heard"] == 1


async def test_one_task_id_published_twice_is_one_run_and_one_report(program: Outside, standing: Standing) -> None:
    """Under two message ids the stream keeps both copies; the ledger and the stream still give one report."""
    label = uuid.uuid4().hex
    first = await program.ask("ProbeAgent", "fresh", {"label": label}, task_id=label)
    await program.ask("ProbeAgent", "fresh", {"label": label}, task_id=label)
    await all_taken(program)
    assert first["status"] == "completed"
    assert len(standing.house.runs(label)) == 1
    assert await program.reports() == {f"reports.{program.supervisor_id}.{label}.1": 1}
    assert {json.dumps(report, sort_keys=True) for report in program.heard} == {json.dumps(first, sort_keys=True)}


async def test_one_task_id_published_twice_at_once_is_one_run(program: Outside, standing: Standing) -> None:
    """The second copy arrives while the first one runs."""
    label = uuid.uuid4().hex
    parameters = {"label": label, "ms": 300}
    await asyncio.gather(*(program.assign("ProbeAgent", "fresh", parameters, task_id=label) for _ in range(3)))
    await program.report_of(label)
    await all_taken(program)
    assert len(standing.house.runs(label)) == 1
    assert await program.reports() == {f"reports.{program.supervisor_id}.{label}.1": 1}


async def test_a_message_id_lets_the_stream_swallow_a_repeated_publish(program: Outside, standing: Standing) -> None:
    """The contract's id makes a retried publish harmless before any worker sees it."""
    label = uuid.uuid4().hex
    body = json.dumps(program.assignment("ProbeAgent", "fresh", {"label": label}, task_id=label)).encode()
    headers = {"Nats-Msg-Id": f"{label}:1"}
    sequences = {await program.publish("tasks.ProbeAgent.fresh", body, headers) for _ in range(3)}
    await program.report_of(label)
    assert len(sequences) == 1
    assert len(standing.house.runs(label)) == 1


async def test_a_higher_generation_runs_again_and_has_a_report_of_its_own(program: Outside, standing: Standing) -> None:
    """A redrive of a finished task is a run like the first."""
    label = uuid.uuid4().hex
    body = json.dumps(program.assignment("ProbeAgent", "fresh", {"label": label}, task_id=label)).encode()
    for generation in (1, 2):
        await program.publish("tasks.ProbeAgent.fresh", body, {"Tasklore-Generation": str(generation)})
        await program.until(lambda: len(program.heard) == generation)  # noqa: B023 - awaited within the turn
    assert [report["generation"] for report in program.heard] == [1, 2]
    assert len(standing.house.runs(label)) == 2
    assert set((await program.reports()).values()) == {1}
    assert len(await program.reports()) == 2


async def test_one_question_in_ten_spellings_is_one_miss_and_nine_hits(program: Outside) -> None:
    """Every wording of the same parameters is answered from the memory after the first."""
    limit = random.randrange(1_000, 9_000) * 1_000 + 500  # a question of this run alone
    grouped = f"{limit:,}"
    thousands = f"{limit / 1000}k"
    spellings: list[Json] = [
        {"budget_limit": limit, "spent": 42000, "history": []},
        {"budget_limit": float(limit), "spent": 42000.0, "history": []},
        {"budget_limit": grouped, "spent": "42,000", "history": []},
        {"budget_limit": thousands, "spent": "42k", "history": []},
        {"budget_limit": f"${grouped}.00", "spent": "forty-two thousand", "history": []},
        {"history": [], "spent": "42 grand", "budget_limit": str(limit)},
        {"budget_limit": limit, "spent": 42000},
        {"budget_limit": f"{limit}.000", "spent": "4.2e4", "history": []},
        {"limit": limit, "spending": 42000},
        {"budget_limit": {"value": limit}, "spent": "４２０００", "history": []},  # noqa: RUF001 - full-width digits
    ]
    reports = [await program.ask("BudgetTrackerAgent", "analyze_budget", spelling) for spelling in spellings]
    assert [report["status"] for report in reports] == ["completed"] * 10
    assert [report["memory"]["outcome"] for report in reports] == ["miss"] + ["hit"] * 9
    assert len({json.dumps(report["result"]) for report in reports}) == 1
    assert len({report["memory"]["key"] for report in reports}) == 1


async def test_refresh_computes_again_and_bypass_leaves_the_memory_alone(program: Outside) -> None:
    """The three words of `memory`, and a word of the future, do what the contract says."""
    question = {"label": uuid.uuid4().hex}
    outcomes = [
        (await program.ask("ProbeAgent", "remembered", question, memory=word))["memory"]["outcome"]
        for word in ("bypass", "use", "use", "refresh", "from-the-future")
    ]
    assert outcomes == ["bypassed", "miss", "hit", "refreshed", "bypassed"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"budget_limit": "a lot", "spent": 1}, ["budget_limit", "a lot"]),
        ({"spent": 1}, ["budget_limit", "missing"]),
        ({"budget_limit": True, "spent": 1}, ["budget_limit", "True"]),
        ({"budget_limit": 1, "spent": 1, "colour": "red"}, ["colour", "known are", "budget_limit"]),
        ({"budget_limit": 1, "limit": 1, "spent": 1}, ["budget_limit", "twice"]),
        ({"budget_limit": 1, "spent": "1.500"}, ["spent", "1500", "1.5"]),
    ],
)
async def test_a_bad_parameter_is_rejected_at_once_with_field_and_cure(
    program: Outside, parameters: Json, words: list[str]
) -> None:
    """Nothing is retried that no run can mend, and the sender is told what to write instead."""
    report = await program.ask("BudgetTrackerAgent", "analyze_budget", parameters)
    assert report["status"] == "rejected"
    assert report["attempt"] == 1
    assert report["result"] is None
    assert report["error"]["retryable"] is False
    for word in words:
        assert word in report["error"]["message"]


async def test_an_unknown_task_and_a_foreign_agent_are_rejected(program: Outside) -> None:
    """The report names what the agent has, and which of the two names to correct."""
    unknown = await program.ask("ProbeAgent", "juggle", {})
    assert (unknown["status"], unknown["task_name"]) == ("rejected", "juggle")
    assert "remembered" in unknown["error"]["message"]
    foreign = program.assignment("BudgetTrackerAgent", "fresh", {"label": "x"})
    await program.publish("tasks.ProbeAgent.fresh", json.dumps(foreign).encode())
    report = await program.report_of(foreign["task_id"])
    assert report["status"] == "rejected"
    assert "BudgetTrackerAgent" in report["error"]["message"]


async def test_an_oversized_assignment_is_rejected_to_its_sender(program: Outside) -> None:
    """A body between our limit and the server's still gets a report."""
    assignment = program.assignment("ProbeAgent", "fresh", {"label": "x", "padding": "y" * (970 * 1024)})
    await program.publish("tasks.ProbeAgent.fresh", json.dumps(assignment).encode())
    report = await program.report_of(assignment["task_id"])
    assert report["status"] == "rejected"
    assert str(960 * 1024) in report["error"]["message"]


async def test_a_result_that_is_too_large_is_a_failure_that_says_so(program: Outside) -> None:
    """Nothing larger than the wire takes is ever published."""
    report = await program.ask("ProbeAgent", "swell", {"bytes": 970 * 1024})
    assert (report["status"], report["error"]["type"]) == ("failed", "ResultTooLarge")
    assert report["result"] is None
    fine = await program.ask("ProbeAgent", "swell", {"bytes": 900 * 1024})
    assert (fine["status"], len(fine["result"])) == ("completed", 900 * 1024)


async def test_no_body_stops_the_worker(program: Outside, standing: Standing) -> None:
    """Hundreds of broken bodies later every one is reported or dead, and the next task is done."""
    chance = random.Random(20261121)
    # What was reported before is stored once it is taken, a moment after we heard it.
    await all_taken(program)
    dead, reported = await messages(program, "DEAD"), await messages(program, "REPORTS")
    bodies = [mangled(chance, program) for _ in range(300)] + list(nasty(program))
    for body in bodies:
        await program.publish("tasks.ProbeAgent.fresh", body)
    report = await program.ask("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    assert report["status"] == "completed"
    await all_taken(program)
    dead = await messages(program, "DEAD") - dead
    reported = await messages(program, "REPORTS") - reported
    assert dead + reported == len(bodies) + 1
    assert min(dead, reported) > 50
    assert standing.worker.is_running
    assert "desk_failed" not in standing.worker.log()
    assert "execution_failed" not in standing.worker.log()


@pytest.mark.parametrize(("given", "kept"), [("00-" + "a" * 32 + "-" + "b" * 16 + "-01", True), ("not a trace", False)])
async def test_a_report_carries_the_trace_of_its_assignment(program: Outside, given: str, kept: bool) -> None:
    """What calls a task together with others finds its report among them; nonsense is left behind."""
    assignment = program.assignment("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    await program.publish("tasks.ProbeAgent.fresh", json.dumps(assignment).encode(), {"traceparent": given})
    await program.report_of(assignment["task_id"])
    subject = f"reports.{program.supervisor_id}.{assignment['task_id']}.1"

    async def is_stored() -> bool:
        return await has_messages(program, "REPORTS", subject)

    await program.eventually(is_stored)
    stored = await program.client.request(f"$JS.API.DIRECT.GET.REPORTS.{subject}", timeout=PATIENCE_S)
    assert (stored.headers or {}).get("traceparent") == (given if kept else None)


async def test_a_subject_as_long_as_the_server_takes_is_buried_under_its_beginning(
    program: Outside, standing: Standing
) -> None:
    """The grave's own subject would be too long for the server, which hangs up on whoever sends one."""
    subject = f"tasks.ProbeAgent.long-{uuid.uuid4().hex}-" + "x" * 3_900
    await program.publish(subject, b"\xff not json")
    grave = f"dead.{subject[:1024]}"
    await program.eventually(lambda: has_messages(program, "DEAD", grave))
    assert (await program.last("DEAD", grave))["subject"] == subject
    report = await program.ask("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    assert report["status"] == "completed"
    assert standing.worker.is_running


async def test_an_unreadable_body_is_kept_as_a_dead_letter(program: Outside) -> None:
    """What has no sender to tell is not lost without a trace."""
    task = f"odd-{uuid.uuid4().hex}"
    await program.publish(f"tasks.ProbeAgent.{task}", b"\xff not json")
    await program.eventually(lambda: has_messages(program, "DEAD", f"dead.tasks.ProbeAgent.{task}"))
    letter = await program.last("DEAD", f"dead.tasks.ProbeAgent.{task}")
    assert (letter["reason"], letter["subject"], letter["body_bytes"]) == (
        "unreadable",
        f"tasks.ProbeAgent.{task}",
        10,
    )
    assert letter["error"]["message"]


async def test_a_subject_that_is_no_text_does_not_stop_the_worker(program: Outside, standing: Standing) -> None:
    """The server lets any bytes through as a subject; the tasks behind it are still done."""
    await publish_raw(standing.house.servers.nats.port, b"tasks.ProbeAgent.\xff\xfe", b"{}")
    report = await program.ask("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    assert report["status"] == "completed"
    await all_taken(program)


async def test_a_worker_tells_its_health_and_counts_what_it_does(program: Outside, standing: Standing) -> None:
    """The three pages of an operator answer, and the counters move."""
    worker = standing.worker
    before = worker.metric('tasklore_tasks_total{agent="ProbeAgent",outcome="completed",task="fresh"}')
    await program.ask("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    health, ready = worker.get("/healthz"), worker.get("/readyz")
    assert (health[0], health[1]["status"], set(health[1]["checks"])) == (
        200,
        "ok",
        {"event_loop", "engines", "models"},
    )
    assert (ready[0], ready[1]["status"]) == (200, "ok")
    after = worker.metric('tasklore_tasks_total{agent="ProbeAgent",outcome="completed",task="fresh"}')
    assert after == before + 1


async def has_messages(program: Outside, stream: str, subject: str) -> bool:
    """Say whether *stream* has a message on *subject*."""
    return bool(await program.counts(stream, subject))


async def messages(program: Outside, stream: str) -> int:
    """Return how many messages lie in *stream*."""
    return int((await program.api(f"STREAM.INFO.{stream}"))["state"]["messages"])


async def all_taken(program: Outside) -> None:
    """Return once no task of the agents that run here lies in the queue and none is under way."""

    async def none_left() -> bool:
        # Others who share the system may have asked an agent that nobody runs.
        return not await has_messages(program, "TASKS", "tasks.ProbeAgent.>")

    await program.eventually(none_left)


def mangled(chance: random.Random, program: Outside) -> bytes:
    """Return an assignment that was damaged in one of several ways."""
    body = json.dumps(program.assignment("ProbeAgent", "fresh", {"label": "fuzz"})).encode()
    way = chance.randrange(5)
    if way == 0:
        return body[: chance.randrange(len(body))]
    if way == 1:
        place = chance.randrange(len(body))
        return body[:place] + chance.randbytes(chance.randrange(1, 9)) + body[place + 3 :]
    if way == 2:
        return chance.randbytes(chance.randrange(200))
    if way == 3:
        return json.dumps(strange(chance, 4)).encode()
    assignment = json.loads(body)
    victim = chance.choice([*assignment, "task"])
    assignment[victim] = strange(chance, 3)
    return json.dumps(assignment).encode()


def strange(chance: random.Random, depth: int) -> Any:
    """Return some JSON value."""
    kinds: list[Any] = [None, True, -1, 1e308, "", "x" * 70, "a.b", "\ud800", "NaN", float("nan"), float("inf")]
    if depth and chance.random() < 0.5:
        if chance.random() < 0.5:
            return [strange(chance, depth - 1) for _ in range(chance.randrange(4))]
        return {chance.choice("abc"): strange(chance, depth - 1) for _ in range(chance.randrange(4))}
    return chance.choice(kinds)


def nasty(program: Outside) -> list[bytes]:
    """Return the bodies that have stopped other people's workers."""

    def spoilt(**fields: Any) -> bytes:
        return json.dumps(program.assignment("ProbeAgent", "fresh", {"label": "fuzz"}) | fields).encode()

    def numbered(number: Any) -> bytes:
        return spoilt(task={"name": "fresh", "parameters": {"label": "fuzz", "number": number}})

    deep = "[" * 100_000
    return [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"\x00" * 1000,
        b"\xff\xfe",
        deep.encode(),
        (deep + "]" * 100_000).encode(),
        numbered(float("nan")),
        numbered("9" * 5000),
        numbered("1e999999999"),
        spoilt(deadline=float("inf")),
        spoilt(max_attempts=10**400),
        spoilt(task_id="a b*>."),
        spoilt(supervisor_id="*"),
        spoilt(created_at="0000-00-00T00:00:00Z"),
        spoilt(created_at="0001-01-01T00:00:00+14:00"),
        spoilt(created_at="9999-12-31T23:59:59-14:00"),
        spoilt(created_at="9999-12-31T23:59:59Z", task={"name": "trouble", "parameters": {"label": "fuzz"}}),
        spoilt(deadline="0001-01-01T00:00:00+14:00"),
        spoilt(deadline="9999-12-31T23:59:59-14:00"),
        spoilt().decode().encode("utf-16"),
        b'{"task_id":' + b'{"a":' * 50_000,
    ]
