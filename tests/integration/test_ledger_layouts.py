"""Two layouts of the ledger: processes one step apart share an entry; a migration that breaks off is gone on with."""

import asyncio
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import RunWait, Wait, WaitAnswer
from tasklore.contracts.errors import (
    ConfigurationError,
    InvalidInput,
    MemoryUnavailable,
)
from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.contracts.messages import CompletionReport
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.ledger import layouts, open_tasks, user_tasks
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.layouts import KNOWN_S, Layout, LedgerLayout
from tasklore.memory.ledger.ledger import Ledger, LedgerEntry
from tasklore.memory.ledger.migration import Migration, Moved, Tell
from tasklore.memory.ledger.open_tasks import OpenTasks
from tasklore.memory.ledger.runs import (
    CancelRequest,
    Ended,
    Finish,
    ReportExpired,
    RunName,
    RunPermission,
)
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.memory.ledger.task_tree import TaskTree
from tasklore.memory.ledger.user_tasks import UserTasks
from tasklore.memory.ledger.waits import Waits
from tests.ledger_layouts import set_layout
from tests.servers import PATIENCE_S

LEASE_MS = 30_000
TASK = TaskName("Scout", "0199-cccc")


class Fixed(LedgerLayout):
    """What a process knows that has not looked again yet."""

    def __init__(self, known: Layout) -> None:
        super().__init__()
        self.known = known

    async def current(self, batch: CommandBatch) -> Layout:
        return self.known


def process(client: Redis, known: Layout) -> Ledger:
    """Return the ledger of a process that goes by *known*."""
    ledger = Ledger(client, deadline_s=PATIENCE_S)
    ledger._entries._layout = Fixed(known)
    return ledger


async def count_entries(client: Redis, task: TaskName) -> int:
    """Return in how many layouts *task* has an entry."""
    return int(await client.exists(keys.task(task), keys.entry(task)))


def a_report(task: TaskName, status: str = "completed") -> bytes:
    """Return a report on *task*."""
    error = {"type": "GiveUp", "message": "ü" * 150}
    return json.dumps(
        {
            "task_id": task,
            "agent_id": task.agent_id,
            "supervisor_id": "S",
            "task_name": "look",
            "status": status,
            "result": 7 if status == "completed" else None,
            "error": None if status == "completed" else error,
            "memory": {"outcome": "miss"},
            "worker_id": "w1",
            "finished_at": "2026-01-02T03:04:05Z",
        }
    ).encode()


@pytest.mark.parametrize(
    "known",
    [("1", "prepared"), ("prepared", "migrating"), ("migrating", "2")],
    ids="-".join,
)
@pytest.mark.parametrize("seed", range(40))
async def test_processes_one_step_apart_share_one_entry_and_one_report(  # noqa: C901 - one case an operation
    known: tuple[Layout, Layout], seed: int, redis: Redis
) -> None:
    """Whatever they do to one task, in whatever order, and whoever of them knows its id alone."""
    dice = random.Random(f"{known} {seed}")
    ledgers = [process(redis, one) for one in known]
    numbers = count(1)
    stored: list[bytes] = []

    def note(found: object, own: bytes | None = None) -> None:
        if found is None and own is not None:
            stored.append(own)
        elif isinstance(found, bytes):
            stored.append(found)

    async def step() -> None:
        ledger = dice.choice(ledgers)
        number = next(numbers)
        body = b"%d" % number
        match dice.randrange(9):
            case 0:
                await ledger.accept(TASK, 1, b"{}")
            case 1 | 2:
                begun = await ledger.begin(
                    TASK, 1, "w1", 1, LEASE_MS, token=f"t{number}"
                )
                note(begun)
                assert not (stored and isinstance(begun, RunPermission))
            case 3:
                note(await ledger.finish(TASK, 1, "completed", body), body)
            case 4:
                note(await ledger.cancel(dice.choice([TASK, str(TASK)]), None, "why"))
            case 5:
                note(await ledger.finish(TASK, 1, "cancelled", body), body)
            case 6:
                await ledger.park(Ended(TASK, 1, f"t{number - 1}"), 0, b"{}")
            case 7:
                now = datetime.now(UTC)
                wait = RunWait(kind="limit", name="l", text="t", since=now, until=now)
                await ledger.note_wait(TASK, 1, wait)
            case 8:
                await ledger.once(TASK, 1, "w1", f"e{number}", "x")

    for _ in range(dice.randrange(3, 14)):
        # Side by side, so that lookups of pointers fall between the scripts of others.
        await asyncio.gather(*(step() for _ in range(dice.randrange(1, 4))))
        assert await count_entries(redis, TASK) <= 1
    for ledger in ledgers:
        note(await ledger.finish(TASK, 1, "cancelled", b"end"), b"end")
    assert len(set(stored)) == 1
    assert await count_entries(redis, TASK) == 1
    for ledger in ledgers:
        assert (await read(ledger, TASK)).generations[1].report == stored[0]


