"""What is erased from a stream is in none of its files, and in no consumer's way."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nats.aio.client import Client

from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.erasure import ErasedMessages, Eraser
from tasklore.runtime.messaging.jetstream import JetStreamRefused, ask_jetstream
from tasklore.runtime.servers.embedded import EmbeddedServers

STREAM = "TURNS"
DURABLE = "listener"
ADA = "turns.3.ada"
BOB = "turns.3.bob"
FILLER = "turns.16.filler"
#: Bytes beside each secret, about what a turn has.
REST = b" and much more was said" * 20
#: Seconds that any step may take on a busy machine; no test waits for it to pass.
PATIENCE_S = 60.0


@dataclass
class Archive:
    client: Client
    folder: Path

    @property
    def eraser(self) -> Eraser:
        return Eraser(self.client, deadline_s=PATIENCE_S)

    def files_with(self, secret: bytes) -> list[str]:
        files = [file for file in self.folder.rglob("*") if file.is_file()]
        return [file.name for file in files if secret in _content(file)]

    async def until_written(self, *secrets: bytes) -> None:
        """Return when each of *secrets* stands in a file: the server writes down what it stored when it likes."""
        async with asyncio.timeout(PATIENCE_S):
            while not all(self.files_with(secret) for secret in secrets):  # noqa: ASYNC110 - a file makes no event
                await asyncio.sleep(0.01)

    async def say(self, secret: bytes, subject: str = ADA, message_id: str = "") -> int:
        headers = {
            "Nats-Msg-Id": message_id or secret.decode(),
            "Tasklore-Secret": f"head-{secret.decode()}",
        }
        answer = await self.client.request(
            subject, secret + REST, timeout=PATIENCE_S, headers=headers
        )
        return int(json.loads(answer.data)["seq"])

    async def take(self, count: int) -> dict[int, str]:
        """Have *count* messages delivered; return where to acknowledge each, by number."""
        inbox = self.client.new_inbox()
        subscription = await self.client.subscribe(inbox)
        request = {"batch": count, "expires": int(PATIENCE_S) * 10**9}
        await self.client.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{DURABLE}",
            json.dumps(request).encode(),
            inbox,
        )
        replies = [
            (await subscription.next_msg(timeout=PATIENCE_S)).reply
            for _ in range(count)
        ]
        return {int(reply.split(".")[5]): reply for reply in replies}

    async def acknowledge(self, reply: str) -> None:
        await self.client.request(reply, b"+ACK", timeout=PATIENCE_S)

    async def at_work(self) -> tuple[int, int]:
        info = await ask_jetstream(self.client, f"CONSUMER.INFO.{STREAM}.{DURABLE}")
        return info["num_ack_pending"], info["num_pending"]

    async def until_at_work(self, delivered: int, waiting: int) -> None:
        """Return when the consumer has these numbers: the server books what was erased for it a moment later."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.at_work() != (delivered, waiting):  # noqa: ASYNC110 - it tells nobody when
                await asyncio.sleep(0.01)

    async def stored(self) -> int:
        state = (await ask_jetstream(self.client, f"STREAM.INFO.{STREAM}"))["state"]
        return int(state["messages"])


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


@pytest.fixture
async def archive(own_servers: EmbeddedServers) -> AsyncIterator[Archive]:
    async with connected(own_servers.nats_url, "test") as client:
        queue = {
            "name": STREAM,
            "subjects": ["turns.>"],
            "retention": "workqueue",
            "allow_direct": True,
        }
        await ask_jetstream(
            client, f"STREAM.CREATE.{STREAM}", queue | {"duplicate_window": 300 * 10**9}
        )
        consumer = {
            "durable_name": DURABLE,
            "ack_policy": "explicit",
            "ack_wait": 10**9,
            "filter_subject": "turns.3.>",
        }
        call = f"CONSUMER.DURABLE.CREATE.{STREAM}.{DURABLE}"
        await ask_jetstream(client, call, {"stream_name": STREAM, "config": consumer})
        yield Archive(client, own_servers.nats.data_dir)


