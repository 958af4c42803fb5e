"""The outbox on a real stream: each letter stored once, through outages, or given up with the reason."""

import asyncio
import base64
import contextlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.errors import MessageTooLarge, NotAccepted, QueueFull
from tasklore.contracts.subjects import MAX_BODY, MAX_MESSAGE
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link, read_headers
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.servers.embedded import EmbeddedServers, NatsServer

PATIENCE_S = 60.0


@dataclass
class Post:
    """An outbox, and the stream that takes its letters."""

    link: Link
    outbox: Outbox
    stream: str

    async def stored(self) -> int:
        return int(
            (await ask_jetstream(self.link.client, f"STREAM.INFO.{self.stream}"))[
                "state"
            ]["messages"]
        )

    async def make_stream(self, **more: Any) -> None:
        wanted = {
            "name": self.stream,
            "subjects": [f"{self.stream}.>"],
            "storage": "file",
        }
        await ask_jetstream(
            self.link.client, f"STREAM.CREATE.{self.stream}", wanted | more
        )


class Meter:
    """Counts refusals by their reason, and notes that a letter was sent again."""

    def __init__(self) -> None:
        self.retried = asyncio.Event()
        self.refused: Counter[str] = Counter()

    def count_publish_retry(self) -> None:
        self.retried.set()

    def count_publish_refused(self, reason: str) -> None:
        self.refused[reason] += 1


@contextlib.asynccontextmanager
async def a_post(url: str, meter: Meter | None = None) -> AsyncIterator[Post]:
    """Open an outbox on a connection of its own."""
    name = f"O{uuid.uuid4().hex}"
    async with connected(url, name) as client:
        link = Link(client)
        async with open_outbox(link, meter) as outbox:
            yield Post(link, outbox, name)


@pytest.fixture
async def post(servers: EmbeddedServers) -> AsyncIterator[Post]:
    async with a_post(servers.nats_url) as post:
        await post.make_stream()
        yield post
        with contextlib.suppress(Exception):
            await ask_jetstream(post.link.client, f"STREAM.DELETE.{post.stream}")


class Answers:
    """What became of letters that were sent without waiting."""

    def __init__(self, count: int) -> None:
        self.problems: list[NotAccepted | None] = []
        self._count = count
        self._complete = asyncio.Event()

    def __call__(self, problem: NotAccepted | None) -> None:
        self.problems.append(problem)
        if len(self.problems) == self._count:
            self._complete.set()

    async def complete(self) -> list[NotAccepted | None]:
        async with asyncio.timeout(PATIENCE_S):
            await self._complete.wait()
        return self.problems


async def test_a_thousand_letters_at_once_are_all_stored_and_answered_once(
    post: Post,
) -> None:
    answers = Answers(1000)
    for number in range(1000):
        post.outbox.send(f"{post.stream}.{number}", b"{}", f"letter-{number}", answers)
    assert await answers.complete() == [None] * 1000
    assert (await post.stored(), post.outbox.waiting) == (1000, 0)


async def test_a_repeated_message_id_or_a_taken_subject_counts_as_stored(
    post: Post,
) -> None:
    """Of two reports on one task the stream refuses the second, which is what its sender wanted to know."""
    for _ in range(3):
        await post.outbox.put(f"{post.stream}.x", b"{}", "the-same")
    assert await post.stored() == 1
    single = replace(post, stream=f"{post.stream}S")
    await single.make_stream(
        max_msgs_per_subject=1, discard="new", discard_new_per_subject=True
    )
    await post.outbox.put(f"{single.stream}.x", b"first", "one")
    await post.outbox.put(f"{single.stream}.x", b"second", "two")
    assert await single.stored() == 1


async def test_headers_are_stored_and_none_of_them_begins_another(post: Post) -> None:
    await post.outbox.put(
        f"{post.stream}.x", b"{}", "one", headers={"Tasklore-Generation": "2"}
    )
    stored = await post.link.client.jetstream().get_last_msg(
        post.stream, f"{post.stream}.x"
    )
    assert stored.headers == {"Nats-Msg-Id": "one", "Tasklore-Generation": "2"}
    hostile = {
        "Tasklore-User": "x\r\nNats-Expected-Stream: other",
        "X-Odd\nNats-Expected-Last-Sequence": "7\n",
    }
    await post.outbox.put(f"{post.stream}.y", b"{}", "two", headers=hostile)
    asked = {"last_by_subj": f"{post.stream}.y"}
    found = await ask_jetstream(
        post.link.client, f"STREAM.MSG.GET.{post.stream}", asked
    )
    names = set(read_headers(base64.b64decode(found["message"]["hdrs"])) or {})
    assert names == {
        "Nats-Msg-Id",
        "Tasklore-User",
        "X-Odd Nats-Expected-Last-Sequence",
    }


