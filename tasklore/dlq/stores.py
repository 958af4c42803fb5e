"""What the commands on dead letters share: opening them, and reading from options which are meant."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from contracts.errors import InvalidInput
from contracts.identifiers import checked_name
from memory.breaker import Breaker
from memory.ledger.ledger import Ledger
from runtime.messaging.connection import connected
from runtime.messaging.link import Link
from runtime.messaging.outbox import open_outbox
from runtime.servers import valkey
from runtime.settings import Settings
from supervisor.dead_letters.letters import Selection
from supervisor.dead_letters.queue import Choice, DeadLetters, open_dead_letters
from tasklore.places import current_endpoints, demand_listener
from tasklore.render.durations import parse_span


class Wish(NamedTuple):
    """Which letters are meant, as it was typed; None is no condition."""

    sequences: tuple[int, ...] = ()
    agent: str | None = None
    task: str | None = None
    reason: str | None = None
    since: str | None = None
    everything: bool = False

    @property
    def is_filter(self) -> bool:
        """Whether there is any condition."""
        return any(word is not None for word in (self.agent, self.task, self.reason, self.since))

    def selection(self) -> Selection:
        """Return the conditions alone."""
        agent = None if self.agent is None else checked_name(self.agent, "--agent")
        since = None if self.since is None else parse_since(self.since, datetime.now(UTC))
        return Selection(agent, self.task, self.reason, since)

    def choice(self) -> Choice:
        """Return what is meant, where something has to be.

        Raises:
            InvalidInput: nothing is said, or two things that contradict.
        """
        given = [bool(self.sequences), self.is_filter, self.everything]
        if not any(given):
            raise InvalidInput("say which: SEQUENCE, --agent, --task, --reason, --since, or --all")
        if given.count(True) > 1:
            raise InvalidInput("give sequences, or options that filter, or --all; one of the three")
        return self.sequences or self.selection()


def parse_since(text: str, now: datetime) -> datetime:
    """Return the moment that *text* means: so long before *now* (2h, 7d), or a time in RFC 3339, UTC without a zone.

    Raises:
        InvalidInput: it is neither.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    else:
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return now - parse_span(text, "--since")
    except OverflowError:
        return datetime.fromtimestamp(0, UTC)
    except InvalidInput as error:
        raise InvalidInput(f"{error}, or a time such as 2026-11-21T10:00:00Z") from error


@contextlib.asynccontextmanager
async def dead_letters() -> AsyncIterator[DeadLetters]:
    """Open the dead letters of the system that runs here.

    Redis is asked only for what the letters themselves do not hold.

    Raises:
        Unreachable: there is none, or its NATS does not answer.
    """
    endpoints = current_endpoints()
    await demand_listener(endpoints.nats)
    keep = timedelta(days=Settings.load().ledger_keep_days)
    async with (
        connected(endpoints.nats, "tasklore-dlq") as client,
        valkey.connect(endpoints.redis_url, name="tasklore-dlq") as redis,
    ):
        link = Link(client)
        async with open_outbox(link) as outbox:
            ledger = Ledger(redis, keep=keep, breaker=Breaker())
            async with open_dead_letters(link, outbox, ledger) as letters:
                yield letters
