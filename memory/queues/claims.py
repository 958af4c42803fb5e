"""Waiting rows of a user: claims of them, and their outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tasklore.memory import keys

#: How a row can be closed for good.
Outcome = Literal["done", "failed", "rejected", "conflict"]
#: Whose rows: `turns` that people said, or `facts` that were found in them.
QueueName = Literal["turns", "facts"]

OUTCOMES: Final[tuple[Outcome, ...]] = ("done", "failed", "rejected", "conflict")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRow:
    """A row to be appended: an id, by which it is known when it comes again, and what `QueueRow` will say of it."""

    row_id: str
    body: bytes
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A row under claim; `body` is as it was appended.

    `attempts` counts the runs that are held against it: those that ended in a retry, and those that ended without a
    word while it was claimed alone. `crashes` counts all that ended without a word since its last retry; a row with
    one is only claimed alone. `note` is what an earlier run worked out (`Closing.note`), None when nothing.
    `trace` is the trace context of the message that it came in, as that is spelled there; "" for none.
    """

    row_id: str
    body: bytes
    attempts: int = 0
    note: bytes | None = None
    crashes: int = 0
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to close `rows` of *owner* in *queue* until the lease of number `fence` ends.

    `owner_token` is `tasklore.contracts.identifiers.user_token` of the owner. `keep_ms` is for how many milliseconds
    a closed row is known.
    """

    queue: QueueName
    owner: str
    owner_token: str
    holder: str
    fence: int
    rows: tuple[QueueRow, ...]
    keep_ms: int

    @property
    def keys(self) -> keys.QueueKeys:
        """The six keys of the owner's rows, in the order in which the scripts take them."""
        return keys.queue(self.queue, self.owner_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The outcome of a row.

    An `Outcome` closes it for good. `retry` keeps it first among its owner's, not before *not_before_ms* (ms since
    1970, None is at once), with one attempt more. `needs_model` takes it out of the order until it is resumed.
    Both keep *note* with the row for its next claim, in place of the one before it; None leaves that there.
    """

    row_id: str
    state: Outcome | Literal["needs_model", "retry"]
    reason: str = ""
    plan_id: str | None = None
    not_before_ms: int | None = None
    note: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRow:
    """A row as people see it; `state` is `waiting`, or the word of its last `Closing`.

    `at_ms` is when it came to that state, ms since 1970 by the server's clock; of one that waits, when it was
    appended.
    """

    row_id: str
    body: bytes
    state: str
    at_ms: int
    attempts: int = 0
    crashes: int = 0
    reason: str = ""
    plan_id: str | None = None
    not_before_ms: int | None = None
    note: bytes | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows of an owner wait in order, are parked until a model is there, and were closed, by outcome.

    Closed rows are counted while they are known.
    """

    waiting: int
    parked: int
    closed: dict[Outcome, int]


def closing_arguments(
    claim: Claim, closings: Sequence[Closing] = ()
) -> list[str | bytes | int]:
    """Return the words that `lease_held` and `close_rows` of `queues.scripts.CLOSE_ROWS` read from ARGV."""
    words: list[str | bytes | int] = [
        claim.holder,
        claim.fence,
        claim.keep_ms,
        len(closings),
    ]
    for closing in closings:
        not_before = "" if closing.not_before_ms is None else closing.not_before_ms
        # A reason may quote a model, which may have split a surrogate pair.
        reason = closing.reason.encode("utf-8", "replace")
        words += (
            closing.row_id,
            closing.state,
            reason,
            closing.plan_id or "",
            not_before,
            closing.note or b"",
        )
    return words
