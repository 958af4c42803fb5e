"""What is read of a response from outside, however it is packed, cut and written."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest

from tasklore.runtime.bounded_http import bound_responses

MOST = 1024**2
VALUES = 1_000


class Pieces(httpx2.AsyncByteStream):
    """A body in pieces of *size* bytes; `read` counts those that were asked for."""

    def __init__(self, body: bytes, size: int) -> None:
        self._body = body
        self._size = size
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), self._size):
            self.read += 1
            yield self._body[start : start + self._size]


async def fetch(
    body: bytes,
    packing: str = "",
    *,
    size: int = 4_096,
    method: str = "POST",
    has_news: bool = False,
) -> bytes:
    """Return what a bounded client makes of *body*."""

    def answer(_request: httpx2.Request) -> httpx2.Response:
        headers = {"Content-Encoding": packing} if packing else {}
        return httpx2.Response(200, headers=headers, stream=Pieces(body, size))

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        bound_responses(client, MOST, values=VALUES, has_news=has_news)
        response = await client.request(method, "http://outside.test/")
        return response.content


@pytest.mark.parametrize("size", [1, 3, 4_096])
@pytest.mark.parametrize(
    ("packing", "pack"),
    [("", bytes), ("gzip", gzip.compress), ("deflate", zlib.compress)],
)
async def test_what_fits_is_read_byte_for_byte(
    packing: str, pack: "type[bytes]", size: int
) -> None:
    """Commas and brackets within texts are no values, also behind quotes and backslashes, wherever it is cut."""
    texts = ['a, "b", [c]\\' * 90, "\\\\" * 7, '\\"' * 9, "é,"]
    body = json.dumps({"content": texts * 3}).encode()
    assert await fetch(pack(body), packing, size=size) == body


@pytest.mark.parametrize(
    ("packing", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
async def test_a_small_body_that_unpacks_to_much_is_given_up(
    packing: str, pack: "type[bytes]"
) -> None:
    """At its bound: the rest is not unpacked."""
    with pytest.raises(httpx2.ReadError, match="more than 1,048,576 bytes"):
        await fetch(pack(b" " * 80 * MOST), packing, size=10**6)


@pytest.mark.parametrize("packing", ["br", "gzip, gzip", "zstd"])
async def test_a_packing_that_cannot_be_bounded_is_refused(packing: str) -> None:
    """It was not asked for."""
    with pytest.raises(httpx2.ReadError, match="packed as"):
        await fetch(b"x", packing)


async def test_what_is_packed_wrongly_is_an_error_of_the_response() -> None:
    """Not one of zlib."""
    with pytest.raises(httpx2.ReadError, match="cannot be unpacked"):
        await fetch(b"no gzip", "gzip")


@pytest.mark.parametrize("size", [1, 7, 4_096])
@pytest.mark.parametrize("written", ["[1,1]", '{"a":{}}', "[[]]", "1", '"\\\\"', '""'])
async def test_many_small_values_are_given_up(written: str, size: int) -> None:
    """Each costs its reader a little."""
    body = b"[" + b",".join([written.encode()] * (VALUES + 1)) + b"]"
    with pytest.raises(httpx2.ReadError, match="more than 1,000 values"):
        await fetch(body, size=size)


async def test_a_stream_of_news_is_read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends without end leaves the loop to others."""
    slept: list[float] = []

    async def note(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    body = b"d" * 2 * MOST
    assert await fetch(body, method="GET", has_news=True) == body
    with pytest.raises(httpx2.ReadError, match="more than"):
        await fetch(body, method="GET")
    assert sum(slept) == pytest.approx(256)
