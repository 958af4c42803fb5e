"""Dead letters in a real stream: found cheaply in any order, sent again as one more run each, deleted for good."""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.errors import InvalidInput, Unreachable
from memory.ledger import Ledger
from runtime import valkey
from runtime.connection import connected
from runtime.embedded import EmbeddedServers
from runtime.jetstream import ask_jetstream
from runtime.link import Link
from runtime.outbox import open_outbox
from runtime.streams import Sizes, declare_streams
from supervisor import dead_stream
from supervisor.dead_letters import DeadLetters, open_dead_letters
from supervisor.letters import FOREIGN, Letter, Selection, digest_of
from supervisor.redrive import Renewal
from supervisor.watch import DeadLetterWatch
from workers.verdict import DEAD_BODY

#: Seconds in which a server has written to disk what it was told; it does so once a second.
PATIENCE_S = 20.0


@dataclass
class Morgue:
    """A pair of servers with the house's streams, and what lies in DEAD there."""

    servers: EmbeddedServers
    link: Link
    ledger: Ledger
    letters: DeadLetters

    async def bury(self, *letters: bytes, subject: str = "dead.tasks.TripAgent.share_trip") -> None:
        """Put *letters* into DEAD, in this order."""
        stream = self.link.client.jetstream()
        for letter in letters:
            await stream.publish(subject, letter)

    async def bury_many(self, number: int, agent: str = "TripAgent", reason: str = "attempts") -> list[str]:
        """Put *number* letters into DEAD at once and return their task ids, in order."""
        stream = self.link.client.jetstream()
        task_ids = [uuid.uuid4().hex for _ in range(number)]
        made = [a_letter(task_id, agent=agent, reason=reason) for task_id in task_ids]
        subject = f"dead.tasks.{agent}.share_trip"
        await asyncio.gather(*[await stream.publish_async(subject, letter) for letter in made])
        return task_ids

    async def count(self, stream: str) -> int:
        """Return how many messages *stream* holds."""
        return int((await ask_jetstream(self.link.client, f"STREAM.INFO.{stream}"))["state"]["messages"])

    async def tasks(self) -> list[tuple[str, dict[str, str], bytes]]:
        """Return subject, headers and body of everything in TASKS."""
        state = (await ask_jetstream(self.link.client, "STREAM.INFO.TASKS"))["state"]
        stream = self.link.client.jetstream()
        numbers = range(state["first_seq"], state["last_seq"] + 1)
        found = [await stream.get_msg("TASKS", number) for number in numbers]
        return [(one.subject or "", dict(one.headers or {}), one.data or b"") for one in found]

    def on_disk(self, text: bytes) -> int:
        """Return how often *text* stands in the files of DEAD."""
        files = self.servers.nats.data_dir.rglob("streams/DEAD/**/*")
        return sum(file.read_bytes().count(text) for file in files if file.is_file())

    async def until_on_disk(self, text: bytes, times: int) -> None:
        """Return once *text* stands so often in the files of DEAD; the server writes them when it likes."""
        async with asyncio.timeout(PATIENCE_S):
            while self.on_disk(text) != times:  # noqa: ASYNC110 - a file makes no event
                await asyncio.sleep(0.05)


@asynccontextmanager
async def morgue_of(servers: EmbeddedServers) -> AsyncIterator[Morgue]:
    """Open DEAD on *servers*."""
    async with connected(servers.nats_url, "morgue") as client, valkey.connect(servers.redis_url) as redis:
        await declare_streams(client, Sizes())
        link, ledger = Link(client), Ledger(redis)
        async with open_outbox(link) as outbox, open_dead_letters(link, outbox, ledger) as letters:
            yield Morgue(servers, link, ledger, letters)


@pytest.fixture
async def morgue(own_servers: EmbeddedServers) -> AsyncIterator[Morgue]:
    """Open DEAD on servers of one's own, where nothing else lies."""
    async with morgue_of(own_servers) as opened:
        yield opened


def an_assignment(task_id: str, agent: str = "TripAgent", **fields: Any) -> bytes:
    """Return a task as its sender published it."""
    whole = {
        "task_id": task_id,
        "agent_id": agent,
        "supervisor_id": "S",
        "task": {"name": "share_trip", "parameters": {"hotel": "900 EUR"}},
        "created_at": "2026-01-01T00:00:00Z",
    }
    return json.dumps(whole | fields).encode()


