"""Dead letters sent again: one more run each and the letter is gone; what cannot run stays with the reason."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import TaskAssignment
from tasklore.runtime.messaging.dead_letter import DEAD_BODY
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.dead_letters import queue
from tasklore.supervisor.dead_letters import stream as dead_stream
from tasklore.supervisor.dead_letters.letters import LetterSelection
from tasklore.supervisor.dead_letters.queue import open_dead_letters
from tasklore.supervisor.dead_letters.redrive import Renewal
from tests.integration.dead_letters import (
    Morgue,
    a_letter,
    an_assignment,
    morgue_of,
    put_card,
)
from tests.ledger_layouts import set_layout


@pytest.fixture
async def morgue(own_servers: EmbeddedServers) -> AsyncIterator[Morgue]:
    async with morgue_of(own_servers) as opened:
        yield opened


async def test_a_redriven_letter_is_a_task_of_the_next_generation_and_gone(
    morgue: Morgue,
) -> None:
    await morgue.bury(a_letter("t1"))
    outcome = await morgue.letters.redrive([1])
    assert (outcome.redriven, outcome.kept, outcome.stopped) == (1, [], None)
    [(subject, headers, body)] = await morgue.tasks()
    assert subject == "tasks.TripAgent.share_trip"
    numbers = {
        "Nats-Msg-Id": "t1:2",
        "Tasklore-Generation": "2",
        "Tasklore-Attempt": "1",
    }
    assert headers == {**numbers, "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    original = json.loads(an_assignment("t1"))
    assert json.loads(body) == {
        **original,
        "created_at": json.loads(body)["created_at"],
    }
    entry = await morgue.ledger.read("t1")
    assert (
        entry.newest,
        entry.generations[2].state,
        entry.generations[2].assignment,
    ) == (2, "accepted", body)
    assert await morgue.count("DEAD") == 0


@pytest.mark.parametrize("today_s", [None, 120, 90, 30])
@pytest.mark.parametrize("is_own", [None, True, False])
async def test_a_deadline_that_the_task_declared_begins_anew_as_it_declares_now(
    is_own: bool | None, today_s: float | None, morgue: Morgue
) -> None:
    """That of a sender stays; one that does not say, as of 0.2, is the task's where its card declares the same."""
    await put_card(morgue.link.client, "TripAgent", deadline_s=today_s)
    marked = {} if is_own is None else {"has_own_deadline": is_own}
    body = an_assignment("t1", deadline="2026-01-01T00:01:30Z", **marked)
    await morgue.bury(a_letter("t1", body))

    outcome = await morgue.letters.redrive([1])

    begins_anew = is_own or (is_own is None and today_s == 90)
    assert (outcome.redriven, len(outcome.kept)) == ((1, 0) if begins_anew else (0, 1))
    for _, _, body in await morgue.tasks() if begins_anew else ():
        again = TaskAssignment.model_validate_json(body)
        given = None if again.deadline is None else again.deadline - again.created_at
        assert given == (None if today_s is None else timedelta(seconds=today_s))
        assert again.has_own_deadline == is_own


async def test_several_pages_of_letters_are_sent_again_each_once(
    morgue: Morgue,
) -> None:
    task_ids = await morgue.bury_many(300)
    outcome = await morgue.letters.redrive(LetterSelection())
    assert (outcome.redriven, outcome.kept) == (300, [])
    assert {headers["Nats-Msg-Id"] for _, headers, _ in await morgue.tasks()} == {
        f"{one}:2" for one in task_ids
    }
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (300, 0)


