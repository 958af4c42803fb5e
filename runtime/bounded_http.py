"""Responses of servers outside, of which no more is read than is of use, and for no longer than anybody waits."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Union

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
    client: Union["httpx2.AsyncClient", "httpx2.Client"],
    most: int,
    *,
    values: int | None = None,
    most_s: float | None = None,
    has_news: bool = False,
) -> None:
    """Let each response to *client* end with a ReadError behind its first *most* bytes, also where they came packed.

    With *values*, also behind so many values of JSON: each may cost its reader some 10 us and 1 KB. One that goes on
    for longer than *most_s* seconds ends with a ReadTimeout, however often something of it comes.

    With *has_news* a stream that is opened by GET goes on for days, and no task waits for it: it is read slowly then,
    and the reader of its events bounds each of them. A client that is not asynchronous is read in a thread of its own,
    by its deadline for each read.
    """
    import httpx2

    # Asked for as it is: there is less to do.
    client.headers["Accept-Encoding"] = "identity"

    def bound_sync(response: "httpx2.Response") -> None:
        response.stream = _bound_sync(
            response.stream, _take_packing(response), _Room(most, values)
        )

    async def bound(response: "httpx2.Response") -> None:
        packing = _take_packing(response)
        if has_news and response.request.method == "GET":
            response.stream = _bound_news(response.stream, packing)
        else:
            room = _Room(most, values)
            response.stream = _bound(response.stream, packing, room, most_s)

    is_sync = isinstance(client, httpx2.Client)
    client.event_hooks["response"].append(bound_sync if is_sync else bound)


def _take_packing(response: "httpx2.Response") -> str:
    """Return how the response is packed, and hide that: it is unpacked here."""
    packing: str = response.headers.pop("content-encoding", "identity")
    return packing.strip().lower()


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


def _bound(
    stream: object, packing: str, room: _Room, most_s: float | None
) -> "httpx2.AsyncByteStream":
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            unpack = _unpacking(packing)
            async for piece in _read_until(stream, most_s):
                for part in unpack(piece):
                    room.take(part)
                    yield part

        async def aclose(self) -> None:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            await stream.aclose()

    return Bounded()


def _bound_news(stream: object, packing: str) -> "httpx2.AsyncByteStream":
    import httpx2

    class Paced(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            unpack = _unpacking(packing)
            async for piece in stream:
                for part in unpack(piece):
                    for start in range(0, len(part), _NEWS_BYTES_S // 8):
                        few = part[start : start + _NEWS_BYTES_S // 8]
                        yield few
                        await asyncio.sleep(len(few) / _NEWS_BYTES_S)

        async def aclose(self) -> None:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            await stream.aclose()

    return Paced()


def _bound_sync(stream: object, packing: str, room: _Room) -> "httpx2.SyncByteStream":
    import httpx2

    class Bounded(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            assert isinstance(stream, httpx2.SyncByteStream)  # noqa: S101 - of a client in a thread
            unpack = _unpacking(packing)
            for piece in stream:
                for part in unpack(piece):
                    room.take(part)
                    yield part

        def close(self) -> None:
            assert isinstance(stream, httpx2.SyncByteStream)  # noqa: S101 - of a client in a thread
            stream.close()

    return Bounded()


async def _read_until(
    stream: "httpx2.AsyncByteStream", most_s: float | None
) -> AsyncIterator[bytes]:
    """Yield the pieces of *stream* for *most_s* seconds.

    Raises:
        ReadTimeout: there are more.
    """
    import httpx2

    now = asyncio.get_running_loop().time()
    ends_at = None if most_s is None else now + most_s
    pieces = aiter(stream)
    while True:
        try:
            async with asyncio.timeout_at(ends_at) as clock:
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise httpx2.ReadTimeout(
                f"the response takes more than {most_s:g} s"
            ) from error
        yield piece


def _unpacking(packing: str) -> Callable[[bytes], Iterator[bytes]]:
    """Return what unpacks *packing* piece by piece, into parts of bounded size.

    Raises:
        ReadError: nothing does; or, of what is returned, when a piece cannot be unpacked.
    """
    import httpx2

    unpacker = _unpacker_of(packing)

    def unpack(piece: bytes) -> Iterator[bytes]:
        try:
            yield from _unpack(piece, unpacker)
        except zlib.error as error:
            raise httpx2.ReadError(
                f"the response cannot be unpacked: {error}"
            ) from error

    return unpack


def _unpacker_of(packing: str) -> "zlib._Decompress | None":
    """Return what unpacks *packing* in pieces, None for bytes that are not packed.

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
