"""What a supervisor looks at now and then, so that whoever scrapes it sees the system as a whole."""

from redis.asyncio import Redis

from contracts import subjects
from memory.ledger.tally import Tally
from runtime.messaging.link import Link
from runtime.metrics import Metrics
from supervisor.backlog import BacklogWatch
from supervisor.cards import CardIndex
from supervisor.reports.reports import RunTimes
from supervisor.watch import LedgerWatch, StoreWatch, StreamWatch, Watch


def watches_on(metrics: Metrics, link: Link, redis: Redis, cards: CardIndex, run_times: RunTimes) -> tuple[Watch, ...]:
    """Return all of them, to be run; *metrics* exports what they saw last."""
    dead, messages = StreamWatch(link.client, subjects.DEAD), StreamWatch(link.client, subjects.MESSAGES)
    backlog = BacklogWatch(link, lambda: cards.catalogue.cards, run_times)
    ledger, store = LedgerWatch(Tally(redis)), StoreWatch(redis)
    metrics.watch_dead_letters(dead.waiting, dead.oldest_s)
    metrics.watch_waiting("messages", messages.waiting, messages.oldest_s)
    metrics.watch_tasks(backlog.unfinished, backlog.slot_s, backlog.workers, backlog.oldest_s)
    metrics.watch_ledger(ledger.ended, ledger.age_s)
    metrics.watch_store(store.part)
    return dead, messages, backlog, ledger, store