async def read(ledger: Ledger, task_id: str) -> LedgerEntry:
    """Return what is known of a task that is known."""
    entry = await ledger.read(task_id)
    assert entry is not None
    return entry


async def test_a_wish_about_a_task_that_nobody_named_meets_it_when_somebody_does(
    redis: Redis,
) -> None:
    for known in ("migrating", "2"):
        await redis.flushdb()
        ledger = process(redis, known)  # type: ignore[arg-type]  # of the tuple
        found = await ledger.cancel(str(TASK), None, "no need")
        assert not isinstance(found, bytes | ReportExpired)
        assert (found.generation, found.state) == (1, "unknown")
        assert (await read(ledger, str(TASK))).generations[1].cancel_request is not None
        assert await ledger.cancel_request(str(TASK)) == CancelRequest("no need")
        begun = await ledger.begin(TASK, 1, "w1", 1, LEASE_MS)
        assert begun == CancelRequest("no need")
        assert 0 < await redis.pttl(keys.entry(TASK)) <= 604_800_000
        assert await ledger.finish(TASK, 1, "cancelled", b"{}") is None
        assert await ledger.cancel_request(str(TASK)) == CancelRequest("no need")
        # Sent again, it is another generation, which nobody wants to end.
        await ledger.accept(TASK, 2, b"{}")
        assert await ledger.cancel_request(str(TASK)) is None
        assert await ledger.begin(TASK, 2, "w1", 1, LEASE_MS) == RunPermission(1)


async def test_children_of_a_cancelled_task_read_it_without_its_entry(
    redis: Redis,
) -> None:
    ledger = process(redis, "2")
    await ledger.begin(TASK, 1, "w1", 1, LEASE_MS)
    assert await ledger.cancel_request(str(TASK)) is None
    await ledger.finish(TASK, 1, "cancelled", a_report(TASK, "cancelled"))
    assert await ledger.cancel_request(str(TASK)) == CancelRequest("it was cancelled")


@pytest.mark.parametrize("status", ["completed", "failed", "expired"])
async def test_a_task_whose_report_has_expired_says_so_and_runs_no_more(
    status: str, redis: Redis
) -> None:
    ledger = process(redis, "2")
    tree = TaskTree(redis, deadline_s=PATIENCE_S)
    tree._entries._layout = Fixed("2")
    await ledger.accept(TASK, 1, b"{}")
    await ledger.begin(TASK, 1, "w1", 1, LEASE_MS)
    await ledger.finish_many([Finish(TASK, 1, status, a_report(TASK, status), "token")])
    told = keys.entry_report(keys.entry(TASK), 1)
    assert 0 < await redis.pttl(told) <= 86_400_000
    assert 86_400_000 < await redis.pttl(keys.entry(TASK)) <= 604_800_000
    assert 0 < await redis.pttl(keys.task_agent(TASK)) <= 86_400_000
    await redis.delete(told, keys.task_agent(TASK))

    begun = await ledger.begin(TASK, 1, "w2", 1, LEASE_MS)
    assert isinstance(begun, ReportExpired)
    assert begun.state == status
    assert begun.error == ("" if status == "completed" else "GiveUp: " + "ü" * 96)
    assert await ledger.finish(TASK, 1, "completed", b"again") == begun
    assert await ledger.cancel(TASK, None, "late") == begun
    # Whoever repeats it lets the pointer lead to it again.
    await redis.delete(keys.task_agent(TASK))
    assert await ledger.read(str(TASK)) is None
    named = await ledger.name(str(TASK))
    entry = await read(ledger, named)
    report = CompletionReport.model_validate_json(entry.generations[1].report or b"")
    assert report.status == ("expired" if status == "expired" else "failed")
    assert report.error is not None
    assert report.error.type == "ReportExpired"
    assert "and its report has expired" in report.error.message
    assert status in report.error.message
    assert await ledger.find_report(TASK, 1) == entry.generations[1].report
    trace = await tree.read(str(TASK))
    assert trace is not None
    assert trace.root.state == status
    assert (trace.root.error or "").endswith("its report has expired")


