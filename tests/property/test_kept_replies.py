"""Whatever a reply says, it is read again as it was made."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    MemoryNote,
    PersonReply,
    ReplyPart,
)
from tasklore.memory.ledger.ledger import Ledger
from tasklore.supervisor.replies.combined import combine, to_part
from tasklore.supervisor.requests.kept_replies import (
    MOST_BYTES,
    read_reply,
    spell_reply,
)

words = st.text(max_size=20)
long_words = words.map(lambda word: f"{word}." * (MOST_BYTES // 2))
results = st.one_of(
    st.none(),
    words,
    long_words,
    st.dictionaries(words, words, max_size=3),
    st.lists(words, min_size=1, max_size=2).map(lambda some: some * MOST_BYTES),
)


class Reports:
    """A ledger that has every report that was noted."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[str, int], bytes] = {}

    async def find_report(self, task_id: str, generation: int) -> bytes | None:
        return self.bodies.get((task_id, generation))


@st.composite
def replies(draw: st.DrawFn, reports: Reports) -> PersonReply:
    """A reply to one task, or to several, with notes behind the words."""
    count = draw(st.integers(0, 3))
    parts = [
        to_part(draw(answers(reports, f"t-{number}")), f"t-{number}")
        for number in range(count)
    ]
    notes = draw(words)
    if count < 2:
        one = draw(answers(reports, "t-9"))
        return one.model_copy(update={"text": f"{one.text}{notes}"})
    whole = combine(parts, request_id="r", conversation_id="c")
    return whole.model_copy(update={"text": f"{whole.text}{notes}", "elapsed_ms": 7})


@st.composite
def answers(draw: st.DrawFn, reports: Reports, task_id: str) -> PersonReply:
    """A reply to one task: its result, words of it, or why it failed; and a question."""
    result = draw(results)
    text = result if isinstance(result, str) else draw(words)
    fails = draw(st.booleans()) and result is None
    report = CompletionReport(
        task_id=task_id,
        generation=draw(st.integers(1, 3)),
        agent_id="A",
        supervisor_id="S",
        task_name="t",
        status="failed" if fails else "completed",
        result=result,
        error=ErrorNote(type="E", message=draw(words)) if fails else None,
        memory=MemoryNote(outcome="miss"),
        worker_id="w",
        finished_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    reports.bodies[task_id, report.generation] = report.model_dump_json().encode()
    has_report = draw(st.booleans())
    return PersonReply(
        request_id="r",
        conversation_id="c",
        kind="failed" if fails else "answer" if has_report else "question",
        text=text,
        report=report if has_report else None,
    )


@given(data=st.data())
def test_a_kept_reply_is_read_as_it_was_made(data: st.DataObject) -> None:
    """Its results come from the ledger where they are large, and then no copy of them is kept."""
    reports = Reports()
    reply = data.draw(replies(reports))
    kept = spell_reply(reply, "ann")
    large = [
        one.report.result
        for one in cast("tuple[PersonReply | ReplyPart, ...]", reply.parts or (reply,))
        if one.report is not None
        and isinstance(one.report.result, str)
        and len(one.report.result) > MOST_BYTES // 2
    ]
    assert not any(result.encode() in kept.body for result in large)
    ledger = cast("Ledger", cast("Any", reports))
    assert asyncio.run(read_reply(kept.body, ledger)) == reply
    assert kept.user_id == "ann"