def a_letter(task_id: str | None, body: bytes | None = None, agent: str = "TripAgent", **fields: Any) -> bytes:
    """Return a dead letter as a worker writes it."""
    carried = an_assignment(task_id or "", agent) if body is None else body
    whole = {
        "reason": "attempts",
        "error": {"type": "OSError", "message": "disk full"},
        "subject": f"tasks.{agent}.share_trip",
        "sequence": 1,
        "attempts": 5,
        "headers": {"Tasklore-Generation": "1", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"},
        "body": base64.b64encode(carried[:DEAD_BODY]).decode(),
        "body_bytes": len(carried),
        "body_digest": digest_of(carried),
        "task_id": task_id,
        "generation": 1,
        "agent_id": agent,
        "task_name": "share_trip",
        "died_at": datetime.now(UTC).isoformat(),
    }
    return json.dumps(whole | fields).encode()


def numbers(letters: list[Letter]) -> list[int]:
    """Return where *letters* lie."""
    return [letter.sequence for letter in letters]


async def test_the_newest_letters_come_first_page_by_page(morgue: Morgue) -> None:
    """Each page begins where the one before ended, none is left out or told twice."""
    await morgue.bury_many(23)
    found: list[int] = []
    before = None
    while True:
        page = await morgue.letters.page(Selection(), 5, before=before)
        assert page.total == 23
        found += numbers(page.letters)
        if not page.has_more:
            break
        before = found[-1]
    assert found == list(range(23, 0, -1))


async def test_the_oldest_letters_come_first_when_asked_for(morgue: Morgue) -> None:
    """As they are sent again."""
    await morgue.bury_many(7)
    page = await morgue.letters.page(Selection(), 5, oldest_first=True)
    assert (numbers(page.letters), page.has_more) == ([1, 2, 3, 4, 5], True)
    page = await morgue.letters.page(Selection(), 7, oldest_first=True)
    assert (len(page.letters), page.has_more) == (7, False)


async def test_the_few_letters_of_one_agent_are_found_among_many(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newest first, over gaps and over pages, with as many requests as it takes to halve them."""
    monkeypatch.setattr(dead_stream, "PAGE", 8)
    for _ in range(5):
        await morgue.bury_many(100)
        await morgue.bury_many(3, agent="RareAgent")
    asked = morgue.letters._stream._reads.asked
    page = await morgue.letters.page(Selection("RareAgent"), 4)
    assert numbers(page.letters) == [515, 514, 513, 412]
    assert (page.has_more, page.total) == (True, 15)
    assert morgue.letters._stream._reads.asked - asked < 30
    page = await morgue.letters.page(Selection("RareAgent"), 100)
    assert len(page.letters) == 15
    assert {letter.agent_id for letter in page.letters} == {"RareAgent"}


async def test_letters_are_filtered_by_reason_task_and_time(morgue: Morgue) -> None:
    """What the server does not know is looked up in each letter, also when many pages have none."""
    await morgue.bury_many(40, reason="gave_up")
    await morgue.bury(a_letter("t1", task_name="other"))
    since = (await morgue.letters.read(41)).stored_at
    await morgue.bury_many(300)
    page = await morgue.letters.page(Selection(reason="gave_up"), 2)
    assert (numbers(page.letters), page.has_more, page.total) == ([40, 39], True, None)
    assert numbers((await morgue.letters.page(Selection(task_name="other"), 5)).letters) == [41]
    assert await morgue.letters.count(Selection(since=since)) == 301
    assert await morgue.letters.count(Selection(reason="gave_up")) == 40
    assert numbers((await morgue.letters.page(Selection(since=since), 1, oldest_first=True)).letters) == [41]
    later = Selection(since=since + timedelta(days=1))
    assert (await morgue.letters.page(later, 5)).letters == []
    assert (await morgue.letters.page(Selection("NoAgent"), 5)).letters == []


async def test_one_letter_is_read_by_its_number_or_by_its_task(morgue: Morgue) -> None:
    """A number that is none is an error, and not the next letter."""
    first, second = await morgue.bury_many(2)
    await morgue.bury(a_letter(first, generation=2))
    assert (await morgue.letters.read(2)).content.task_id == second
    assert numbers(await morgue.letters.of_task(first)) == [3, 1]
    assert await morgue.letters.of_task("nobody") == []
    await morgue.letters.purge([2])
    for number in (2, 4):
        with pytest.raises(InvalidInput, match=f"no dead letter {number}"):
            await morgue.letters.read(number)


async def test_what_is_no_dead_letter_is_listed_and_can_be_purged(morgue: Morgue) -> None:
    """It stops nobody from seeing or sending the others."""
    await morgue.bury(b"rubbish", a_letter("t1"))
    page = await morgue.letters.page(Selection(), 5)
    assert [letter.content.reason for letter in page.letters] == ["attempts", FOREIGN]
    outcome = await morgue.letters.redrive(Selection())
    assert (outcome.redriven, [kept.sequence for kept in outcome.kept]) == (1, [1])
    assert await morgue.letters.purge(Selection(reason=FOREIGN)) == 1
    assert await morgue.count("DEAD") == 0


async def test_a_redriven_letter_is_a_task_of_the_next_generation_and_gone(morgue: Morgue) -> None:
    """Stored first, known to the ledger, and in the trace it had."""
    await morgue.bury(a_letter("t1"))
    outcome = await morgue.letters.redrive([1])
    assert (outcome.redriven, outcome.kept, outcome.stopped) == (1, [], None)
    [(subject, headers, body)] = await morgue.tasks()
    assert subject == "tasks.TripAgent.share_trip"
    assert headers == {
        "Nats-Msg-Id": "t1:2",
        "Tasklore-Generation": "2",
        "Tasklore-Attempt": "1",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    }
    assert {name: value for name, value in json.loads(body).items() if name != "created_at"} == {
        name: value for name, value in json.loads(an_assignment("t1")).items() if name != "created_at"
    }
    entry = await morgue.ledger.read("t1")
    assert entry is not None
    assert (entry.newest, entry.generations[2].state, entry.generations[2].assignment) == (2, "accepted", body)
    assert await morgue.count("DEAD") == 0


async def test_a_thousand_letters_are_a_thousand_tasks(morgue: Morgue) -> None:
    """Side by side, each once."""
    task_ids = await morgue.bury_many(1000)
    outcome = await morgue.letters.redrive(Selection())
    assert (outcome.redriven, outcome.kept) == (1000, [])
    assert {headers["Nats-Msg-Id"] for _, headers, _ in await morgue.tasks()} == {f"{one}:2" for one in task_ids}
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (1000, 0)


async def test_a_redrive_that_was_killed_before_it_deleted_is_repeated_without_harm(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks are stored; the second time swallows them and deletes the letters."""
    await morgue.bury_many(20)

    async def killed(*_arguments: Any, **_options: Any) -> bool:
        raise asyncio.CancelledError

    with monkeypatch.context() as dying:
        dying.setattr(morgue.letters._stream, "remove", killed)
        await morgue.letters.redrive(Selection())
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (20, 20)
    outcome = await morgue.letters.redrive(Selection())
    assert (outcome.redriven, outcome.kept) == (20, [])
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (20, 0)


@pytest.mark.parametrize("end", ["completed", "cancelled", "rejected", "expired"])
async def test_a_letter_of_a_task_that_was_done_with_since_stays_unless_forced(morgue: Morgue, end: str) -> None:
    """It was written before the ledger took another word on the task, which must not run once more."""
    await morgue.bury(a_letter("done"), a_letter("dead"), a_letter("unknown"))
    await morgue.ledger.finish("done", 1, end, b"report")
    await morgue.ledger.finish("dead", 1, "failed", b"report")
    for is_trial in (True, False):
        outcome = await morgue.letters.redrive(Selection(), is_trial=is_trial)
        [(sequence, why)] = outcome.kept
        assert (outcome.redriven, sequence) == (2, 1)
        assert f"{end} after this letter was written; purge letter 1" in why
        assert "--force" in why
    assert {headers["Nats-Msg-Id"] for _, headers, _ in await morgue.tasks()} == {"dead:2", "unknown:2"}
    assert await morgue.count("DEAD") == 1
    assert (await morgue.letters.redrive([1], is_forced=True)).redriven == 1
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (3, 0)


async def test_an_old_letter_of_a_task_that_a_later_redrive_completed_stays(morgue: Morgue) -> None:
    """The next generation alone does not count: it is what an interrupted redrive of this very letter made."""
    await morgue.bury(a_letter("later"), a_letter("next"))
    for task_id, ends in (("later", ("failed", "failed", "completed")), ("next", ("failed", "completed"))):
        for generation, end in enumerate(ends, start=1):
            await morgue.ledger.finish(task_id, generation, end, b"report")
    outcome = await morgue.letters.redrive(Selection())
    assert (outcome.redriven, [kept.sequence for kept in outcome.kept]) == (1, [1])
    assert "task 'later' was completed after this letter" in outcome.kept[0].why


async def test_two_letters_of_one_generation_are_one_more_run(morgue: Morgue) -> None:
    """A worker that was killed between DEAD and the ledger leaves two of them."""
    await morgue.bury(a_letter("t1", sequence=1), a_letter("t1", sequence=2))
    outcome = await morgue.letters.redrive(Selection())
    assert (outcome.redriven, await morgue.count("TASKS"), await morgue.count("DEAD")) == (2, 1, 0)


async def test_what_dies_while_others_are_sent_again_stays(morgue: Morgue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a task that always dies would be sent for ever."""
    await morgue.bury_many(3)
    put = morgue.letters._outbox.put

    async def dying_at_once(*arguments: Any, **options: Any) -> None:
        await put(*arguments, **options)
        await morgue.bury(a_letter(uuid.uuid4().hex, generation=2))

    monkeypatch.setattr(morgue.letters._outbox, "put", dying_at_once)
    assert (await morgue.letters.redrive(Selection())).redriven == 3
    assert await morgue.count("DEAD") == 3


async def test_a_letter_whose_deadline_has_passed_stays_until_it_gets_another(morgue: Morgue) -> None:
    """The others are sent; which one stays, and the cure, is told."""
    late = an_assignment("late", deadline="2026-01-01T00:00:00Z")
    await morgue.bury(a_letter("late", late), a_letter("t2"))
    outcome = await morgue.letters.redrive(Selection())
    [kept] = outcome.kept
    assert (outcome.redriven, kept.sequence) == (1, 1)
    assert "--no-deadline" in kept.why
    assert (await morgue.letters.redrive(Selection(), Renewal(timedelta(hours=1)))).redriven == 1
    assert await morgue.count("DEAD") == 0
    _, (_, _, body) = await morgue.tasks()
    assert datetime.fromisoformat(json.loads(body)["deadline"]) > datetime.now(UTC)


async def test_a_body_that_was_cut_comes_out_of_the_ledger(morgue: Morgue) -> None:
    """When the ledger has the very one; else the letter stays, and its sender is the cure."""
    long = an_assignment("long", user_id="x" * (DEAD_BODY + 100))
    await morgue.bury(a_letter("long", long), a_letter("lost", an_assignment("lost", user_id="y" * DEAD_BODY)))
    await morgue.ledger.accept("long", 1, long)
    await morgue.ledger.accept("lost", 1, b"another one")
    outcome = await morgue.letters.redrive(Selection())
    assert outcome.redriven == 1
    [(sequence, why)] = outcome.kept
    assert sequence == 2
    assert "keeps 524,288 of" in why
    assert "have its sender send it anew" in why
    [(_, headers, body)] = await morgue.tasks()
    assert (headers["Nats-Msg-Id"], json.loads(body)["user_id"]) == ("long:2", "x" * (DEAD_BODY + 100))


async def test_a_letter_without_a_task_is_sent_again_as_it_was(morgue: Morgue) -> None:
    """A newer version of its agent may be able to read it; repeated, it is still one message."""
    await morgue.bury(a_letter(None, b"\x00\xff", reason="unreadable", task_name=None))
    assert (await morgue.letters.redrive(Selection(reason="unreadable"))).redriven == 1
    [(subject, headers, body)] = await morgue.tasks()
    assert (subject, headers["Tasklore-Generation"], body) == ("tasks.TripAgent.share_trip", "2", b"\x00\xff")
    assert headers["Nats-Msg-Id"].startswith("redrive:1:")


async def test_a_trial_tells_what_would_be_and_changes_nothing(morgue: Morgue) -> None:
    """Also which letters would stay."""
    late = an_assignment("late", deadline="2026-01-01T00:00:00Z")
    await morgue.bury(a_letter("late", late), a_letter("t2"))
    outcome = await morgue.letters.redrive(Selection(), is_trial=True)
    assert (outcome.redriven, len(outcome.kept)) == (1, 1)
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (0, 2)


async def test_when_tasks_are_full_the_rest_stays_and_is_not_even_tried(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full queue is no reason to knock a hundred thousand times."""
    monkeypatch.setattr(dead_stream, "PAGE", 2)
    config = (await ask_jetstream(morgue.link.client, "STREAM.INFO.TASKS"))["config"]
    await ask_jetstream(morgue.link.client, "STREAM.UPDATE.TASKS", config | {"max_msgs": 2})
    await morgue.bury_many(8)
    outcome = await morgue.letters.redrive(Selection())
    assert outcome.redriven == 2
    assert outcome.stopped is not None
    assert "exceeded" in outcome.stopped
    assert [kept.sequence for kept in outcome.kept] == [3, 4]
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (2, 6)


async def test_without_the_ledger_tasks_are_sent_all_the_same(morgue: Morgue) -> None:
    """Only what it alone has stays."""
    whole = an_assignment("long", user_id="x" * DEAD_BODY)
    await morgue.bury(a_letter("t1"), a_letter("long", whole))
    morgue.servers.valkey.kill()
    outcome = await morgue.letters.redrive(Selection())
    assert (outcome.redriven, [kept.sequence for kept in outcome.kept]) == (1, [2])
    assert outcome.stopped is None
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (1, 1)


async def test_a_sequence_that_is_none_leaves_the_others_alone(morgue: Morgue) -> None:
    """Neither a redrive nor a purge does half of what was said."""
    await morgue.bury_many(2)
    for wish in (morgue.letters.redrive([1, 99]), morgue.letters.purge([1, 99])):
        with pytest.raises(InvalidInput, match="no dead letter 99"):
            await wish
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (0, 2)


@pytest.mark.parametrize("everything", [False, True])
async def test_a_purge_leaves_nothing_in_the_files_of_the_server(morgue: Morgue, everything: bool) -> None:
    """A body holds what people wrote: it is overwritten, or dropped with its file; what else lies there stays."""
    secret = b"my bank is called Oak"
    await morgue.bury(*(a_letter(f"t{number}", traceback=secret.decode()) for number in range(3)))
    await morgue.bury_many(2, agent="OtherAgent")
    await morgue.until_on_disk(secret, 3)
    assert await morgue.letters.purge(Selection() if everything else Selection("TripAgent")) == (5 if everything else 3)
    await morgue.until_on_disk(secret, 0)
    assert await morgue.count("DEAD") == (0 if everything else 2)


async def test_purging_by_condition_tells_how_many_were_there(morgue: Morgue) -> None:
    """Those that fit, and no others."""
    await morgue.bury_many(30, reason="gave_up")
    await morgue.bury_many(5)
    assert await morgue.letters.purge(Selection(reason="gave_up")) == 30
    assert await morgue.letters.purge(Selection(reason="gave_up")) == 0
    assert await morgue.count("DEAD") == 5


async def test_without_a_stream_it_is_said_what_to_start(morgue: Morgue) -> None:
    """Whichever way it is asked."""
    await ask_jetstream(morgue.link.client, "STREAM.DELETE.DEAD")
    letters = morgue.letters
    for asked in (letters.page(Selection(), 5), letters.read(1), letters.redrive(Selection())):
        with pytest.raises(Unreachable, match="tasklore up"):
            await asked


async def test_the_watch_sees_what_comes_and_what_is_purged(morgue: Morgue) -> None:
    """Depth as the server counts it, age from the oldest that is left."""
    watch = DeadLetterWatch(morgue.link.client)
    await watch.look()
    assert (watch.waiting(), watch.oldest_s()) == (0, 0.0)
    await morgue.bury_many(3)
    await watch.look()
    assert watch.waiting() == 3
    assert 0 < watch.oldest_s() < 600
    await morgue.letters.purge([1])
    await morgue.letters.redrive([2])
    await watch.look()
    assert watch.waiting() == 1
    await morgue.letters.purge(Selection())
    await watch.look()
    assert (watch.waiting(), watch.oldest_s()) == (0, 0.0)
