"""What tests of dead letters share: a pair of servers with the system's streams, and letters as workers write them."""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import TaskName
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.dead_letter import DEAD_BODY
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.dead_letters.letters import digest_of
from tasklore.supervisor.dead_letters.queue import DeadLetters, open_dead_letters
from tests.ledger_layouts import finish_long_ago

#: Seconds in which a server has written to disk what it was told; it does so once a second.
PATIENCE_S = 60.0


@dataclass
class Morgue:
    """A pair of servers with the system's streams, and what lies in DEAD there."""

    servers: EmbeddedServers
    link: Link
    ledger: Ledger
    letters: DeadLetters

    async def bury(
        self, *letters: bytes, subject: str = "dead.tasks.TripAgent.share_trip"
    ) -> None:
        """Put *letters* into DEAD, in this order."""
        stream = self.link.client.jetstream()
        for letter in letters:
            await stream.publish(subject, letter)

    async def bury_many(
        self, number: int, agent: str = "TripAgent", reason: str = "attempts"
    ) -> list[str]:
        """Put *number* letters into DEAD at once and return their task ids, in order."""
        stream = self.link.client.jetstream()
        task_ids = [uuid.uuid4().hex for _ in range(number)]
        made = [a_letter(task_id, agent=agent, reason=reason) for task_id in task_ids]
        subject = f"dead.tasks.{agent}.share_trip"
        await asyncio.gather(
            *[await stream.publish_async(subject, letter) for letter in made]
        )
        return task_ids

    async def count(self, stream: str) -> int:
        """Return how many messages *stream* holds."""
        return int(
            (await ask_jetstream(self.link.client, f"STREAM.INFO.{stream}"))["state"][
                "messages"
            ]
        )

    async def tasks(self) -> list[tuple[str, dict[str, str], bytes]]:
        """Return subject, headers and body of everything in TASKS."""
        state = (await ask_jetstream(self.link.client, "STREAM.INFO.TASKS"))["state"]
        stream = self.link.client.jetstream()
        numbers = range(state["first_seq"], state["last_seq"] + 1)
        found = [await stream.get_msg("TASKS", number) for number in numbers]
        return [
            (one.subject or "", dict(one.headers or {}), one.data or b"")
            for one in found
        ]

    async def finish_long_ago(self, task: TaskName, generation: int, end: str) -> None:
        """Let *task* have ended so days ago, in the ledger by agent."""
        async with valkey.connect(self.servers.redis_url) as redis:
            await finish_long_ago(redis, task, generation=generation, end=end)

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
    async with (
        connected(servers.nats_url, "morgue") as client,
        valkey.connect(servers.redis_url) as redis,
    ):
        await declare_streams(client, StreamSizes())
        for agent in ("TripAgent", "OtherAgent", "RareAgent"):
            await put_card(client, agent)
        link = Link(client)
        ledger = Ledger(redis)
        async with (
            open_outbox(link) as outbox,
            open_dead_letters(link, outbox, ledger) as letters,
        ):
            yield Morgue(servers, link, ledger, letters)


async def put_card(client: Client, agent: str, **task: Any) -> None:
    """Let *agent* be known, whose task `share_trip` is as *task* has it."""
    card = {
        "agent_id": agent,
        "digest": "d",
        "tasks": [{"name": "share_trip", "parameters": {}} | task],
    }
    await client.jetstream().publish(
        f"$KV.{subjects.AGENTS_BUCKET}.{agent}", json.dumps(card).encode()
    )


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


def a_letter(
    task_id: str | None,
    body: bytes | None = None,
    agent: str = "TripAgent",
    **fields: Any,
) -> bytes:
    """Return a dead letter as a worker writes it."""
    carried = an_assignment(task_id or "", agent) if body is None else body
    whole = {
        "reason": "attempts",
        "error": {"type": "OSError", "message": "disk full"},
        "subject": f"tasks.{agent}.share_trip",
        "sequence": 1,
        "attempts": 5,
        "headers": {
            "Tasklore-Generation": "1",
            "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
        },
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
