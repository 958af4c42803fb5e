"""The facts about a running system that the checks look at."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tasklore.contracts.messages import AgentCard, WorkerPresence

#: A JSON object as a server sent it.
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that a server refused or did not answer in time; *reason* says which in a few words."""

    reason: str


def reason_of(error: BaseException) -> str:
    """Return why a server did not answer in a few words: the system's own, when it is behind *error* somewhere."""
    cause: BaseException | None = error
    while cause is not None:
        # Names that nobody knows have negative numbers, and sentences of their own.
        if isinstance(cause, OSError) and (cause.errno or 0) > 0:
            return os.strerror(cause.errno or 0)
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".") or type(error).__name__


@dataclass(frozen=True, slots=True)
class Skew:
    """Seconds by which a server's clock is ahead of ours, and by how many that can be wrong: half the round trip."""

    ahead_s: float
    error_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsFacts:
    """The answers of NATS.

    *refusal* is why nothing else is known, None when it answered. *server* is the `server` object of
    `$SYS.REQ.USER.INFO`, *account* the answer of `$JS.API.INFO`. *streams* holds `STREAM.INFO` by name, None for one
    that does not exist; *consumers* the answer of `CONSUMER.LIST` by stream. *others* counts the further servers of the
    cluster that clients hear of. *waiting* counts the tasks in the stream by agent, *schedules* those that are set
    for later. *skew* is None when no answer carried a time.
    """

    url: str
    refusal: str | None = None
    version: str = ""
    max_payload: int = 0
    others: int = 0
    server: Answer | Unanswered = Unanswered("not asked")
    account: Answer | Unanswered = Unanswered("not asked")
    streams: Mapping[str, Answer | Unanswered | None] = field(default_factory=dict)
    consumers: Mapping[str, Sequence[Answer] | Unanswered] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    schedules: int = 0
    cards: Sequence[AgentCard] | Unanswered = ()
    workers: Sequence[WorkerPresence] | Unanswered = ()
    skew: Skew | None = None

    def consumers_of(self, stream: str) -> Sequence[Answer]:
        """Return the consumers of *stream*; none when they are not known."""
        found = self.consumers.get(stream, ())
        return () if isinstance(found, Unanswered) else found

    def stream(self, name: str) -> Answer | None:
        """Return the `STREAM.INFO` of *name*; None when it does not exist or did not answer."""
        found = self.streams.get(name)
        return None if isinstance(found, Unanswered) else found


@dataclass(frozen=True, slots=True)
class MonitorFacts:
    """The `/varz` of a nats-server; *source* is where its address comes from.

    *unwell* is what its `/healthz` says against it, None when it is well.
    """

    url: str
    source: str
    varz: Answer | Unanswered
    unwell: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisFacts:
    """The answers of Redis or Valkey.

    *refusal* is why nothing else is known, None when it answered. *settings* is the answer of CONFIG GET, which
    managed servers forbid. *set_aside* are the sessions of pipelines that no supervisor drives any more. *left_behind*
    counts by agent the answers of other code or another version, which no worker serves any more.
    """

    url: str
    refusal: str | None = None
    info: Answer | Unanswered = Unanswered("not asked")
    settings: Mapping[str, str] | Unanswered = Unanswered("not asked")
    skew: Skew | None = None
    left_behind: Mapping[str, int] = field(default_factory=dict)
    set_aside: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class HealthPage:
    """One answer over HTTP; *body* is empty when it is no JSON object."""

    status: int
    body: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """The health pages of a supervisor or worker; *is_named* when endpoints.json names it, so that it must be here."""

    name: str
    url: str
    is_named: bool
    alive: HealthPage | Unanswered
    ready: HealthPage | Unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts, gathered at *now*; None for servers whose address is not known."""

    now: datetime
    nats: NatsFacts
    redis: RedisFacts | None
    monitor: MonitorFacts | None = None
    processes: Sequence[ProcessFacts] = ()
    unexamined: int = 0
