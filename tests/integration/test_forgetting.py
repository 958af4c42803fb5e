"""A forgotten user is in no store and no file, and everybody else is there as before."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.conversations import Utterance
from tasklore.contracts.errors import InvalidInput, Unreachable
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import CompletionReport, MemoryNote
from tasklore.memory import keys
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.ledger.requests import Reply, RequestRecords, place_of
from tasklore.memory.ledger.runs import Finish
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.user_tasks import UserTasks
from tasklore.memory.queues.claims import Closing, NewRow
from tasklore.memory.stores import STORES
from tasklore.runtime.messaging.direct import Stored, open_direct_reads
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.workers.forgetting.erasure import UserStore, forget_user
from tasklore.workers.forgetting.server_files import rewrite_redis, rewrite_streams
from tasklore.workers.forgetting.tasks import TaskEraser
from tests.integration.forgetting import (
    AT_MS,
    FOOD,
    PATIENCE_S,
    Town,
    secret_of,
    town_on,
)
from tests.integration.waiting import LATER
from tests.traces import files_with, until_away

ANN = "ann@example.org"
BOB = "bob"
#: Kinds of keys that the town has none of: counts of what is served, and what a run leaves, which
#: test_project_forgetting.py forgets.
NOT_IN_THE_TOWN = frozenset(
    {"ltm-hits", "ltm-served", "ltm-quarantine", "run", "running"}
)


@pytest.fixture
async def town(own_servers: EmbeddedServers) -> AsyncIterator[Town]:
    async with town_on(own_servers) as opened:
        yield opened


async def everything(town: Town, user: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in town.stores():
        for kind, count in (await part.count(user)).items():
            found[kind] = found.get(kind, 0) + count
    return {kind: count for kind, count in found.items() if count}


async def test_a_forgotten_user_is_gone_from_every_store_and_file(town: Town) -> None:
    folders = [town.servers.nats.data_dir, town.servers.valkey.data_dir]
    for user in ("ann", BOB):
        others = await town.live(user)
    assert all(files_with(folder, secret_of("ann")) for folder in folders)
    before = await everything(town, BOB)
    assert (await everything(town, "ann")) == before
    done = await town.forget("ann")
    assert done.is_complete
    assert done.removed == {
        "hidden keys": 2,
        "messages": 10,
        "tasks": 5,
        "listed tasks": 3,
        "messages of runs": 1,
        "turns": 1,
        "facts": 1,
        "documents": 1,
        "edits": 1,
        "plans": 1,
        "conversations": 1,
        "webhooks": 2,
        "answers": 2,
        "sessions": 1,
        "texts in projects": 1,
        "episodes": 1,
        "notices": 1,
        "schedules": 1,
        "requests": 1,
        **dict.fromkeys(others, 1),
    }
    assert await everything(town, "ann") == {}
    assert await everything(town, BOB) == before
    await until_away(folders, secret_of("ann"))
    assert all(files_with(folder, secret_of(BOB)) for folder in folders)
    assert await town.redis.keys("*YW5u*") == []


async def held_by(town: Town, key: bytes) -> str:
    """Return all that *key* holds, as one text."""
    redis = town.redis
    reads: dict[bytes, Callable[[bytes], Any]] = {
        b"string": redis.get,
        b"hash": redis.hgetall,
        b"list": lambda one: redis.lrange(one, 0, -1),
        b"set": redis.smembers,
        b"zset": lambda one: redis.zrange(one, 0, -1),
    }
    return str(await reads[await redis.type(key)](key))


async def test_the_table_of_keys_says_what_forgets_words_of_people(town: Town) -> None:
    """Whatever kind of key has some is one of a store, and the town has some of each such kind."""
    await town.live("ann")
    found = await town.redis.keys("tl:*")
    # As far as nobody spells it otherwise.
    secret = secret_of("ann").partition("ê")[0]
    spoken = {
        key.split(b":")[1].decode()
        for key in found
        if secret in await held_by(town, key)
    }
    forgotten = {
        kind
        for store in STORES
        for key in store.keys
        if key.forgotten_as or key.ends_by_itself
        for kind in key.kinds
    }
    assert not spoken - forgotten, (
        f"{sorted(spoken - forgotten)} hold words of people: say in the declaration of their store what forgets them"
    )
    there = {key.split(b":")[1].decode() for key in found}
    missing = forgotten - there - NOT_IN_THE_TOWN
    assert not missing, (
        f"nobody leaves {sorted(missing)} in Town.live of tests/integration/forgetting.py: add it there, so that "
        "forgetting it is proven"
    )


async def test_replies_to_what_was_asked_before_they_gave_a_name_are_forgotten(
    town: Town,
) -> None:
    """With the conversation, and not where it is of others too."""
    requests = RequestRecords(town.redis, deadline_s=PATIENCE_S)
    for conversation_id, speakers in (("hers", ["ann"]), ("shared", ["ann", BOB])):
        for user in (None, *speakers):
            turn = {"user_id": user, "request_id": f"{conversation_id}-{user}"}
            await town.conversations.append(
                conversation_id,
                json.dumps(turn).encode(),
                turn["request_id"] or "",
                user_id=user,
            )
            reply = Reply(b"words", user)
            place = place_of("", "request", str(turn["request_id"]))
            assert await requests.let_go(place, reply)
    await town.forget("ann")
    names = ("hers-None", "hers-ann", "shared-None", "shared-ann", "shared-bob")
    left = [
        name
        for name in names
        if (await requests.find(place_of("", "request", name))).reply
    ]
    assert left == ["shared-None", "shared-bob"]


async def test_a_running_task_can_store_nothing_of_a_forgotten_user(town: Town) -> None:
    """Its worker gets the published report, which has none of their words."""
    await town.work("ann")
    await town.forget("ann")
    late = await town.ledger.finish(
        "ann-running", 1, "completed", town.report("ann", "running")
    )
    assert isinstance(late, bytes)
    assert secret_of("ann").encode() not in late
    assert CompletionReport.model_validate_json(late).status == "cancelled"
    stored = await town.client.request(
        f"$JS.API.DIRECT.GET.REPORTS.{subjects.report('S', 'ann-running', 1)}"
    )
    assert stored.data == late
    for name in ("waiting", "later"):
        assert await town.ledger.begin(f"ann-{name}", 1, "w2", AT_MS, 1000) != late
        assert isinstance(
            await town.ledger.begin(f"ann-{name}", 1, "w2", AT_MS, 1000), bytes
        )


async def test_what_became_of_their_tasks_is_still_known(town: Town) -> None:
    """How each ended and when its user was forgotten, for its time, and no word of it."""
    await town.work("ann")
    ended = CompletionReport(
        task_id="ann-whole",
        agent_id="Probe",
        supervisor_id="S",
        task_name="ask",
        status="completed",
        result=secret_of("ann"),
        memory=MemoryNote(outcome="miss", key=secret_of("ann")),
        worker_id="w1",
        finished_at=datetime.now(UTC),
    )
    body = ended.model_dump_json().encode()
    finish = Finish("ann-whole", 1, "completed", body, user_token("ann"))
    assert await town.ledger.finish_many([finish]) == [None]
    before = await town.redis.pttl(keys.task("ann-whole"))
    await town.forget("ann")
    for name, status in (("whole", "completed"), ("running", "cancelled")):
        entry = await town.ledger.read(f"ann-{name}")
        assert entry is not None
        kept = entry.generations[1].report
        assert kept is not None
        report = CompletionReport.model_validate_json(kept)
        assert (report.status, entry.generations[1].state) == (status, status)
        assert report.error is not None
        assert report.error.type == "UserForgotten"
        assert "its user was forgotten at 20" in report.error.message
        assert (report.result, report.memory.key, entry.user) == (None, None, "")
    assert 0 < await town.redis.pttl(keys.task("ann-whole")) <= before


async def test_reports_of_earlier_runs_of_an_open_task_are_removed(town: Town) -> None:
    failed = town.report("ann", "again")
    assert await town.ledger.finish_many(
        [Finish("ann-again", 1, "failed", failed, user_token("ann"))]
    ) == [None]
    await town.publish(subjects.report("S", "ann-again", 1), failed)
    await town.ledger.accept("ann-again", 2, town.assignment("ann", "again"))
    assert (await town.forget("ann")).removed == {"tasks": 1, "messages": 1}
    entry = await town.ledger.read("ann-again")
    assert entry is not None
    assert [(number, one.state) for number, one in entry.generations.items()] == [
        (2, "cancelled")
    ]
    await until_away(
        [town.servers.nats.data_dir, town.servers.valkey.data_dir], secret_of("ann")
    )
    assert await everything(town, "ann") == {}


class Overtaken:
    """An outbox before whose every letter a worker publishes the same report, and says whose it is."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self.overtook = 0

    async def put(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        *,
        patience_s: float = 10.0,
        waits_when_full: bool = False,
    ) -> None:
        told = {subjects.MESSAGE_ID_HEADER: message_id.removesuffix(":forgetting")}
        worker = await self._town.client.request(
            subject, body, headers=told | {subjects.USER_HEADER: user_token("ann")}
        )
        self.overtook += "duplicate" not in json.loads(
            worker.data
        ) and "error" not in json.loads(worker.data)
        await self._town.outbox.put(
            subject, body, message_id, waits_when_full=waits_when_full
        )


