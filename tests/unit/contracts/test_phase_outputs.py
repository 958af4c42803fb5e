"""What a phase leaves in its session, in which order, and what follows when the session does not take it."""

from typing import Any

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    GiveUp,
    MemoryUnavailable,
    ResultTooLarge,
)
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.memory.sessions.entries import EntryInfo
from tasklore.workers.context.phase_outputs import entries_of
from tests.unit.workers.execution.fake_worker import NOW, FakeWorker, a_task, raising

PHASE: dict[str, Any] = {"session_id": "s1", "phase": "say", "writes": ["results"]}


@pytest.fixture
async def worker() -> FakeWorker:
    """Open an worker and a session."""
    worker = FakeWorker()
    await worker.sessions.create("s1")
    return worker


async def entry(
    worker: FakeWorker, key: str = "say:results", session_id: str = "s1"
) -> EntryInfo:
    """Return what is known of an entry that is there."""
    [found] = [
        entry for entry in await worker.sessions.entries(session_id) if entry.key == key
    ]
    return found


async def values(worker: FakeWorker, session_id: str = "s1") -> dict[str, Any]:
    """Return what lies in a session."""
    keys = sorted(entry.key for entry in await worker.sessions.entries(session_id))
    found = await worker.sessions.peek(session_id, keys)
    return {
        key: one.value for key, one in zip(keys, found, strict=True) if one is not None
    }


def an_assignment(*writes: str) -> TaskAssignment:
    """Return one of a phase that writes *writes*."""
    whole = PHASE | {
        "task_id": "t1",
        "agent_id": "DeskAgent",
        "supervisor_id": "S",
        "task": {"name": "speak"},
    }
    return TaskAssignment.model_validate(whole | {"created_at": NOW, "writes": writes})


def test_a_result_is_written_whole_or_by_its_properties() -> None:
    """Each took as long as the whole: none of them comes without it."""
    result = b'{"map":{"a":1},"results":[0],"other":null}'
    entries = entries_of(an_assignment("results", "map", "other", "map"), result, 11)
    assert [(entry.key, entry.value, entry.computation_ms) for entry in entries] == [
        ("say:results", {"map": {"a": 1}, "results": [0], "other": None}, 11),
        ("say:map", {"a": 1}, 11),
        ("say:other", None, 11),
    ]
    assert {entry.agent for entry in entries} == {"DeskAgent"}
    assert [
        entry.value for entry in entries_of(an_assignment("results"), b"false", 1)
    ] == [False]


@pytest.mark.parametrize(
    ("result", "there"),
    [
        (b'{"b":1,"a":2}', "has a, b;"),
        (b"{}", "is an object without properties"),
        (b"null", "is null, which has no properties"),
        (
            b"{" + b",".join(b'"p%02d":0' % number for number in range(25)) + b"}",
            "p18, p19 and 5 more;",
        ),
    ],
)
def test_a_property_that_is_not_there_is_named_with_those_that_are(
    result: bytes, there: str
) -> None:
    """No other run would have it."""
    with pytest.raises(
        GiveUp, match="phase 'say' writes 'map', but the result of 'speak'"
    ) as caught:
        entries_of(an_assignment("map"), result, 1)
    assert there in str(caught.value)


@pytest.mark.parametrize("writes", [None, []])
async def test_a_phase_that_writes_nothing_leaves_nothing(
    worker: FakeWorker, writes: list[str] | None
) -> None:
    """Computed or remembered."""
    await worker.work(a_task(**PHASE | {"writes": writes}))
    await worker.work(a_task(task_id="t2", **PHASE | {"writes": writes}))
    assert await values(worker) == {}
    assert [report.memory.outcome for report in worker.outbox.reports()] == [
        "miss",
        "hit",
    ]


async def test_a_redelivered_hit_whose_report_is_out_leaves_the_session_alone(
    worker: FakeWorker,
) -> None:
    await worker.work(a_task(task_id="t0"))
    await worker.work(a_task(**PHASE))
    await worker.sessions.get("s1", "say:results", reader="t9")
    await worker.work(a_task(deliveries=2, **PHASE))
    assert (await entry(worker)).hits == 1
    assert len(worker.engine.settled) == 3