async def test_an_erased_message_is_in_no_file(archive: Archive) -> None:
    """Neither body, headers nor subject: of the first, one between others, and the last."""
    for number in range(1, 10):
        await archive.say(b"secret%d" % number, f"turns.3.person{number}")
    await archive.until_written(b"secret1", b"secret4", b"secret9")
    for erased in (1, 5, 9):
        assert await archive.eraser.erase(STREAM, erased)
        for trace in (b"secret%d", b"head-secret%d", b"person%d"):
            assert archive.files_with(trace % erased) == []
    assert archive.files_with(b"secret4") != []
    assert await archive.stored() == 6


async def test_an_erased_message_counts_as_acknowledged(archive: Archive) -> None:
    """It is not offered again, and a late acknowledgement does no harm; a waiting one is never delivered."""
    for number in range(1, 5):
        await archive.say(b"secret%d" % number)
    replies = await archive.take(4)
    assert await archive.at_work() == (4, 0)
    assert await archive.eraser.erase(STREAM, 2)
    await archive.until_at_work(3, 0)
    await archive.acknowledge(replies[2])
    assert (await archive.at_work(), await archive.stored()) == ((3, 0), 3)
    await archive.say(b"secret5")
    assert await archive.eraser.erase(STREAM, 5)
    assert set(await archive.take(3)) == {1, 3, 4}


async def test_erasing_what_is_gone_is_no_error(archive: Archive) -> None:
    for number in range(1, 4):
        await archive.say(b"secret%d" % number)
    replies = await archive.take(3)
    await archive.acknowledge(replies[1])
    assert await archive.eraser.erase(STREAM, 2)
    for gone in (1, 2, 0, 4, 10**9):
        assert not await archive.eraser.erase(STREAM, gone)
    assert await archive.eraser.erase_many(STREAM, [1, 2, 3, 4]) == ErasedMessages(
        erased=1, gone=3
    )
    assert await archive.eraser.erase_many(STREAM, []) == ErasedMessages(0, 0)


async def test_erasing_from_a_missing_stream_is_an_error(archive: Archive) -> None:
    with pytest.raises(JetStreamRefused):
        await archive.eraser.erase("NOWHERE", 1)
    with pytest.raises(JetStreamRefused):
        await archive.eraser.erase_many("NOWHERE", [1])
    with pytest.raises(Unreachable):
        await archive.eraser.erase_by_subject("NOWHERE", ADA)
    with pytest.raises(JetStreamRefused):
        await archive.eraser.turn_over("NOWHERE", FILLER)


async def test_one_persons_messages_are_erased_and_no_others(archive: Archive) -> None:
    for number in range(300):
        await archive.say(b"alice%d" % number, ADA)
    for number in range(3):
        await archive.say(b"robert%d" % number, BOB)
    await archive.take(10)
    assert await archive.eraser.erase_by_subject(STREAM, ADA) == ErasedMessages(
        erased=300, gone=0
    )
    assert (archive.files_with(b"alice"), await archive.stored()) == ([], 3)
    assert set(await archive.take(3)) == {301, 302, 303}
    assert await archive.eraser.erase_by_subject(STREAM, ADA) == ErasedMessages(0, 0)


async def test_what_a_person_says_while_they_are_forgotten_is_erased_too(
    archive: Archive,
) -> None:
    """It came behind the page that was being read."""
    await archive.say(b"alice1", ADA)
    late: list[asyncio.Task[None]] = []

    def wanted(_stored: object) -> bool:
        if not late:
            late.append(asyncio.create_task(archive.say(b"alice2", ADA)))
        return True

    done = await archive.eraser.erase_by_subject(STREAM, ADA, wanted)
    await late[0]
    assert (done, await archive.stored()) == (ErasedMessages(erased=2, gone=0), 0)


