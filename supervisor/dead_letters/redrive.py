"""The redrive of a dead letter: its task as the next generation, with a new time."""

import contextlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import TaskName, checked_name
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.ledger.ledger import LedgerEntry
from tasklore.memory.ledger.task_rows import TaskRow, row_of
from tasklore.supervisor.dead_letters.known_agents import KnownAgents
from tasklore.supervisor.dead_letters.letters import FOREIGN, Letter

#: A subject of tasks in printable ASCII, without wildcards.
_SUBJECT = re.compile(re.escape(subjects.TASKS_ALL.removesuffix(">")) + r"[!-)+-=?-~]+")
#: Subjects of messages, which are given up only when unreadable: sending them again does not change that.
_SAID = subjects.MESSAGES_ALL.removesuffix(">")
#: Between the times of an assignment and a declaration of seconds.
_ROUNDING = timedelta(seconds=1)
#: Valid headers: any program may write a letter into DEAD.
_HEADER_NAME = re.compile(r"(?!Nats-)[A-Za-z0-9-]{1,64}")
_HEADER_VALUE = re.compile(r"[ -~]{0,1024}")


_NOBODY_KNOWN = KnownAgents()
#: Generations that a task may have: nobody sends one again so often.
_MOST_GENERATIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Renewal:
    """The new deadline of a task: kept by default, moved to so far from now, or dropped.

    One that its task declared is never kept: it begins anew, as the task declares it now.
    """

    deadline: timedelta | None = None
    drops_deadline: bool = False


KEEP_DEADLINE = Renewal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """A letter that is about to be sent again; `task_id` is None when not even that could be read."""

    subject: str
    body: bytes
    message_id: str
    generation: int
    task_id: TaskName | None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def row(self) -> TaskRow | None:
        """How its task is listed, None where its body is no assignment."""
        try:
            assignment = TaskAssignment.model_validate_json(self.body)
        except ValidationError:
            return None
        task = self.task_id or assignment.named
        return row_of(assignment, self.generation, task.agent_id)


def redrive_of(
    letter: Letter,
    body: bytes,
    now: datetime,
    renewal: Renewal = KEEP_DEADLINE,
    *,
    agents: KnownAgents = _NOBODY_KNOWN,
    takes_unreadable: bool = False,
) -> Redrive:
    """Return the redrive of *letter*, which carried *body*, to one of *agents*.

    Generation and message id follow from the letter alone: however often this is done, it is one more run. The body
    stays as it was but for `created_at`, from which the queue time and a task's own deadline count, and the deadline.
    A body that is no task is sent as it was, where *takes_unreadable*.

    Raises:
        InvalidInput: it cannot be sent again as it is; the message names the cure.
    """
    content = letter.content
    if content.reason == FOREIGN:
        raise InvalidInput(
            f"letter {letter.sequence} is not a message of Tasklore: {content.error.message}; purge it"
        )
    if content.subject.startswith(_SAID):
        msg = (
            f"letter {letter.sequence} is a chat message and not a task, so that it cannot be sent again; ask the "
            "person to repeat it, as its error tells, and purge it"
        )
        raise InvalidInput(msg)
    if not _SUBJECT.fullmatch(content.subject):
        raise InvalidInput(
            f"letter {letter.sequence} came from {content.subject!r}, where no tasks are sent; purge it"
        )
    if letter.agent_id is not None and not agents.has(letter.agent_id):
        msg = (
            f"letter {letter.sequence} is of agent {letter.agent_id!r}, which was retired or never started here; start "
            "a worker of it and send the letter again, or purge it"
        )
        raise InvalidInput(msg)
    generation = letter.generation + 1
    if generation > _MOST_GENERATIONS:
        raise InvalidInput(
            f"letter {letter.sequence} says that it was sent more than {_MOST_GENERATIONS:,} times; purge it"
        )
    task = None
    if content.task_id is not None:
        agent_id = checked_name(content.subject.split(".")[1], "agent_id")
        task = TaskName(agent_id, checked_name(content.task_id, "task_id"))
        message_id = subjects.task_message_id(task, generation)
    else:
        message_id = f"redrive:{letter.sequence}:{content.body_digest[:16]}"
    headers = {
        name: value
        for name, value in content.headers.items()
        if _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)
    } | {subjects.GENERATION_HEADER: str(generation), subjects.ATTEMPT_HEADER: "1"}
    try:
        assignment = TaskAssignment.model_validate_json(body)
    except ValidationError as error:
        if not takes_unreadable:
            problem = error.errors(
                include_url=False, include_input=False, include_context=False
            )[0]
            msg = (
                f"letter {letter.sequence} carries no task that can be read ({fault_of(problem)}); `force` sends it as "
                "it is, for a version of the agent that reads it; else purge it"
            )
            raise InvalidInput(msg) from error
        renewed = body
    else:
        _demand_own(letter, assignment)
        renewed = _renew(
            letter.sequence, assignment, body, now=now, renewal=renewal, agents=agents
        )
    return Redrive(
        subject=content.subject,
        body=renewed,
        message_id=message_id,
        generation=generation,
        task_id=task,
        headers=headers,
    )


