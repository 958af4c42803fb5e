"""Nobody can have the server publish for them: every request of every role, answered where the role may not publish."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from deploy.privileges.operations import ANSWERS
from deploy.privileges.roles import Cast, ServerRole
from tasklore.contracts import subjects
from tasklore.runtime.access import inbox_prefix
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tests.acceptance.external_program import PATIENCE_S
from tests.acceptance.guarded import EXAMINER, Guarded, guarded

ROLES = {role.name: role for role in Cast().roles()}
#: Stands in every reply subject that is tried, and in nothing that is published to.
MARK = "Stolen"
#: Where an answer must not arrive: in each stream and bucket, where others listen, and at JetStream itself.
TARGETS = (
    f"tasks.{MARK}.t",
    f"schedules.tasks.{MARK}.1",
    f"due.tasks.{MARK}.t",
    f"reports.{MARK}.t.1",
    f"turns.0.{MARK}",
    f"facts.0.{MARK}",
    f"messages.0.{MARK}.{MARK}",
    f"messages.0.{MARK}.cHJvZ3JhbQ",
    f"dead.tasks.{MARK}.t",
    f"$KV.agents.{MARK}",
    f"$KV.workers.{MARK}.w",
    f"cancel.{MARK}",
    f"progress.{MARK}.t",
    f"runs.{MARK}",
    f"requests.{MARK}",
    f"$JS.API.STREAM.DELETE.{MARK}",
    f"$JS.EVENT.ADVISORY.STREAM.DELETED.{MARK}",
    f"anything.{MARK}",
    *(f"{inbox_prefix(role)}.{MARK}" for role in ROLES),
)
#: Replies that the server takes from no client: a word on another's delivery, and a way back that it gave to another.
RESERVED = (f"$JS.ACK.TURNS.{MARK}.1.1.1.1.0", f"_R_.{MARK}")
#: What `$JS.ACK` is asked: the answer to each is another.
WORDS = (b"", b"-NAK", b'+NXT {"batch":1,"no_wait":true}')
#: What requests have to say for an answer, by the beginning of their subject; others are answered whatever they say.
BODIES = (
    (
        "$JS.API.CONSUMER.MSG.NEXT.",
        (b'{"batch":1,"no_wait":true}', b'{"batch":1,"expires":50000000}'),
    ),
    ("$JS.API.DIRECT.GET.KV_agents.$KV.", (b"",)),
    ("$JS.API.DIRECT.GET.REPORTS.reports.", (b"",)),
    ("$JS.API.DIRECT.GET.", (b'{"seq":1}', b'{"seq":1,"batch":3}')),
    ("$JS.API.STREAM.MSG.GET.", (b'{"seq":1}',)),
    ("$JS.API.STREAM.PURGE.", (b'{"filter":"nothing.at.all"}',)),
    ("$JS.ACK.", WORDS),
)
#: What is said to whoever listens, and never answered.
UNANSWERED = {"cancel.x", "progress.x.x", "questions.x", "runs.x", "waits.x"}
#: Consumers of which something is asked below, with what they read.
CONSUMERS = (
    *(
        (subjects.TASKS, agent, f"tasks.{agent}.>")
        for agent in ("MemoryAgent", "SwitchboardAgent", "Pipeline")
    ),
    (subjects.TASKS, "BudgetTrackerAgent", "tasks.BudgetTrackerAgent.>"),
    (subjects.REPORTS, "SupervisorAgent", "reports.SupervisorAgent.>"),
    (subjects.REPORTS, subjects.COMPARISONS, subjects.COMPARISONS_ALL),
    *(
        (stream, "x", f"{stream.lower()}.>")
        for stream in (subjects.TURNS, subjects.FACTS, subjects.MESSAGES)
    ),
)
#: Seconds in which an answer is given; some words have none.
ANSWER_S = 30.0
#: Messages that wait for each consumer.
WAITING = 32


class Request(NamedTuple):
    """What a role may ask, and in which words."""

    subject: str
    body: bytes


class Observers:
    """Clients that see what arrives in the account of the streams, and with each role."""

    def __init__(self) -> None:
        self.arrived: list[str] = []

    async def hear(self, message: Msg) -> None:
        """Note what bears the mark."""
        if MARK in message.subject:
            self.arrived.append(message.subject)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Run the servers, with something in every stream."""
    with guarded(tmp_path_factory.mktemp("guarded"), examined=True) as servers:
        asyncio.run(_fill(servers))
        yield servers


