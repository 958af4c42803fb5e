"""The HTTP client below the library's: says a request as its server understands it, and reads the reply as it comes.

Every request to chat completions passes here, those of agents with tools too. A reply goes up in OpenAI's form, whole
or as a stream as it was asked for, whatever the server sent (`completions.py`). A proxy or a gateway may answer an
outage with status 200: a reply that is no completion gets the status that it should have had, so that it is counted,
retried and handed on like any other, and keeps its words.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import httpx2
import openai
from httpx2 import Request, Response

from tasklore.contracts.errors import LlmTimeout, LlmUnavailable
from tasklore.runtime.models.answer_reader import object_at, words_of
from tasklore.runtime.models.completions import (
    PartReader,
    bare,
    completion_of,
    first_choice,
    join_parts,
    read_body,
    split_parts,
)
from tasklore.runtime.models.dialects import address_of, dialect_of, remember
from tasklore.runtime.models.event_stream import DONE, EventDecoder
from tasklore.runtime.models.wire import (
    NO_COMPLETION,
    code_in,
    of_status,
    redacted,
    status_in,
    words_in,
)

#: Dialects that are tried for one request, at most.
_MOST_TRIED = 8
_PATH = "/chat/completions"
#: Headers that are about bytes which are read by then.
_OF_BYTES = ("content-length", "content-encoding", "transfer-encoding", "content-type")
_JSON = "application/json"
_EVENTS = "text/event-stream"
#: Bytes in which a reply shows whether it is a stream; comments before it are of some bytes each.
_LOOKED_AT = 4_096
#: Fields by which an event that is no part of an answer tells of a fault.
_OF_FAULTS = ("errors", "detail", "message")


class DialectClient(openai.DefaultAsyncHttpxClient):
    """An HTTP client that knows what its server understands.

    With *is_bare* an answer that was asked for as JSON comes as JSON alone, for a library that reads nothing else.
    """

    def __init__(self, *, is_bare: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._is_bare = is_bare

    async def send(self, request: Request, **options: Any) -> Response:
        """Send *request*, and again in another way where its server refuses a part of it."""
        body = _body_of(request)
        if body is None:
            return await super().send(request, **options)
        address = address_of(request.url)
        model = str(body.get("model", ""))
        known = dialect_of(address, model)
        dialect = known
        words = ""
        for _ in range(_MOST_TRIED):
            said = dialect.spell(body)
            response = await super().send(
                request if said == body else _with_body(request, said), **options
            )
            response = await _understand(response, body, is_bare=self._is_bare)
            if response.status_code < 400:
                heard = dialect.after(body, _usage_in(response))
                if heard != known:
                    passed_over = "it passed over max_completion_tokens"
                    is_refusal = heard == dialect
                    remember(
                        address, model, heard, words if is_refusal else passed_over
                    )
                break
            refusal = (await response.aread()).decode("utf-8", "replace")
            other = dialect.without(response.status_code, refusal, body)
            if other is None:
                break
            dialect = other
            words = words or words_of(redacted(words_in(refusal), _key_of(request)))
        return response


def _body_of(request: Request) -> dict[str, Any] | None:
    """Return the body of a request to chat completions, None for any other."""
    if not request.url.path.endswith(_PATH):
        return None
    body = json.loads(request.content)
    return body if isinstance(body, dict) else None


def _usage_in(response: Response) -> object:
    """Return the counts of a whole reply in OpenAI's form; None for a stream, which is read by its reader."""
    if not response.headers.get("content-type", "").startswith(_JSON):
        return None
    return json.loads(response.content).get("usage")


def _key_of(request: Request) -> str:
    return str(request.headers.get("authorization", "")).removeprefix("Bearer ")


def _with_body(request: Request, body: Mapping[str, Any]) -> Request:
    headers = [
        (name, value)
        for name, value in request.headers.items()
        if name.lower() != "content-length"
    ]
    return Request(
        request.method,
        request.url,
        headers=headers,
        content=json.dumps(body).encode(),
        extensions=request.extensions,
    )


class _NoCompletion(Exception):
    """A reply is no completion: the status that it should have had, and the words that came."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


async def _understand(
    response: Response, body: Mapping[str, Any], *, is_bare: bool
) -> Response:
    """Return *response* to *body* in OpenAI's form, or with the status that it should have had."""
    if not 200 <= response.status_code < 300:
        return response
    model = str(body.get("model", ""))
    is_stream = bool(body.get("stream"))
    kind: str = response.headers.get("content-type", "")
    if is_stream and kind.startswith(_EVENTS):
        return _stream_of(response, model)
    try:
        whole = _read_whole(await response.aread(), model)
    except _NoCompletion as error:
        return _with(response, error.status, error.said.encode(), kind or _JSON)
    if is_bare and "response_format" in body:
        whole = bare(whole)
    if not is_stream:
        return _with(response, 200, json.dumps(whole).encode(), _JSON)
    lines = b"".join(_event_of(json.dumps(part)) for part in split_parts(whole))
    return _with(response, 200, lines + _event_of(DONE), _EVENTS)