async def test_only_matching_messages_of_a_shared_subject_are_erased(
    archive: Archive,
) -> None:
    for name in (b"alice1", b"robert1", b"alice2"):
        await archive.say(name, "turns.3.shared")
    await archive.until_written(b"alice", b"robert1")
    done = await archive.eraser.erase_by_subject(
        STREAM, "turns.>", lambda stored: stored.body.startswith(b"alice")
    )
    assert done == ErasedMessages(erased=2, gone=0)
    assert (archive.files_with(b"alice"), archive.files_with(b"robert1")) == (
        [],
        ["1.blk"],
    )


async def test_erased_messages_stay_erased_when_the_server_is_killed(
    archive: Archive, own_servers: EmbeddedServers
) -> None:
    for number in range(1, 6):
        await archive.say(b"secret%d" % number)
    assert await archive.eraser.erase_many(STREAM, [2, 5]) == ErasedMessages(
        erased=2, gone=0
    )
    own_servers.nats.kill()
    await own_servers.nats.start()
    assert archive.files_with(b"secret2") + archive.files_with(b"secret5") == []
    async with connected(own_servers.nats_url, "again") as client:
        again = Archive(client, archive.folder)
        assert await again.stored() == 3
        assert set(await again.take(3)) == {1, 3, 4}


async def test_a_repeat_of_an_erased_message_is_not_stored(archive: Archive) -> None:
    await archive.say(b"secret", message_id="t1")
    assert await archive.eraser.erase(STREAM, 1)
    await archive.say(b"secret", message_id="t1")
    assert (archive.files_with(b"secret"), await archive.stored()) == ([], 0)


async def test_acknowledged_messages_are_dropped_from_the_files_although_others_wait_there(
    archive: Archive,
) -> None:
    waiting = 200
    for number in range(waiting):
        await archive.say(b"waits%d" % number, "turns.5.later")
    for number in range(100):
        await archive.say(b"secret%d" % number)
    for reply in (await archive.take(100)).values():
        await archive.acknowledge(reply)
    await archive.until_written(b"secret", b"waits0")
    assert await archive.eraser.turn_over(STREAM, FILLER) == waiting
    await until_away(archive, b"secret")
    assert await archive.stored() == waiting
    assert archive.files_with(b"waits0") != []


async def test_a_stream_of_one_message_a_subject_is_turned_over_too(
    archive: Archive,
) -> None:
    reports = {
        "name": "REPORTS",
        "subjects": ["reports.>"],
        "max_msgs_per_subject": 1,
        "discard": "new",
    }
    await ask_jetstream(
        archive.client,
        "STREAM.CREATE.REPORTS",
        reports | {"discard_new_per_subject": True},
    )
    for number in range(20):
        await archive.say(b"secret%d" % number, f"reports.s.{number}")
    await ask_jetstream(
        archive.client, "STREAM.MSG.DELETE.REPORTS", {"seq": 7, "no_erase": True}
    )
    await archive.until_written(b"secret5", b"secret6")
    assert await archive.eraser.turn_over("REPORTS", "reports.~filler") == 19
    await until_away(archive, b"secret6")
    assert archive.files_with(b"secret5") != []


async def test_a_killed_turnover_is_cleared_by_the_next(archive: Archive) -> None:
    await archive.say(b"waits", "turns.5.later")
    await archive.client.request(f"{FILLER}.0", os.urandom(1000), timeout=PATIENCE_S)
    assert await archive.stored() == 2
    assert await archive.eraser.turn_over(STREAM, FILLER) == 1
    assert await archive.stored() == 1


async def until_away(archive: Archive, secret: bytes) -> None:
    """Return when no file holds *secret*: the server looks through its files once in its sync interval, 1 s here."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if not archive.files_with(secret):
                return
            await asyncio.sleep(0.05)