def end_after(letter: Letter, entry: LedgerEntry | None) -> str | None:
    """Return why *letter* is not to be sent again, by the ledger's *entry* of its task; None when it may be.

    It was written before the ledger decided: where another run had been quicker, or the task had been cancelled, its
    generation ended so. A next generation that was completed does not count, since it is what
    an interrupted redrive of this very letter made: sent again, it is found finished.
    """
    if entry is None:
        return None
    own = entry.generations.get(letter.generation)
    if own is not None and own.report is not None and own.state != "failed":
        end = own.state
    elif any(
        number > letter.generation + 1
        and one.report is not None
        and one.state == "completed"
        for number, one in entry.generations.items()
    ):
        end = "completed"
    else:
        return None
    said = "expired" if end == "expired" else f"was {end}"
    return (
        f"task {entry.task_id!r} {said} after this letter was written; purge letter "
        f"{letter.sequence}, or send it anyway with `force`"
    )


def is_sent(letter: Letter, entry: LedgerEntry | None) -> bool:
    """Return whether the task of *letter* was sent again already, by the ledger's *entry* of it."""
    after = None if entry is None else entry.generations.get(letter.generation + 1)
    # A request to cancel is noted for a generation, too, that nobody has sent yet.
    return after is not None and (
        after.assignment is not None or after.report is not None or after.attempts > 0
    )


def agent_of(entry: LedgerEntry | None) -> str | None:
    """Return the agent whose task the ledger's *entry* is of, None where it does not say."""
    for known in () if entry is None else entry.generations.values():
        for body in filter(None, (known.assignment, known.report)):
            with contextlib.suppress(ValueError):
                fields = from_json(body)
                agent_id = fields.get("agent_id") if isinstance(fields, dict) else None
                if isinstance(agent_id, str):
                    return agent_id
    return None


def _demand_own(letter: Letter, assignment: TaskAssignment) -> None:
    """Do nothing, unless *letter* carries the task of another agent, or of another id, than it says.

    Raises:
        InvalidInput: it does.
    """
    said = letter.agent_id, letter.content.task_id or assignment.task_id
    if said != (assignment.agent_id, assignment.task_id):
        raise InvalidInput(
            f"letter {letter.sequence} is of agent {said[0]!r} and task {said[1]!r}, and carries task "
            f"{assignment.task_id!r} of {assignment.agent_id!r}; purge it"
        )


def _renew(
    sequence: int,
    assignment: TaskAssignment,
    body: bytes,
    *,
    now: datetime,
    renewal: Renewal,
    agents: KnownAgents,
) -> bytes:
    """Return *body*, which says *assignment*, with a new time."""
    fields = from_json(body)
    fields["created_at"] = _spell(now)
    fields.pop("not_before", None)
    if renewal.drops_deadline:
        fields.pop("deadline", None)
        fields.pop("has_own_deadline", None)
    elif renewal.deadline is not None:
        fields["deadline"] = _spell(now + renewal.deadline)
        fields["has_own_deadline"] = False
    elif (given := _own_deadline(assignment, agents)) is not None:
        own = agents.deadlines.get(_task_of(assignment), given)
        fields["deadline"] = None if own is None else _spell(now + own)
    elif assignment.deadline is not None and _aware(assignment.deadline) <= now:
        msg = (
            f"the deadline of letter {sequence} passed at {_spell(assignment.deadline)}; give it another one with "
            "`new_deadline`, such as 10m, or none with `no_deadline`"
        )
        raise InvalidInput(msg)
    return to_json(fields)


def _own_deadline(assignment: TaskAssignment, agents: KnownAgents) -> timedelta | None:
    """Return how long the task might take, where it had declared so itself; None where its sender chose.

    One that does not say which, as of 0.2, is the task's own where it is as the task declares today.
    """
    if assignment.deadline is None:
        return None
    given = _aware(assignment.deadline) - assignment.waits_from
    is_own = assignment.has_own_deadline
    if is_own is None:
        today = agents.deadlines.get(_task_of(assignment))
        is_own = today is not None and abs(given - today) < _ROUNDING
    return given if is_own else None


def _task_of(assignment: TaskAssignment) -> tuple[str, str]:
    return assignment.agent_id, assignment.task.name


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _spell(moment: datetime) -> str:
    return _aware(moment).astimezone(UTC).isoformat().replace("+00:00", "Z")
