"""What a door of HTTP has, and the parts of the supervisor that the routes use, as its wiring gives them."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.http.admission.clients import UnknownClients
from tasklore.supervisor.http.admission.console_sessions import ConsoleSessions
from tasklore.supervisor.http.admission.cross_origin import CrossOrigin
from tasklore.supervisor.http.admission.key_file import KeyEntry, KeyRing
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.http.admission.stream_tokens import StreamTokens
from tasklore.supervisor.operations.console_links import ConsoleLinks
from tasklore.supervisor.operations.dependencies import SupervisorDependencies
from tasklore.supervisor.operations.token_signer import TokenSigner


class Life:
    """Counts the requests and streams that are open, and knows whether the process still takes more.

    `draining` is set when the process is asked to end: streams end. `leaving` is set when its grace is over: clients
    that still wait get the place to ask later.
    """

    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.leaving = asyncio.Event()
        self.streams_of: Counter[str] = Counter()
        self.inside_of: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return self.streams_of.total()

    @property
    def inside(self) -> int:
        """The number of requests that are being answered."""
        return self.inside_of.total()

    @contextmanager
    def count(self, holder: str) -> Iterator[None]:
        """Count one request of the caller who is *holder* within the block."""
        self._empty.clear()
        try:
            with _one_of(self.inside_of, holder):
                yield
        finally:
            if not self.inside_of:
                self._empty.set()

    @contextmanager
    def streaming(self, name: str) -> Iterator[None]:
        """Count one open stream of events of the key *name* within the block."""
        with _one_of(self.streams_of, name):
            yield

    async def empty(self) -> None:
        """Return when no request is being answered."""
        await self._empty.wait()


@contextmanager
def _one_of(counts: Counter[str], name: str) -> Iterator[None]:
    """Count one of *name* within the block; a name with none takes no room."""
    counts[name] += 1
    try:
        yield
    finally:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who is admitted over HTTP, how much they may send, and how serving ends, whatever is behind it.

    `keys` None admits everybody, on the loopback address only. `cross_origin` None lets no page from elsewhere ask.
    `console` None lets nobody sign in to the console.
    """

    keys: KeyRing | None = None
    cross_origin: CrossOrigin | None = None
    stream_tokens: StreamTokens | None = None
    console: ConsoleSessions | None = None
    limits: ClientLimits = field(default_factory=ClientLimits)
    unknown: UnknownClients = field(default_factory=UnknownClients)
    meter: Metrics = field(default_factory=Metrics)
    life: Life = field(default_factory=Life)
    grace_s: float = 30.0
    heartbeat_s: float = 15.0

    def find_key(self, name: str) -> KeyEntry | None:
        """Return the key that is called *name* now, None where there is none or none are required."""
        return None if self.keys is None else self.keys.named(name)

    def share(self, whole: int) -> int:
        """Return how many of *whole* one caller may have: all of them where everybody is the same caller."""
        return whole if self.keys is None else self.limits.share_of(whole)


@dataclass(frozen=True, kw_only=True)
class ApiDependencies(Admission, SupervisorDependencies):
    """All that a module of routes is given."""

    @property
    def draining(self) -> asyncio.Event:
        """Set when the process is asked to end."""
        return self.life.draining

    @property
    def leaving(self) -> asyncio.Event:
        """Set when the grace of the process is over."""
        return self.life.leaving

    @property
    def demands_keys(self) -> bool:
        """Whether clients need a key."""
        return self.keys is not None

    @property
    def token_signer(self) -> TokenSigner | None:
        """What signs tokens of streams."""
        return self.stream_tokens

    @property
    def console_links(self) -> ConsoleLinks | None:
        """What signs links that sign browsers in."""
        return self.console
