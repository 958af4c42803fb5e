"""The program outside that submits tasks and reads reports: it knows the wire alone and spells subjects itself.

An assignment is published again under one message id until it is acknowledged. Reports are read from the stream, as
it stores them; what passes by on the core subject is noted beside them, also what the stream refused.
"""

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.acceptance.chaos.history import History, Kind
from tests.acceptance.external_program import Outside

#: Publishes under way at a time: enough for a strict server, which writes each to the disk.
AT_ONCE = 64
#: Reports asked for at a time.
_PAGE = 256
#: Seconds to wait for one answer; a server that was killed gives none.
_ANSWER_S = 2.0
#: Seconds between looks at a stream.
_LOOK_S = 0.1
#: Seconds to go on publishing one assignment: no outage of a storm is as long, and the stream knows a repeat for 300.
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Assignment:
    """A task to be submitted.

    What it owes is for the checker: an `effect`, and a `fence`, when no run may begin while the ledger is away.
    """

    task: str
    parameters: dict[str, Any]
    owes: str = "effect"
    max_attempts: int = 50


class Submitter:
    """Submits to *agent* and follows its reports; everything goes into *history*."""

    def __init__(self, client: Client, agent: str, history: History) -> None:
        self._client = client
        self._agent = agent
        self._history = history
        #: The same wire, for what others ask of the servers.
        self.wire = Outside(client, f"Chaos-{uuid.uuid4().hex[:8]}")
        self.accepted: set[str] = set()
        self.reported: set[str] = set()
        #: The digest of every stored report, by task and generation.
        self.digests: dict[tuple[str, int], str] = {}
        self._next_sequence = 1
        self.is_over = False

    async def submit_all(self, assignments: Iterable[Assignment]) -> None:
        """Submit everything, and return when all of it is acknowledged."""
        turns = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for assignment in assignments:
                await turns.acquire()
                group.create_task(self.submit(assignment)).add_done_callback(
                    lambda _task: turns.release()
                )

    async def submit(self, assignment: Assignment, *, generation: int = 1) -> str:
        """Publish *assignment* until it is acknowledged, and return its task id."""
        task_id = str(uuid.uuid4())
        body = {
            "schema_version": 1,
            "task_id": task_id,
            "agent_id": self._agent,
            "supervisor_id": self.wire.supervisor_id,
            "task": {"name": assignment.task, "parameters": assignment.parameters},
            "created_at": datetime.now(UTC).isoformat(),
            "max_attempts": assignment.max_attempts,
        }
        headers = {"Nats-Msg-Id": f"{task_id}:{generation}"}
        self._history.note(
            "submit", task=task_id, generation=generation, about=assignment.owes
        )
        subject = f"tasks.{self._agent}.{assignment.task}"
        async with asyncio.timeout(_PATIENCE_S):
            sequence = await self._publish(subject, json.dumps(body).encode(), headers)
        self._history.note(
            "accepted", task=task_id, generation=generation, sequence=sequence
        )
        self.accepted.add(task_id)
        return task_id

    async def _publish(self, subject: str, body: bytes, headers: dict[str, str]) -> int:
        """Return the sequence under which *body* is stored, having published it as often as it took."""
        while True:
            try:
                answer = json.loads(
                    (
                        await self._client.request(
                            subject, body, _ANSWER_S, headers=headers
                        )
                    ).data
                )
            except (nats.errors.Error, TimeoutError, ValueError):
                await asyncio.sleep(_LOOK_S)
                continue
            if "error" in answer:
                raise RuntimeError(f"{subject}: {answer['error']['description']}")
            return int(answer["seq"])

    async def follow(self) -> None:
        """Read every stored report until `is_over` is set; `reported` grows.

        A cancellation would now and then be lost in the library's own waiting.
        """
        while not self.is_over:
            if not await self.read_page():
                await asyncio.sleep(_LOOK_S)

    async def read_all(self) -> None:
        """Read what is stored by now, and hear what was said by now."""
        await self._client.flush()
        while await self.read_page():
            pass

    async def read_page(self) -> int:
        """Read up to a page of reports that were stored since the last one and return how many there were."""
        ask = {
            "seq": self._next_sequence,
            "batch": _PAGE,
            "next_by_subj": f"reports.{self.wire.supervisor_id}.>",
        }
        inbox = self._client.new_inbox()
        pages = await self._client.subscribe(inbox)
        read = 0
        try:
            await self._client.publish(
                "$JS.API.DIRECT.GET.REPORTS", json.dumps(ask).encode(), reply=inbox
            )
            while (message := await pages.next_msg(_ANSWER_S)).headers is not None:
                if "Nats-Sequence" not in message.headers:
                    break
                self._read(message)
                read += 1
        except (nats.errors.Error, TimeoutError):
            # A server that went away in the middle: the next page begins where this one ended.
            return read
        finally:
            await pages.unsubscribe()
        return read

    async def hear(self, message: Msg) -> None:
        """Note a report that passes by."""
        self._note("heard", json.loads(message.data), message.data)

    def _read(self, message: Msg) -> None:
        assert message.headers is not None
        sequence = int(message.headers["Nats-Sequence"])
        at = datetime.fromisoformat(message.headers["Nats-Time-Stamp"]).timestamp()
        report = json.loads(message.data)
        self._note("report", report, message.data, sequence=sequence, at=at)
        self.digests[report["task_id"], report["generation"]] = digest_of(message.data)
        self.reported.add(report["task_id"])
        self._next_sequence = sequence + 1

    def _note(
        self, kind: Kind, report: dict[str, Any], body: bytes, **facts: Any
    ) -> None:
        digest = digest_of(body)
        named = {
            "task": report["task_id"],
            "generation": report["generation"],
            "about": report["status"],
            "fence": report["fence"],
        }
        self._history.note(kind, digest=digest, **named, **facts)


def digest_of(body: bytes) -> str:
    """Return what tells one report from another."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


@asynccontextmanager
async def submitter(url: str, agent: str, history: History) -> AsyncIterator[Submitter]:
    """Connect the program and let it listen for its reports."""

    async def quiet(_error: Exception) -> None:
        """Keep outages, which are the point, out of the log."""

    client = await nats.connect(
        url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=quiet
    )
    program = Submitter(client, agent, history)
    try:
        await client.subscribe(
            f"reports.{program.wire.supervisor_id}.>", cb=program.hear
        )
        await client.flush()
        yield program
    finally:
        await client.close()
