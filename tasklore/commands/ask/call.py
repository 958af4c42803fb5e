"""A request over core NATS and its reply; sent again without harm until a supervisor takes it."""

import asyncio
import time
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg

from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging.refusals import unless_refused

#: Seconds in which a supervisor that was just started, or restarted, begins to take requests.
NOBODY_S = 3.0
#: Seconds for that when somebody had taken the request: one that was killed is started anew by whoever looks after it.
RESTARTED_S = 10.0

#: Seconds between two tries while nobody listens.
_PAUSE_S = 0.1
#: Seconds in which a server tells that nobody listens; a request that is longer under way was taken.
_TOLD_WITHIN_S = 0.5
_NO_RESPONDERS = "503"


class Call:
    """One request until its reply; `ask_again` when the connection was lost, and with it perhaps the reply.

    *body* makes the message anew each time that it is sent. *was_taken* says that a supervisor has taken it before.
    """

    def __init__(
        self,
        client: Client,
        subject: str,
        body: Callable[[], bytes],
        *,
        was_taken: bool = False,
    ) -> None:
        self._client = client
        self._subject = subject
        self._body = body
        self._inbox = client.new_inbox()
        self._heard: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._sent_at: float | None = None
        self._was_taken = was_taken

    @property
    def was_taken(self) -> bool:
        """Whether a supervisor has taken the request, as far as that is known: the server reports when none listens."""
        return self._was_taken or self._is_out

    def ask_again(self) -> None:
        """Send the request once more."""
        self._heard.put_nowait(None)

    @property
    def _is_out(self) -> bool:
        """Whether a supervisor has taken the message that was sent last."""
        return (
            self._sent_at is not None
            and time.monotonic() - self._sent_at > _TOLD_WITHIN_S
        )

    async def reply(self, patience_s: float, again_s: float) -> bytes:
        """Return the reply within *patience_s*; a request without one is sent again every *again_s*.

        Raises:
            Forbidden: this user may not ask that.
            Unreachable: no supervisor takes it, or the one that took it fell silent.
        """

        async def hear(message: Msg) -> None:
            self._heard.put_nowait(message)

        subscription = await self._client.subscribe(self._inbox, cb=hear)
        try:
            async with asyncio.timeout(patience_s):
                return await unless_refused(
                    self._client, self._subject, self._until_heard(again_s)
                )
        except TimeoutError as error:
            msg = f"the supervisor fell silent for {patience_s:.0f} s; see whether it still runs, then ask again"
            raise Unreachable(msg) from error
        finally:
            await subscription.unsubscribe()

    async def _until_heard(self, again_s: float) -> bytes:
        nobody_until: float | None = None
        while True:
            body = self._body()
            self._was_taken = self.was_taken
            await self._client.publish(self._subject, body, reply=self._inbox)
            self._sent_at = time.monotonic()
            try:
                async with asyncio.timeout(again_s):
                    message = await self._heard.get()
            except TimeoutError:
                message = None
            if message is None:
                nobody_until = None if self._is_out else nobody_until
                continue
            if (
                message.headers is None
                or message.headers.get("Status") != _NO_RESPONDERS
            ):
                return bytes(message.data)
            self._sent_at = None
            now = time.monotonic()
            nobody_until = nobody_until or now + (
                RESTARTED_S if self._was_taken else NOBODY_S
            )
            if now > nobody_until:
                raise Unreachable(
                    f"nobody takes requests on {self._subject!r}; start the system with `tasklore up`, "
                    "or a supervisor alone with `tasklore supervisor`"
                )
            await asyncio.sleep(_PAUSE_S)
