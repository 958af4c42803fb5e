"""Responses of servers outside, of which no more is read than is of use."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

#: Bytes a second that are read of a stream opened by GET, which goes on for days: news of a server are small, and each
#: question among them is a request of ours.
_NEWS_BYTES_S = 8 * 1024
#: Bytes that are unpacked at once.
_PIECE = 64 * 1024
#: How zlib is told of a packing.
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
#: A string of JSON, also one that nothing closes: no byte is looked at twice.
_STRING = re.compile(rb'"[^"]*+"?')


def bound_responses(
    client: "httpx2.AsyncClient", most: int, values: int | None = None
) -> None:
    """Let each response to *client* end with a ReadError behind its first *most* bytes, also where they came packed.

    With *values*, also behind so many values of JSON: each may cost its reader some 10 us and 1 KB. A stream that it
    opens by GET goes on for days, and is read slowly instead: the reader of its events bounds each of them.
    """
    # Asked for as it is: there is less to do.
    client.headers["Accept-Encoding"] = "identity"

    async def bound(response: "httpx2.Response") -> None:
        packing = response.headers.pop("content-encoding", "identity").strip().lower()
        is_news = response.request.method == "GET"
        room = _Room(None, None) if is_news else _Room(most, values)
        rate = _NEWS_BYTES_S if is_news else None
        response.stream = _bounded(response.stream, packing, room, rate)

    client.event_hooks["response"].append(bound)


class _Room:
    """What one response may still have."""

    def __init__(self, most: int | None, values: int | None) -> None:
        self._most = most
        self._values = values
        self._length = 0
        self._counted = _Values()

    def take(self, part: bytes) -> None:
        """Take the room of *part*.

        Raises:
            ReadError: there is none.
        """
        import httpx2

        self._length += len(part)
        if self._most is not None and self._length > self._most:
            raise httpx2.ReadError(f"the response has more than {self._most:,} bytes")
        if self._values is not None:
            self._counted.read(part)
            if self._counted.count > self._values:
                raise httpx2.ReadError(
                    f"the response has more than {self._values:,} values of JSON"
                )


class _Values:
    """Counts values of JSON in pieces of a text, wherever they were cut."""

    def __init__(self) -> None:
        self.count = 0
        self._is_in_string = False
        self._held = b""

    def read(self, piece: bytes) -> None:
        """Count those that *piece* has."""
        whole = self._held + piece
        self._held = b""
        if (len(whole) - len(whole.rstrip(b"\\"))) % 2:
            self._held = b"\\"
            whole = whole[:-1]
        plain = _ESCAPED.sub(b"", whole)
        if self._is_in_string:
            plain = b'"' + plain
        self._is_in_string = plain.count(b'"') % 2 == 1
        bare = _STRING.sub(b"", plain)
        self.count += bare.count(b",") + bare.count(b"[") + bare.count(b"{")


def _bounded(
    stream: object, packing: str, room: _Room, rate: int | None
) -> "httpx2.AsyncByteStream":
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            unpacker = _unpacker_of(packing)
            try:
                async for piece in stream:
                    for part in _unpack(piece, unpacker):
                        room.take(part)
                        if rate is None:
                            yield part
                            continue
                        for start in range(0, len(part), rate // 8):
                            few = part[start : start + rate // 8]
                            yield few
                            await asyncio.sleep(len(few) / rate)
            except zlib.error as error:
                raise httpx2.ReadError(
                    f"the response cannot be unpacked: {error}"
                ) from error

        async def aclose(self) -> None:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            await stream.aclose()

    return Bounded()


def _unpacker_of(packing: str) -> "zlib._Decompress | None":
    """Return what unpacks *packing* in pieces, None for what is not packed.

    Raises:
        ReadError: nothing does.
    """
    import httpx2

    if packing in ("", "identity"):
        return None
    if packing not in _WINDOWS:
        raise httpx2.ReadError(
            f"the response is packed as {packing[:40]!r}, though it was asked for as it is"
        )
    return zlib.decompressobj(_WINDOWS[packing])


def _unpack(piece: bytes, unpacker: "zlib._Decompress | None") -> Iterator[bytes]:
    if unpacker is None:
        yield piece
        return
    while True:
        part = unpacker.decompress(piece, _PIECE)
        piece = unpacker.unconsumed_tail
        if part:
            yield part
        if len(part) < _PIECE and not piece:
            return
