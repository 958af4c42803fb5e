"""The console as a browser without scripts uses it: cookies, links, forms, and nothing else."""

import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import httpx
from redis.asyncio import Redis

from tasklore.contracts.callers import Role
from tasklore.contracts.identifiers import user_token
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.memory.ledger.waits import Waits
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.approvals.answers import Answers
from tasklore.supervisor.http.admission.console_sessions import ConsoleSessions
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.json_schemas import JsonSchemas
from tests.integration.http_stand import Stand, http_stand
from tests.servers import PATIENCE_S

SECRET = "0123456789abcdef0123456789abcdef"
#: Keys by their names: roles, the user and the tenant of each.
KEYS: Mapping[str, tuple[tuple[Role, ...], str | None, str | None]] = {
    "admin": (("admin",), None, None),
    "asker": (("ask",), None, None),
    "reader": (("read",), None, None),
    "ana": (("ask", "read", "approve"), "ana", None),
    "ben": (("ask", "read", "approve"), "ben", None),
    "acme": (("ask", "read", "approve"), None, "acme"),
    "rival": (("ask", "read", "approve"), None, "rival"),
}
#: What markup would make of each would run, or lead out of its place.
PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</textarea><script>alert(1)</script>",
    "{{ 7 * 7 }}",
    "javascript:alert(1)",
)
_TOKEN = re.compile(r'name="form_token" value="([^"]*)"')


@dataclass
class Tab:
    """A browser's tab at the console, with its cookies."""

    client: httpx.AsyncClient
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    async def open(self, path: str, status: int = 200) -> str:
        """Open a page, and return what it says."""
        return self._take(await self.client.get(path), status)

    async def send(self, path: str, status: int = 303, **fields: Any) -> str:
        """Send a form of the page that is open, and return what follows."""
        token = _TOKEN.search(self.text)
        assert token is not None, "there is no form on this page"
        sent = {"form_token": unescape(token[1]), **fields}
        answer = await self.client.post(path, data=sent)
        text = self._take(answer, status)
        if status == 303:
            return await self.open(answer.headers["location"])
        return text

    async def sign_in(self, link: str) -> str:
        """Use a link as a person does: look at it, and press its button."""
        page = await self.open(link.removeprefix(str(self.client.base_url)))
        found = re.search(r'name="link" value="([^"]*)"', page)
        assert found is not None
        answer = await self.client.post(
            "/console/sign-in", data={"link": unescape(found[1])}
        )
        self._take(answer, 303)
        return await self.open(answer.headers["location"])

    def _take(self, answer: httpx.Response, status: int) -> str:
        assert answer.status_code == status, answer.text
        self.text = answer.text
        self.headers = answer.headers
        return answer.text


@dataclass
class ConsoleStand:
    """A supervisor that serves the console, and its keys."""

    stand: Stand
    keys: Mapping[str, str]
    file: Path

    def __post_init__(self) -> None:
        self._app = make_app(self.stand.parts)

    @asynccontextmanager
    async def tab(self, name: str | None = None) -> AsyncIterator[Tab]:
        """Open a tab, signed in with the key of that *name* if any."""
        async with self._client() as client:
            tab = Tab(client)
            if name is not None:
                await tab.sign_in(await self.link(name))
            yield tab

    async def link(self, name: str) -> str:
        """Return a new link made with the key of that *name*."""
        headers = {"Authorization": f"Bearer {self.keys[name]}"}
        async with self._client() as client:
            answer = await client.post("/v1/console/links", headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["url"])

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self._app),
            base_url="http://localhost",
        )


@asynccontextmanager
async def console_stand(
    servers: EmbeddedServers, redis: Redis, folder: Path, **parts: Any
) -> AsyncIterator[ConsoleStand]:
    """Serve the console within the block, with a key of each kind."""
    file = folder / "keys.json"
    made = {
        name: make_key(file, name, roles, user, ("finance",), tenant)
        for name, (roles, user, tenant) in KEYS.items()
    }
    ring = KeyRing(file)
    schemas = JsonSchemas()
    async with (
        connected(servers.nats_url, "console") as client,
        open_outbox(Link(client)) as outbox,
    ):
        answers = Answers(Waits(redis, deadline_s=PATIENCE_S), outbox, schemas)
        more = {
            "keys": ring,
            "console": ConsoleSessions.of(SECRET, ring),
            "answers": answers,
            "schemas": schemas,
        } | parts
        async with http_stand(servers, redis, **more) as stand:
            yield ConsoleStand(stand, made, file)


async def list_runs(redis: Redis, *rows: TaskRow) -> None:
    """Have *rows* in the list of runs."""
    await TaskIndex(redis, deadline_s=PATIENCE_S).write(rows)


def row(task_id: str, user: str | None = None, **values: Any) -> TaskRow:
    """Return a run that failed a moment ago."""
    now_ms = time.time_ns() // 1_000_000
    return TaskRow(
        **{
            "task_id": task_id,
            "agent_id": "EchoAgent",
            "task": "echo",
            "created_ms": now_ms - 60_000,
            "ended_ms": now_ms,
            "state": "failed",
            "error": "TaskExpired",
            "user": user_token(user) if user else "",
            **values,
        }
    )
