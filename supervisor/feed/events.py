"""The events of a feed, and the place in it at which a client that was cut off goes on."""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.messages import CompletionReport, EmittedValue, Progress
from tasklore.runtime.messaging.output import BEGINNING, OutputPosition
from tasklore.supervisor.approvals.questions import ApprovalQuestion

#: Questions and waits that a client can know of at once: more than are open of one task.
MOST_MARKS = 256
#: The marks of these, as clients send them behind a place.
MARKS = rf"(\.[0-9a-f]{{8}}){{0,{MOST_MARKS}}}"
#: A place as clients send it.
PLACE = rf"[0-9]{{1,9}}\.[0-9]{{1,9}}\.[0-9]{{1,9}}{MARKS}"
_PLACE = re.compile(PLACE)
#: In the id of the last event of a task, behind generation and attempt.
OUTPUT_END = ".end"
#: The ids of events of a task: places in the feed, or the end of what was put out.
OUTPUT_ID = rf"({PLACE}|[0-9]{{1,9}}\.[0-9]{{1,9}}\{OUTPUT_END})"
#: Those of a request: a stage, and the marks of questions and waits that are known.
REQUEST_EVENT_ID = rf"[0-9]{{1,9}}{MARKS}"


class FeedPosition(NamedTuple):
    """How far a client is: at which event of the output, and which questions and waits it knows, by their marks.

    What is neither open any more nor waited for has no mark here.
    """

    output: OutputPosition = BEGINNING
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as clients send it: `1.2.3`, and `1.2.3.9f86d081` behind a question or a wait."""
        return ".".join((str(self.output), *self.known))

    @classmethod
    def parse(cls, text: str) -> "FeedPosition":
        """Return the place that *text* spells.

        Raises:
            ValueError: it spells none.
        """
        if _PLACE.fullmatch(text) is None:
            raise ValueError(f"{text!r} is not a position in a feed")
        generation, attempt, sequence, *known = text.split(".")
        position = OutputPosition(int(generation), int(attempt), int(sequence))
        return cls(position, tuple(known))


#: The beginning of every feed.
FROM_START = FeedPosition()


class BecameTasks(NamedTuple):
    """A request has become the tasks *task_ids*."""

    task_ids: tuple[str, ...]


class TextEmission(NamedTuple):
    """A piece of the text that a task emits, to be appended."""

    at: FeedPosition
    text: str


class ValueEmission(NamedTuple):
    """A value that a task emits beside its text."""

    at: FeedPosition
    value: EmittedValue


class Restarted(NamedTuple):
    """A new run has begun, and all output before it is void: the earlier run broke off, or ended to wait."""

    at: FeedPosition
    has_waited: bool


class Gap(NamedTuple):
    """Events *first* to *last* of the output were lost; None where their number is not known."""

    at: FeedPosition
    first: int
    last: int | None


class BeganWaiting(NamedTuple):
    """A task waits for its next run, which begins by itself."""

    at: FeedPosition
    task_id: str
    wait: RunWait

    @property
    def since_ms(self) -> int:
        """When it began, in ms since 1970."""
        return to_ms(self.wait.since)

    @property
    def mark(self) -> str:
        """What tells it from every other wait of its task, however often a run finds that it still waits."""
        return _mark(self.task_id, self.wait.kind, self.wait.name, str(self.since_ms))

    def describe(self) -> dict[str, Any]:
        """Return why it waits, as JSON, without the fields that are for its next run alone."""
        return self.wait.model_dump(mode="json", exclude={"run", "emitted"})


class PersonQuestion(NamedTuple):
    """A task asks a person."""

    at: FeedPosition
    task_id: str
    question: ApprovalQuestion

    @property
    def since_ms(self) -> int:
        """When it was asked, in ms since 1970."""
        return to_ms(self.question.asked_at)

    @property
    def mark(self) -> str:
        """What tells it from every other question of its task, whatever clock it was asked by."""
        return _mark(self.question.id, "question", self.question.digest)


class Done(NamedTuple):
    """The end of a task: its *report*, None where it was cancelled before it had one.

    *has_expired*: the output behind the place at which the client came back is no longer kept.
    """

    at: FeedPosition
    task_id: str
    report: CompletionReport | None
    has_expired: bool = False


#: What becomes of a task. Of `Progress` nothing is kept: a client that was away misses it.
TaskEvent = (
    TextEmission
    | ValueEmission
    | Restarted
    | Gap
    | BeganWaiting
    | PersonQuestion
    | Progress
    | Done
)
FeedEvent = BecameTasks | TaskEvent


def _mark(*words: str) -> str:
    """Return the mark of what has this name: 8 hex digits."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]


def to_ms(at: datetime) -> int:
    """Return *at* in ms since 1970."""
    return int(at.astimezone(UTC).timestamp() * 1000)
