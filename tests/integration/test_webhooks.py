"""Webhooks on a real store, sent to receivers that behave badly: delivered once each, and none delays another."""

import asyncio
import itertools
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from deploy.credentials import make_certificates
from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.contracts.messages import CompletionReport, MemoryNote
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.webhooks import outbox as store
from tasklore.memory.webhooks.outbox import (
    Callback,
    Kept,
    Webhook,
    WebhookOutbox,
    WebhookState,
)
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.networks import networks_in
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.operations.webhooks import WebhookServices, retry_webhook
from tasklore.supervisor.watches import CallbackWatch
from tasklore.supervisor.webhooks import sender as desks
from tasklore.supervisor.webhooks.addresses import Addresses
from tasklore.supervisor.webhooks.delivery import NotDelivered, Sender, parse_secrets
from tasklore.supervisor.webhooks.events import MOST_BYTES, WebhookEvents
from tasklore.supervisor.webhooks.sender import WebhookSender
from tests.http_client import ask
from tests.integration.http_stand import CARD, http_stand
from tests.integration.kept_keys import KeyFile
from tests.ledger_layouts import set_layout
from tests.receiver import PATIENCE_S, SECRET, Receiver, receiving
from tests.unit.supervisor.webhooks import a_webhook

LOCAL = Addresses(networks_in("127.0.0.0/8"))
SECRETS = parse_secrets(SECRET)
#: Longer than any test is waited for: what hangs is given up by nobody.
FOR_EVER_S = 10 * PATIENCE_S


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as opened:
        yield opened


@pytest.fixture
def outbox(redis: Redis) -> WebhookOutbox:
    return WebhookOutbox(redis, deadline_s=PATIENCE_S)


@asynccontextmanager
async def running(
    outbox: WebhookOutbox,
    *,
    deadline_s: float = 10.0,
    count: int = 1,
    makers: Makers | None = None,
) -> AsyncIterator[Metrics]:
    """Run desks, each as the process of a supervisor has it."""
    metrics = Metrics("test")
    made = [
        WebhookSender(
            outbox, Sender(LOCAL, SECRETS, deadline_s=deadline_s), metrics, makers
        )
        for _ in range(count)
    ]
    tasks = [asyncio.create_task(desk.run()) for desk in made]
    try:
        yield metrics
    finally:
        await asyncio.gather(*(desk.drain() for desk in made))
        await asyncio.gather(*tasks)


async def put(outbox: WebhookOutbox, *urls: str, **fields: Any) -> None:
    for number, url in enumerate(urls):
        name = fields.get("id", f"msg_{number}")
        assert (
            await outbox.put(
                a_webhook(url, addresses=LOCAL, **(fields | {"id": name})),
                datetime.now(UTC),
            )
            == 1
        )


async def until_counts(outbox: WebhookOutbox, waiting: int, failed: int = 0) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await outbox.counts() != (waiting, failed):  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.02)


async def the_one(outbox: WebhookOutbox) -> Kept:
    """Return the webhook that waits, once it was tried."""
    async with asyncio.timeout(PATIENCE_S):
        while (  # noqa: ASYNC110
            not (found := await outbox.find("waiting", 2))
            or not found[0].state.attempts
        ):
            await asyncio.sleep(0.02)
    return found[0]


def a_report(task_id: str = "T1", **fields: Any) -> CompletionReport:
    made: dict[str, Any] = {
        "task_id": task_id,
        "agent_id": "EchoAgent",
        "supervisor_id": "S",
        "task_name": "echo",
        "status": "completed",
        "result": {"word": "hi"},
        "memory": MemoryNote(outcome="off"),
        "worker_id": "w",
        "finished_at": datetime.now(UTC),
    }
    return CompletionReport(**(made | fields))


