"""Permission violations of NATS, raised in the request that caused them, which would wait in vain otherwise.

A refused publish or subscription is not answered on its own: the server says so on the connection, and the client
library hands that to an error callback, its letters made small. Whoever asked would wait for its deadline and be told
that nobody answers.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from tasklore.contracts.errors import Forbidden

log = structlog.get_logger(__name__)

T = TypeVar("T")

#: Refused subjects that are told of in the log, each once.
_MOST_TOLD = 100

_WORDS = re.compile(
    r"permissions violation for (publish|subscription) to \"(.*?)\"(?: using queue|$|')",
    re.IGNORECASE,
)
#: What a pull loop lives on, in small letters as the library tells it: without it nothing is taken, or nothing is ever
#: done.
_VITAL = ("$js.api.consumer.msg.next.", "$js.ack.")


class ServerRefused(Forbidden, nats.errors.Error):
    """The server refuses this to our user; also an error of the client library, for callers that expect those."""


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """One refusal, its subject in small letters."""

    kind: Literal["publish", "subscription"]
    subject: str

    @property
    def is_vital(self) -> bool:
        """Whether a process cannot work without: subscriptions, pulls and acknowledgements."""
        return self.kind == "subscription" or self.subject.startswith(_VITAL)

    def error(self, role: str | None, subject: str | None = None) -> ServerRefused:
        """Return it as an error that names *role*, the subject (*subject* as it was spelled) and the cure."""
        who = f"the role {role!r}" if role else "this user"
        verb = "publish to" if self.kind == "publish" else "subscribe to"
        return ServerRefused(
            f"NATS does not let {who} {verb} {subject or self.subject!r}; use the credentials of a role that may "
            "(TASKLORE_ROLE, TASKLORE_NATS_SEED_FILE), or grant it in deploy/privileges (docs/reference/security.md)"
        )


Heard = Callable[[ServerRefusal], None]


class Refusals:
    """The refusals on one connection of *role*; `hear` receives every error of the client library."""

    def __init__(self, role: str | None = None, inboxes: str = "_INBOX") -> None:
        self.role = role
        self._inboxes = f"{inboxes.lower()}."
        self._listeners: list[Heard] = []
        self._awaited: dict[asyncio.Future[ServerRefused], str] = {}
        self._told: set[str] = set()
        self._mute: ServerRefused | None = None

    def hear(self, error: Exception) -> bool:
        """Return whether *error* is a refusal; the waiting request hears of it."""
        refusal = read_refusal(str(error))
        if refusal is None:
            return False
        if refusal.subject not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(refusal.subject)
            log.warning("nats_refused", error=str(refusal.error(self.role)))
        if refusal.kind == "subscription" and refusal.subject.startswith(self._inboxes):
            self._mute = refusal.error(self.role)
        for waiter, subject in list(self._awaited.items()):
            if not waiter.done() and (
                self._mute
                or (refusal.kind, refusal.subject) == ("publish", subject.lower())
            ):
                waiter.set_result(self._mute or refusal.error(self.role, subject))
        for listener in list(self._listeners):
            listener(refusal)
        return True

    def listen(self, heard: Heard) -> Callable[[], None]:
        """Call *heard* for every refusal, until the returned function is called."""
        self._listeners.append(heard)
        return lambda: self._listeners.remove(heard)

    def expect(self, subject: str) -> "asyncio.Future[ServerRefused]":
        """Return a future that fails when a publish to *subject* is refused, or its answer cannot be heard."""
        waiter: asyncio.Future[ServerRefused] = (
            asyncio.get_running_loop().create_future()
        )
        self._awaited[waiter] = subject
        waiter.add_done_callback(lambda done: self._awaited.pop(done, None))
        if self._mute is not None:
            waiter.set_result(self._mute)
        return waiter


class Connection(Client):
    """The client library's connection, whose requests end at once when the server refuses them."""

    def __init__(self, refusals: Refusals) -> None:
        super().__init__()
        self.refusals = refusals

    async def request(self, subject: str, *arguments: Any, **options: Any) -> Msg:
        """Do as the library does, or raise Refused."""
        return await unless_refused(
            self, subject, super().request(subject, *arguments, **options)
        )


async def unless_refused(
    client: Client, subject: str, work: Coroutine[Any, Any, T]
) -> T:
    """Return the result of *work*, which publishes to *subject* and waits for its answer.

    Raises:
        Refused: the server does not let us; *work* is cancelled.
    """
    refusals = refusals_of(client)
    if refusals is None:
        return await work
    refused = refusals.expect(subject)
    working = asyncio.ensure_future(work)
    try:
        first: set[asyncio.Future[Any]] = {working, refused}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise refused.result()
        return working.result()
    finally:
        refused.cancel()
        if not working.done():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def refusals_of(client: Client) -> Refusals | None:
    """Return the refusals on *client*; None for a connection that was not opened by `messaging.connection`."""
    return client.refusals if isinstance(client, Connection) else None


def read_refusal(words: str) -> ServerRefusal | None:
    """Return the refusal that the server's *words* tell of, None when they tell of something else."""
    match = _WORDS.search(words)
    if match is None:
        return None
    kind: Literal["publish", "subscription"] = (
        "publish" if match[1].lower() == "publish" else "subscription"
    )
    # The server quotes as Go does.
    return ServerRefusal(
        kind, match[2].lower().replace('\\"', '"').replace("\\\\", "\\")
    )
