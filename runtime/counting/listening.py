"""Metrics of listening: turns, facts, edits of documents, messages to agents."""

from tasklore.runtime.counting.series import LabelledCounters, Series
from tasklore.runtime.counting.words import (
    EDIT_OPERATIONS,
    EDIT_OUTCOMES,
    EDIT_REFUSALS,
    FACT_OUTCOMES,
    MESSAGE_OUTCOMES,
    TURN_OUTCOMES,
)


class ListeningCounts:
    """What listeners count."""

    def __init__(self, series: Series) -> None:
        self._turns = LabelledCounters(
            series.counter("turns", "Turns processed.", "outcome"), TURN_OUTCOMES
        )
        self._facts = LabelledCounters(
            series.counter("facts", "Facts processed.", "outcome"), FACT_OUTCOMES
        )
        messages = series.counter(
            "messages", "Messages to agents processed.", "outcome"
        )
        self._messages = LabelledCounters(messages, MESSAGE_OUTCOMES)
        edits = series.counter(
            "document_edits", "Edits of documents in plans.", "operation", "outcome"
        )
        self._edits = {
            operation: LabelledCounters(edits, EDIT_OUTCOMES, operation)
            for operation in EDIT_OPERATIONS
        }
        refused = series.counter(
            "edits_refused", "Proposals that did not fit and changed nothing.", "reason"
        )
        self._edits_refused = LabelledCounters(refused, EDIT_REFUSALS)
        self._stale_drafts = series.counter(
            "stale_drafts", "Edits recomputed because of a concurrent edit."
        )
        retries = series.counter(
            "listen_retries", "Further runs of turns and facts that raised.", "queue"
        )
        self._listen_retries = LabelledCounters(retries, ("turns", "facts"))

    def count_turn(self, outcome: str) -> None:
        """Count a turn that is dealt with; *outcome* is one of `TURN_OUTCOMES`."""
        self._turns[outcome].inc()

    def count_fact(self, outcome: str) -> None:
        """Count a fact that is dealt with, or waits for a model; *outcome* is one of `FACT_OUTCOMES`."""
        self._facts[outcome].inc()

    def count_message(self, outcome: str) -> None:
        """Count a message to an agent that is dealt with; *outcome* is one of `MESSAGE_OUTCOMES`."""
        self._messages[outcome].inc()

    def count_edit(self, operation: str, outcome: str) -> None:
        """Count an edit of a plan, an `EDIT_OPERATIONS`, that is `applied`, or `refused` with its plan."""
        self._edits[operation][outcome].inc()

    def count_edit_refused(self, reason: str) -> None:
        """Count a proposal that did not fit and changed nothing, plan or not; *reason* is one of `EDIT_REFUSALS`."""
        self._edits_refused[reason].inc()

    def count_stale_draft(self) -> None:
        """Count edits that were worked out anew, since others had changed the documents meanwhile."""
        self._stale_drafts.inc()

    def count_listen_retry(self, queue: str) -> None:
        """Count turns or facts whose run raised and that run again; *queue* is `turns` or `facts`."""
        self._listen_retries[queue].inc()
