"""The two clients: one that waits in its thread, and one for an event loop; both drive the same flows."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from tasklore.client.calls import Answer, Call, Events, Flow, JsonLines, Pages, Pause
from tasklore.client.methods import awaited, waiting
from tasklore.client.nouns import AsyncNouns, Nouns
from tasklore.client.streams import StreamReader
from tasklore.client.whole_tasks import WholeTasks

T = TypeVar("T")

#: Seconds beside what the server takes on purpose.
_CALL_S = 10.0
#: Seconds in which a stream says at least that it goes on.
_SILENCE_S = 60.0


class Client(Nouns):
    """Asks a running system, each call waiting for its answer: `client.schedules.list()`.

    Args:
        url: Where the API is, as `http://127.0.0.1:8080`.
        api_key: The key, where keys are demanded.
        call_s: Seconds for one call, beside what the server takes on purpose.

    Every method raises `Unreachable`, and `ApiError` where the server refuses.
    """

    ask = waiting(WholeTasks.ask)
    run = waiting(WholeTasks.run)
    call = waiting(WholeTasks.call)

    def __init__(
        self, url: str, api_key: str | None = None, *, call_s: float = _CALL_S
    ) -> None:
        super().__init__(self)
        self._http = httpx2.Client(base_url=url, headers=_headers(api_key))
        self._call_s = call_s

    @property
    def driver(self) -> Self:
        """This client itself: its own methods are driven as those of its nouns."""
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def drive(self, flow: Flow[T]) -> T:
        """Return the result of *flow*, after the calls and pauses that it asks for."""
        answer: Answer | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                answer = None
                continue
            try:
                options = _options(step, self._call_s)
                answer = _read(self._http.request(step.method, step.path, **options))
            except httpx2.TransportError as error:
                answer = _silent_answer(self._http.base_url, error)

    def iterate(self, stream: Events[T] | JsonLines[T] | Pages[T]) -> Iterator[T]:
        """Yield the events, lines or rows of *stream*, until it is over."""
        if isinstance(stream, Pages):
            yield from self._iterate_pages(stream)
            return
        reader = StreamReader(stream)
        pause: float | None = 0.0
        while pause is not None:
            time.sleep(pause)
            try:
                with self._http.stream(
                    reader.call.method, reader.call.path, **_stream_options(reader)
                ) as response:
                    refusal = "" if response.is_success else _text(response.read())
                    if reader.begin(
                        response.status_code,
                        refusal,
                        retry_after_s=_retry_after_s(response),
                    ):
                        for text in response.iter_text():
                            yield from reader.read(text)
                        yield from reader.read_rest()
                pause = reader.pause_after_end()
            except httpx2.TransportError as error:
                pause = reader.pause_after_cut(_silence(self._http.base_url, error))

    def _iterate_pages(self, pages: Pages[T]) -> Iterator[T]:
        after: str | None = None
        is_first = True
        while is_first or after is not None:
            page = self.drive(pages.page(after))
            yield from getattr(page, pages.rows)
            after = page.after
            is_first = False


class AsyncClient(AsyncNouns):
    """Asks a running system from an event loop; as `Client`, its methods are awaited."""

    ask = awaited(WholeTasks.ask)
    run = awaited(WholeTasks.run)
    call = awaited(WholeTasks.call)

    def __init__(
        self, url: str, api_key: str | None = None, *, call_s: float = _CALL_S
    ) -> None:
        super().__init__(self)
        self._http = httpx2.AsyncClient(base_url=url, headers=_headers(api_key))
        self._call_s = call_s

    @property
    def driver(self) -> Self:
        """This client itself: its own methods are driven as those of its nouns."""
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def drive(self, flow: Flow[T]) -> T:
        """Return the result of *flow*, after the calls and pauses that it asks for."""
        answer: Answer | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                options = _options(step, self._call_s)
                answer = _read(
                    await self._http.request(step.method, step.path, **options)
                )
            except httpx2.TransportError as error:
                answer = _silent_answer(self._http.base_url, error)

    async def iterate(
        self, stream: Events[T] | JsonLines[T] | Pages[T]
    ) -> AsyncIterator[T]:
        """Yield the events, lines or rows of *stream*, until it is over."""
        if isinstance(stream, Pages):
            async for row in self._iterate_pages(stream):
                yield row
            return
        reader = StreamReader(stream)
        pause: float | None = 0.0
        while pause is not None:
            await asyncio.sleep(pause)
            try:
                async with self._http.stream(
                    reader.call.method, reader.call.path, **_stream_options(reader)
                ) as response:
                    refusal = (
                        "" if response.is_success else _text(await response.aread())
                    )
                    if reader.begin(
                        response.status_code,
                        refusal,
                        retry_after_s=_retry_after_s(response),
                    ):
                        async for text in response.aiter_text():
                            for found in reader.read(text):
                                yield found
                        for found in reader.read_rest():
                            yield found
                pause = reader.pause_after_end()
            except httpx2.TransportError as error:
                pause = reader.pause_after_cut(_silence(self._http.base_url, error))

    async def _iterate_pages(self, pages: Pages[T]) -> AsyncIterator[T]:
        after: str | None = None
        is_first = True
        while is_first or after is not None:
            page = await self.drive(pages.page(after))
            for row in getattr(page, pages.rows):
                yield row
            after = page.after
            is_first = False


def _headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _options(call: Call, call_s: float) -> dict[str, Any]:
    options: dict[str, Any] = {
        "params": call.spell_query(),
        "headers": call.spell_headers(),
        "timeout": call.wait_s + call_s,
    }
    if call.content is not None:
        options["content"] = call.content
        options["headers"]["Content-Type"] = "application/x-ndjson"
    elif (body := call.spell_body()) is not None:
        options["json"] = body
    return options


def _stream_options(reader: StreamReader[Any]) -> dict[str, Any]:
    return {
        "params": reader.call.spell_query(),
        "headers": reader.headers,
        "timeout": _SILENCE_S,
    }


def _read(response: httpx2.Response) -> Answer:
    body: Any = response.text
    if "json" in response.headers.get("content-type", ""):
        try:
            body = response.json()
        except ValueError:
            body = {"detail": response.text[:500]}
    elif not response.is_success:
        body = {"detail": response.text[:500]}
    return Answer(response.status_code, body, _retry_after_s(response))


def _retry_after_s(response: httpx2.Response) -> float | None:
    after = response.headers.get("retry-after", "")
    return float(after) if after.isdigit() else None


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _silent_answer(url: object, error: httpx2.TransportError) -> Answer:
    never_there = (
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.UnsupportedProtocol,
    )
    return Answer(
        0,
        {"detail": _silence(url, error)},
        was_sent=not isinstance(error, never_there),
    )


def _silence(url: object, error: Exception) -> str:
    return f"{url} does not answer: {error or type(error).__name__}"
