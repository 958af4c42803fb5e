"""Metrics of the whole system, exported by supervisors: backlog, users, and ended tasks by outcome.

Every replica exports the same values: aggregate them by maximum, not by sum.
"""

from collections.abc import Callable, Mapping

from tasklore.contracts.messages import Status
from tasklore.runtime.counting.series import LabelledCounters, Series
from tasklore.runtime.counting.words import words_of


class SystemGauges:
    """Gauges that exist only in processes that watch: elsewhere a zero would be wrong."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._cards_refused = series.counter(
            "cards_refused", "Agent cards that were ignored because they are invalid."
        )

        about = (
            "Webhooks: retried later, given up after a day (failed), or not stored "
            "because storage is full (dropped)."
        )
        self._webhooks = LabelledCounters(
            series.counter("webhooks", about, "outcome"),
            ("delivered", "retried", "failed", "dropped"),
        )

    def count_webhook(self, outcome: str) -> None:
        """Count a webhook that was sent, or was not stored."""
        self._webhooks[outcome].inc()

    def watch_webhooks(
        self,
        waiting: Callable[[], float],
        failed: Callable[[], float],
        oldest_s: Callable[[], float],
    ) -> None:
        """Export how many webhooks wait and how long the oldest does, and how many were given up."""
        about = "Age of the oldest undelivered webhook; 0 if none waits."
        self._series.gauge("webhooks_oldest_seconds", about).set_function(oldest_s)
        self._series.gauge(
            "webhooks_waiting", "Webhooks that wait to be delivered."
        ).set_function(waiting)
        self._series.gauge(
            "webhooks_failed", "Webhooks that were given up, until they are removed."
        ).set_function(failed)

    def watch_waits(self, waiting: Callable[[], float]) -> None:
        """Export how many tasks wait for a person, a signal or a time."""
        about = "Tasks that wait for a person, a signal or a time set by their code, and occupy no slot."
        self._series.gauge("tasks_waiting", about).set_function(waiting)

    def watch_questions(
        self, waiting: Callable[[], float], oldest_s: Callable[[], float]
    ) -> None:
        """Export how many questions wait for a person, and for how long the oldest does."""
        about = "Questions of tasks that wait for a person."
        self._series.gauge("questions_open", about).set_function(waiting)
        about = "Age of the oldest of these questions; 0 if there is none."
        self._series.gauge("questions_oldest_seconds", about).set_function(oldest_s)

    def count_refused_card(self) -> None:
        """Count a card that is none, or another agent's, or cannot be used: once for each thing that is wrong."""
        self._cards_refused.inc()

    def watch_dead_letters(
        self, waiting: Callable[[], float], oldest_s: Callable[[], float]
    ) -> None:
        """Export what *waiting* and *oldest_s* say at each scrape; only a process that looks after DEAD has these."""
        self._series.told(
            "dead_letters",
            "Messages in the dead-letter queue.",
            "",
            lambda: {"": waiting()},
        )
        about = "Age of the oldest of them."
        self._series.gauge("dead_letters_oldest_seconds", about).set_function(oldest_s)

    def watch_waiting(
        self, queue: str, waiting: Callable[[], float], oldest_s: Callable[[], float]
    ) -> None:
        """Export what *waiting* and *oldest_s* say of *queue* (turns, facts or messages) in a process that reads it.

        Both are of all users and the same in every such process: scale by their maximum, not by their sum.
        """
        one = queue.removesuffix("s")
        self._series.gauge(
            f"{queue}_pending", f"All {queue} that wait, of any listener."
        ).set_function(waiting)
        self._series.gauge(
            f"oldest_{one}_age_seconds", f"Age of the oldest of those {queue}."
        ).set_function(oldest_s)

    def watch_tasks(
        self,
        unfinished: Callable[[], Mapping[str, float]],
        slot_s: Callable[[], Mapping[str, float]],
        workers: Callable[[], Mapping[str, float]],
        oldest_s: Callable[[], float],
    ) -> None:
        """Export by agent how many tasks wait or run, how many slots they need, and how many workers live."""
        told = self._series.told
        told("tasks_unfinished", "Tasks that wait or run.", "agent", unfinished)
        about = "Estimated backlog in slot-seconds, from recent run times."
        told("backlog_slot_seconds", about, "agent", slot_s)
        told("workers", "Workers that are alive.", "agent", workers)
        about = "Age of the oldest task that waits or runs."
        self._series.gauge("oldest_task_age_seconds", about).set_function(oldest_s)

    def watch_store(self, part: Callable[[], float]) -> None:
        """Export which *part* of its memory the store uses."""
        about = "Share of its maxmemory that Valkey uses; 0 without one."
        self._series.gauge("store_memory_ratio", about).set_function(part)

    def watch_limits(
        self,
        used: Callable[[], Mapping[str, float]],
        spent: Callable[[], Mapping[str, float]],
        unconfirmed: Callable[[], Mapping[str, float]],
        waiting: Callable[[], Mapping[str, float]],
    ) -> None:
        """Export by limit how full its fullest account is, and how many calls wait; *spent* is of days and months."""
        declare = self._series.told
        declare(
            "limit_used_ratio",
            "Used share of a limit on models, of its fullest account.",
            "limit",
            used,
        )
        declare(
            "budget_used_ratio",
            "The same of limits of a day or a month.",
            "limit",
            spent,
        )
        about = "Share of a limit that crashed workers may have spent, of the account with most."
        declare("limit_unconfirmed_ratio", about, "limit", unconfirmed)
        declare(
            "limit_waiting_calls",
            "Calls that wait because a limit is exhausted.",
            "limit",
            waiting,
        )

    def watch_ledger(
        self, ended: Callable[[], Mapping[str, int]], age_s: Callable[[], float]
    ) -> None:
        """Export how many generations of tasks *ended* in each state, nothing until the ledger was read, and when."""
        self._series.gauge(
            "ledger_age_seconds", "Time since the ledger was last read."
        ).set_function(age_s)

        def by_outcome() -> Mapping[str, float]:
            known = ended()
            return (
                {word: known.get(word, 0) for word in (*words_of(Status), *known)}
                if known
                else {}
            )

        self._series.told(
            "ledger_tasks",
            "Tasks that ended, as the ledger has counted them.",
            "outcome",
            by_outcome,
        )
