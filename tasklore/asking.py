"""Asking the supervisor: one request over core NATS, sent again without harm while nobody takes it."""

import asyncio
import shlex
import time
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import InvalidInput, Unreachable
from contracts.identifiers import new_id
from contracts.messages import PersonReply, PersonRequest
from runtime.connection import Listener, connected
from tasklore.exits import FAILED, OK
from tasklore.places import current_endpoints, current_supervisor, demand_listener
from tasklore.screen import patience, printable, say

#: Seconds in which a supervisor that was just started, or restarted, begins to take requests.
NOBODY_S = 3.0
#: Seconds that the answer may be late after the time the supervisor was given for it.
LATE_S = 2.0
#: Seconds for asking once more when it was late: a supervisor that was replaced meanwhile finds what was started.
LAST_S = 3.0

_PAUSE_S = 0.1
_NO_RESPONDERS = "503"


def make_request(text: str, **fields: Any) -> PersonRequest:
    """Return the request that says *text*, with an id of its own; a field that is None is left out.

    Raises:
        InvalidInput: a value cannot be sent; the message names it.
    """
    if not text.strip():
        raise InvalidInput("there is no question; say what you want to know")
    given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    given.setdefault("request_id", new_id(time.time_ns() // 1_000_000))
    try:
        return PersonRequest(text=text.strip(), **given)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise InvalidInput(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


async def ask_aloud(request: PersonRequest, *, as_json: bool = False) -> int:
    """Ask, print the answer (or the whole reply as JSON) and return the exit code.

    Raises:
        Unreachable: nobody answers.
    """
    async with patience("asking"):
        reply = await ask(current_endpoints().nats, current_supervisor(), request)
    if as_json:
        print(reply.model_dump_json(indent=2), flush=True)
    else:
        print(printable(reply.text), flush=True)
        if reply.kind == "question":
            say(f'answer with: tasklore ask --conversation {shlex.quote(reply.conversation_id)} "..."')
    return FAILED if reply.kind in ("failed", "pending") else OK


async def ask(nats_url: str, supervisor_id: str, request: PersonRequest) -> PersonReply:
    """Return the answer to *request*; one of kind `pending` when it takes longer than its `wait_ms`.

    Raises:
        Unreachable: no NATS server, or nobody takes the request, or whoever took it fell silent.
    """
    await demand_listener(nats_url)
    heard: asyncio.Queue[Msg | None] = asyncio.Queue()
    # A reply on its way is lost with the connection: None means ask again.
    listener = Listener(reconnected=lambda: heard.put_nowait(None))
    async with connected(nats_url, "tasklore-ask", listener) as client:
        return await _Asking(client, subjects.requests(supervisor_id), request, heard).run()


async def ask_over(client: Client, supervisor_id: str, request: PersonRequest) -> PersonReply:
    """Return the answer to *request* over a connection that is open, as `ask` does.

    Raises:
        Unreachable: as `ask`.
    """
    return await _Asking(client, subjects.requests(supervisor_id), request, asyncio.Queue()).run()


class _Asking:
    """One request until its answer."""

    def __init__(
        self, client: Client, subject: str, request: PersonRequest, heard: "asyncio.Queue[Msg | None]"
    ) -> None:
        self._client = client
        self._subject = subject
        self._request = request
        self._heard = heard
        self._started = time.monotonic()
        self._inbox = client.new_inbox()

    async def run(self) -> PersonReply:
        async def hear(message: Msg) -> None:
            self._heard.put_nowait(message)

        await self._client.subscribe(self._inbox, cb=hear)
        wait_s = self._request.wait_ms / 1000
        reply = await self._await_reply(wait_s, wait_s + LATE_S)
        if reply is None:
            # Whoever took it may be gone; its successor finds what was started under the same id.
            reply = await self._await_reply(LAST_S / 2, LAST_S)
        if reply is None:
            elapsed_s = time.monotonic() - self._started
            msg = f"the supervisor fell silent for {elapsed_s:.0f} s; see whether it still runs, then ask again"
            raise Unreachable(msg)
        return reply

    async def _await_reply(self, wait_s: float, patience_s: float) -> PersonReply | None:
        """Send the request and return its answer, or None after *patience_s*."""
        now = time.monotonic()
        wait_until, give_up_at, nobody_until = now + wait_s, now + patience_s, now + NOBODY_S
        await self._send(wait_until)
        while True:
            try:
                async with asyncio.timeout(max(0.0, give_up_at - time.monotonic())):
                    message = await self._heard.get()
            except TimeoutError:
                return None
            if message is not None and not _is_unheard(message):
                return _read(message.data)
            if message is not None:
                if time.monotonic() > nobody_until:
                    raise Unreachable(
                        f"nobody takes requests on {self._subject!r}; start the system with `tasklore up`, "
                        "or a supervisor alone with `tasklore supervisor`"
                    )
                await asyncio.sleep(_PAUSE_S)
            await self._send(wait_until)

    async def _send(self, wait_until: float) -> None:
        left_ms = max(0, int((wait_until - time.monotonic()) * 1000))
        body = self._request.model_copy(update={"wait_ms": left_ms}).model_dump_json(exclude_none=True)
        await self._client.publish(self._subject, body.encode(), reply=self._inbox)


def _is_unheard(message: Msg) -> bool:
    return message.headers is not None and message.headers.get("Status") == _NO_RESPONDERS


def _read(body: bytes) -> PersonReply:
    try:
        return PersonReply.model_validate_json(body)
    except ValidationError as error:
        msg = f"the supervisor answered with something else than a reply: {body[:200]!r}; are the versions the same?"
        raise Unreachable(msg) from error