def _read_whole(raw: bytes, model: str) -> dict[str, Any]:
    """Return the completion in *raw*, one reply or a stream of parts, in OpenAI's form; raises _NoCompletion."""
    try:
        if any(line.startswith(b"data:") for line in raw[:_LOOKED_AT].splitlines()):
            return _join(raw, model)
        body = read_body(raw)
        if isinstance((first_choice(body) or {}).get("delta"), Mapping):
            return _join(raw, model)
    except LlmUnavailable as error:
        said = raw.decode("utf-8", "replace") or json.dumps({"error": str(error)})
        raise _NoCompletion(NO_COMPLETION, said) from error
    if (status := status_in(body)) != 200:
        raise _NoCompletion(status, json.dumps(body))
    return completion_of(body, model)


def _join(raw: bytes, model: str) -> dict[str, Any]:
    """Return the completion whose parts are the events in *raw*."""
    events = EventDecoder()
    parts = PartReader(model)
    chunks: list[dict[str, Any]] = []
    is_done = False
    for data in [*events.feed(raw), *events.end()]:
        if data == DONE:
            is_done = True
            break
        chunks += parts.read(_read_event(data))
    if not (is_done and parts.has_begun) and not parts.has_ended:
        raise _NoCompletion(NO_COMPLETION, "the stream broke off before its end")
    return join_parts(chunks, model)


def _read_event(data: str) -> dict[str, Any]:
    """Return the part of an answer that an event holds; raises _NoCompletion for the error that it reports."""
    body, fault = object_at(data, 0)
    if body is None:
        raise _NoCompletion(NO_COMPLETION, f"an event is not a JSON object: {fault}")
    is_fault = body.get("error") or (first_choice(body) or {}).get("error")
    # An event that is neither, such as a sign of life, is a part without a choice.
    is_fault = is_fault or body.get("object") == "error"
    if is_fault or ("choices" not in body and any(map(body.get, _OF_FAULTS))):
        raise _NoCompletion(status_in(body), data)
    return body


def _stream_of(response: Response, model: str) -> Response:
    """Return *response*, a stream, with each part in OpenAI's form; an error in it is raised where it comes."""
    return Response(
        200,
        headers=[*_kept_headers(response), ("content-type", _EVENTS)],
        stream=_Parts(response, model),
        request=response.request,
        extensions=response.extensions,
    )


class _Parts(httpx2.AsyncByteStream):
    """The events of a stream in OpenAI's form."""

    def __init__(self, response: Response, model: str) -> None:
        self._response = response
        self._model = model
        self._reader = EventDecoder()
        self._parts = PartReader(model)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._response.aiter_bytes()) as pieces:
            while found := await self._read(pieces):
                for data in found:
                    yield self._say(data)
        for data in self._reader.end():
            yield self._say(data)
        self._demand_begun()

    async def _read(self, pieces: AsyncIterator[bytes]) -> list[str]:
        """Return the data of the next events, none at the end; signs of life are no event, and give no more time."""
        wait_s = self._response.request.extensions.get("timeout", {}).get("read")
        try:
            async with asyncio.timeout(wait_s) as clock:
                async for piece in pieces:
                    if found := self._reader.feed(piece):
                        return found
        except TimeoutError as error:
            if not clock.expired():
                raise
            msg = f"{self._model!r} sent no part of its answer for {wait_s:g} s"
            raise LlmTimeout(msg) from error
        return []

    async def aclose(self) -> None:
        """Hang up."""
        await self._response.aclose()

    def _say(self, data: str) -> bytes:
        """Return what an event says in OpenAI's form; raises the LlmError that it reports."""
        if data == DONE:
            self._demand_begun()
            return _event_of(data)
        try:
            body = _read_event(data)
        except _NoCompletion as error:
            key = _key_of(self._response.request)
            words = words_of(redacted(words_in(error.said), key))
            told, _ = object_at(error.said, 0)
            message = f"{self._model!r} failed within its answer: {words}"
            raise of_status(error.status, message, code=code_in(told or {})) from error
        return b"".join(_event_of(json.dumps(one)) for one in self._parts.read(body))

    def _demand_begun(self) -> None:
        if not self._parts.has_begun:
            raise LlmUnavailable(
                f"{self._model!r} sent a stream without an answer: {self._reader.stray}"
            )


def _event_of(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def _kept_headers(response: Response) -> list[tuple[str, str]]:
    return [
        (name, value)
        for name, value in response.headers.items()
        if name.lower() not in _OF_BYTES
    ]


def _with(response: Response, status: int, content: bytes, kind: str) -> Response:
    """Return *response* with another *status* and *content* of the type *kind*."""
    return Response(
        status,
        headers=[*_kept_headers(response), ("content-type", kind)],
        content=content,
        request=response.request,
    )