async def test_a_letter_that_no_stream_takes_is_given_up_with_the_reason(
    servers: EmbeddedServers,
) -> None:
    meter = Meter()
    async with a_post(servers.nats_url, meter) as post:
        with pytest.raises(
            NotAccepted, match="no stream takes this subject"
        ) as unknown:
            await post.outbox.put("nowhere.at.all", b"{}", "one", patience_s=0.5)
        await post.make_stream(max_msg_size=100)
        with pytest.raises(NotAccepted, match="exceeds maximum") as refused:
            await post.outbox.put(f"{post.stream}.x", b"x" * 500, "one", patience_s=0.5)
        assert post.outbox.waiting == 0
    assert not isinstance(unknown.value, QueueFull)
    assert not isinstance(refused.value, QueueFull)
    assert set(meter.refused) == {"no_stream", "other"}


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"max_msgs": 1}, "maximum messages exceeded"),
        ({"max_bytes": 200}, "maximum bytes exceeded"),
    ],
)
async def test_a_full_stream_is_an_error_at_once_with_the_time_to_retry(
    servers: EmbeddedServers, limit: dict[str, int], words: str
) -> None:
    meter = Meter()
    async with a_post(servers.nats_url, meter) as post:
        await post.make_stream(discard="new", **limit)
        await post.outbox.put(f"{post.stream}.x", b"{}", "one")
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(QueueFull, match=words) as refused:
                await post.outbox.put(
                    f"{post.stream}.y", b"x" * 200, "two", patience_s=10 * PATIENCE_S
                )
        assert refused.value.retry_after_s > 0
        assert f"{refused.value.retry_after_s:g} s" in str(refused.value)
        assert (await post.stored(), post.outbox.waiting) == (1, 0)
        await post.outbox.put(f"{post.stream}.x", b"{}", "one")
    assert set(meter.refused) == {"full"}


async def test_a_letter_that_waits_for_room_is_stored_or_given_up_with_the_reason(
    servers: EmbeddedServers,
) -> None:
    async with a_post(servers.nats_url) as post:
        await post.make_stream(max_msgs=1, discard="new")
        await post.outbox.put(f"{post.stream}.x", b"{}", "one")
        given_up = Answers(1)
        answers = Answers(1)
        post.outbox.send(f"{post.stream}.w", b"{}", "zero", given_up, patience_s=0.5)
        [problem] = await given_up.complete()
        assert isinstance(problem, NotAccepted)
        assert "maximum messages exceeded" in str(problem)
        post.outbox.send(f"{post.stream}.y", b"{}", "two", answers)
        waiting = asyncio.create_task(
            post.outbox.put(
                f"{post.stream}.y",
                b"{}",
                "two",
                patience_s=PATIENCE_S,
                waits_when_full=True,
            )
        )
        with pytest.raises(QueueFull):
            await post.outbox.put(f"{post.stream}.z", b"{}", "three")
        assert (waiting.done(), answers.problems) == (False, [])
        await ask_jetstream(post.link.client, f"STREAM.PURGE.{post.stream}")
        await waiting
        assert await answers.complete() == [None]
        assert await post.stored() == 1


class Cramped(NatsServer):
    """A server that has a mebibyte for all, or for the one account that everybody is in."""

    per_account = False

    def _configuration(self, port: int) -> dict[str, object]:
        configuration = super()._configuration(port)
        room = {"max_file": 1024**2, "max_mem": 1024**2}
        if not self.per_account:
            store_dir = str(self.data_dir)
            return configuration | {"jetstream": {"store_dir": store_dir, **room}}
        somebody = {"user": "somebody", "password": "anything"}
        accounts = {"SMALL": {"users": [somebody], "jetstream": room}}
        return configuration | {"accounts": accounts, "no_auth_user": "somebody"}


async def fill(post: Post) -> None:
    """Store two megabytes, letter by letter."""
    for number in range(20):
        await post.outbox.put(
            f"{post.stream}.x",
            b"x" * 100_000,
            f"letter-{number}",
            patience_s=PATIENCE_S,
        )


