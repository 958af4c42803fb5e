"""A scripted language model: an OpenAI-compatible HTTP server on loopback that says exactly what a test tells it to.

```python
async with ScriptedLlm() as model:
    model.queue({"reasoning": "plain", "colour": "red"}, rate_limited(retry_after_s=1), cut_off())
    settings = LlmSettings(base_url=model.base_url, api_key="sk-test")
    ...
    assert model.requests[0].user == "what colour?"
```

What is asked comes from, in this order: the queue (one reply a request, first in first out), then `respond`, a function
of the request; with neither the server answers 400 "nothing scripted", which no caller retries. A reply is a `Canned`
made by one of the functions below, or a dict or pydantic model as a short form of `answer(...)`.

The server runs in threads of its own, so it also serves child processes while the test's event loop is busy. Nothing
in it sleeps to be safe: a stalled reply ends when the client hangs up or the server closes.
"""

import asyncio
import contextlib
import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

from pydantic import BaseModel


@dataclass(frozen=True)
class Canned:
    """One reply as bytes; build it with the functions of this module and vary it with `after`.

    `ending`: `complete` sends it all, `stall` sends nothing and keeps the connection open, `drop` closes it without a
    word, `truncate` announces the whole body and closes after half of it.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    gate: threading.Event | None = None
    ending: Literal["complete", "stall", "drop", "truncate"] = "complete"

    def after(self, delay_s: float) -> "Canned":
        """Return the same reply, sent *delay_s* seconds after the request arrived."""
        return replace(self, delay_s=delay_s)

    def behind(self, gate: threading.Event) -> "Canned":
        """Return the same reply, sent once *gate* is set (the server's closing counts as hanging up, not as a gate)."""
        return replace(self, gate=gate)


Scripted = Canned | Mapping[str, Any] | BaseModel


@dataclass(frozen=True)
class Asked:
    """One request as it arrived: header names in lower case, the body parsed."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]
    path: str = "/v1/chat/completions"

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body["model"])

    @property
    def system(self) -> str:
        """All system messages, joined by newlines."""
        return self._said_by("system")

    @property
    def user(self) -> str:
        """All user messages, joined by newlines."""
        return self._said_by("user")

    @property
    def schema_name(self) -> str:
        """The name of the schema asked for: the class name of the answer model."""
        return str(self.body["response_format"]["json_schema"]["name"])

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema that the answer is to fit."""
        schema: Mapping[str, Any] = self.body["response_format"]["json_schema"][
            "schema"
        ]
        return schema

    def _said_by(self, role: str) -> str:
        return "\n".join(
            str(message["content"])
            for message in self.body["messages"]
            if message["role"] == role
        )


def answer(
    value: Mapping[str, Any] | BaseModel,
    *,
    input_tokens: int = 100,
    output_tokens: int = 20,
    cached_tokens: int = 0,
) -> Canned:
    """Answer with *value* as JSON; it may as well not fit the schema asked for."""
    text = (
        value.model_dump_json() if isinstance(value, BaseModel) else json.dumps(value)
    )
    return saying(
        text,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
    )


def saying(
    text: str | None,
    *,
    refusal: str | None = None,
    finish_reason: str = "stop",
    input_tokens: int = 100,
    output_tokens: int = 20,
    cached_tokens: int = 0,
) -> Canned:
    """Answer with *text* as it stands, JSON or not."""
    completion = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, "refusal": refusal},
            }
        ],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
        },
    }
    return raw(json.dumps(completion).encode())


def raw(
    body: bytes, *, content_type: str = "application/json", status: int = 200
) -> Canned:
    """Send *body* untouched: no completion, no JSON, whatever a broken proxy sends."""
    return Canned(status=status, body=body, headers={"Content-Type": content_type})


def refusal(words: str = "I cannot help with that.") -> Canned:
    """Decline in the model's own words."""
    return saying(None, refusal=words)


def cut_off(
    text: str = '{"reasoning": "it all beg', *, output_tokens: int = 20
) -> Canned:
    """End at the token limit, in the middle of *text*."""
    return saying(text, finish_reason="length", output_tokens=output_tokens)


def filtered() -> Canned:
    """Withhold the answer by the provider's content filter."""
    return saying("", finish_reason="content_filter")


def fault(
    status: int,
    message: str = "scripted fault",
    *,
    code: str | None = None,
    **headers: str,
) -> Canned:
    """Answer with an HTTP error in the provider's form; *headers* are spelled with underscores (`retry_after="2"`)."""
    error = {
        "error": {"message": message, "type": "scripted", "param": None, "code": code}
    }
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(
        raw(json.dumps(error).encode(), status=status),
        headers={"Content-Type": "application/json", **names},
    )


