"""Waits of a task: for a person's answer, for a signal, or for a time; with the answers and who may give them."""

import hashlib
import re
from datetime import datetime, timedelta
from operator import not_
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import from_json, to_json

from tasklore.contracts.admission.wait_words import spell_wait
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import Name, checked_name
from tasklore.contracts.message_parts import Message, Part, is_none

#: The longest wait: a day before LATER drops the schedule of its end.
LONGEST = timedelta(days=29)
#: Waits of one task that are open at once.
MOST_OPEN = 200
#: How long a yes may take without which a task does not start.
APPROVED_WITHIN = timedelta(days=7)
#: The slot of the question for that yes.
START = "start"
#: The slots of a run's own waits: a number, behind the name of its branch unless that is the main one.
_SLOT = re.compile(r"(?:[0-9a-f]{10}-)?[0-9]{1,4}")

Kind = Literal["ask", "signal", "sleep"]
Door = Literal["http", "link", "cli", "nats", "time"]
#: Why a task waits, in a word.
WaitReason = Literal[
    "limit", "bound", "turn", "retry", "model", "person", "signal", "time"
]


class Approval(BaseModel):
    """A yes or a no of a person; `note` is their reason, `by` who gave it, filled in by Tasklore."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    approved: bool
    note: str = Field(default="", max_length=2000)
    by: str = Field(default="", max_length=300)


class Escalation(Part):
    """From *at* on *who* may answer as well."""

    who: str
    at: datetime


class Wait(Part):
    """A wait of one task, as the ledger keeps it; `slot` names it within the task.

    `digest` is of the question with all its arguments and of who may answer: an answer holds for that alone.
    `answer_schema` is None for an `Approval` and for a signal without a model. `otherwise` is the answer when nobody
    has given one by `until`; None raises NotAnswered.
    """

    kind: Kind
    slot: str
    digest: str
    agent_id: Name
    task_name: Name
    generation: int
    text: str = ""
    who: str | None = Field(default=None, exclude_if=is_none)
    user_id: str | None = Field(default=None, exclude_if=is_none)
    asked_at: datetime
    until: datetime
    remind_s: float | None = Field(default=None, exclude_if=is_none)
    escalation: Escalation | None = Field(default=None, exclude_if=is_none)
    answer_schema: dict[str, Any] | None = Field(default=None, exclude_if=is_none)
    otherwise: JsonValue = Field(default=None, exclude_if=is_none)

    def those_asked(self, now: datetime) -> tuple[str, ...]:
        """Return who may answer at *now*; empty for everybody."""
        if self.who is None:
            return ()
        later = self.escalation
        return (self.who,) if later is None or now < later.at else (self.who, later.who)

    def as_asked(self) -> str:
        """Return a digest of what a person is shown, and of who may answer: an answer says which it was given to."""
        later = self.escalation and self.escalation.who
        asked = [self.text, self.who, later, self.user_id, self.answer_schema]
        # A schema that was stored and read again has the same digest.
        kept = from_json(to_json(asked, inf_nan_mode="null"))
        return hashlib.blake2b(to_json(kept), digest_size=16).hexdigest()


class WaitAnswer(Part):
    """The value that ended a wait: its author, its time, through which *door*, for which question's *digest*.

    `proof` is the role that took it and its signature; None where roles have no keys, and where a run wrote it whose
    time was over. *made_by* is who made the link that it came by, None for one that came by no link. *asked* is
    `Wait.as_asked` of the question as its author saw it, None for a signal.
    """

    value: JsonValue = None
    by: str = ""
    at: datetime
    door: Door
    digest: str = ""
    proof: str | None = Field(default=None, exclude_if=is_none)
    made_by: str | None = Field(default=None, exclude_if=is_none)
    asked: str | None = Field(default=None, exclude_if=is_none)


class RunWait(Part):
    """Why a task waits, in the words of the trace, lists, answers and HTTP.

    `limit` is for room under a limit, of models or of runs, `bound` for a place under the bound of its task, `turn` for
    a worker that takes it, `retry` for another run after one that failed, `model` for the provider of one, `person` for
    an answer, `signal` for a value that a program sends, `time` for a moment that sender or code named. `name` is that
    of the limit, task, agent, error, model, question or signal; `text` the same in words, as in "the budget of tenant
    acme (2 requests a day)", `said` the last words of the provider or of the error. It waits `since` then, over all
    runs that found the same; `until` is when it goes on at the latest, or when it is looked at again, None where that
    is not known. `run` is the number of the run that follows where one ended to wait for room or for a model, which is
    no attempt, and `emitted` that of an event after which that one numbers its own.
    """

    kind: WaitReason
    name: str
    model: str = ""
    text: str
    said: str = ""
    since: datetime
    until: datetime | None = Field(default=None, exclude_if=is_none)
    run: int = Field(default=0, exclude_if=not_)
    emitted: int = Field(default=0, exclude_if=not_)

    @property
    def words(self) -> str:
        """The same in words, with those of the provider or of the error."""
        return self.text + (f" (it said: {self.said})" if self.said else "")

    @property
    def sentence(self) -> str:
        """The same with the time: "waits for the budget of tenant acme (2 requests a day), until ..."."""
        return spell_wait(self.kind, self.text, self.said, self.until)


def to_run_wait(task_id: str, wait: Wait, *, more: int = 0) -> RunWait:
    """Return why *task_id* waits as *wait* says, and for how many *more*, without the words of its question."""
    kind: WaitReason = "person"
    name = wait_id(task_id, wait.slot)
    if wait.kind == "ask":
        later = "" if wait.escalation is None else f", later {wait.escalation.who}"
        text = f"the answer of {wait.who or 'anybody'}{later} (question {name})"
    elif wait.kind == "signal":
        kind = "signal"
        name = wait.text
        text = f"signal {name!r}"
    else:
        kind = "time"
        text = "the time set by its code"
    if more:
        text = f"{text}, and {more:,} more"
    return RunWait(
        kind=kind, name=name, text=text, since=wait.asked_at, until=wait.until
    )


def explain_wait(
    kept: RunWait | None,
    *,
    agent_id: str,
    sent_at: datetime,
    begins_at: datetime,
    now: datetime,
) -> RunWait:
    """Return why a task waits that nothing runs: as was *kept* of it, else until its time, or for its turn.

    It was sent to *agent_id* at *sent_at*, and may begin at *begins_at*.
    """
    if kept is not None:
        return kept
    if begins_at > now:
        return RunWait(
            kind="time",
            name=agent_id,
            text="the time set by its sender",
            since=sent_at,
            until=begins_at,
        )
    text = f"a free worker: no worker of {agent_id} has picked it up yet"
    return RunWait(kind="turn", name=agent_id, text=text, since=begins_at)


class WaitRefusal(Part):
    """An answer that did not count, kept for the audit: *why* it was refused; *made_by* as an answer has it.

    *link* tells links apart, of which many may bear one name; None for other doors, and of 0.2.
    """

    by: str
    at: datetime
    door: Door
    why: str
    made_by: str | None = Field(default=None, exclude_if=is_none)
    link: str | None = Field(default=None, exclude_if=is_none)


class QuestionNotice(Message):
    """A task asks a person; *number* counts the notices of one question: asked, reminded, escalated."""

    approval_id: str
    task_id: Name
    agent_id: Name
    task_name: Name
    question: str
    who: tuple[str, ...] = ()
    until: datetime
    number: int


class QuestionAnswer(Message):
    """A person's answer, sent as a request to `approvals.{supervisor_id}.{token}`: the token is of who answers.

    With `digest` it counts only for the question that had it.
    """

    approval_id: str = Field(max_length=80)
    answer: JsonValue
    digest: str | None = Field(default=None, exclude_if=is_none)


class AnswerOutcome(Message):
    """Whether an answer counts; `why` not, in a word, and `text` for people."""

    counts: bool
    why: str | None = None
    text: str = ""


def wait_id(task_id: str, slot: str) -> str:
    """Return the id of a wait, for people and programs; no task id has a dot."""
    return f"{task_id}.{slot}"


def parse_wait_id(text: str) -> tuple[str, str]:
    """Return task id and slot of a wait id.

    Raises:
        InvalidInput: it is none.
    """
    task_id, _, slot = text.partition(".")
    if slot != START and not _SLOT.fullmatch(slot):
        raise InvalidInput(
            f"{text!r} is not an approval id; `tasklore approvals list` shows them"
        )
    return checked_name(task_id, "task id"), slot


def signal_slot(name: str) -> str:
    """Return the slot of the signal *name*."""
    return f"signal.{checked_name(name, 'signal name')}"


def demand_person(who: str) -> str:
    """Return *who* when it names a user or a role.

    Raises:
        InvalidInput: it is neither `user:NAME` nor `role:NAME`.
    """
    kind, _, name = who.partition(":")
    if kind not in ("user", "role") or not name or len(name) > 256:
        raise InvalidInput(f"{who!r} names nobody; write 'user:ana' or 'role:finance'")
    return who