@pytest.mark.parametrize(
    ("per_account", "words"),
    [(False, "insufficient resources"), (True, "resource limits exceeded for account")],
)
async def test_a_server_or_an_account_without_room_is_full_too(
    tmp_path: Path, per_account: bool, words: str
) -> None:
    server = Cramped(tmp_path)
    server.per_account = per_account
    await server.start()
    try:
        async with a_post(server.url) as post:
            await post.make_stream(discard="new")
            with pytest.raises(QueueFull, match=words):
                await fill(post)
    finally:
        await server.stop()


async def test_a_letter_waits_for_a_stream_that_is_created_later(
    servers: EmbeddedServers,
) -> None:
    meter = Meter()
    async with a_post(servers.nats_url, meter) as post:
        waiting = asyncio.create_task(
            post.outbox.put(f"{post.stream}.x", b"{}", "one", patience_s=PATIENCE_S)
        )
        async with asyncio.timeout(PATIENCE_S):
            await meter.retried.wait()
        await post.make_stream()
        await waiting
        assert await post.stored() == 1


async def test_a_body_or_headers_too_large_for_the_server_are_refused_before_they_are_sent(
    post: Post,
) -> None:
    """The server closes a connection over a message of more than 1 MiB; the largest that we allow it takes."""
    with pytest.raises(MessageTooLarge, match=str(MAX_BODY)):
        await post.outbox.put(f"{post.stream}.x", b"x" * (MAX_BODY + 1), "one")
    longest = MAX_MESSAGE - MAX_BODY - len("Nats-Msg-Id: two\r\nX-Long: \r\n")
    with pytest.raises(
        MessageTooLarge, match=f"{MAX_MESSAGE + 1} bytes of body and headers"
    ):
        await post.outbox.put(
            f"{post.stream}.x",
            b"x" * MAX_BODY,
            "two",
            headers={"X-Long": "x" * (longest + 1)},
        )
    assert (post.outbox.waiting, await post.stored()) == (0, 0)
    await post.outbox.put(
        f"{post.stream}.x", b"x" * MAX_BODY, "two", headers={"X-Long": "x" * longest}
    )
    assert await post.stored() == 1


async def test_letters_sent_during_an_outage_are_stored_once_after_it(
    own_servers: EmbeddedServers,
) -> None:
    async with a_post(own_servers.nats_url) as post:
        await post.make_stream()
        answers = Answers(300)

        def send(numbers: range) -> None:
            for number in numbers:
                post.outbox.send(
                    f"{post.stream}.{number}", b"{}", f"letter-{number}", answers
                )

        send(range(100))
        own_servers.nats.kill()
        send(range(100, 200))
        await asyncio.sleep(
            0
        )  # one turn of the loop: the connection has not noticed yet
        send(range(200, 300))
        await own_servers.nats.start()
        assert await answers.complete() == [None] * 300
        assert await post.stored() == 300


async def test_a_letter_given_up_in_an_outage_is_not_stored_after_it(
    own_servers: EmbeddedServers,
) -> None:
    """Its sender heard that it is not stored: no buffer may bring it later, past the time of its message id."""
    async with a_post(own_servers.nats_url) as post:
        await post.make_stream()
        own_servers.nats.kill()
        async with asyncio.timeout(PATIENCE_S):
            while post.link.is_connected:  # noqa: ASYNC110 - the connection makes no event here
                await asyncio.sleep(0.01)
        with pytest.raises(NotAccepted, match="the server did not answer"):
            await post.outbox.put(f"{post.stream}.x", b"{}", "one", patience_s=0.5)
        # A subject that cannot be written must not end the repeating of the other letters.
        with pytest.raises(UnicodeEncodeError):
            post.outbox.send(f"{post.stream}.\udcff", b"{}", "odd", Answers(1))
        assert post.outbox.waiting == 0
        answers = Answers(1)
        post.outbox.send(f"{post.stream}.y", b"{}", "two", answers)
        await own_servers.nats.start()
        assert await answers.complete() == [None]
        assert await post.stored() == 1


async def test_closing_waits_for_letters_under_way(servers: EmbeddedServers) -> None:
    async with connected(servers.nats_url, "reader") as client:
        async with a_post(servers.nats_url) as post:
            await post.make_stream()
            answers = Answers(50)
            for number in range(50):
                post.outbox.send(
                    f"{post.stream}.{number}", b"{}", f"letter-{number}", answers
                )
        assert answers.problems == [None] * 50
        info = await ask_jetstream(client, f"STREAM.INFO.{post.stream}")
        assert info["state"]["messages"] == 50
