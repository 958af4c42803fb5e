"""A program of somebody else: it knows the wire contract alone, imports nothing of ours and spells subjects itself.

As a script: `python external_program.py NATS_URL` sends the budget agent one assignment and prints its report as JSON.
"""

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

Json = dict[str, Any]

#: Seconds to wait for a fact: far above what it takes, so that a busy machine fails no test.
PATIENCE_S = 90.0
#: Seconds after which what was not heard, or is not stored yet, is looked at more closely.
_OUTAGE_S = 10.0


class Outside:
    """One connection of the program, under a supervisor id of its own unless it takes another's place."""

    def __init__(self, client: Client, supervisor_id: str) -> None:
        self.client = client
        self.supervisor_id = supervisor_id
        #: Every report that passed by on the core subject, in order: also what the stream refused.
        self.heard: list[Json] = []
        #: Every sign of progress that passed by.
        self.progress: list[Json] = []
        self._news = asyncio.Event()

    async def hear_report(self, message: Msg) -> None:
        """Keep a report."""
        self.heard.append(json.loads(message.data))
        self._tell()

    async def hear_progress(self, message: Msg) -> None:
        """Keep a sign of progress."""
        self.progress.append(json.loads(message.data))
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def assignment(
        self, agent: str, task: str, parameters: Json, **fields: Any
    ) -> Json:
        """Return an assignment as the contract spells it."""
        return {
            "schema_version": 1,
            "task_id": str(uuid.uuid4()),
            "agent_id": agent,
            "supervisor_id": self.supervisor_id,
            "task": {"name": task, "parameters": parameters},
            "created_at": datetime.now(UTC).isoformat(),
        } | fields

    async def assign(
        self, agent: str, task: str, parameters: Json, **fields: Any
    ) -> str:
        """Publish an assignment and return its task id once it is stored."""
        assignment = self.assignment(agent, task, parameters, **fields)
        await self.publish(f"tasks.{agent}.{task}", json.dumps(assignment).encode())
        return str(assignment["task_id"])

    async def publish(
        self, subject: str, body: bytes, headers: dict[str, str] | None = None
    ) -> int:
        """Put *body* into a stream, trying again while there is no server; return its sequence.

        Once, also when the server was only slow to answer: each call has a message id, unless *headers* name one.
        """
        headers = {"Nats-Msg-Id": f"outside-{uuid.uuid4().hex}", **(headers or {})}
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    answer = json.loads(
                        (await self._request(subject, body, 2, headers)).data
                    )
                except (nats.errors.Error, TimeoutError):
                    await asyncio.sleep(0.1)
                    continue
                if "error" in answer:
                    raise RuntimeError(answer["error"]["description"])
                return int(answer["seq"])

    async def ask(self, agent: str, task: str, parameters: Json, **fields: Any) -> Json:
        """Assign a task and return its report."""
        return await self.report_of(
            await self.assign(agent, task, parameters, **fields)
        )

    async def report_of(self, task_id: str) -> Json:
        """Return the first report on *task_id*: what was heard, or what is stored when it passed by in an outage."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await self.until(
                        lambda: any(
                            report["task_id"] == task_id for report in self.heard
                        ),
                        _OUTAGE_S,
                    )
                except TimeoutError:
                    subject = f"reports.{self.supervisor_id}.{task_id}.>"
                    for stored in sorted(await self.counts("REPORTS", subject)):
                        return await self.last("REPORTS", stored)
                else:
                    return next(
                        report for report in self.heard if report["task_id"] == task_id
                    )

    async def begun(self, *task_ids: str) -> None:
        """Return once every one of *task_ids* has told of progress."""
        await self.until(
            lambda: set(task_ids) <= {sign["task_id"] for sign in self.progress}
        )

    async def until(
        self, condition: Callable[[], bool], within_s: float = PATIENCE_S
    ) -> None:
        """Return once *condition* holds, looked at after each message that arrives."""
        async with asyncio.timeout(within_s):
            while not condition():
                await self._news.wait()

    async def api(self, call: str, body: Json | None = None) -> Json:
        """Return the answer of JetStream's JSON API, asked again while there is no server."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    payload = json.dumps(body).encode() if body is not None else b""
                    return dict(
                        json.loads(
                            (await self._request(f"$JS.API.{call}", payload, 2)).data
                        )
                    )
                except (nats.errors.Error, TimeoutError):
                    await asyncio.sleep(0.1)

    async def counts(self, stream: str, filter_subject: str = ">") -> dict[str, int]:
        """Return how many messages lie in *stream* under each subject that fits, but for requests of comparisons."""
        found: dict[str, int] = {}
        while True:
            info = await self.api(
                f"STREAM.INFO.{stream}",
                {"subjects_filter": filter_subject, "offset": len(found)},
            )
            page = info["state"].get("subjects") or {}
            found |= page
            if not page or len(found) >= info.get("total", 0):
                return {
                    name: number
                    for name, number in found.items()
                    if not name.startswith("reports.~compare.")
                }

    async def reports(self) -> dict[str, int]:
        """Return how many reports are stored under each of our subjects.

        What was heard is waited for a while: the server passes a message on before its stream has it.
        """
        heard = {
            f"reports.{self.supervisor_id}.{one['task_id']}.{one['generation']}"
            for one in self.heard
        }
        stored: dict[str, int] = {}

        async def is_stored() -> bool:
            found = await self.counts("REPORTS", f"reports.{self.supervisor_id}.>")
            stored.clear()
            stored.update(found)
            return heard <= stored.keys()

        with contextlib.suppress(TimeoutError):
            await self.eventually(is_stored, _OUTAGE_S)
        return stored

    async def last(self, stream: str, subject: str) -> Json:
        """Return the newest message of *stream* on *subject*."""
        answer = await self._request(
            f"$JS.API.DIRECT.GET.{stream}.{subject}", b"", PATIENCE_S
        )
        return dict(json.loads(answer.data))

    async def _request(
        self,
        subject: str,
        body: bytes,
        within_s: float,
        headers: dict[str, str] | None = None,
    ) -> Msg:
        """Return the answer, unless we are cancelled: with an answer in, `wait_for` of Python 3.11 passes over that."""
        answer = await self.client.request(
            subject, body, timeout=within_s, headers=headers
        )
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise asyncio.CancelledError
        return answer

    async def eventually(
        self, holds: Callable[[], Awaitable[bool]], within_s: float = PATIENCE_S
    ) -> None:
        """Return once *holds*, asked of a server twenty times a second, is true."""
        async with asyncio.timeout(within_s):
            while not await holds():  # noqa: ASYNC110 - a server's state makes no event here
                await asyncio.sleep(0.05)


