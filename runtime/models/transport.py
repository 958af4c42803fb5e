"""The HTTP client below the library's: says a request as its server understands it, and calls an error an error.

Every request to chat completions passes here, those of agents with tools too. A proxy or a gateway may answer an
outage with status 200: an answer that is no completion gets the status that it should have had, so that it is
counted, retried and handed on like any other, and keeps its words.
"""

import json
from collections.abc import Mapping
from typing import Any

import openai
from httpx2 import Request, Response

from tasklore.runtime.models.answer_reader import json_in, text_of, words_of
from tasklore.runtime.models.dialects import dialect_of, remember
from tasklore.runtime.models.wire import redacted, status_in, words_in

#: Dialects that are tried for one request, at most.
_MOST_TRIED = 8
_PATH = "/chat/completions"
#: Headers that are about bytes which are read by then.
_OF_BYTES = ("content-length", "content-encoding", "transfer-encoding")


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
        address = f"{request.url.scheme}://{request.url.netloc.decode()}"
        model = str(body.get("model", ""))
        known = dialect = dialect_of(address, model)
        words = ""
        for _ in range(_MOST_TRIED):
            said = dialect.spell(body)
            response = await super().send(
                request if said == body else _with_body(request, said), **options
            )
            response = await _judged(response)
            if response.status_code < 400:
                if dialect != known:
                    remember(address, model, dialect, words)
                if self._is_bare and "response_format" in body:
                    response = await _bare(response)
                break
            refusal = (await response.aread()).decode("utf-8", "replace")
            other = dialect.without(response.status_code, refusal, body)
            if other is None:
                break
            dialect = other
            secret = request.headers.get("authorization", "").removeprefix("Bearer ")
            words = words or words_of(redacted(words_in(refusal), secret))
        return response


def _body_of(request: Request) -> dict[str, Any] | None:
    """Return the body of a request to chat completions, None for any other."""
    if not request.url.path.endswith(_PATH):
        return None
    body = json.loads(request.content)
    return body if isinstance(body, dict) else None


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


async def _judged(response: Response) -> Response:
    """Return *response* with the status that it should have had; an answer, and a stream of one, as it is."""
    if response.status_code != 200 or _is_stream(response):
        return response
    raw = await response.aread()
    status = status_in(raw)
    return response if status == 200 else _with(response, status, raw)


async def _bare(response: Response) -> Response:
    """Return *response* without what its model wrote around the JSON that was asked for."""
    if _is_stream(response):
        return response
    whole = json.loads(await response.aread())
    message = whole["choices"][0]["message"]
    content = text_of(message.get("content"))
    bare = json_in(content)
    if bare == content:
        return response
    message["content"] = bare
    return _with(response, response.status_code, json.dumps(whole).encode())


def _is_stream(response: Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.startswith("text/event-stream")


def _with(response: Response, status: int, content: bytes) -> Response:
    """Return *response* with another *status* or *content*."""
    headers = [
        (name, value)
        for name, value in response.headers.items()
        if name.lower() not in _OF_BYTES
    ]
    return Response(status, headers=headers, content=content, request=response.request)
