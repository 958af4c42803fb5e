"""Responses of servers outside, of which no more is read than is of use."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

#: A packed body may unpack to a thousand times its bytes, so it may have this part of them.
_PACKED = 64


def bound_responses(client: "httpx2.AsyncClient", most: int) -> None:
    """Let each response to *client* end with a ReadError behind its first *most* bytes.

    A stream that it opens by GET goes on for days: the reader of its events bounds each of them.
    """
    # Asked for as it is: what it unpacks to is not known before.
    client.headers["Accept-Encoding"] = "identity"

    async def bound(response: "httpx2.Response") -> None:
        if response.request.method != "GET":
            packing = response.headers.get("content-encoding", "identity")
            room = most if packing == "identity" else most // _PACKED
            response.stream = _bound(response.stream, room)

    client.event_hooks["response"].append(bound)


def _bound(stream: object, most: int) -> "httpx2.AsyncByteStream":
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            left = most
            async for piece in stream:
                left -= len(piece)
                if left < 0:
                    raise httpx2.ReadError(f"the response has more than {most:,} bytes")
                yield piece

        async def aclose(self) -> None:
            assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous client
            await stream.aclose()

    return Bounded()