async def test_a_webhook_is_signed_and_delivered_once_by_any_of_three_desks(
    outbox: WebhookOutbox, receiver: Receiver
) -> None:
    async with running(outbox, count=3) as metrics:
        await put(
            outbox,
            *(receiver.url(f"/hook/{number}?n={number}") for number in range(200)),
        )
        heard = await receiver.hears(200)
        await until_counts(outbox, 0)
    assert sorted(one.id for one in heard) == sorted(
        f"msg_{number}" for number in range(200)
    )
    assert all(one.is_signed() for one in heard)
    assert heard[0].headers["host"] == f"127.0.0.1:{receiver.port}"
    assert 'tasklore_webhooks_total{outcome="failed"} 0.0' in metrics.render().decode()
    assert receiver.most_open <= 3 * 8


async def test_over_tls_the_name_is_checked_on_the_connection_to_the_address(
    tmp_path: Path,
) -> None:
    """A certificate of an unknown authority is refused."""
    make_certificates(tmp_path / "made")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(
        tmp_path / "made" / "nats.crt", tmp_path / "made" / "nats.key"
    )
    trusted = ssl.create_default_context(cafile=tmp_path / "made" / "ca.crt")
    async with receiving(server) as receiver:
        webhook = a_webhook(receiver.url("/hook", "localhost"), addresses=LOCAL)
        await Sender(LOCAL, SECRETS, tls=trusted).send(webhook)
        with pytest.raises(NotDelivered, match="no trusted TLS"):
            await Sender(LOCAL, SECRETS).send(webhook)
    assert [one.headers["host"] for one in receiver.heard] == [
        f"localhost:{receiver.port}"
    ]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/hang", "no answer within 0.5 s"),
        ("/drip", "no answer within 0.5 s"),
        ("/line", "no connection (LimitOverrunError)"),
        ("/garbage", "no connection (ValueError)"),
        ("/close", "no connection (IncompleteReadError)"),
        ("/redirect/http://169.254.169.254/latest/meta-data/", "answered 302"),
        ("/status/500", "answered 500"),
        ("/status/404", "answered 404"),
    ],
)
async def test_a_receiver_that_does_not_take_it_is_tried_again_under_the_same_id(
    outbox: WebhookOutbox, receiver: Receiver, path: str, problem: str
) -> None:
    async with running(outbox, deadline_s=0.5):
        await put(outbox, receiver.url(path))
        kept = await the_one(outbox)
        assert (kept.state.attempts, kept.state.problem) == (1, problem)
        assert (
            timedelta(seconds=2)
            < kept.state.due - kept.state.since
            < timedelta(seconds=7)
        )
        await outbox.retry(kept, datetime.now(UTC))
        heard = await receiver.hears(2)
    assert {one.id for one in heard} == {"msg_0"}


@pytest.mark.parametrize("path", ["/flood", "/interim", "/status/299"])
async def test_an_answer_of_ten_megabytes_is_taken_by_its_status_and_not_read(
    outbox: WebhookOutbox, receiver: Receiver, path: str
) -> None:
    async with running(outbox):
        await put(outbox, receiver.url(path))
        await until_counts(outbox, 0)
    assert len(receiver.heard) == 1


async def test_a_redirect_is_not_followed_and_no_proxy_is_used(
    outbox: WebhookOutbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as other, running(outbox):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, other.url())
        await put(outbox, receiver.url(f"/redirect/{other.url()}"))
        assert (await the_one(outbox)).state.problem == "answered 302"
        assert other.heard == []


@pytest.mark.parametrize("most", [200, pytest.param(2_000, marks=pytest.mark.long)])
async def test_slow_receivers_delay_no_other_host(
    outbox: WebhookOutbox, receiver: Receiver, most: int
) -> None:
    """A host that hangs is sent eight of many at once; others' come at once, and its own by free lanes."""
    async with receiving() as slow, running(outbox, deadline_s=FOR_EVER_S):
        await put(outbox, *(slow.url(f"/hang/{number}") for number in range(most)))
        await slow.hears(8)
        for number in range(20):
            await put(outbox, receiver.url(), id=f"msg_quick_{number}")
        await receiver.hears(20)
        assert (slow.open, slow.most_open, len(slow.heard)) == (8, 8, 8)