async def test_the_report_of_a_child_is_kept_as_long_as_its_fence(
    redis: Redis,
) -> None:
    """Its parent may wait for days, and reads it in its next run; also the one that REPORTS held instead."""
    ledger = process(redis, "2")
    row = TaskRow(TASK, TASK.agent_id, "look", 1, state="completed", parent_id="0199-p")
    told = keys.entry_report(keys.entry(TASK), 1)
    finish = Finish(TASK, 1, "completed", a_report(TASK), row=row)
    assert await ledger.finish_many([finish]) == [None]
    for _ in range(2):
        for key in (told, keys.task_agent(TASK)):
            assert 604_740_000 < await redis.pttl(key) <= 604_800_000
        await ledger.adopt_many([Finish(TASK, 1, "failed", a_report(TASK, "failed"))])


async def test_a_late_end_of_a_generation_leaves_the_next_one_where_it_is_found(
    redis: Redis,
) -> None:
    """Whoever knows the id alone still reaches it after the report of the first has expired."""
    ledger = process(redis, "2")
    await ledger.begin(TASK, 1, "w1", 1, LEASE_MS)
    await ledger.accept(TASK, 2, b"{}")
    for _ in range(2):
        await ledger.finish(TASK, 1, "completed", a_report(TASK))
        await ledger.adopt_many([Finish(TASK, 1, "failed", a_report(TASK, "failed"))])
        for key in (keys.entry(TASK), keys.task_agent(TASK)):
            assert 604_740_000 < await redis.pttl(key) <= 604_800_000
    # What was noted before it could prolong a pointer is made good by the next note.
    now = datetime.now(UTC)
    wait = RunWait(kind="limit", name="l", text="t", since=now, until=now)
    for note in (ledger.accept(TASK, 2, b"{}"), ledger.note_wait(TASK, 2, wait)):
        await redis.pexpire(keys.task_agent(TASK), 1000)
        await note
        assert await redis.pttl(keys.task_agent(TASK)) > 604_740_000
    # The pointer of one that has ended is not prolonged by a note that comes late.
    await ledger.finish(TASK, 2, "completed", a_report(TASK))
    await ledger.accept(TASK, 2, b"{}")
    assert await redis.pttl(keys.task_agent(TASK)) <= 86_400_000


async def test_forgetting_leaves_the_fence_of_an_old_task_without_a_word(
    redis: Redis,
) -> None:
    """A late copy of it runs no more, though its report has expired."""
    ledger = process(redis, "2")
    tasks = UserTasks(redis, step_s=PATIENCE_S)
    tasks._entries._layout = Fixed("2")
    await ledger.cancel(TASK, None, "for Ann")
    await ledger.accept(TASK, 1, b"{}")
    await ledger.finish_many(
        [Finish(TASK, 1, "cancelled", a_report(TASK, "cancelled"), "token")]
    )
    left = await redis.pttl(keys.entry(TASK))
    await redis.delete(keys.entry_report(keys.entry(TASK), 1))
    assert await tasks.replace_reports([TASK], lambda body: body) == {TASK}
    kept = await redis.hgetall(keys.entry(TASK))
    assert set(kept) == {b"state:1", b"finished_at:1"}
    assert await redis.get(keys.task_agent(TASK)) == b"Scout!1!it was cancelled"
    for key in (keys.entry(TASK), keys.task_agent(TASK)):
        assert left - 60_000 < await redis.pttl(key) <= left
    begun = await ledger.begin(TASK, 1, "w1", 1, LEASE_MS)
    assert isinstance(begun, ReportExpired)


