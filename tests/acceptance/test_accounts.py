"""With the shipped accounts, what one role says and another hears arrives, once: on one server and on three."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from deploy.privileges.roles import Cast, ServerRole
from tasklore.contracts import subjects
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tests.acceptance.guarded import GuardedCluster, guarded_cluster
from tests.servers import PATIENCE_S

#: Two Deployments whose tasks call one another's agents, and a program that answers questions.
CAST = Cast(
    workers={"first": ("FirstAgent",), "second": ("SecondAgent",)},
    programs={"chat": ("chat",), "other": ("other",)},
    calls={"first": ("SecondAgent",), "second": ("FirstAgent",)},
    approvers={"chat": ("role:finance",)},
)
ROLES = {role.name: role for role in CAST.roles()}
#: Streams whose subjects are heard as well, each message once: what is said must not be stored for every listener.
STORED = (subjects.REPORTS, subjects.OUTPUT)


@dataclass(frozen=True)
class Pair:
    """A subject that *saying* publishes and *hearing* subscribes to, both as their roles have them."""

    saying: str
    said: str
    hearing: str
    heard: str

    def subject(self, number: int) -> str:
        """Return a subject that fits both, of its own for each *number*."""
        words = itertools.zip_longest(self.said.split("."), self.heard.split("."))
        concrete = [
            next((one for one in pair if one not in ("*", ">", None)), f"x{number}")
            for pair in words
        ]
        return ".".join(concrete)


def pairs() -> list[Pair]:
    """Return every subject that is said by one role and heard by one, itself among them."""
    return [
        Pair(saying=saying.name, said=said, hearing=hearing.name, heard=heard)
        for saying, hearing in itertools.product(ROLES.values(), repeat=2)
        for said, heard in itertools.product(saying.publish, hearing.hear)
        if subjects.overlap(said, heard)
    ]


class Ears:
    """Hears all that its roles may hear, on each server."""

    def __init__(self) -> None:
        self.heard: Counter[tuple[str, int, str]] = Counter()
        """By role, server and what was said."""

    async def open(self, client: Client, role: ServerRole, server: int) -> None:
        async def hear(message: Msg) -> None:
            self.heard[role.name, server, message.data.decode()] += 1

        for subject in role.hear:
            await client.subscribe(subject, cb=hear)
        await client.flush()


@pytest.fixture(scope="module", params=[1, 3], ids=["one server", "three servers"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedCluster]:
    folder = tmp_path_factory.mktemp("accounts")
    with guarded_cluster(folder, CAST, nodes=request.param) as cluster:
        yield cluster


@pytest.fixture
async def clients(
    cluster: GuardedCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Mapping[tuple[str, int], Client]]:
    """Connect every role to every server."""
    async with contextlib.AsyncExitStack() as stack:
        found = {}
        for name in ROLES:
            for variable, value in cluster.environment(name).items():
                monkeypatch.setenv(variable, value)
            for server, url in enumerate(cluster.nats_urls):
                found[name, server] = await stack.enter_async_context(
                    connected(url, f"{name}-{server}")
                )
        yield found


def test_there_is_something_to_hear() -> None:
    """Wishes to cancel, progress, output, reports, runs, questions and cards, all of more than one role."""
    kinds = Counter(pair.subject(0).split(".")[0] for pair in pairs())
    assert kinds.keys() >= {
        "cancel",
        "progress",
        "output",
        "reports",
        "runs",
        "questions",
        "$KV",
    }
    assert sum(kinds.values()) >= 50


async def test_all_that_is_said_is_heard_once_wherever_it_was_said(
    cluster: GuardedCluster, clients: Mapping[tuple[str, int], Client]
) -> None:
    """Each role on each server says it, each role on each server hears it: once, and what is stored is stored once."""
    async with asyncio.timeout(PATIENCE_S):
        await declare_streams(clients["bootstrap", 0], StreamSizes())
    ears = Ears()
    for (name, server), client in clients.items():
        await ears.open(client, ROLES[name], server)

    servers = range(len(cluster.nats_urls))
    numbers = itertools.count()
    expected: set[tuple[str, int, str]] = set()
    said: dict[str, str] = {}
    for pair, server in itertools.product(pairs(), servers):
        number = next(numbers)
        what = f"{number} {pair.saying} on {server}"
        subject = pair.subject(number)
        said[what] = subject
        # Whoever else may hear it hears it, too.
        expected |= {
            (role.name, other, what)
            for role in ROLES.values()
            for other in servers
            if any(subjects.covers(one, subject) for one in role.hear)
        }
        await clients[pair.saying, server].publish(subject, what.encode())
    for client in clients.values():
        await client.flush()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S / 3):
            while expected - ears.heard.keys():  # noqa: ASYNC110 - other servers bring it
                await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)

    missing = expected - ears.heard.keys()
    assert not missing, _told(missing, said)
    twice = {key for key, times in ears.heard.items() if times > 1}
    assert not twice, _told(twice, said)
    assert not ears.heard.keys() - expected
    print(f"{len(servers)} servers: {len(said)} said, {len(expected)} heard")  # noqa: T201 - the figures
    for stream in STORED:
        told = await ask_jetstream(clients["operator", 0], f"STREAM.INFO.{stream}")
        wanted = [one for one in said.values() if one.startswith(stream.lower() + ".")]
        assert told["state"]["messages"] == len(wanted), stream


def _told(keys: set[tuple[str, int, str]], said: Mapping[str, str]) -> list[str]:
    return sorted(
        f"{name} on {server}: {said[what]} of {what}" for name, server, what in keys
    )[:40]


async def test_every_subject_of_a_role_that_is_asked_is_reached(
    cluster: GuardedCluster, clients: Mapping[tuple[str, int], Client]
) -> None:
    """Requests in words, pipelines, analyses, handed ones, and answers by a program that stands for a person."""

    async def answer(message: Msg) -> None:
        await message.respond(message.data)

    serving = [role for role in ROLES.values() if role.serve]
    assert serving
    asked = [
        (role, server_role, subject)
        for server_role in serving
        for role in ROLES.values()
        for subject in role.publish
        if any(subjects.covers(served, subject) for served in server_role.serve)
    ]
    assert {role.name for role, _, subject in asked if "approvals" in subject} == {
        "chat"
    }
    # With the caller that a supervisor acts for: no role but this one may name it.
    assert {
        role.name for role, _, subject in asked if subject.startswith("operations.")
    } == {"operator"}
    servers = range(len(cluster.nats_urls))
    for (role, serving_role, subject), asking_on, serving_on in itertools.product(
        asked, servers, servers
    ):
        client = clients[serving_role.name, serving_on]
        concrete = subject.replace("*", "x")
        # The rights of the one that is asked are to its patterns as they are.
        (pattern,) = [
            one for one in serving_role.serve if subjects.covers(one, subject)
        ]
        listening = await client.subscribe(pattern, cb=answer)
        await client.flush()
        try:
            reply = await _asked(clients[role.name, asking_on], concrete)
            assert reply == b"?", (role.name, subject)
        finally:
            await listening.unsubscribe()


async def _asked(client: Client, subject: str) -> bytes:
    """Ask until somebody answers: other servers hear a moment later who listens, and who no longer does."""
    async with asyncio.timeout(PATIENCE_S / 3):
        while True:
            try:
                return (await client.request(subject, b"?", timeout=1)).data
            except (NoRespondersError, TimeoutError):
                await asyncio.sleep(0.02)
