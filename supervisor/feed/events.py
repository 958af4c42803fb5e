"""The events of a feed, and the place in it at which a client that was cut off goes on."""

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.messages import CompletionReport, EmittedValue, Progress
from tasklore.runtime.messaging.output import BEGINNING, Position
from tasklore.supervisor.approvals.questions import ApprovalQuestion

#: A place as clients send it.
PLACE = r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(\.[0-9]{1,15})?"
_PLACE = re.compile(PLACE)


class Place(NamedTuple):
    """How far a client is: at which event of the output, and until when it knows of questions and waits.

    *known_ms* is the time at which the last of these began that was shown, in ms since 1970; 0 is none.
    """

    output: Position = BEGINNING
    known_ms: int = 0

    def __str__(self) -> str:
        """Return it as clients send it: `1.2.3`, and `1.2.3.1764430000000` behind a question or a wait."""
        known = f".{self.known_ms}" if self.known_ms else ""
        return f"{self.output}{known}"

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Return the place that *text* spells.

        Raises:
            ValueError: it spells none.
        """
        if _PLACE.fullmatch(text) is None:
            raise ValueError(f"{text!r} is no place in a feed")
        generation, attempt, sequence, *known = map(int, text.split("."))
        return cls(Position(generation, attempt, sequence), *known)


#: The beginning of every feed.
FROM_START = Place()


class Routed(NamedTuple):
    """A request has become the tasks *task_ids*."""

    task_ids: tuple[str, ...]


class Text(NamedTuple):
    """A piece of the text that a task emits, to be appended."""

    at: Place
    text: str


class Value(NamedTuple):
    """A value that a task emits beside its text."""

    at: Place
    value: EmittedValue


class Restarted(NamedTuple):
    """A new run has begun, and all output before it is void: the earlier run broke off, or ended to wait."""

    at: Place
    has_waited: bool


class Gap(NamedTuple):
    """Events *first* to *last* of the output were lost; None where their number is not known."""

    at: Place
    first: int
    last: int | None


class Waiting(NamedTuple):
    """A task waits for its next run, which begins by itself."""

    at: Place
    task_id: str
    wait: RunWait

    @property
    def since_ms(self) -> int:
        """When it began, in ms since 1970."""
        return to_ms(self.wait.since)

    def describe(self) -> dict[str, Any]:
        """Return why it waits, as JSON, without the fields that are for its next run alone."""
        return self.wait.model_dump(mode="json", exclude={"run", "emitted"})


class Question(NamedTuple):
    """A task asks a person."""

    at: Place
    task_id: str
    question: ApprovalQuestion

    @property
    def since_ms(self) -> int:
        """When it was asked, in ms since 1970."""
        return to_ms(self.question.asked_at)


class Done(NamedTuple):
    """The end of a task: its *report*, None where it was cancelled before it had one.

    *has_expired*: the output behind the place at which the client came back is no longer kept.
    """

    at: Place
    task_id: str
    report: CompletionReport | None
    has_expired: bool = False


#: What becomes of a task. Of `Progress` nothing is kept: a client that was away misses it.
TaskEvent = Text | Value | Restarted | Gap | Waiting | Question | Progress | Done
FeedEvent = Routed | TaskEvent


def to_ms(at: datetime) -> int:
    """Return *at* in ms since 1970."""
    return int(at.astimezone(UTC).timestamp() * 1000)