class Broken:
    async def put(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        *,
        patience_s: float = 10.0,
        waits_when_full: bool = False,
    ) -> None:
        raise Unreachable("away")


async def reports_of(town: Town, task_id: str) -> list[Stored]:
    async with open_direct_reads(town.link, subjects.REPORTS) as reads:
        return [
            one
            async for page in reads.pages(subjects.reports_on(task_id))
            for one in page
        ]


def eraser(town: Town, outbox: Any) -> TaskEraser:
    return TaskEraser(
        town.link,
        ledger=town.ledger,
        tasks=UserTasks(town.redis),
        index=TaskIndex(town.redis),
        outbox=outbox,
    )


async def test_a_worker_that_publishes_the_report_first_leaves_no_user_header(
    town: Town,
) -> None:
    await town.work("ann")
    outbox = Overtaken(town)
    tasks = eraser(town, outbox)
    files = partial(rewrite_redis, town.redis), partial(rewrite_streams, town.link)
    done = await forget_user(
        "ann", [UserStore("tasks", tasks.forget, tasks.count)], files
    )
    assert (outbox.overtook, done.left) == (3, {})
    for name in ("waiting", "later", "running"):
        (stored,) = await reports_of(town, f"ann-{name}")
        assert subjects.USER_HEADER not in stored.headers
        assert stored.body == await town.ledger.finish(
            f"ann-{name}", 1, "completed", town.report("ann", name)
        )
    await until_away(
        [town.servers.nats.data_dir], subjects.USER_HEADER, secret_of("ann")
    )