@pytest.mark.parametrize("known", ["prepared", "migrating"])
async def test_a_task_that_moves_between_two_looks_is_found(
    known: Layout, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever knows its id alone has seen no pointer, and then asks layout 1, which it has left."""
    ledger = process(redis, known)
    waits = Waits(redis, deadline_s=PATIENCE_S)
    waits._entries._layout = Fixed(known)
    find_many = layouts.Entries.find_many
    is_to_move = False

    async def find_then_move(
        self: layouts.Entries, task_ids: Sequence[str]
    ) -> list[layouts.EntryKeys | None]:
        nonlocal is_to_move
        found = await find_many(self, task_ids)
        if is_to_move:
            is_to_move = False
            moved = await Migration(redis, named_within_s=0).convert(lambda _: None)
            assert moved.entries
        return found

    monkeypatch.setattr(layouts.Entries, "find_many", find_then_move)
    for kind in ("completed", "waiting", "asked"):
        await redis.flushdb()
        task = str((await seed(redis))[kind])
        is_to_move = True
        if kind == "completed":
            assert await ledger.find_report(task, 1) == a_report(
                TaskName("Scout", task)
            )
        elif kind == "waiting":
            assert await ledger.wake(task, 1) != "ended"
        else:
            assert await waits.read(task, "0") is not None
        assert not is_to_move


async def test_a_fence_at_rest_is_small(redis: Redis) -> None:
    """It is a packed hash again, though it held an assignment."""
    ledger = process(redis, "2")
    await ledger.accept(TASK, 1, b"a" * 2_000)
    await ledger.begin(TASK, 1, "w1", 1, LEASE_MS, token="t")
    await ledger.once(TASK, 1, "w1", "mail", "t")
    await ledger.finish(TASK, 1, "completed", a_report(TASK))
    assert await redis.object("encoding", keys.entry(TASK)) == b"listpack"
    assert set(await redis.hkeys(keys.entry(TASK))) == {
        b"state:1",
        b"finished_at:1",
        b"once.mail",
    }


async def test_what_a_process_knows_is_read_again_and_nothing_is_done_without(
    redis: Redis,
) -> None:
    now = [0.0]
    batch = CommandBatch(redis, PATIENCE_S)
    known = LedgerLayout(lambda: now[0])
    assert await known.current(batch) == "1"
    await set_layout(redis, "prepared")
    now[0] = KNOWN_S - 0.1
    assert await known.current(batch) == "1"
    now[0] = KNOWN_S
    assert await known.current(batch) == "prepared"
    now[0] = 2 * KNOWN_S
    async with Redis(host="127.0.0.1", port=1) as nowhere:
        with pytest.raises(MemoryUnavailable):
            await known.current(CommandBatch(nowhere, 0.2))
    await redis.set(keys.ledger_layout(), "3")
    with pytest.raises(InvalidInput, match="layout '3'"):
        await known.current(batch)


async def test_layout_2_makes_no_entry_for_nobody(redis: Redis) -> None:
    with pytest.raises(InvalidInput, match="agent of task '0199-cccc'"):
        await process(redis, "2").begin(str(TASK), 1, "w1", 1, LEASE_MS)


class BreaksOff(Exception):
    """The process of a migration is killed."""


async def seed(client: Redis) -> dict[str, TaskName]:
    """Make a task of each kind in layout 1; return them by what they are."""
    ledger = process(client, "1")
    journal = Journal(client, deadline_s=PATIENCE_S)
    waits = Waits(client, deadline_s=PATIENCE_S)
    kinds = (
        "accepted running waiting parked completed failed redriven cancelled wished "
        "called asked"
    )
    tasks = {kind: TaskName("Scout", f"0199-{kind}") for kind in kinds.split()}

    def assigned(task: TaskName) -> bytes:
        named = {"task_id": task, "agent_id": task.agent_id}
        return json.dumps(named | {"user_id": "u"}).encode()

    for kind, task in tasks.items():
        if kind == "wished":
            continue
        await ledger.accept(task, 1, assigned(task), "trace")
        if kind != "accepted":
            await ledger.begin(task, 1, "w1", 1, LEASE_MS, token="t")
    now = datetime.now(UTC)
    wait = RunWait(kind="limit", name="l", text="t", since=now, until=now)
    await ledger.park(Ended(tasks["waiting"], 1, "t"), 60_000, None, wait)
    await ledger.park(Ended(tasks["parked"], 1, "t"), 0)
    await ledger.finish_many(
        [
            Finish(
                tasks["completed"],
                1,
                "completed",
                a_report(tasks["completed"]),
                user_token("u"),
            ),
            Finish(tasks["failed"], 1, "failed", a_report(tasks["failed"], "failed")),
            Finish(
                tasks["redriven"], 1, "failed", a_report(tasks["redriven"], "failed")
            ),
            Finish(tasks["cancelled"], 1, "cancelled", a_report(tasks["cancelled"])),
        ]
    )
    await ledger.accept(tasks["redriven"], 2, assigned(tasks["redriven"]))
    await ledger.cancel(tasks["wished"], None, "never")
    await ledger.accept_many([], [(tasks["running"], tasks["called"], "Scout.look")])
    for position in range(3):
        name = RunName(tasks["running"], 1, "w1")
        await journal.write(name, position, f"d{position} step", b"%d" % position)
    question = Wait(
        kind="ask",
        slot="0",
        digest="d",
        agent_id="Scout",
        task_name="look",
        generation=1,
        text="Shall I?",
        asked_at=now,
        until=now + timedelta(hours=1),
    )
    ended = Ended(tasks["asked"], 1, "t")
    await waits.begin(
        ended,
        [question],
        wait_s=3600,
        due_s=3600,
        assignment=assigned(tasks["asked"]),
    )
    return tasks


async def snapshot(client: Redis, known: Layout, tasks: dict[str, TaskName]) -> Any:
    """Return all that a process finds of *tasks*."""
    ledger = process(client, known)
    journal = Journal(client, deadline_s=PATIENCE_S)
    journal._entries._layout = Fixed(known)
    waits = Waits(client, deadline_s=PATIENCE_S)
    waits._entries._layout = Fixed(known)
    tree = TaskTree(client, deadline_s=PATIENCE_S, now_ms=lambda: 2_000)
    tree._entries._layout = Fixed(known)
    tree._waits._entries._layout = Fixed(known)
    found: dict[str, Any] = {}
    for kind, task in tasks.items():
        entry = await ledger.read(str(task))
        # Of what nobody has named, and only wished away, layout 2 has no entry.
        trace = None if kind == "wished" else await tree.read(str(task))
        heads = await journal.heads(task)
        results = [await journal.result(task, place) for place in heads]
        found[kind] = (
            entry,
            trace,
            heads,
            results,
            await ledger.cancel_request(str(task)),
        )
    asked = await waits.read(str(tasks["asked"]), "0")
    assert asked is not None
    # What wakes its task needs these.
    assert (asked.state, asked.has_report, asked.attempts) == ("waiting", False, 1)
    assert json.loads(asked.assignment)["agent_id"] == "Scout"
    found["wait"] = asked
    found["waits"] = await waits.of(str(tasks["asked"]))
    return found


async def walk(client: Redis, token: str) -> tuple[set[Any], set[str]]:
    """Return the open tasks with their generations, and the ids of those of the user *token*."""
    opened = {
        (task.task_id, task.generation, task.assignment)
        async for batch in OpenTasks(client).read()
        for task in batch
    }
    theirs = UserTasks(client).read(token, lambda body: b'"user_id": "u"' in body)
    return opened, {task.task_id async for task in theirs}


async def test_a_migration_that_breaks_off_anywhere_is_gone_on_with(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that was known is known afterwards, for as long as before; children are listed, and questions are open.

    Open tasks and those of a user are found without a look at every entry.
    """
    token = user_token("u")
    run = CommandBatch.run
    left = [0]
    ours: list[CommandBatch] = []

    async def run_until(self: CommandBatch, commands: Sequence[Command]) -> list[Any]:
        if self in ours:
            if left[0] == 0:
                raise BreaksOff
            left[0] -= 1
        return await run(self, commands)

    monkeypatch.setattr(CommandBatch, "run", run_until)
    for after in count():
        await redis.flushdb()
        tasks = await seed(redis)
        before = await snapshot(redis, "1", tasks)
        walked = await walk(redis, token)
        assert len(walked[0]) == 7
        assert len(walked[1]) == 9
        kept = await redis.pttl(keys.task(tasks["completed"]))
        first = Migration(redis, settled_s=0, named_within_s=0)
        ours[:] = [first._batch, first._index._batch]
        left[0] = after
        try:
            await first.run(lambda _: None)
        except BreaksOff:
            is_broken = True
        else:
            is_broken = False
        ours.clear()
        if is_broken:
            layout = await Migration(redis).layout()
            assert await snapshot(redis, layout, tasks) == before
            assert await walk(redis, token) == walked
            moved = await Migration(redis, settled_s=0, named_within_s=0).run(
                lambda _: None
            )
            assert moved.unknown == []
        assert await Migration(redis).layout() == "2"
        assert await snapshot(redis, "2", tasks) == before
        with monkeypatch.context() as without_scans:
            without_scans.setattr(open_tasks, "task_keys", None)
            without_scans.setattr(user_tasks, "task_keys", None)
            assert await walk(redis, token) == walked
        assert not [key async for key in redis.scan_iter("tl:task:{*")]
        assert not [key async for key in redis.scan_iter("tl:children:*")]
        done = keys.entry(tasks["completed"])
        for key in (
            done,
            keys.entry_report(done, 1),
            keys.task_agent(tasks["completed"]),
        ):
            assert kept - 60_000 < await redis.pttl(key) <= kept
        assert await redis.object("encoding", done) == b"listpack"
        if not is_broken:
            break
    assert after > 5


async def test_what_was_begun_in_layout_1_goes_on_in_layout_2(redis: Redis) -> None:
    tasks = await seed(redis)
    await Migration(redis, settled_s=0, named_within_s=0).run(lambda _: None)
    ledger = process(redis, "2")
    assert await ledger.hold([(tasks["running"], 1)], "w1", LEASE_MS) == []
    report = a_report(tasks["running"])
    assert await ledger.finish(tasks["running"], 1, "completed", report) is None
    assert await ledger.begin(tasks["parked"], 1, "w2", 1, LEASE_MS) == RunPermission(2)
    done = a_report(tasks["completed"])
    assert await ledger.begin(tasks["completed"], 1, "w2", 1, LEASE_MS) == done
    wished = await ledger.begin(tasks["wished"], 1, "w2", 1, LEASE_MS)
    assert wished == CancelRequest("never")
    waits = Waits(redis, deadline_s=PATIENCE_S)
    waits._entries._layout = Fixed("2")
    answer = WaitAnswer(value=True, at=datetime.now(UTC), door="http", digest="d")
    assert await waits.answer(str(tasks["asked"]), "0", answer) is None
    assert isinstance(
        await ledger.begin(tasks["asked"], 1, "w2", 1, LEASE_MS), RunPermission
    )


async def test_a_task_that_names_no_agent_stops_the_last_step_unless_it_is_dropped(
    redis: Redis,
) -> None:
    """One that a program published has nothing that names it while its first run goes on."""
    ledger = process(redis, "1")
    await ledger.begin(str(TASK), 1, "w1", 1, LEASE_MS)
    moved = await Migration(redis, settled_s=0, named_within_s=0).run(lambda _: None)
    assert moved.unknown == [TASK]
    assert await Migration(redis).layout() == "migrating"
    later = Migration(redis, settled_s=0, named_within_s=PATIENCE_S)
    going_on = asyncio.create_task(later.run(lambda _: None))
    await asyncio.sleep(0.05)
    await process(redis, "migrating").finish(TASK, 1, "completed", a_report(TASK))
    assert (await going_on).unknown == []
    assert (await read(process(redis, "2"), str(TASK))).generations[1].report

    await redis.flushdb()
    await ledger.begin(str(TASK), 1, "w1", 1, LEASE_MS)
    again = Migration(redis, settled_s=0, named_within_s=0)
    assert (await again.run(lambda _: None, drops_unknown=True)).unknown == [TASK]
    assert await again.layout() == "2"
    assert await count_entries(redis, TASK) == 0


async def test_a_task_that_names_its_agent_at_last_is_moved_and_not_dropped(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dropped by what it says then, not by what it said when it was looked at."""
    ledger = process(redis, "migrating")
    await process(redis, "1").begin(str(TASK), 1, "w1", 1, LEASE_MS)
    convert = Migration.convert

    async def convert_then_end(self: Migration, tell: Tell) -> Moved:
        moved = await convert(self, tell)
        if moved.unknown:
            await ledger.finish(TASK, 1, "completed", a_report(TASK))
        return moved

    monkeypatch.setattr(Migration, "convert", convert_then_end)
    migration = Migration(redis, settled_s=0, named_within_s=0)
    moved = await migration.run(lambda _: None, drops_unknown=True)
    assert (moved.entries, moved.unknown) == (1, [])
    found = (await read(process(redis, "2"), str(TASK))).generations[1].report
    assert found == a_report(TASK)


async def test_a_task_in_both_layouts_stops_the_last_step_and_stays_as_it_is(
    redis: Redis,
) -> None:
    """As a process of 0.2 makes it that is started too late."""
    await process(redis, "2").begin(TASK, 1, "w1", 1, LEASE_MS)
    await process(redis, "1").finish(TASK, 1, "completed", a_report(TASK))
    await process(redis, "2").cancel(TASK, None, "enough")
    pointer = await redis.get(keys.task_agent(TASK))
    migration = Migration(redis, settled_s=0, named_within_s=0)
    moved = await migration.run(lambda _: None, drops_unknown=True)
    assert (moved.twice, moved.unknown) == ([TASK], [])
    assert await migration.layout() == "migrating"
    assert await redis.get(keys.task_agent(TASK)) == pointer
    assert await count_entries(redis, TASK) == 2


async def test_a_run_of_the_migration_that_was_suspended_takes_no_step_back(
    redis: Redis,
) -> None:
    """Nor is one made beside a process of before, however late that was started."""
    other = Migration(redis, settled_s=0, named_within_s=0)
    asked = count(1)

    async def let_the_other_end() -> None:
        next(asked)
        await other.run(lambda _: None)

    suspended = Migration(
        redis, settled_s=0, named_within_s=0, demand_new_ones=let_the_other_end
    )
    for start in ("1", "prepared", "migrating"):
        await set_layout(redis, start)  # type: ignore[arg-type]  # of the tuple
        await suspended.run(lambda _: None)
        assert await other.layout() == "2"
    assert next(asked) == 4

    async def refuse() -> None:
        raise ConfigurationError("0.2 is there")

    await set_layout(redis, "migrating")
    late = Migration(redis, settled_s=0, named_within_s=0, demand_new_ones=refuse)
    with pytest.raises(ConfigurationError):
        await late.run(lambda _: None)
    assert await other.layout() == "migrating"


#: Tasks that are under way during a migration, each over a connection of its own.
_MOVED = 150


@pytest.mark.parametrize("seed_number", range(10))
async def test_traffic_beside_the_migration_loses_nothing(
    seed_number: int, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks begin, end and are repeated while they are moved: each has one entry and one report, and runs once."""
    monkeypatch.setattr(layouts, "KNOWN_S", 0.02)
    dice = random.Random(seed_number)
    clients = [
        Redis(
            connection_pool=redis.connection_pool.__class__(
                max_connections=_MOVED, **redis.connection_pool.connection_kwargs
            )
        )
        for _ in range(3)
    ]
    ledgers = [Ledger(client, deadline_s=PATIENCE_S) for client in clients]
    tasks = [TaskName("Scout", f"task-{number}") for number in range(_MOVED)]
    reports: dict[str, set[bytes]] = {task: set() for task in tasks}
    runs = dict.fromkeys(tasks, 0)

    async def work(task: TaskName) -> None:
        await asyncio.sleep(dice.random() * 0.5)
        await dice.choice(ledgers).accept(task, 1, a_report(task))
        for attempt in range(3):
            ledger = dice.choice(ledgers)
            begun = await ledger.begin(task, 1, "w1", 1, LEASE_MS, token=f"{attempt}")
            if isinstance(begun, bytes):
                reports[task].add(begun)
                continue
            runs[task] += 1
            await asyncio.sleep(dice.random() * 0.3)
            body = a_report(task).replace(b"w1", b"w%d" % attempt)
            earlier = await dice.choice(ledgers).finish(task, 1, "completed", body)
            assert earlier is None or isinstance(earlier, bytes)
            reports[task].add(body if earlier is None else earlier)
            assert await count_entries(redis, task) == 1

    migration = Migration(redis, settled_s=0.2, named_within_s=PATIENCE_S)
    moving = asyncio.create_task(migration.run(lambda _: None))
    await asyncio.gather(*map(work, tasks))
    moved = await moving
    assert moved.unknown == []
    assert await migration.layout() == "2"
    assert set(runs.values()) == {1}
    assert {len(found) for found in reports.values()} == {1}
    assert not [key async for key in redis.scan_iter("tl:task:{*")]
    for client in clients:
        await client.aclose()
        await client.connection_pool.disconnect()