async def test_a_receiver_that_hangs_delays_no_other_on_its_host(
    outbox: WebhookOutbox, receiver: Receiver
) -> None:
    """Seven of its webhooks hang, and a hundred others of the same host are delivered meanwhile."""
    async with running(outbox, deadline_s=FOR_EVER_S):
        await put(outbox, *(receiver.url(f"/hang/{number}") for number in range(7)))
        await receiver.hears(7)
        for number in range(100):
            await put(outbox, receiver.url("/quick"), id=f"msg_quick_{number}")
        await receiver.hears(107)
        await until_counts(outbox, 7)
        assert [one.path.count("hang") for one in receiver.heard] == [1] * 7 + [0] * 100


async def test_no_key_takes_the_places_of_others_or_of_the_deployment(
    outbox: WebhookOutbox, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounded by maker, by host and in all; what was given up, or sent by a supervisor of 0.2, counts no more."""
    bounds = {"MOST": 14, "RESERVED": 4, "MOST_OF_HOST": 9, "RESERVED_OF_HOST": 3}
    for name, most in (bounds | {"MOST_OF_MAKER": 4}).items():
        monkeypatch.setattr(store, name, most)
    now = datetime.now(UTC)
    number = itertools.count()

    async def add(host: str, caller: Caller | None) -> int:
        callback = LOCAL.make_callback(f"http://127.0.0.1:{host}/", None, caller)
        webhook = Webhook(
            **callback.model_dump(exclude={"maker"}),
            id=f"w{next(number)}",
            type="task.completed",
            body="{}",
            created_at=now,
        )
        return await outbox.put(webhook, now)

    alice, bob, cal = (Caller(name=name) for name in ("alice", "bob", "cal"))
    assert [await add("1", alice) for _ in range(5)] == [1, 1, 1, 1, -1]
    assert await add("2", alice) == -1
    assert [await add("1", bob) for _ in range(3)] == [1, 1, -1]
    assert [await add("2", cal) for _ in range(4)] == [1] * 4
    assert await add("3", bob) == -1
    assert [await add("1", None) for _ in range(4)] == [1, 1, 1, -1]
    assert await add("4", Caller(name="night", roles=frozenset({"admin"}))) == 1
    assert await add("4", None) == -1
    [gone, given_up] = await outbox.read("w0", "w1")
    assert given_up is not None
    assert await outbox.note(given_up, "failed", given_up.state, now)
    await redis.hdel(keys.WEBHOOKS.records, "w0", "w2")
    await outbox.remove("w14", "w15", "w16", "w18")
    assert gone is not None
    assert [await add("5", alice) for _ in range(4)] == [1, 1, 1, -1]


@pytest.mark.parametrize("most", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
async def test_webhooks_of_a_dead_host_wait_and_are_bounded(
    outbox: WebhookOutbox,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    """More than the bound of a host are dropped and counted; they cost under a kilobyte each."""
    monkeypatch.setattr(store, "MOST_OF_HOST", most)
    async with receiving() as dead:
        pass
    before = (await outbox._batch.run([("INFO", "memory")]))[0]
    metrics = Metrics("test")
    events = WebhookEvents(
        outbox, metrics, everywhere=LOCAL.make_callback(dead.url()), hears_tasks=True
    )
    for first in range(0, most + 100, 100):
        await events.note_reports(
            [(a_report(f"T{number}"), "") for number in range(first, first + 100)]
        )
    assert await outbox.counts() == (most, 0)
    assert (
        'tasklore_webhooks_total{outcome="dropped"} 100.0' in metrics.render().decode()
    )
    after = (await outbox._batch.run([("INFO", "memory")]))[0]
    assert (_used(after) - _used(before)) / most < 2_048
    async with running(outbox):
        await put(outbox, receiver.url())
        await receiver.hears(1)
        problems = [
            one.state.problem
            for one in await outbox.find("waiting", 12_000)
            if one.state.attempts
        ]
        # The living host's came first, after a few of all that were before it.
        assert 0 < len(problems) < most / 10
        assert set(problems) == {"no connection (ConnectionRefusedError)"}


def _used(info: bytes) -> int:
    return int(
        next(
            line for line in info.split(b"\r\n") if line.startswith(b"used_memory:")
        ).partition(b":")[2]
    )


async def test_what_was_given_up_stays_until_it_is_sent_again_or_removed(
    outbox: WebhookOutbox, receiver: Receiver
) -> None:
    """A day after the first attempt, or at once for 410 Gone."""
    async with running(outbox) as metrics:
        await put(outbox, receiver.url("/status/410"))
        await until_counts(outbox, 0, 1)
        receiver.statuses += [503, 200]
        await put(outbox, receiver.url("/late"), id="msg_late")
        kept = await the_one(outbox)
        now = datetime.now(UTC)
        receiver.statuses.insert(0, 503)
        assert await outbox.note(
            kept, "waits", WebhookState(now, now - timedelta(days=1), 20, ""), now
        )
        await until_counts(outbox, 0, 2)
        late, gone = await outbox.find("failed", 10)
        assert (late.state.attempts, late.state.problem) == (21, "answered 503")
        assert (gone.state.attempts, gone.state.problem) == (1, "answered 410")
        assert await outbox.retry(late, datetime.now(UTC))
        assert await outbox.remove("msg_0") == 1
        await until_counts(outbox, 0)
        assert {one.id for one in receiver.heard} == {"msg_0", "msg_late"}
        assert (
            'tasklore_webhooks_total{outcome="failed"} 2.0' in metrics.render().decode()
        )


async def test_a_webhook_rests_while_the_key_it_was_asked_for_with_is_gone(
    outbox: WebhookOutbox, receiver: Receiver, tmp_path: Path
) -> None:
    """It is neither sent nor given up, delays no other, and is sent once the key is back."""
    keys = KeyFile(tmp_path / "keys.json")
    keys.make("shop", "ask", tenant="acme")
    shop = Caller(name="shop", roles=frozenset({"ask"}), tenant="acme")
    makers = Makers(keys.open())
    entry = keys.remove("shop")
    old = datetime.now(UTC) - timedelta(days=3)
    async with running(outbox, makers=makers):
        url = receiver.url("/shop")
        await put(outbox, url, id="msg_held", caller=shop, created_at=old)
        kept = await until_problem(outbox, "paused: ")
        assert "`tasklore webhooks retry msg_held`" in kept.state.problem
        await put(outbox, receiver.url("/other"), id="msg_other")
        await receiver.hears(1)
        assert [one.id for one in receiver.heard] == ["msg_other"]
        assert await outbox.counts() == (1, 0)
        keys.put_back(entry)
        # In place of the minute until it is looked at again.
        due = kept.state._replace(due=datetime.now(UTC))
        assert await outbox.note(kept, "waits", due, datetime.now(UTC))
        await receiver.hears(2)
        await until_counts(outbox, 0)
    assert receiver.heard[-1].id == "msg_held"


async def test_an_administrator_sends_one_that_rests_all_the_same(
    outbox: WebhookOutbox, receiver: Receiver, tmp_path: Path
) -> None:
    """It stays released when its receiver is away at first."""
    keys = KeyFile(tmp_path / "keys.json")
    keys.make("olga", "admin")
    shop = Caller(name="shop", roles=frozenset({"ask"}))
    olga = Caller(name="olga", roles=frozenset({"admin"}))
    receiver.statuses += [503, 200]
    async with running(outbox, makers=Makers(keys.open())):
        await put(outbox, receiver.url("/late"), id="msg_held", caller=shop)
        await until_problem(outbox, "paused: ")
        sent = await retry_webhook(WebhookServices(outbox=outbox), olga, "msg_held")
        assert sent.id == "msg_held"
        kept = await until_problem(
            outbox, "sent without the key of its maker; answered"
        )
        assert (kept.state.attempts, receiver.heard[0].id) == (1, "msg_held")
        due = kept.state._replace(due=datetime.now(UTC))
        assert await outbox.note(kept, "waits", due, datetime.now(UTC))
        await until_counts(outbox, 0)
    assert len(receiver.heard) == 2


async def until_problem(outbox: WebhookOutbox, begin: str) -> Kept:
    """Return the webhook that waits with such a problem, once it does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for kept in await outbox.find("waiting", 10):
                if kept.state.problem.startswith(begin):
                    return kept
            await asyncio.sleep(0.02)


async def test_a_desk_that_dies_before_it_notes_leaves_the_webhook_to_another(
    outbox: WebhookOutbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent again under its id, and not once it is noted; a note that comes late changes nothing."""
    monkeypatch.setattr(desks, "LEASE", timedelta(seconds=1))
    await put(outbox, receiver.url("/hang"))
    place = f"127.0.0.1:{receiver.port}"
    (stale,) = await outbox.take(place, datetime.now(UTC), timedelta(seconds=1), 16)
    async with running(outbox, deadline_s=0.5):
        await receiver.hears(1)
        assert (await the_one(outbox)).state.attempts == 1
    assert not await outbox.note(stale, "delivered", stale.state, datetime.now(UTC))
    assert await outbox.counts() == (1, 0)


async def test_a_store_that_is_away_for_a_while_loses_nothing(
    own_servers: EmbeddedServers,
) -> None:
    """It goes down behind a delivery: what was not noted comes again, under the same id."""
    async with Redis.from_url(own_servers.redis_url) as redis, receiving() as receiver:
        outbox = WebhookOutbox(redis)
        async with running(outbox):
            await put(outbox, *(receiver.url("/status/503") for _ in range(20)))
            await receiver.hears(20)
            await own_servers.valkey.stop()
            await asyncio.sleep(0.3)
            await own_servers.valkey.start()
            async with asyncio.timeout(PATIENCE_S):
                while len(found := await _find(outbox)) < 20:  # noqa: ASYNC110 - a server is asked
                    await asyncio.sleep(0.1)
            assert {one.webhook.id for one in found} == {
                f"msg_{number}" for number in range(20)
            }


async def _find(outbox: WebhookOutbox) -> Sequence[Kept]:
    try:
        return await outbox.find("waiting", 100)
    except Exception:  # noqa: BLE001 - it is coming up
        return ()


async def test_an_event_is_stored_once_for_each_address(
    outbox: WebhookOutbox, receiver: Receiver
) -> None:
    """Reports that are delivered again, also after the webhook was, change nothing."""
    url = receiver.url("/task")
    events = WebhookEvents(
        outbox, Metrics("test"), everywhere=LOCAL.make_callback(receiver.url("/all"))
    )
    everything = WebhookEvents(
        outbox,
        Metrics("test"),
        everywhere=LOCAL.make_callback(receiver.url("/all")),
        hears_tasks=True,
    )
    until = datetime.now(UTC) + timedelta(days=1)
    await outbox.await_task("T1", LOCAL.make_callback(url, "ann"), until)
    await events.note_reports([(a_report("T1"), ""), (a_report("T2"), "")])
    assert [one.webhook.url for one in await outbox.find("waiting", 10)] == [url]
    for _ in range(3):
        await everything.note_reports([(a_report("T1"), user_token("ann"))])
    assert len(await outbox.find("waiting", 10)) == 2
    async with running(outbox):
        heard = await receiver.hears(2)
        await until_counts(outbox, 0)
        await everything.note_reports([(a_report("T1"), "")])
        await everything.note_reports(
            [(a_report("T1", generation=2, status="failed"), "")]
        )
        heard = await receiver.hears(4)
        await until_counts(outbox, 0)
    assert len({one.id for one in heard}) == 4
    assert [one.event["type"] for one in heard[2:]] == ["task.failed"] * 2
    data = next(one.event["data"] for one in heard if one.path == "/task")
    assert (data["task_id"], data["status"], data["result"]) == (
        "T1",
        "completed",
        {"word": "hi"},
    )


async def test_a_task_whose_report_nobody_took_is_found_in_the_ledger(
    outbox: WebhookOutbox, redis: Redis
) -> None:
    """Of 500 tasks that call back three have ended while no supervisor ran; each gets one event."""
    ledger = Ledger(redis, deadline_s=PATIENCE_S)
    now = datetime.now(UTC)
    events = WebhookEvents(outbox, Metrics("test"))
    for number in range(500):
        await outbox.await_task(
            f"T{number}",
            LOCAL.make_callback("http://127.0.0.1:1/"),
            now + timedelta(days=40),
        )
    for number in (3, 250, 499):
        body = a_report(f"T{number}").model_dump_json().encode()
        await ledger.accept(f"T{number}", 1, b"{}", "")
        await ledger.finish(f"T{number}", 1, "completed", body)
    for _ in range(2):
        await CallbackWatch(events, ledger).look()
    found = {
        json.loads(one.webhook.body)["data"]["task_id"]
        for one in await outbox.find("waiting", 10)
    }
    assert (found, await outbox.counts()) == ({"T3", "T250", "T499"}, (3, 0))


async def test_a_task_that_ended_while_supervisors_were_away_for_days_gets_its_event(
    outbox: WebhookOutbox, redis: Redis
) -> None:
    """Its report has expired, and with it the pointer from its id; what is left says how it ended."""
    await set_layout(redis, "2")
    task = TaskName("A", "T1")
    ledger = Ledger(redis, deadline_s=PATIENCE_S)
    callback = LOCAL.make_callback("http://127.0.0.1:1/")
    await outbox.await_task(task, callback, datetime.now(UTC) + timedelta(days=40))
    await ledger.finish(task, 1, "completed", a_report(task).model_dump_json().encode())
    await redis.delete(keys.task_agent(task), keys.entry_report(keys.entry(task), 1))
    await CallbackWatch(WebhookEvents(outbox, Metrics("test")), ledger).look()
    [one] = await outbox.find("waiting", 10)
    data = json.loads(one.webhook.body)["data"]
    assert (data["task_id"], data["error"]["type"]) == ("T1", "ReportExpired")


async def test_a_large_result_is_left_to_the_api(
    outbox: WebhookOutbox, receiver: Receiver
) -> None:
    events = WebhookEvents(
        outbox,
        Metrics("test"),
        everywhere=LOCAL.make_callback(receiver.url()),
        hears_tasks=True,
    )
    large = a_report("T1", result={"text": "é" * 500_000})
    odd = a_report("T2", result={"half": "\ud800", "nan": float("nan")})
    await events.note_reports([(large, ""), (odd, "")])
    bodies = {
        one.webhook.id: one.webhook.body for one in await outbox.find("waiting", 10)
    }
    assert len(bodies) == 2
    assert all(len(body) <= MOST_BYTES for body in bodies.values())
    data = [json.loads(body)["data"] for body in bodies.values()]
    short = next(one for one in data if one["task_id"] == "T1")
    assert (short["result"], short["truncated"], short["status"]) == (
        None,
        True,
        "completed",
    )


async def test_what_concerns_a_forgotten_user_is_gone_from_the_outbox(
    outbox: WebhookOutbox, receiver: Receiver, redis: Redis
) -> None:
    """Waiting and given up webhooks, and addresses of tasks; those of others stay."""
    until = datetime.now(UTC) + timedelta(days=1)
    now = datetime.now(UTC)
    for user in ("ann", "bob"):
        await outbox.await_task(
            f"T-{user}", LOCAL.make_callback(receiver.url(f"/{user}"), user), until
        )
        for number in range(2):
            await put(
                outbox,
                receiver.url(f"/{user}"),
                id=f"msg_{user}_{number}",
                owner=user_token(user),
            )
    kept = (await outbox.read("msg_ann_0"))[0]
    assert kept is not None
    await outbox.note(kept, "failed", kept.state, now)
    assert (
        await outbox.count("ann"),
        await outbox.count("an"),
        await outbox.count("annn"),
    ) == (3, 0, 0)
    assert await outbox.forget("ann") == 3
    assert await outbox.counts() == (2, 0)
    assert await outbox.callbacks(["T-ann", "T-bob"]) == [
        None,
        LOCAL.make_callback(receiver.url("/bob"), "bob"),
    ]
    for key in await redis.keys("*"):
        assert b"ann" not in await redis.dump(key)
    async with running(outbox):
        await receiver.hears(2)
    assert {one.path for one in receiver.heard} == {"/bob"}


async def test_the_address_of_an_ended_task_is_kept_for_two_days_more(
    outbox: WebhookOutbox,
) -> None:
    callback = Callback(
        url="https://example.com/", host="example.com:443", owner=user_token("ann")
    )
    now = datetime.now(UTC)
    for task_id in ("T1", "T2"):
        await outbox.await_task(task_id, callback, now + timedelta(days=40))
    await outbox.note_ended(["T1", "unknown"], now)
    await outbox.due(now + timedelta(days=2, seconds=1), 10)
    assert await outbox.callbacks(["T1", "T2", "unknown"]) == [None, callback, None]
    assert await outbox.count("ann") == 1


async def test_the_api_takes_an_address_by_the_rights_of_the_key_and_shows_the_outbox_to_administrators(
    servers: EmbeddedServers, redis: Redis, outbox: WebhookOutbox, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    headers = {}
    for name, role in (
        ("ann", "ask"),
        ("reader", "read"),
        ("boss", "admin"),
        ("own", "admin"),
    ):
        key = make_key(file, name, (role,), "ann" if name in ("ann", "own") else None)  # type: ignore[arg-type]  # a role
        headers[name] = {"Authorization": f"Bearer {key}"}
    task = {
        "agent_id": CARD.agent_id,
        "task": "echo",
        "parameters": {"word": "hi"},
        "wait_seconds": 0,
    }
    async with http_stand(
        servers, redis, keys=KeyRing(file), webhooks=Addresses()
    ) as stand:

        async def send(url: str, who: str = "ann", **more: Any) -> Any:
            extra = headers[who] | (
                {"Idempotency-Key": more.pop("key")} if "key" in more else {}
            )
            return await ask(
                stand.url,
                "POST",
                "/v1/tasks",
                {**task, "callback_url": url, **more},
                extra,
            )

        good = "https://example.com/hook"
        for url in (
            "http://example.com/",
            "https://10.0.0.1/",
            "https://u:p@example.com/",
            "no",
        ):
            refused = await send(url)
            assert (refused.status, refused.body["problems"][0]["where"]) == (
                422,
                "callback_url",
            )
        assert (await send(good, "reader")).status == 403
        sent = await send(good, key="one")
        assert sent.status == 202
        found = (await outbox.callbacks([sent.body["task_id"]]))[0]
        assert found is not None
        assert found.caller is not None
        assert found.caller.name == "ann"
        assert found == Addresses().make_callback(good, "ann", found.caller)
        assert (await send(good, key="one")).status == 202
        assert (await send(good + "2", key="one")).status == 409
        await put(outbox, good)
        kept = (await outbox.read("msg_0"))[0]
        assert kept is not None
        await outbox.note(
            kept,
            "failed",
            WebhookState(kept.state.due, kept.state.since, 9, "answered 500"),
            datetime.now(UTC),
        )
        for who in ("ann", "own", "reader"):
            assert (
                await ask(stand.url, "GET", "/v1/webhooks", None, headers[who])
            ).status == 403
        listed = (
            await ask(stand.url, "GET", "/v1/webhooks", None, headers["boss"])
        ).body
        assert (
            listed["failed"],
            listed["webhooks"][0]["problem"],
            listed["webhooks"][0]["url"],
        ) == (
            1,
            "answered 500",
            good,
        )
        again = await ask(
            stand.url, "POST", "/v1/webhooks/msg_0/retry", None, headers["boss"]
        )
        assert (again.status, again.body["attempts"], await outbox.counts()) == (
            200,
            0,
            (1, 0),
        )
        assert (
            await ask(stand.url, "DELETE", "/v1/webhooks/msg_0", None, headers["boss"])
        ).status == 200
        assert (
            await ask(stand.url, "DELETE", "/v1/webhooks/msg_0", None, headers["boss"])
        ).status == 404
    async with http_stand(servers, redis) as stand:
        off = await ask(stand.url, "POST", "/v1/tasks", {**task, "callback_url": good})
        assert (off.status, "TASKLORE_WEBHOOK_SECRET" in str(off.body)) == (422, True)