async def test_a_report_that_only_the_stream_has_is_removed(town: Town) -> None:
    for user in ("ann", BOB):
        subject = subjects.report("S", f"{user}-unfenced", 1)
        report = town.report(user, "unfenced")
        await town.publish(subject, report, Tasklore_User=user_token(user))
    assert (await everything(town, "ann")) == {"messages": 1}
    assert (await town.forget("ann")).removed == {"messages": 1}
    assert (await reports_of(town, "ann-unfenced"), await everything(town, BOB)) == (
        [],
        {"messages": 1},
    )


async def test_a_task_that_was_ended_but_not_reported_is_reported_by_the_next_attempt(
    town: Town,
) -> None:
    await town.publish("tasks.Probe.ask", town.assignment("ann", "running"))
    await town.ledger.begin("ann-running", 1, "w1", AT_MS, 600_000)
    with pytest.raises(Unreachable):
        await eraser(town, Broken()).forget("ann")
    assert await reports_of(town, "ann-running") == []
    assert (await town.forget("ann")).is_complete
    late = await town.ledger.finish(
        "ann-running", 1, "completed", town.report("ann", "running")
    )
    assert [one.body for one in await reports_of(town, "ann-running")] == [late]


async def test_claimed_rows_of_a_forgotten_user_can_be_neither_closed_nor_handed_over(
    town: Town,
) -> None:
    await town.talk("ann")
    claims = [
        await table.claim("ann", holder="w", limit=9, lease_ms=600_000, now_ms=0)
        for table in (town.facts, town.turns)
    ]
    await town.forget("ann")
    for table, claim in zip((town.facts, town.turns), claims, strict=True):
        assert claim is not None
        done = [Closing(row_id=row.row_id, state="done") for row in claim.rows]
        assert not await table.renew(claim, 600_000)
        assert not await table.close(claim, done)
        if table is town.turns:
            row = NewRow(row_id="late", body=b"what ann said")
            assert not await town.facts.take_over(claim, done, [row])
    assert await everything(town, "ann") == {}
    assert await town.facts.owners_due(LATER, 99) == []


