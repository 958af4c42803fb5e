"""Opening the dead letters of this system, and the letters that options of the command line mean."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tasklore.commands.places import open_nats, open_redis
from tasklore.commands.render.durations import parse_when
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.breaker import Breaker
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.servers.valkey import DEADLINE_S
from tasklore.runtime.settings import Settings
from tasklore.supervisor.dead_letters.letters import Selection
from tasklore.supervisor.dead_letters.queue import (
    Choice,
    DeadLetters,
    open_dead_letters,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The letters that options mean; None is no condition."""

    sequences: tuple[int, ...] = ()
    agent: str | None = None
    task: str | None = None
    reason: str | None = None
    error: str | None = None
    tenant: str | None = None
    user: str | None = None
    since: str | None = None
    until: str | None = None
    everything: bool = False

    @property
    def has_condition(self) -> bool:
        """Whether there is any condition."""
        return self.selection() != Selection()

    def selection(self) -> Selection:
        """Return the conditions alone; raises InvalidInput for an agent that is no name or a time that is none."""
        now = datetime.now(UTC)
        return Selection(
            agent_id=None
            if self.agent is None
            else checked_name(self.agent, "--agent"),
            task_name=self.task,
            reason=self.reason,
            error_type=self.error,
            tenant=self.tenant,
            user_id=self.user,
            since=None
            if self.since is None
            else parse_when(self.since, now, "--since"),
            until=None
            if self.until is None
            else parse_when(self.until, now, "--until"),
        )

    def choice(self) -> Choice:
        """Return the sequences or conditions, where some have to be given.

        Raises:
            InvalidInput: none are given, or two kinds that contradict.
        """
        given = [bool(self.sequences), self.has_condition, self.everything]
        if not any(given):
            raise InvalidInput(
                "say which: SEQUENCE, --agent, --error, --task, --reason, --tenant, --user, --since, --until, or --all"
            )
        if given.count(True) > 1:
            raise InvalidInput(
                "give sequences, or options that filter, or --all; one of the three"
            )
        return self.sequences or self.selection()


@contextlib.asynccontextmanager
async def dead_letters() -> AsyncIterator[DeadLetters]:
    """Open the dead letters of the system that runs here; the ledger is read only for facts that they lack."""
    keep = timedelta(days=Settings.load().ledger_keep_days)
    async with (
        open_nats("tasklore-dlq") as client,
        open_redis("tasklore-dlq", DEADLINE_S) as redis,
        open_outbox(link := Link(client)) as outbox,
        open_dead_letters(
            link, outbox, Ledger(redis, keep=keep, breaker=Breaker())
        ) as letters,
    ):
        yield letters
