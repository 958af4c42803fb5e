"""A wire that can be cut: a TCP proxy between one worker and one server, in the event loop of the storm."""

import asyncio
import contextlib
import socket
import struct
from typing import Literal, Self

from tasklore.runtime.servers.claims import HOST, free_port

#: How a wire is cut. `stall`: bytes wait, and flow when it heals, as after a lost route. `drop`: bytes vanish, and with
#: them the connections when it heals, as behind a gateway that forgot them. `reset`: every connection is reset at once
#: and new ones too, until it heals.
Cut = Literal["stall", "drop", "reset"]

_CHUNK = 65_536
#: SO_LINGER with no time left: closing sends a reset.
_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Listens on `port` of the loopback and passes bytes on to *target*, the port of a server that may come and go."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._cut: Cut | None = None
        self._whole = asyncio.Event()
        self._whole.set()
        self._wires: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self.port = free_port()
        self._server = await asyncio.start_server(self._accept, HOST, self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._cut = "reset"
        self._reset_all()
        self._whole.set()
        # Each ends with its wire.
        if self._passing:
            await asyncio.wait(self._passing)

    def cut(self, manner: Cut) -> None:
        """Cut the wire until `heal`."""
        self._cut = manner
        if manner == "reset":
            self._reset_all()
        else:
            self._whole.clear()

    def heal(self) -> None:
        """Let bytes pass again."""
        manner = self._cut
        self._cut = None
        if manner == "drop":
            self._reset_all()
        self._whole.set()

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)
        self._wires.add(writer)
        try:
            if self._cut == "reset":
                _reset(writer)
                return
            await self._whole.wait()
            # A server that is away refuses; its client is told by the end of its own connection.
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection(
                    HOST, self._target
                )
                self._wires.add(far_writer)
                try:
                    await self._pass_both(reader, writer, far_reader, far_writer)
                finally:
                    self._wires.discard(far_writer)
                    far_writer.close()
        finally:
            self._wires.discard(writer)
            writer.close()

    async def _pass_both(
        self,
        near_reader: asyncio.StreamReader,
        near_writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        """Pass bytes both ways until either end closes; what one has said before is still delivered."""
        ways = {
            asyncio.ensure_future(self._pass(near_reader, far_writer)),
            asyncio.ensure_future(self._pass(far_reader, near_writer)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while chunk := await reader.read(_CHUNK):
            if self._cut == "drop":
                continue
            await self._whole.wait()
            writer.write(chunk)
            await writer.drain()
        # Nobody hears of an end through a wire that is cut.
        await self._whole.wait()

    def _reset_all(self) -> None:
        for writer in list(self._wires):
            _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    wire: socket.socket | None = writer.get_extra_info("socket")
    if wire is not None:
        with contextlib.suppress(OSError):
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
