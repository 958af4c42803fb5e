"""What an outside program may rely on: one correct report for what it publishes, and a worker that nothing stops."""

import ast
import json
import random
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import PATIENCE_S, Json, Outside

OUTSIDE = Path(__file__).with_name("external_program.py")


def test_the_outside_program_imports_nothing_of_ours() -> None:
    tree = ast.parse(OUTSIDE.read_text())
    imported = {
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    imported |= {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert {name.partition(".")[0] for name in imported} <= {
        *sys.stdlib_module_names,
        "nats",
    }


def test_a_program_that_knows_only_the_wire_gets_exactly_one_correct_report(
    standing: Standing,
) -> None:
    """Run in an interpreter of its own, from elsewhere, it reads the seed's first answer."""
    done = subprocess.run(
        [sys.executable, "-I", str(OUTSIDE), standing.system.servers.nats_url],
        cwd="/",
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    found = json.loads(done.stdout)
    report = found["report"]
    result = found["report"]["result"]
    assert (report["status"], report["error"], report["fence"]) == (
        "completed",
        None,
        "ledger",
    )
    assert (
        result["remaining"],
        result["spending_rate"],
        result["predicted_spending"],
    ) == (8000, 6500, 68000)
    assert result["overshoot_risk"] is True
    assert report["memory"]["key"] == "analyze_budget:50000:42000:5000,7000,8000,6000"
    assert (list(found["stored"].values()), found["heard"]) == ([1], 1)


async def test_one_task_id_published_twice_is_one_run_and_one_report(
    program: Outside, standing: Standing
) -> None:
    """Under two message ids the stream keeps both copies; the ledger and the stream still give one report."""
    label = uuid.uuid4().hex
    first = await program.ask("ProbeAgent", "fresh", {"label": label}, task_id=label)
    await program.ask("ProbeAgent", "fresh", {"label": label}, task_id=label)
    await all_taken(program)
    assert first["status"] == "completed"
    assert len(standing.system.runs(label)) == 1
    assert await program.reports() == {f"reports.{program.supervisor_id}.{label}.1": 1}
    assert {json.dumps(report, sort_keys=True) for report in program.heard} == {
        json.dumps(first, sort_keys=True)
    }


async def test_a_higher_generation_runs_again_and_has_a_report_of_its_own(
    program: Outside, standing: Standing
) -> None:
    label = uuid.uuid4().hex
    body = json.dumps(
        program.assignment("ProbeAgent", "fresh", {"label": label}, task_id=label)
    ).encode()
    for generation in (1, 2):
        await program.publish(
            "tasks.ProbeAgent.fresh", body, {"Tasklore-Generation": str(generation)}
        )
        await program.until(lambda: len(program.heard) == generation)  # noqa: B023 - awaited within the turn
    assert [report["generation"] for report in program.heard] == [1, 2]
    assert len(standing.system.runs(label)) == 2
    assert set((await program.reports()).values()) == {1}
    assert len(await program.reports()) == 2


async def test_one_question_in_ten_spellings_is_one_miss_and_nine_hits(
    program: Outside,
) -> None:
    """Every wording of the same parameters is answered from the memory after the first."""
    limit = random.randrange(1_000, 9_000) * 1_000 + 500  # a question of this run alone
    grouped = f"{limit:,}"
    thousands = f"{limit / 1000}k"
    spellings: list[Json] = [
        {"budget_limit": limit, "spent": 42000, "history": []},
        {"budget_limit": float(limit), "spent": 42000.0, "history": []},
        {"budget_limit": grouped, "spent": "42,000", "history": []},
        {"budget_limit": thousands, "spent": "42k", "history": []},
        {
            "budget_limit": f"${grouped}.00",
            "spent": "forty-two thousand",
            "history": [],
        },
        {"history": [], "spent": "42 grand", "budget_limit": str(limit)},
        {"budget_limit": limit, "spent": 42000},
        {"budget_limit": f"{limit}.000", "spent": "4.2e4", "history": []},
        {"limit": limit, "spending": 42000},
        {"budget_limit": {"value": limit}, "spent": "４２０００", "history": []},  # noqa: RUF001 - full-width digits
    ]
    reports = [
        await program.ask("BudgetTrackerAgent", "analyze_budget", spelling)
        for spelling in spellings
    ]
    assert [report["status"] for report in reports] == ["completed"] * 10
    assert [report["memory"]["outcome"] for report in reports] == ["miss"] + ["hit"] * 9
    assert len({json.dumps(report["result"]) for report in reports}) == 1
    assert len({report["memory"]["key"] for report in reports}) == 1


async def test_refresh_computes_again_and_bypass_leaves_the_memory_alone(
    program: Outside,
) -> None:
    """The three words of `memory`, and a word of the future, do what the contract says."""
    question = {"label": uuid.uuid4().hex}
    outcomes = [
        (await program.ask("ProbeAgent", "remembered", question, memory=word))[
            "memory"
        ]["outcome"]
        for word in ("bypass", "use", "use", "refresh", "from-the-future")
    ]
    assert outcomes == ["bypassed", "miss", "hit", "refreshed", "bypassed"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"budget_limit": "a lot", "spent": 1}, ["budget_limit", "a lot"]),
        ({"spent": 1}, ["budget_limit", "missing"]),
        (
            {"budget_limit": 1, "spent": 1, "colour": "red"},
            ["colour", "known are", "budget_limit"],
        ),
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


async def test_an_unknown_task_and_a_foreign_agent_are_rejected(
    program: Outside,
) -> None:
    """The report names what the agent has, and which of the two names to correct."""
    unknown = await program.ask("ProbeAgent", "juggle", {})
    assert (unknown["status"], unknown["task_name"]) == ("rejected", "juggle")
    assert "remembered" in unknown["error"]["message"]
    foreign = program.assignment("BudgetTrackerAgent", "fresh", {"label": "x"})
    await program.publish("tasks.ProbeAgent.fresh", json.dumps(foreign).encode())
    report = await program.report_of(foreign["task_id"])
    assert report["status"] == "rejected"
    assert "BudgetTrackerAgent" in report["error"]["message"]


async def test_an_oversized_assignment_is_rejected_to_its_sender(
    program: Outside,
) -> None:
    assignment = program.assignment(
        "ProbeAgent", "fresh", {"label": "x", "padding": "y" * (970 * 1024)}
    )
    await program.publish("tasks.ProbeAgent.fresh", json.dumps(assignment).encode())
    report = await program.report_of(assignment["task_id"])
    assert report["status"] == "rejected"
    assert str(960 * 1024) in report["error"]["message"]


async def test_a_result_that_is_too_large_is_a_failure_that_says_so(
    program: Outside,
) -> None:
    report = await program.ask("ProbeAgent", "swell", {"bytes": 970 * 1024})
    assert (report["status"], report["error"]["type"]) == ("failed", "ResultTooLarge")
    assert report["result"] is None
    fine = await program.ask("ProbeAgent", "swell", {"bytes": 900 * 1024})
    assert (fine["status"], len(fine["result"])) == ("completed", 900 * 1024)


async def test_no_body_stops_the_worker(program: Outside, standing: Standing) -> None:
    """Each of many broken bodies is reported or dead, and the next task is done."""
    chance = random.Random(20261121)
    # What was reported before is stored once it is taken, a moment after we heard it.
    await all_taken(program)
    dead = await messages(program, "DEAD")
    reported = await messages(program, "REPORTS")
    bodies = [mangled(chance, program) for _ in range(100)] + nasty(program)
    for body in bodies:
        await program.publish("tasks.ProbeAgent.fresh", body)
    report = await program.ask("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    assert report["status"] == "completed"
    await all_taken(program)
    dead = await messages(program, "DEAD") - dead
    reported = await messages(program, "REPORTS") - reported
    assert dead + reported == len(bodies) + 1
    assert min(dead, reported) > 5
    assert standing.worker.is_running
    assert "desk_failed" not in standing.worker.log()
    assert "execution_failed" not in standing.worker.log()


@pytest.mark.parametrize(
    ("given", "kept"),
    [("00-" + "a" * 32 + "-" + "b" * 16 + "-01", True), ("not a trace", False)],
)
async def test_a_report_carries_the_trace_of_its_assignment(
    program: Outside, given: str, kept: bool
) -> None:
    """What calls a task together with others finds its report among them; nonsense is left behind."""
    assignment = program.assignment("ProbeAgent", "fresh", {"label": uuid.uuid4().hex})
    await program.publish(
        "tasks.ProbeAgent.fresh",
        json.dumps(assignment).encode(),
        {"traceparent": given},
    )
    await program.report_of(assignment["task_id"])
    subject = f"reports.{program.supervisor_id}.{assignment['task_id']}.1"

    async def is_stored() -> bool:
        return await has_messages(program, "REPORTS", subject)

    await program.eventually(is_stored)
    stored = await program.client.request(
        f"$JS.API.DIRECT.GET.REPORTS.{subject}", timeout=PATIENCE_S
    )
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


async def has_messages(program: Outside, stream: str, subject: str) -> bool:
    """Say whether *stream* has a message on *subject*."""
    return bool(await program.counts(stream, subject))


async def messages(program: Outside, stream: str) -> int:
    """Return how many messages lie in *stream*."""
    return sum((await program.counts(stream)).values())


async def all_taken(program: Outside) -> None:
    """Return once no task of the agents that run here lies in the queue and none is under way."""

    async def none_left() -> bool:
        # Others who share the system may have asked an agent that nobody runs.
        return not await has_messages(program, "TASKS", "tasks.ProbeAgent.>")

    await program.eventually(none_left)


def mangled(chance: random.Random, program: Outside) -> bytes:
    """Return an assignment that was cut, overwritten in a place, or replaced by bytes of any kind."""
    body = json.dumps(
        program.assignment("ProbeAgent", "fresh", {"label": "fuzz"})
    ).encode()
    place = chance.randrange(len(body))
    overwritten = (
        body[:place] + chance.randbytes(chance.randrange(1, 9)) + body[place + 3 :]
    )
    return chance.choice((body[:place], overwritten, chance.randbytes(place)))


def nasty(program: Outside) -> list[bytes]:
    """Return the bodies that have stopped other people's workers."""

    def spoilt(**fields: Any) -> bytes:
        return json.dumps(
            program.assignment("ProbeAgent", "fresh", {"label": "fuzz"}) | fields
        ).encode()

    def numbered(number: Any) -> bytes:
        return spoilt(
            task={"name": "fresh", "parameters": {"label": "fuzz", "number": number}}
        )

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
        spoilt(
            created_at="9999-12-31T23:59:59Z",
            task={"name": "trouble", "parameters": {"label": "fuzz"}},
        ),
        spoilt(deadline="0001-01-01T00:00:00+14:00"),
        spoilt(deadline="9999-12-31T23:59:59-14:00"),
        spoilt().decode().encode("utf-16"),
        b'{"task_id":' + b'{"a":' * 50_000,
    ]