async def test_a_result_without_what_is_to_be_written_fails_and_writes_nothing(
    worker: FakeWorker,
) -> None:
    """Not even the part that it has."""
    await worker.work(a_task(**PHASE | {"writes": ["word", "map"]}))
    report = worker.report()
    assert report.error is not None
    assert (report.status, report.error.type, report.result) == (
        "failed",
        "GiveUp",
        None,
    )
    assert "writes 'map', but the result of 'speak' has word" in report.error.message
    assert await values(worker) == {}


@pytest.mark.parametrize("is_remembered", [True, False])
async def test_who_joins_does_not_fail_with_the_one_that_computed(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch, is_remembered: bool
) -> None:
    async def away(*_arguments: Any, **_options: Any) -> None:
        raise MemoryUnavailable("away")

    if not is_remembered:
        monkeypatch.setattr(worker.memory, "remember", away)
    one = a_task(**PHASE | {"writes": ["map"]})
    other = a_task(task_id="t2", **PHASE | {"writes": ["word"]})
    await worker.work(one, other)
    statuses = {report.task_id: report.status for report in worker.outbox.reports()}
    assert statuses == {"t1": "failed", "t2": "completed"}
    assert (await values(worker), worker.runs) == ({"say:word": "hello"}, ["hello"])


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"session_id": None}, "session_id or phase is missing"),
        ({"phase": None}, "session_id or phase is missing"),
        ({"phase": "a:b"}, "phase 'a:b' must be"),
        ({"session_id": "a b"}, "session_id 'a b' must be"),
        ({"writes": ["a:b"]}, "writes"),
    ],
)
async def test_outputs_without_a_place_are_rejected_before_anything_runs(
    worker: FakeWorker, fields: dict[str, Any], word: str
) -> None:
    """With the field and the cure."""
    await worker.work(a_task(**PHASE | fields))
    report = worker.report()
    assert report.error is not None
    assert (report.status, worker.runs) == ("rejected", [])
    assert word in report.error.message


def test_a_result_that_no_report_can_carry_is_not_written() -> None:
    """The phase is going to fail: the message says where else its result could go."""
    with pytest.raises(
        ResultTooLarge, match=r"put what is large into the session by context\.session"
    ):
        entries_of(an_assignment("results"), b'"' + b"x" * subjects.MAX_BODY + b'"', 1)


async def test_a_task_cancelled_before_its_answer_is_handed_on_writes_nothing(
    worker: FakeWorker,
) -> None:
    """The ledger is asked before the session is touched."""
    await worker.work(a_task(task_id="t0"))
    await worker.ledger.cancel("t1", None, "changed my mind")
    await worker.work(a_task(**PHASE))
    report: CompletionReport = worker.outbox.reports()[-1]
    assert (report.task_id, report.status, await values(worker)) == (
        "t1",
        "cancelled",
        {},
    )


async def test_an_answer_is_handed_on_though_runs_of_its_task_crashed(
    worker: FakeWorker,
) -> None:
    """Nothing runs: it need not run alone."""
    await worker.work(a_task(task_id="t0"))
    await worker.ledger.begin("t1", 1, "dead", 0, 0, token="earlier")
    await worker.work(a_task(deliveries=2, **PHASE))
    assert (worker.outbox.reports()[-1].status, worker.counts.seen["crashed"]) == (
        "completed",
        1,
    )
    assert await values(worker) == {"say:results": {"word": "hello"}}


async def test_an_answer_is_handed_on_while_the_ledger_is_away(
    worker: FakeWorker,
) -> None:
    """Unfenced, as a run would be."""
    await worker.work(a_task(task_id="t0"))
    worker.ledger.begins_away = worker.ledger.finishes_away = True
    await worker.work(a_task(**PHASE))
    assert (worker.outbox.reports()[-1].fence, await values(worker)) == (
        "none",
        {"say:results": {"word": "hello"}},
    )


async def test_a_failed_run_leaves_nothing(worker: FakeWorker) -> None:
    worker.does = raising(GiveUp("no"))
    await worker.work(a_task(**PHASE))
    assert (worker.report().status, await values(worker)) == ("failed", {})