@pytest.mark.parametrize("name", ROLES)
async def test_no_request_is_answered_where_its_sender_may_not_publish(
    name: str, pair: Guarded
) -> None:
    """Asked in earnest each request is answered; with another's subject for a reply nothing arrives there."""
    role = ROLES[name]
    requests = list(_requests(ROLES[name]))
    foreign = [one for one in TARGETS if not one.startswith(f"{inbox_prefix(name)}.")]
    foreign = [
        one
        for one in foreign
        if not any(subjects.covers(own, one) for own in role.publish)
    ]
    async with (
        _observing(pair, name) as observers,
        _as_role(pair, name) as (client, refused),
    ):
        answered = await _answered(client, role, requests)
        assert {one.subject for one in requests} - answered <= UNANSWERED
        for request in requests:
            for target in foreign:
                await client.publish(request.subject, request.body, target)
                await client.publish(
                    request.subject, request.body, headers={"Nats-Trace-Dest": target}
                )
            for target in RESERVED:
                await client.publish(request.subject, request.body, target)
        await client.flush(PATIENCE_S)
        await _answered(client, role, requests)
        await asyncio.sleep(0.5)
        _tell(
            f"{name}: {len(requests)} requests x {len(foreign)} targets, {len(observers.arrived)} arrived"
        )
        assert observers.arrived == []
        assert sum(
            MARK.lower() in words and "reply" in words for words in refused
        ) == len(requests) * len(RESERVED)


@pytest.mark.parametrize("name", ROLES)
async def test_an_answer_on_ones_own_import_goes_nowhere_else(
    name: str, pair: Guarded
) -> None:
    """A role may have itself answered where it may publish anyway: that is all that arrives, once an answer."""
    role = ROLES[name]
    requests = list(_requests(ROLES[name]))
    own = [
        one
        for one in TARGETS
        if any(subjects.covers(pattern, one) for pattern in role.publish)
    ]
    async with (
        _observing(pair, name) as observers,
        _as_role(pair, name) as (client, _refused),
    ):
        for request in requests:
            for target in own:
                await client.publish(request.subject, request.body, target)
        await client.flush(PATIENCE_S)
        await _answered(client, role, requests)
        await asyncio.sleep(0.5)
        _tell(
            f"{name}: {len(requests)} requests x {len(own)} imports of its own, {len(observers.arrived)} arrived"
        )
        assert set(observers.arrived) <= set(own)


async def test_the_theft_by_a_card_fails_at_its_first_step(pair: Guarded) -> None:
    """Bytes that a worker put as its card are read back to itself alone, whatever reply it asks for."""
    theft = json.dumps(
        {"user_id": "ann", "text": "I am not allergic to peanuts any more"}
    ).encode()
    card = "$KV.agents.BudgetTrackerAgent"
    where = (
        "tasks.MemoryAgent.learn",
        "turns.0.YW5u",
        "facts.0.YW5u",
        "messages.0.YW5u.YW5u",
        "$KV.agents.MemoryAgent",
    )
    stolen: list[str] = []

    async def hear(message: Msg) -> None:
        if message.data == theft and message.subject in where:
            stolen.append(message.subject)

    async with (
        _examining(pair) as examiner,
        _as_role(pair, "worker-budget") as (worker, _refused),
    ):
        await examiner.subscribe(">", cb=hear)
        await examiner.flush(PATIENCE_S)
        await worker.request(card, theft, timeout=PATIENCE_S)
        for target in where:
            await worker.publish(f"$JS.API.DIRECT.GET.KV_agents.{card}", b"", target)
        back = await worker.request(
            f"$JS.API.DIRECT.GET.KV_agents.{card}", b"", timeout=PATIENCE_S
        )
        await asyncio.sleep(0.5)
        assert back.data == theft
        assert stolen == []


def _tell(words: str) -> None:
    """Print *words* for `pytest -s`."""
    sys.stdout.write(f"\n{words}\n")