async def test_a_redrive_that_was_killed_before_it_deleted_is_repeated_without_harm(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await morgue.bury_many(20)

    async def killed(*_arguments: Any, **_options: Any) -> bool:
        raise asyncio.CancelledError

    with monkeypatch.context() as dying:
        dying.setattr(morgue.letters._stream, "remove", killed)
        await morgue.letters.redrive(LetterSelection())
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (20, 20)
    outcome = await morgue.letters.redrive(LetterSelection())
    assert (outcome.redriven, outcome.kept) == (20, [])
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (20, 0)


@pytest.mark.parametrize("end", ["completed", "cancelled", "rejected", "expired"])
@pytest.mark.parametrize("generation", [1, 3])
async def test_a_letter_of_a_task_that_ended_days_ago_stays_unless_forced(
    morgue: Morgue, end: str, generation: int
) -> None:
    """The ledger by agent knows how it ended for a week, and which agent an id is of for a day."""
    task = TaskName("TripAgent", "done")
    await morgue.finish_long_ago(task, generation, end)
    await morgue.bury(a_letter("done", generation=generation))
    for is_trial in (True, False):
        outcome = await morgue.letters.redrive(LetterSelection(), is_trial=is_trial)
        assert outcome.redriven == 0
        assert f"{end} after this letter was written" in outcome.kept[0].why
    assert await morgue.count("TASKS") == 0
    assert (await morgue.letters.redrive([1], is_forced=True)).redriven == 1


async def test_what_was_sent_again_and_ended_days_ago_is_not_sent_again(
    morgue: Morgue,
) -> None:
    """Its redrive was killed before it deleted the letter."""
    await morgue.finish_long_ago(TaskName("TripAgent", "t1"), 2, "completed")
    await morgue.bury(a_letter("t1"))
    assert (await morgue.letters.redrive(LetterSelection())).redriven == 1
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (0, 0)


async def test_a_body_that_was_cut_comes_out_of_the_ledger_after_days(
    morgue: Morgue,
) -> None:
    long = an_assignment("long", user_id="x" * (DEAD_BODY + 100))
    task = TaskName("TripAgent", "long")
    async with valkey.connect(morgue.servers.redis_url) as redis:
        await set_layout(redis, "2")
    await morgue.ledger.accept(task, 1, long)
    await morgue.finish_long_ago(task, 1, "failed")
    await morgue.bury(a_letter("long", long))
    outcome = await morgue.letters.redrive(LetterSelection())
    assert (outcome.redriven, outcome.kept) == (1, [])


@pytest.mark.parametrize("end", ["completed", "cancelled", "rejected", "expired"])
async def test_a_letter_of_a_task_that_ended_since_stays_unless_forced(
    morgue: Morgue, end: str
) -> None:
    await morgue.bury(a_letter("done"), a_letter("dead"), a_letter("unknown"))
    await morgue.ledger.finish("done", 1, end, b"report")
    await morgue.ledger.finish("dead", 1, "failed", b"report")
    for is_trial in (True, False):
        outcome = await morgue.letters.redrive(LetterSelection(), is_trial=is_trial)
        [(sequence, why)] = outcome.kept
        assert (outcome.redriven, sequence) == (2, 1)
        assert f"{end} after this letter was written; purge letter 1" in why
        assert "`force`" in why
    assert {headers["Nats-Msg-Id"] for _, headers, _ in await morgue.tasks()} == {
        "dead:2",
        "unknown:2",
    }
    assert await morgue.count("DEAD") == 1
    assert (await morgue.letters.redrive([1], is_forced=True)).redriven == 1
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (3, 0)


async def test_an_old_letter_of_a_task_that_a_later_redrive_completed_stays(
    morgue: Morgue,
) -> None:
    await morgue.bury(a_letter("later"), a_letter("next"))
    for task_id, ends in (
        ("later", ("failed", "failed", "completed")),
        ("next", ("failed", "completed")),
    ):
        for generation, end in enumerate(ends, start=1):
            await morgue.ledger.finish(task_id, generation, end, b"report")
    outcome = await morgue.letters.redrive(LetterSelection())
    assert (outcome.redriven, [kept.sequence for kept in outcome.kept]) == (1, [1])
    assert "task 'later' was completed after this letter" in outcome.kept[0].why


async def test_letters_that_arrive_during_a_redrive_stay(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await morgue.bury_many(3)
    put = morgue.letters._outbox.put

    async def dying_at_once(*arguments: Any, **options: Any) -> None:
        await put(*arguments, **options)
        await morgue.bury(a_letter(uuid.uuid4().hex, generation=2))

    monkeypatch.setattr(morgue.letters._outbox, "put", dying_at_once)
    assert (await morgue.letters.redrive(LetterSelection())).redriven == 3
    assert await morgue.count("DEAD") == 3


async def test_a_letter_whose_deadline_has_passed_stays_until_it_gets_another(
    morgue: Morgue,
) -> None:
    late = an_assignment("late", deadline="2026-01-01T00:00:00Z")
    await morgue.bury(
        a_letter("late", late), a_letter("t2", sequence=1), a_letter("t2", sequence=2)
    )
    for is_trial in (True, False):
        assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (0, 3)
        outcome = await morgue.letters.redrive(LetterSelection(), is_trial=is_trial)
        [kept] = outcome.kept
        assert (outcome.redriven, kept.sequence) == (2, 1)
        assert "`no_deadline`" in kept.why
    # A worker that was killed between DEAD and the ledger left two letters of one generation: one more run.
    assert await morgue.count("TASKS") == 1
    assert (
        await morgue.letters.redrive(LetterSelection(), Renewal(timedelta(hours=1)))
    ).redriven == 1
    assert await morgue.count("DEAD") == 0
    _, (_, _, body) = await morgue.tasks()
    assert datetime.fromisoformat(json.loads(body)["deadline"]) > datetime.now(UTC)


async def test_a_body_that_was_cut_comes_out_of_the_ledger(morgue: Morgue) -> None:
    long = an_assignment("long", user_id="x" * (DEAD_BODY + 100))
    await morgue.bury(
        a_letter("long", long),
        a_letter("lost", an_assignment("lost", user_id="y" * DEAD_BODY)),
    )
    await morgue.ledger.accept("long", 1, long)
    await morgue.ledger.accept("lost", 1, b"another one")
    outcome = await morgue.letters.redrive(LetterSelection())
    assert outcome.redriven == 1
    [(sequence, why)] = outcome.kept
    assert sequence == 2
    assert "keeps 524,288 of" in why
    assert "have its sender send it again" in why
    [(_, headers, body)] = await morgue.tasks()
    assert (headers["Nats-Msg-Id"], json.loads(body)["user_id"]) == (
        "long:2",
        "x" * (DEAD_BODY + 100),
    )


async def test_a_letter_without_a_task_is_sent_again_as_it_was_when_that_is_said(
    morgue: Morgue,
) -> None:
    await morgue.bury(a_letter(None, b"\x00\xff", reason="unreadable", task_name=None))
    unreadable = LetterSelection(reason="unreadable")
    outcome = await morgue.letters.redrive(unreadable)
    assert (outcome.redriven, len(outcome.kept)) == (0, 1)
    outcome = await morgue.letters.redrive(unreadable, is_forced=True)
    assert outcome.redriven == 1
    [(subject, headers, body)] = await morgue.tasks()
    assert (subject, headers["Tasklore-Generation"], body) == (
        "tasks.TripAgent.share_trip",
        "2",
        b"\x00\xff",
    )
    assert headers["Nats-Msg-Id"].startswith("redrive:1:")


async def test_when_tasks_are_full_the_rest_stays_untried(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_stream, "PAGE", 2)
    config = (await ask_jetstream(morgue.link.client, "STREAM.INFO.TASKS"))["config"]
    await ask_jetstream(
        morgue.link.client, "STREAM.UPDATE.TASKS", config | {"max_msgs": 2}
    )
    await morgue.bury_many(8)
    outcome = await morgue.letters.redrive(LetterSelection())
    assert outcome.redriven == 2
    assert outcome.stopped is not None
    assert "exceeded" in outcome.stopped
    assert [kept.sequence for kept in outcome.kept] == [3, 4]
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (2, 6)


async def test_without_the_ledger_whole_letters_are_sent_again(morgue: Morgue) -> None:
    whole = an_assignment("long", user_id="x" * DEAD_BODY)
    await morgue.bury(a_letter("t1"), a_letter("long", whole))
    morgue.servers.valkey.kill()
    outcome = await morgue.letters.redrive(LetterSelection())
    assert (outcome.redriven, [kept.sequence for kept in outcome.kept]) == (1, [2])
    assert outcome.stopped is None
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (1, 1)


async def test_two_operators_at_once_send_each_letter_once(morgue: Morgue) -> None:
    """What one of them sent the other does not count."""
    task_ids = await morgue.bury_many(300)
    async with (
        open_outbox(morgue.link) as outbox,
        open_dead_letters(morgue.link, outbox, morgue.ledger) as others,
    ):
        outcomes = await asyncio.gather(
            morgue.letters.redrive(LetterSelection()), others.redrive(LetterSelection())
        )
    assert sum(outcome.redriven for outcome in outcomes) == 300
    assert [outcome.kept for outcome in outcomes] == [[], []]
    assert {headers["Nats-Msg-Id"] for _, headers, _ in await morgue.tasks()} == {
        f"{one}:2" for one in task_ids
    }
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (300, 0)


async def test_a_letter_that_another_operator_deleted_first_is_neither_counted_nor_kept(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lay between others, and the redrive goes on behind it."""
    await morgue.bury_many(3)
    remove = morgue.letters._stream.remove

    async def come_second(sequence: int, *, erase: bool) -> bool:
        if sequence == 2:
            await remove(sequence, erase=erase)
        return await remove(sequence, erase=erase)

    monkeypatch.setattr(morgue.letters._stream, "remove", come_second)
    outcomes = [await morgue.letters.redrive([one]) for one in (2, 1, 3)]
    assert [outcome.redriven for outcome in outcomes] == [0, 1, 1]
    assert [outcome.kept for outcome in outcomes] == [[], [], []]
    assert [outcome.stopped for outcome in outcomes] == [None, None, None]


async def test_what_was_sent_before_is_not_sent_again_when_the_stream_forgot_it(
    morgue: Morgue,
) -> None:
    """A redrive that was killed before it deleted is repeated after the stream's window for repeats."""
    await morgue.bury(a_letter("t1"), a_letter("t2"))
    await morgue.ledger.accept("t1", 2, an_assignment("t1"))
    assert (await morgue.letters.redrive(LetterSelection())).redriven == 2
    assert [headers["Nats-Msg-Id"] for _, headers, _ in await morgue.tasks()] == [
        "t2:2"
    ]
    assert await morgue.count("DEAD") == 0


async def test_a_redrive_goes_on_call_by_call(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is bounded; what dies after the first one began is left alone."""
    monkeypatch.setattr(dead_stream, "PAGE", 4)
    monkeypatch.setattr(queue, "MOST_LOOKED_AT", 8)
    await morgue.bury_many(20)
    outcome = await morgue.letters.redrive(LetterSelection())
    assert (outcome.redriven, outcome.position) == (8, (8, 20))
    await morgue.bury(a_letter("later"))
    while outcome.position is not None:
        await morgue.letters.redrive(LetterSelection(), into=outcome)
    assert (outcome.redriven, await morgue.count("DEAD")) == (20, 1)
    [group] = outcome.sent.groups
    assert (group.agent_id, group.error_type, group.count) == (
        "TripAgent",
        "OSError",
        20,
    )


async def test_letters_that_cannot_be_sent_say_so_and_stay(morgue: Morgue) -> None:
    """A task that is another agent's, one that is no task, and one of an agent that is gone."""
    await morgue.ledger.accept("victim", 1, an_assignment("victim", "OtherAgent"))
    await morgue.bury(
        a_letter("victim"),
        a_letter("carried", an_assignment("carried", "OtherAgent")),
        a_letter("broken", b"no JSON"),
        a_letter("fine"),
    )
    gone = a_letter("gone", agent="GoneAgent")
    await morgue.bury(gone, subject="dead.tasks.GoneAgent.share_trip")
    for is_trial in (True, False):
        outcome = await morgue.letters.redrive(LetterSelection(), is_trial=is_trial)
        assert outcome.redriven == 1
        whys = {kept.sequence: kept.why for kept in outcome.kept}
        assert sorted(whys) == [1, 2, 3, 5]
    assert "task 'victim', which is of agent 'OtherAgent'" in whys[1]
    assert "carries task 'carried' of 'OtherAgent'" in whys[2]
    assert "carries no task that can be read" in whys[3]
    assert "agent 'GoneAgent', which was retired or never started" in whys[5]
    entry = await morgue.ledger.read("victim")
    assert entry is not None
    assert sorted(entry.generations) == [1]
    assert await morgue.count("DEAD") == 4
    shown = await morgue.letters.read(5)
    assert await morgue.letters.why_kept(shown) == whys[5]


async def test_when_nats_goes_away_in_the_middle_the_repeat_sends_the_rest(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it stopped, and what it had sent; nothing is sent twice."""
    monkeypatch.setattr(dead_stream, "PAGE", 4)
    monkeypatch.setattr(queue, "_STORED_WITHIN_S", 1.0)
    task_ids = await morgue.bury_many(20)
    remove = morgue.letters._stream.remove
    removed = 0

    async def remove_and_die(sequence: int, *, erase: bool) -> bool:
        nonlocal removed
        removed += 1
        if removed == 6:
            morgue.servers.nats.kill()
        return await remove(sequence, erase=erase)

    with monkeypatch.context() as dying:
        dying.setattr(morgue.letters._stream, "remove", remove_and_die)
        outcome = await morgue.letters.redrive(LetterSelection())
    assert outcome.stopped is not None
    assert 4 <= outcome.redriven < 20
    await morgue.servers.nats.start()
    async with asyncio.timeout(60):
        while not morgue.link.client.is_connected:  # noqa: ASYNC110 - the client makes no event
            await asyncio.sleep(0.05)
    again = await morgue.letters.redrive(LetterSelection())
    assert again.stopped is None
    assert again.kept == []
    assert [headers["Nats-Msg-Id"] for _, headers, _ in await morgue.tasks()].count(
        f"{task_ids[4]}:2"
    ) == 1
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (20, 0)
