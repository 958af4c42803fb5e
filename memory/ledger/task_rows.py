"""Rows of the list of runs: one a task, in its newest generation, without a word of a person.

A row is compact JSON that begins with `g`, the generation, and `s`, the state: the script that writes rows reads these
two. It says `accepted` until the task has ended: how far an open task is stands in its entry in the ledger alone.
"""

import re
from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import (
    CompletionReport,
    MemoryOutcome,
    Status,
    TaskAssignment,
)

OpenState = Literal["accepted", "running", "waiting", "cancelling"]
EndState = Literal["completed", "failed", "rejected", "expired", "cancelled"]
RunState = Literal[OpenState, EndState]
#: The states of a task without a report, and those of one with it.
OPEN_STATES: tuple[str, ...] = get_args(OpenState)
END_STATES: tuple[str, ...] = get_args(EndState)

#: Stands for the state of a task that was cancelled when its user was forgotten: nothing replaces its row.
FORGOTTEN = "forgotten"
#: The bytes of each row of a user, around their token.
USER_PIECE = b'"u":"%s"'
#: Characters of the class of an error, and of the id of a parent, which programs may choose.
_LONGEST = 64
_OUTCOMES = get_args(MemoryOutcome)
_TOKEN = re.compile(r"[A-Za-z0-9_-]*")


class TaskRow(NamedTuple):
    """One task of *agent_id* as the list has it.

    *created_ms* and *ended_ms* are in ms since 1970, *user* is the token of its user, "" for none, *error* the class
    of the error that ended it, *memory* the memory's part in its result.
    """

    task_id: str
    agent_id: str
    task: str
    created_ms: int
    generation: int = 1
    state: str = "accepted"
    ended_ms: int | None = None
    tenant: str | None = None
    user: str = ""
    parent_id: str | None = None
    error: str | None = None
    memory: str | None = None
    run_ms: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the task has its report."""
        return self.state != "accepted"

    def complete(self, earlier: "TaskRow | None") -> "TaskRow":
        """Return this row, made of a report alone, with what an *earlier* one of the task says of its assignment."""
        if earlier is None or earlier.state == FORGOTTEN:
            return self
        return self._replace(
            created_ms=earlier.created_ms,
            tenant=earlier.tenant,
            parent_id=earlier.parent_id,
            user=self.user or earlier.user,
        )

    def spell(self) -> bytes:
        """Return it as it is stored beside its id."""
        # Put together by hand, since every task passes here. Names and words of ours have no character to escape.
        line = (
            f'{{"g":{self.generation},"s":"{self.state}","t":"{self.task}",'
            f'"c":{self.created_ms}'
        )
        if self.ended_ms is not None:
            line += f',"e":{self.ended_ms}'
        if self.user:
            line += f',"u":"{self.user}"'
        if self.memory is not None:
            line += f',"m":"{self.memory}"'
        if self.run_ms is not None:
            line += f',"r":{self.run_ms}'
        if self.tenant is not None:
            line += f',"o":{to_json(self.tenant).decode()}'
        if self.parent_id is not None:
            line += f',"p":{to_json(self.parent_id).decode()}'
        if self.error is not None:
            line += f',"x":{to_json(self.error).decode()}'
        return f"{line}}}".encode()


def tenant_in(assignment: bytes) -> str | None:
    """Return the tenant that a kept *assignment* names; None where it names none, or cannot be read."""
    try:
        return TaskAssignment.model_validate_json(assignment).tenant
    except ValidationError:
        return None


def row_of(
    assignment: TaskAssignment,
    generation: int,
    agent_id: str,
    *,
    state: Status | Literal["accepted"] = "accepted",
    ended_ms: int | None = None,
    error: str | None = None,
    memory: str | None = None,
    run_ms: int | None = None,
) -> TaskRow:
    """Return the row of *generation* of *assignment*, which is open unless another *state* is given.

    *agent_id* is the agent that it was sent to: a program may name another one in it.
    """
    parent_id = assignment.parent_id
    tenant = assignment.tenant
    return TaskRow(
        task_id=assignment.task_id,
        agent_id=agent_id,
        task=assignment.task.name,
        created_ms=_in_ms(assignment.created_at),
        generation=generation,
        state=state,
        ended_ms=ended_ms,
        tenant=tenant,
        user=user_token(assignment.user_id) if assignment.user_id else "",
        parent_id=parent_id if parent_id and len(parent_id) <= _LONGEST else None,
        error=error[:_LONGEST] if error else None,
        memory=memory,
        run_ms=run_ms,
    )


def row_of_report(report: CompletionReport, user: str = "") -> TaskRow:
    """Return the row of a task of which only *report* and the token of its *user* are known.

    When it was created follows from its times, and is right by what they leave out: earlier runs, and waits. A *user*
    that is no token, as another program may have written it, is none.
    """
    ended_ms = _in_ms(report.finished_at)
    return TaskRow(
        task_id=report.task_id,
        agent_id=report.agent_id,
        task=report.task_name,
        created_ms=ended_ms - report.run_ms - report.queued_ms,
        generation=report.generation,
        state=report.status,
        ended_ms=ended_ms,
        user=token_or_none(user),
        error=report.error.type[:_LONGEST] if report.error is not None else None,
        memory=report.memory.outcome,
        run_ms=report.run_ms,
    )


def token_or_none(user: str) -> str:
    """Return *user* where it is the token of one, "" where it is not: other programs may write any text."""
    return user if _TOKEN.fullmatch(user) else ""


def read_row(agent_id: str, task_id: str, body: bytes) -> TaskRow | None:
    """Return the row *body* of a task, None where it is none: the workers of an agent may write any text."""
    try:
        read = from_json(body)
        row = TaskRow(
            task_id=task_id,
            agent_id=agent_id,
            task=read["t"],
            created_ms=read["c"],
            generation=read["g"],
            state=read["s"],
            ended_ms=read.get("e"),
            tenant=read.get("o"),
            user=read.get("u", ""),
            parent_id=read.get("p"),
            error=read.get("x"),
            memory=read.get("m"),
            run_ms=read.get("r"),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return row if _is_sound(row) else None


def _is_sound(row: TaskRow) -> bool:
    """Return whether each value of *row* is of its type: nothing that was checked is believed, but by the reader."""
    numbers = (row.created_ms, row.generation)
    optional = (row.ended_ms, row.run_ms)
    texts = (row.tenant, row.parent_id, row.error)
    return (
        all(_is_number(one) for one in numbers)
        and all(one is None or _is_number(one) for one in optional)
        and all(one is None or isinstance(one, str) for one in texts)
        and all(isinstance(one, str) for one in (row.task, row.state, row.user))
        and (row.memory is None or row.memory in _OUTCOMES)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 53


def _in_ms(moment: datetime) -> int:
    # Other programs may leave the zone out; the wire is in UTC.
    return int(
        (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
    )