def rate_limited(retry_after_s: float | None = None) -> Canned:
    """Answer 429, with a Retry-After header when *retry_after_s* is given."""
    headers = {} if retry_after_s is None else {"retry_after": f"{retry_after_s:g}"}
    return fault(429, "slow down", code="rate_limit_exceeded", **headers)


def stalled() -> Canned:
    """Take the request and never answer."""
    return Canned(ending="stall")


def dropped() -> Canned:
    """Close the connection without a word."""
    return Canned(ending="drop")


def truncated() -> Canned:
    """Announce a whole body and close the connection after half of it."""
    return replace(answer({"reasoning": "half"}), ending="truncate")


class ScriptedLlm:
    """The server; listens from entering to leaving its context (`async with` or `with`), on a free loopback port."""

    def __init__(self, respond: Callable[[Asked], Scripted] | None = None) -> None:
        self.respond = respond
        #: Every request in order of arrival.
        self.requests: list[Asked] = []
        #: The most requests that waited for their reply at one moment.
        self.max_in_flight = 0
        self._in_flight = 0
        self._queue: deque[Scripted] = deque()
        self._changed = threading.Condition()
        self._server: _Server | None = None

    @property
    def base_url(self) -> str:
        """What goes into `LlmSettings.base_url`, or into `TASKLORE_LLM_BASE_URL` of a child process."""
        if self._server is None:
            raise RuntimeError("enter the context first")
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def queue(self, *replies: Scripted) -> None:
        """Say *replies* to the next requests, one each."""
        with self._changed:
            self._queue.extend(replies)

    async def wait_for_requests(
        self, count: int, *, in_flight: bool = False, deadline_s: float = 30.0
    ) -> None:
        """Return once *count* requests have arrived (or are waiting for a reply at once, with *in_flight*).

        Raises:
            TimeoutError: they did not within *deadline_s* seconds.
        """

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(
                    lambda: (
                        (self._in_flight if in_flight else len(self.requests)) >= count
                    ),
                    deadline_s,
                )

        if not await asyncio.to_thread(wait):
            raise TimeoutError(f"{len(self.requests)} of {count} requests arrived")

    def take(self, asked: Asked) -> Canned:
        """Record *asked* and return its reply; for the server's own threads."""
        with self._changed:
            self.requests.append(asked)
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
            self._changed.notify_all()
            reply = self._queue.popleft() if self._queue else None
        if reply is None:
            reply = self._respond(asked)
        return reply if isinstance(reply, Canned) else answer(reply)

    def _respond(self, asked: Asked) -> Scripted:
        if self.respond is None:
            return fault(400, "nothing scripted for this request")
        try:
            return self.respond(asked)
        except Exception as error:  # noqa: BLE001 - a failing assertion in a script must reach the test, not a thread
            return fault(400, f"the script failed: {error!r}")

    def finish(self) -> None:
        """Note that one request waits no longer; for the server's own threads."""
        with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()

    def __enter__(self) -> Self:
        self._server = _Server(self)
        threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, model: ScriptedLlm) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a client hung up: tests make clients do that."""

    def close(self) -> None:
        """Stop listening and hang up on whoever is still connected, which also ends every stalled reply."""
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


#: Of chat completions and the Responses API of OpenAI, of Anthropic and of Gemini.
_PATHS = (
    "/v1/chat/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/messages",
    "/v1beta/models/",
    "/openai/deployments/",
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        """Answer as scripted."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.path.startswith(_PATHS):
            self._write(fault(404, f"no such path: {self.path}"))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        canned = self.server.model.take(Asked(headers, json.loads(body), self.path))
        try:
            still_there = self._wait(canned)
        finally:
            # Before the reply: its receiver may ask again before this thread runs on.
            self.server.model.finish()
        if not still_there or canned.ending in ("stall", "drop"):
            self.close_connection = True
            return
        self._write(canned)

    def _wait(self, canned: Canned) -> bool:
        """Hold the reply back as scripted; return False when the client hung up meanwhile."""
        if canned.ending == "stall":
            return not self._hung_up(None)
        due = time.monotonic() + canned.delay_s
        while (left_s := due - time.monotonic()) > 0 or (
            canned.gate and not canned.gate.is_set()
        ):
            if self._hung_up(max(left_s, 0.01)):
                return False
        return True

    def _hung_up(self, within_s: float | None) -> bool:
        """Return True once the client closes; a client that waits for its reply sends nothing."""
        return bool(select.select([self.connection], [], [], within_s)[0])

    def _write(self, canned: Canned) -> None:
        # Not `send_response`: that adds a Date of its own beside a scripted one.
        self.send_response_only(canned.status)
        for name, value in canned.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(canned.body)))
        self.end_headers()
        cut = canned.ending == "truncate"
        self.wfile.write(canned.body[: len(canned.body) // 2] if cut else canned.body)
        if cut:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature is http.server's
        """Write nothing to the test's output."""
