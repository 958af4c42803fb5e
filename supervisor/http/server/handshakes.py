"""Handshakes of TLS that are not waited for without an end: each has its time, and takes the room of a stranger.

The library beneath would keep a connection that says nothing for a minute, and count it nowhere until it is over TLS.
"""

import asyncio
import functools
import socket
from collections.abc import Callable
from typing import Final

import structlog

from supervisor.http.admission.unknown_clients import Peer, Strangers
from supervisor.http.server.certificates import Certificate
from supervisor.http.server.timeouts import PatientProtocol

log = structlog.get_logger(__name__)

#: Seconds until a handshake is over: a few round trips, also over a slow line.
HANDSHAKE_S: Final = 10.0
#: Seconds in which the other end says goodbye, too, before a connection that was closed here is cut.
FAREWELL_S: Final = 3.0
#: Seconds until connections are accepted again when there are no files left for any.
_NO_FILES_S: Final = 1.0


class Handshakes:
    """Accepts connections and owns them until they are over TLS; stands where an asyncio server does.

    Nobody has shown a key by then: where *strangers* are counted, all of these are some.
    """

    handshake_s = HANDSHAKE_S

    def __init__(self, tls: Certificate, strangers: Strangers | None = None) -> None:
        self._tls = tls
        self._strangers = strangers
        self._going: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._going)

    def begin(self, listener: socket.socket, serving: Callable[[], PatientProtocol], connected: set[object]) -> None:
        """Accept what comes to *listener*, each served by what *serving* makes; *connected* is who is over TLS."""
        self._accepting = asyncio.create_task(self._accept(listener, serving, connected))

    def close(self) -> None:
        """Accept no more, and let those who are not over TLS yet go."""
        for task in self._tasks():
            task.cancel()

    async def wait_closed(self) -> None:
        """Return when nothing goes on any more."""
        await asyncio.gather(*self._tasks(), return_exceptions=True)

    def _tasks(self) -> set[asyncio.Task[None]]:
        return self._going | ({self._accepting} if self._accepting is not None else set())

    async def _accept(
        self, listener: socket.socket, serving: Callable[[], PatientProtocol], connected: set[object]
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listener)
            except ConnectionError:
                # It was gone before anybody looked.
                continue
            except OSError as error:
                log.warning("api_accepts_nobody", error=str(error), told="raise the limit of open files")
                await asyncio.sleep(_NO_FILES_S)
                continue
            strangers = self._strangers
            is_full = len(connected) + len(self._going) >= PatientProtocol.most
            if is_full and not (strangers is not None and strangers.make_room()):
                # Nothing can be told before there is TLS.
                accepted.close()
                continue
            peer = str(address[0]), int(address[1])
            task = asyncio.create_task(self._greet(accepted, peer, serving))
            self._going.add(task)
            task.add_done_callback(self._going.discard)
            if strangers is not None:
                strangers.connect(peer, functools.partial(_end, task))

    async def _greet(self, accepted: socket.socket, peer: Peer, serving: Callable[[], PatientProtocol]) -> None:
        is_safe = False
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                serving,
                accepted,
                ssl=self._tls.current(),
                ssl_handshake_timeout=self.handshake_s,
                ssl_shutdown_timeout=FAREWELL_S,
            )
            is_safe = True
        except OSError:
            # A port that is open to all is tried by many that speak no TLS, or trust another authority.
            pass
        finally:
            if not is_safe and self._strangers is not None:
                self._strangers.settle(peer)


def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
