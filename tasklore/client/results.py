"""The answers of the server, as far as programs need them; an unknown field is ignored."""

from datetime import date, datetime
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Result(BaseModel):
    """The base of all answers."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class Reply(Result):
    """The answer to words: its `kind` is `answer`, `question`, `unable`, `failed` or `pending`."""

    request_id: str
    conversation_id: str
    kind: str
    text: str
    agent_id: str | None = None
    task: dict[str, JsonValue] | None = None
    missing: tuple[str, ...] = ()
    report: dict[str, JsonValue] | None = None

    @property
    def result(self) -> Any:
        """The result of the task; None without a report."""
        return (self.report or {}).get("result")


class Asked(Result):
    """A request as it stands."""

    request_id: str
    state: str
    reply: Reply | None = None


class Task(Result):
    """A task as it stands: `accepted`, perhaps to begin at *due*, `running`, `cancelled`, or `done` with its report."""

    task_id: str
    state: str
    report: dict[str, JsonValue] | None = None
    due: datetime | None = None

    @property
    def result(self) -> Any:
        """The result of the task, None unless it completed."""
        return (self.report or {}).get("result")


class TaskEntry(Result):
    """A task in the list: `began_ms` is when it was created, ms since 1970, `error` the class that ended it.

    `waits_for` is why it waits and since when, None where it does not.
    """

    task_id: str
    agent_id: str
    task: str
    state: str
    began_ms: int
    ended_ms: int | None = None
    error: str | None = None
    tenant: str | None = None
    user: str | None = None
    parent_id: str | None = None
    waits_for: dict[str, JsonValue] | None = None


class TaskEntries(Result):
    """A page of the list of tasks; `after` is what to ask for the next one with, None at the end."""

    tasks: tuple[TaskEntry, ...] = ()
    after: str | None = None


class Schedule(Result):
    """A schedule: its `next` five times, and the last one with its task; `problem` says why that began nothing."""

    id: str
    agent_id: str | None = None
    task: str | None = None
    pipeline: str | None = None
    paused: bool = False
    next: tuple[datetime, ...] = ()
    last: datetime | None = None
    last_task: str | None = None
    missed_ticks: int = 0
    problem: str = ""


class Schedules(Result):
    """A page of schedules; `after` names the next one."""

    schedules: tuple[Schedule, ...] = ()
    after: str | None = None


class Begun(Result):
    """A run of a schedule that was asked for."""

    task_id: str


class Turn(BaseModel):
    """One thing said elsewhere; its id makes a repeat change nothing. *at* needs a zone; None is now."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    turn_id: str
    conversation_id: str
    text: str
    speaker: Literal["person", "assistant"] = "person"
    at: datetime | None = None


class Taken(Result):
    """How many turns were taken."""

    taken: int


class Match(Result):
    """One thing that a search found: an item, or a turn word for word; *at* is the day on which it was said."""

    source: str
    text: str
    reference: str
    at: date | None = None
    speaker: str = "person"
    subject: str | None = None
    since: date | None = None
    until: date | None = None
    score: float = 0.0


class Matches(Result):
    """The matches for a question, best first."""

    is_nothing_said: bool
    is_complete: bool = True
    memories: tuple[Match, ...] = ()


class Block(Result):
    """The memory as a prompt quotes it."""

    text: str
    tokens: int


class Item(Result):
    """One item of memory; `state` is `current`, `past`, `paused`, `planned` or `expired`."""

    reference: str
    category: str
    text: str
    subject: str | None = None
    added: date | None = None
    since: date | None = None
    until: date | None = None
    paused_until: date | None = None
    state: str


class Items(Result):
    """The items of one memory."""

    items: tuple[Item, ...] = ()


class Changed(Result):
    """A change: the plan by which it can be undone, and the revision of each document."""

    task_id: str
    state: str
    plan_id: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)


class WaitingRow(Result):
    """A turn or a fact that is not learned yet, or could not be, with the reason and what helps."""

    kind: str
    row_id: str
    state: str
    reason: str
    cure: str
    attempts: int = 0


class WaitingRows(Result):
    """The turns and facts of one memory that wait."""

    rows: tuple[WaitingRow, ...] = ()


class Keeping(Result):
    """Whether turns are kept word for word, and for how many days; None is the deployment's."""

    is_on: bool = True
    days: int | None = None


class Forgotten(Result):
    """Counts by kind of removed and left data; `elsewhere` says where more may lie."""

    task_id: str
    state: str
    removed: dict[str, int] = Field(default_factory=dict)
    left: dict[str, int] = Field(default_factory=dict)
    elsewhere: str = ""