async def test_forgetting_that_was_broken_off_anywhere_is_finished_by_repeating_it(
    town: Town,
) -> None:
    class Away:
        async def forget(self, _user_id: str) -> Mapping[str, int]:
            raise Unreachable("away")

        async def count(self, _user_id: str) -> Mapping[str, int]:
            return {}

    await town.live("ann")
    for place in range(len(town.stores())):
        parts = town.stores()
        with pytest.raises(Unreachable):
            await forget_user("ann", [*parts[:place], Away(), *parts[place:]])
    assert await everything(town, "ann") != {}
    assert (await town.forget("ann")).is_complete
    assert await everything(town, "ann") == {}
    assert (await town.forget("ann")).removed == {}


async def test_the_name_can_be_used_again_at_once(town: Town) -> None:
    await town.live("ann")
    before = await everything(town, "ann")
    await town.forget("ann")
    await town.talk("ann")
    claim = await town.turns.claim("ann", holder="w", limit=9, lease_ms=1000, now_ms=0)
    assert claim is not None
    assert [row.row_id for row in claim.rows] == ["ann-turn"]
    after = await everything(town, "ann")
    for kind in ("turns", "facts", "documents", "conversations"):
        assert after[kind] == before[kind]
    assert (await town.documents.snapshot("ann")).documents[FOOD].revision == 1


async def test_an_answer_that_others_asked_for_too_stays(town: Town) -> None:
    token = user_token("ann")
    alone = await town.ask("ann", "alone")
    shared = await town.ask("ann", "shared")
    bobs = await town.ask(BOB, "bobs")
    await town.memory.count_hits(
        {alone: 3, shared: 3, bobs: 2},
        {(token, alone): 3, (token, shared): 2, (user_token(BOB), shared): 1},
    )
    await town.memory.count_hits({bobs: 1}, {(token, bobs): 1})
    # Of one more a count is flushed twice after a lost reply: that errs towards forgetting.
    twice = await town.ask("ann", "twice")
    for counted in ({}, {twice: 1}):
        await town.memory.count_hits(counted, {(token, twice): 1})
    assert (await town.forget("ann")).removed == {"answers": 2}
    found = await town.memory.recall_many([alone, twice, shared, bobs])
    assert [answer is not None for answer in found] == [False, False, True, True]
    assert await town.redis.exists(keys.ltm_users(token), keys.ltm_served(token)) == 0
    assert (await town.forget(BOB)).removed == {}


async def test_the_count_of_own_hits_is_bounded_and_expires_with_the_list(
    town: Town,
) -> None:
    token = user_token("ann")
    for number in range(300):
        key = keys.ltm("Probe", "1.1", f"ask:{number}")
        await town.memory.remember(
            key,
            b"1",
            computed_ms=1,
            ttl=timedelta(hours=1),
            now_ms=AT_MS + number * 7_200_000,
            user_token=token,
        )
        await town.memory.count_hits({key: 1}, {(token, key): 1})
    assert await town.redis.hlen(keys.ltm_served(token)) <= 102
    assert 0 < await town.redis.pttl(keys.ltm_served(token)) <= 3_600_000


async def test_in_a_shared_conversation_only_their_own_turns_are_removed(
    town: Town,
) -> None:
    for number, user in enumerate(("ann", BOB, "ann", None, BOB)):
        turn = json.dumps({"user_id": user, "n": number}).encode()
        await town.conversations.append("together", turn, f"t{number}", user_id=user)
    await town.conversations.append("before-the-name", b'{"text":"hello"}', "t0")
    await town.conversations.append(
        "before-the-name", b'{"user_id":"ann"}', "t1", user_id="ann"
    )
    assert (await town.forget("ann")).removed == {"conversations": 2}
    assert [
        json.loads(turn)["n"] for turn in await town.conversations.recent("together")
    ] == [1, 3, 4]
    assert await town.conversations.recent("before-the-name") == []
    assert await town.conversations.of_user(BOB) == ["together"]


async def test_acknowledged_tasks_are_in_no_file_although_others_wait_beside_them(
    town: Town,
) -> None:
    await town.publish("tasks.Probe.ask", town.assignment(BOB, "waits"))
    done = [
        await town.publish("tasks.Probe.ask", town.assignment("ann", f"done{number}"))
        for number in range(20)
    ]
    for sequence in done:
        request = json.dumps({"seq": sequence, "no_erase": True}).encode()
        await town.client.request("$JS.API.STREAM.MSG.DELETE.TASKS", request)
    folder = town.servers.nats.data_dir
    assert files_with(folder, secret_of("ann"))
    forgotten = await town.forget("ann")
    assert (forgotten.removed, forgotten.beside) == ({}, {"TASKS": 1})
    await until_away([folder], secret_of("ann"))
    assert await town.stored("TASKS") == 1


