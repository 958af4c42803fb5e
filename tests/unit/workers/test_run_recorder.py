"""What a run sees is noted in order, cut and masked, and nothing of it holds up or fails a task."""

import asyncio
from datetime import UTC, datetime

import pytest

from tasklore.contracts.admission.waits import Wait
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.memory.ledger.runs import RunName
from tasklore.workers.context.branches import RunParked
from tasklore.workers.context.recorder import (
    BATCH_BYTES,
    MOST_OF_TEXT,
    MOST_WAITING,
    RunRecorder,
)
from tests.unit.workers.recorded import SECRET, Shelf

ASSIGNMENT = TaskAssignment(
    task_id="one",
    agent_id="Probe",
    supervisor_id="S",
    task=TaskCall(name="ask"),
    created_at=datetime.now(UTC),
    user_id="ann",
)
WAIT = Wait(
    kind="sleep",
    slot="0",
    digest="d",
    agent_id="Probe",
    task_name="ask",
    generation=1,
    text="",
    asked_at=datetime.now(UTC),
    until=datetime.now(UTC),
)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def recorder(shelf: Shelf) -> RunRecorder:
    return RunRecorder(shelf.recording, ASSIGNMENT, RunName("one", 2, "w1"), 3)


async def test_messages_are_kept_in_order_with_their_run(
    recorder: RunRecorder, shelf: Shelf
) -> None:
    """And count to the user of the task."""
    recorder.note_prompt("writer", "writer-model", "hello")
    recorder.note_prompt("writer", "cheaper", "hello")
    recorder.note("result", b'{"each": 100}')
    await recorder.close()
    assert [(one.kind, one.name, one.text) for one in shelf.messages] == [
        ("prompt", "writer-model", "hello"),
        ("prompt", "cheaper", "hello"),
        ("result", "", '{"each": 100}'),
    ]
    assert {(one.generation, one.run) for one in shelf.messages} == {(2, 3)}
    assert [one.facts.get("instead_of") for one in shelf.messages[:2]] == [
        None,
        "writer-model",
    ]
    assert shelf.owners == {"YW5u"}


async def test_messages_are_kept_while_the_run_goes_on(
    recorder: RunRecorder, shelf: Shelf
) -> None:
    """Half a second later, or at once where there are many bytes: whoever looks sees how far it is."""
    recorder.note("prompt", "x" * BATCH_BYTES)
    for _ in range(7):
        recorder.note("prompt", "x" * MOST_OF_TEXT)
    await shelf.filled.wait()
    recorder.note("answer", "soon")
    while len(shelf.messages) < 9:
        shelf.filled.clear()
        await shelf.filled.wait()
    assert shelf.messages[-1].text == "soon"


async def test_long_texts_are_cut_and_say_how_long_they_were(
    recorder: RunRecorder, shelf: Shelf
) -> None:
    """A secret at the place of the cut is not left in two."""
    edge = MOST_OF_TEXT - len(SECRET) // 2
    recorder.note("tool", f"{'x' * edge}{SECRET}{'y' * 500_000}", given=b"z" * 500_000)
    await recorder.close()
    (kept,) = shelf.messages
    assert kept.is_cut
    assert kept.size == edge + len(SECRET) + 500_000
    assert len(kept.text) == MOST_OF_TEXT
    assert "hunter" not in kept.text
    assert len(kept.given) < 20_000


async def test_a_result_of_100_megabytes_costs_what_is_kept_of_it(
    recorder: RunRecorder, shelf: Shelf
) -> None:
    """No copy of it is made."""
    import tracemalloc

    hostile = "\x1b]0;owned\x07<script>" * 6_000_000
    tracemalloc.start()
    recorder.note("tool", hostile)
    await recorder.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
    assert shelf.messages[0].size == len(hostile) > 100_000_000


async def test_what_waits_is_bounded_and_what_was_lost_is_said(
    recorder: RunRecorder, shelf: Shelf
) -> None:
    """The oldest go."""
    shelf.gate = asyncio.Event()
    for number in range(40):
        recorder.note("tool", f"{number:03}" + "x" * (MOST_OF_TEXT - 3))
        await asyncio.sleep(0)
    shelf.gate.set()
    await recorder.close()
    kept = sum(len(one.text) for one in shelf.messages)
    assert kept <= 2 * MOST_WAITING + MOST_OF_TEXT
    assert shelf.messages[-1].text.startswith("039")
    assert "were not kept" in " ".join(
        one.text for one in shelf.messages if one.kind == "error"
    )


@pytest.mark.parametrize("fault", [MemoryUnavailable("away"), ZeroDivisionError()])
async def test_a_store_that_fails_fails_no_task(
    recorder: RunRecorder, shelf: Shelf, fault: Exception
) -> None:
    """What it missed is counted once it is back."""
    shelf.fault = fault
    recorder.note("prompt", "lost")
    await recorder.close()
    shelf.fault = None
    recorder.note("answer", "kept")
    await recorder.close()
    assert [one.kind for one in shelf.messages] == ["error", "answer"]
    assert shelf.messages[0].text.startswith("1 messages")


async def test_nothing_is_noted_of_a_run_that_counts_no_more(
    recorder: RunRecorder, shelf: Shelf
) -> None:
    """Its task was taken by another worker, or its user was forgotten."""
    shelf.counts = False
    recorder.note("prompt", "a")
    await recorder.close()
    recorder.note("prompt", "b")
    await recorder.close()
    assert [one.text for one in shelf.messages] == ["a"]


async def test_how_a_run_ended_is_noted(recorder: RunRecorder, shelf: Shelf) -> None:
    """By its result or its error; a wait is no end."""

    async def end(how: bytes | Exception) -> bytes:
        if isinstance(how, Exception):
            raise how
        return how

    assert await recorder.follow(end(b"1")) == b"1"
    with pytest.raises(ValueError, match="no"):
        await recorder.follow(end(ValueError("no")))
    with pytest.raises(RunParked):
        await recorder.follow(end(RunParked((WAIT,))))
    await recorder.close()
    assert [(one.kind, one.text) for one in shelf.messages] == [
        ("result", "1"),
        ("error", "no"),
    ]


async def test_half_of_a_surrogate_pair_is_text_too(
    recorder: RunRecorder, shelf: Shelf
) -> None:
    """Bytes that are no UTF-8 are."""
    recorder.note("tool", "a\ud800b", given=b"\xff\xfe", name="\ud800", where="\ud800")
    await recorder.close()
    assert shelf.messages[0].text == "a?b"
