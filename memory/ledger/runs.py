"""Values of runs, without a client of Redis: a module that only names them loads none."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from tasklore.contracts.moments import spell_moment
from tasklore.memory.ledger.task_rows import TaskRow

if TYPE_CHECKING:
    from tasklore.contracts.admission.waits import RunWait


class LostWorker(NamedTuple):
    """The worker whose run of a task ended without a word, and when its lease ended: it is silent since then."""

    worker_id: str
    silent_since: datetime

    def __str__(self) -> str:
        """Return it in words: "worker w-1, not heard since 2026-11-29 16:00:00 UTC"."""
        since = spell_moment(self.silent_since)
        return f"worker {self.worker_id}, last heartbeat {since}"


class RunName(NamedTuple):
    """A run of a generation of a task, as the ledger tells it from those of other workers."""

    task_id: str
    generation: int
    worker_id: str


class RunPermission(NamedTuple):
    """The task may run, for the *number*th time (1 is the first).

    Of the earlier runs *crashes* ended without a word, and *excused* are not held against it. *is_news*: the last
    crash was not known before. *waited_for* is why the last run let the task wait, a `RunWait` as JSON.
    """

    number: int
    crashes: int = 0
    excused: int = 0
    is_news: bool = False
    waited_for: bytes = b""


class PastRuns(NamedTuple):
    """The past of a task: runs that began, those that ended without a word, and why it waits, if it does.

    *lost* is the worker of the last that ended so.
    """

    attempts: int
    crashes: int
    waits_for: bytes
    lost: LostWorker | None = None


class Held(NamedTuple):
    """Another worker runs the task, for *wait_ms* milliseconds unless it renews its lease."""

    wait_ms: int


class NotDue(NamedTuple):
    """The next run of the task is not due for *wait_ms* milliseconds."""

    wait_ms: int


class Suspect(NamedTuple):
    """Of *runs* earlier ones *crashes* ended without a word, *crashes_alone* of these with nothing beside them.

    These are more than the caller tolerates. *is_news*: the last crash was not known before. *lost* is its worker.
    """

    crashes: int
    crashes_alone: int
    runs: int
    is_news: bool = False
    lost: LostWorker | None = None


class Woken(NamedTuple):
    """A task that waited is due now: its *attempts* so far, its *assignment* and *trace*, for its next run."""

    attempts: int
    assignment: bytes
    trace: str


class ReportExpired(NamedTuple):
    """The generation has ended, in *state* and with *error* if it did not complete; its report is kept no more."""

    state: str
    finished_at_ms: int
    error: str = ""

    @property
    def words(self) -> str:
        """What became of it, in words."""
        at = datetime.fromtimestamp(self.finished_at_ms / 1000, UTC)
        why = f" ({self.error})" if self.error else ""
        return f"it {_said(self.state)} at {at:%Y-%m-%d %H:%M:%S} UTC{why}, and its report has expired"


def _said(state: str) -> str:
    return state if state in ("completed", "failed", "expired") else f"was {state}"


class CancelRequest(NamedTuple):
    """The task is to be cancelled: no other report is taken any more."""

    reason: str


class CancelOutcome(NamedTuple):
    """A request to cancel was noted for *generation*; *assignment* is None when the task is not known by it (yet).

    *waits_for* is why it waits for its next run, None where it does not, or for nothing but time.
    """

    generation: int
    state: str
    assignment: bytes | None
    waits_for: "RunWait | None" = None


Beginning = (
    RunPermission | Held | NotDue | Suspect | CancelRequest | ReportExpired | bytes
)


class Ended(NamedTuple):
    """A run that ended with a word but without a report, by the *token* it began with.

    An *excused* one is not held against its task: not it was at fault, or it never began. An *uncounted* one is no
    attempt at all.
    """

    task_id: str
    generation: int
    token: str
    excused: bool = False
    uncounted: bool = False

    @property
    def weight(self) -> int:
        """How the scripts spell it: 2 when it is uncounted, 1 when it is excused, else 0."""
        return 2 if self.uncounted else int(self.excused)


class Finish(NamedTuple):
    """One terminal report that wants to be the one of its generation.

    `user` is the token of its user, so that forgetting them finds it; empty for none. `row` is how the task is listed,
    None to leave the list as it is.
    """

    task_id: str
    generation: int
    status: str
    report: bytes
    user: str = ""
    row: TaskRow | None = None