async def test_what_arrives_while_a_user_is_forgotten_is_removed_too(
    town: Town,
) -> None:
    class Late:
        def __init__(self) -> None:
            self.times = 3

        async def forget(self, user_id: str) -> Mapping[str, int]:
            self.times -= 1
            if self.times >= 0:
                await town.publish(subjects.facts(user_id), b"late")
                await town.facts.append(user_id, [(f"late{self.times}", b"late")])
            return {}

        async def count(self, _user_id: str) -> Mapping[str, int]:
            return {}

    await town.talk("ann")
    done = await forget_user("ann", [*town.stores(), Late()])
    assert (done.left, done.removed["facts"]) == ({}, 4)
    assert await everything(town, "ann") == {}


async def test_what_could_not_be_removed_is_reported(town: Town) -> None:
    class Stubborn:
        async def forget(self, _user_id: str) -> Mapping[str, int]:
            return {"scars": 0}

        async def count(self, _user_id: str) -> Mapping[str, int]:
            return {"scars": 2, "documents": 0}

    done = await forget_user("ann", [*town.stores(), Stubborn()])
    assert (done.is_complete, done.removed, done.left) == (False, {}, {"scars": 2})


async def test_an_empty_or_invalid_user_id_is_refused(town: Town) -> None:
    """An id that got lost must not mean everybody who has none."""
    for user in ("", " ", "\ud800"):
        with pytest.raises(InvalidInput):
            await town.forget(user)


async def test_a_full_stream_loses_nothing_of_others(town: Town) -> None:
    info = json.loads((await town.client.request("$JS.API.STREAM.INFO.DEAD")).data)
    small = info["config"] | {"max_bytes": 1_000_000}
    await town.client.request("$JS.API.STREAM.UPDATE.DEAD", json.dumps(small).encode())
    for number in range(5):
        await town.publish("dead.tasks.Probe.ask", b"%d" % number + b"x" * 150_000)
    done = await town.forget("ann")
    assert (await town.stored("DEAD"), done.beside) == (5, {"DEAD": 5})


async def test_two_who_forget_one_user_at_once_do_no_harm(town: Town) -> None:
    await town.live("ann")
    await town.live(BOB)
    before = await everything(town, BOB)
    both = await asyncio.gather(town.forget("ann"), town.forget("ann"))
    assert [one.left for one in both] == [{}, {}]
    assert await everything(town, BOB) == before
    assert (await town.documents.snapshot(BOB)).documents[FOOD].revision == 1


async def test_words_said_for_a_user_in_others_conversations_are_removed(
    town: Town,
) -> None:
    """Taken or waiting, summarised or observed; what others said stays, seen or new."""
    inbox = Inbox(town.redis, 60.0, window=2)
    await town.tell("ann", "together")
    others = [
        Utterance(message_id=f"b{number}", speaker="Bob", message="mine", time=9)
        for number in range(2)
    ]
    await inbox.post("together", others[0], user_id=BOB)
    await inbox.take("together", "t3")
    await inbox.post("together", others[1], user_id=BOB)
    waiting = Utterance(
        message_id="a9", speaker="Cay", message=secret_of("ann"), time=9
    )
    await inbox.post("together", waiting, user_id="ann")
    assert len(await holding(town, "ann")) == 4
    assert (await town.forget("ann")).removed == {"conversations": 1, "messages": 1}
    taken = await inbox.take("together", "t4", observations=9)
    assert [one.message_id for one in taken.history.current] == ["b0", "b1"]
    assert (taken.history.past, taken.observations, taken.history.earlier.summary) == (
        (),
        (),
        None,
    )
    assert await holding(town, "ann") == []
    assert await town.conversations.of_user(BOB) == ["together"]


async def holding(town: Town, user: str) -> list[str]:
    found = []
    for key in await town.redis.keys():
        kind = await town.redis.type(key)
        if kind in {b"list", b"hash"}:
            held = await (
                town.redis.lrange(key, 0, -1)
                if kind == b"list"
                else town.redis.hgetall(key)
            )
            found += [key.decode()] if f"zebra-{user}-" in repr(held) else []
    return found