@asynccontextmanager
async def outside(url: str, supervisor_id: str | None = None) -> AsyncIterator[Outside]:
    """Connect the program and let it listen for its reports."""

    async def quiet(_error: Exception) -> None:
        """Keep outages, which tests cause, out of the log."""

    client = await nats.connect(
        url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=quiet
    )
    program = Outside(client, supervisor_id or f"Outside-{uuid.uuid4().hex[:8]}")
    await client.subscribe(f"reports.{program.supervisor_id}.>", cb=program.hear_report)
    await client.subscribe(
        f"progress.{program.supervisor_id}.>", cb=program.hear_progress
    )
    await client.flush()
    try:
        yield program
    finally:
        await client.close()


async def publish_raw(port: int, subject: bytes, body: bytes) -> None:
    """Publish without a client library, so that nothing checks what is sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE_S):
        # The server may lose what it reads together with CONNECT.
        writer.write(b'CONNECT {"verbose":false}\r\nPING\r\n')
        await reader.readuntil(b"PONG\r\n")
        writer.write(b"PUB %b %d\r\n%b\r\nPING\r\n" % (subject, len(body), body))
        await reader.readuntil(b"PONG\r\n")
    writer.close()


async def main(url: str) -> None:
    """Ask one question and print its report."""
    async with outside(url) as program:
        parameters = {
            "budget_limit": 50000,
            "spent": 42000,
            "history": [5000, 7000, 8000, 6000],
        }
        report = await program.ask("BudgetTrackerAgent", "analyze_budget", parameters)
        stored = await program.reports()
        print(  # noqa: T201 - a program
            json.dumps(
                {"report": report, "stored": stored, "heard": len(program.heard)}
            )
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