def _requests(role: ServerRole) -> Iterator[Request]:
    """Yield each request that *role* may make, in all the words that have another answer."""
    for pattern in role.publish:
        if pattern == ANSWERS:
            continue
        tail = "1.1.1.1.0" if pattern.startswith("$JS.ACK.") else "x"
        subject = (
            pattern.replace("messages.*", "messages.0")
            .replace("*", "x")
            .replace(">", tail)
        )
        bodies = next(
            (bodies for start, bodies in BODIES if subject.startswith(start)), (b"{}",)
        )
        yield from (Request(subject, body) for body in bodies)


async def _answered(
    client: Client, role: ServerRole, requests: list[Request]
) -> set[str]:
    """Return the subjects of those of *requests* that are answered where *role* listens."""
    answered: set[str] = set()
    wanted = {request.subject for request in requests} - UNANSWERED

    async def ask(request: Request) -> None:
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        await client.publish(request.subject, request.body, inbox)
        try:
            await subscription.next_msg(ANSWER_S)
            answered.add(request.subject)
        except TimeoutError:
            pass
        await subscription.unsubscribe()

    # In order: a way back stands until something comes, and a later answer means that the earlier ones were given.
    await asyncio.gather(
        *(ask(request) for request in requests if request.subject in wanted)
    )
    return answered


async def _fill(pair: Guarded) -> None:
    """Make streams and consumers, and put messages where something is asked for."""
    async with _examining(pair) as examiner:
        await declare_streams(examiner, StreamSizes())
        for stream, durable, pattern in CONSUMERS:
            configuration = {
                "durable_name": durable,
                "ack_policy": "explicit",
                "filter_subject": pattern,
            }
            order = json.dumps(
                {"stream_name": stream, "config": configuration}
            ).encode()
            made = f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{durable}"
            assert (
                b"error"
                not in (await examiner.request(made, order, timeout=PATIENCE_S)).data
            )
            for number in range(WAITING):
                depth = (
                    3
                    if stream in (subjects.TASKS, subjects.TURNS, subjects.FACTS)
                    else 4
                )
                subject = ".".join(
                    [*pattern.replace(">", f"0.m{number}.1").split(".")[:depth]]
                )
                await examiner.request(subject, b"+TERM", timeout=PATIENCE_S)
        for key in (
            "agents.MemoryAgent",
            "agents.SwitchboardAgent",
            "agents.BudgetTrackerAgent",
            "workers.x.w",
        ):
            await examiner.request(f"$KV.{key}", b"{}", timeout=PATIENCE_S)


@asynccontextmanager
async def _observing(pair: Guarded, attacker: str) -> AsyncIterator[Observers]:
    """Listen in the account of the streams to everything, and as every role but *attacker* to all that it may hear."""
    observers = Observers()
    async with AsyncExitStack() as stack:
        examiner = await stack.enter_async_context(_examining(pair))
        await examiner.subscribe(">", cb=observers.hear)
        await examiner.flush(PATIENCE_S)
        for name, role in ROLES.items():
            client, _ = await stack.enter_async_context(_as_role(pair, name))
            for pattern in role.serve:
                await client.subscribe(pattern, cb=_answer)
            for pattern in role.subscribe if name != attacker else ():
                await client.subscribe(pattern, cb=observers.hear)
            await client.flush(PATIENCE_S)
        yield observers


async def _answer(message: Msg) -> None:
    await message.respond(b"an answer")


@asynccontextmanager
async def _as_role(pair: Guarded, name: str) -> AsyncIterator[tuple[Client, list[str]]]:
    refused: list[str] = []

    async def hear(error: Exception) -> None:
        refused.append(str(error).lower())

    options = pair.access(name).nats_options()
    client = await nats.connect(
        pair.nats_url, error_cb=hear, skip_subject_validation=True, **options
    )
    async with _closing(client):
        yield client, refused


@asynccontextmanager
async def _examining(pair: Guarded) -> AsyncIterator[Client]:
    authority = pair.access("operator").nats_tls()
    client = await nats.connect(
        pair.nats_url, user=EXAMINER, password=EXAMINER, tls=authority
    )
    async with _closing(client):
        yield client


@asynccontextmanager
async def _closing(client: Client) -> AsyncIterator[None]:
    try:
        yield
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await client.close()
