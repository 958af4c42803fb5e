"""Answering a wait: who may is checked, the first answer counts, and the task goes on at once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import structlog
from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from tasklore.contracts.admission.waits import (
    Approval,
    Door,
    WaitAnswer,
    WaitRefusal,
    signal_slot,
    wait_id,
)
from tasklore.contracts.errors import InvalidInput, MessageTooLarge, NotAccepted
from tasklore.contracts.faults import fault_of
from tasklore.memory.ledger.waits import WaitName, Waits, WaitState
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.json_schemas import JsonSchemas
from tasklore.supervisor.wake_up import wake_up

log = structlog.get_logger(__name__)

#: Bytes of an answer or a signal as JSON; send a reference to more.
MOST_BYTES = 64 * 1024
#: After which time an answer is looked at whose process may have died before it woke the task.
_SOON = timedelta(seconds=2)

Why = Literal["unknown", "answered", "ended", "expired", "changed", "person", "link"]


class AnswerRefused(InvalidInput):
    """An answer that does not count: *why* in one word; *answer* is the one that counts, if there is one."""

    def __init__(
        self, message: str, why: Why, answer: WaitAnswer | None = None
    ) -> None:
        super().__init__(message)
        self.why = why
        self.answer = answer


@dataclass(frozen=True, slots=True)
class AnsweringPerson:
    """A person at a *door*: *name* for the audit, *names* of the users and roles that they are; None may answer all.

    *link* is the id of the link that they came by, *made_by* who made it.
    """

    name: str
    door: Door
    names: frozenset[str] | None = None
    made_by: str | None = None
    link: str | None = None

    def may_answer(self, state: WaitState, now: datetime) -> bool:
        """Return whether the wait asks them."""
        asked = state.wait.those_asked(now)
        return not asked or self.names is None or not self.names.isdisjoint(asked)


class Answers:
    """Takes answers and signals; every method may raise MemoryUnavailable.

    *schemas* checks answers to questions that have a schema.
    """

    def __init__(
        self,
        waits: Waits,
        outbox: Outbox,
        schemas: JsonSchemas,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.waits = waits
        self._outbox = outbox
        self._schemas = schemas
        self._now = now

    async def read(self, task_id: str, slot: str) -> WaitState:
        """Return the question in *slot* of a task.

        Raises:
            AnswerRefused: there is none.
        """
        return await demand_question(self.waits, task_id, slot)

    async def answer(
        self,
        task_id: str,
        slot: str,
        value: JsonValue,
        person: AnsweringPerson,
        *,
        digest: str | None = None,
    ) -> WaitAnswer:
        """Store *value* as the answer to a question and let its task go on; *digest* is of the question as shown.

        Raises:
            AnswerRefused: it does not count; but for an unknown question that is kept with it.
            InvalidInput: it does not fit the question.
        """
        state = await self.read(task_id, slot)
        answer = WaitAnswer(
            value=await self._check(state, value, person),
            by=person.name,
            at=self._now(),
            door=person.door,
            digest=digest or state.wait.digest,
            made_by=person.made_by,
            asked=state.wait.as_asked(),
        )
        try:
            self._demand(state, answer, person)
            # Found again by the notifier should this process die before the task is woken.
            await self.waits.look_at(
                WaitName("ask", task_id, slot), self._now() + _SOON, if_listed=True
            )
            if (earlier := await self.waits.answer(task_id, slot, answer)) is not None:
                raise _refuse_second(earlier)
        except AnswerRefused as refused:
            await self.refuse(task_id, slot, person, refused.why)
            raise
        await self._wake_now(task_id, slot)
        return answer

    async def signal(
        self, task_id: str, name: str, value: JsonValue, person: AnsweringPerson
    ) -> WaitAnswer:
        """Store *value* as the signal *name* of a task, and let it go on if it waits for that.

        Raises:
            AnswerRefused: it was sent before.
            InvalidInput: the task is unknown or has ended, or the value is too large.
        """
        slot = signal_slot(name)
        answer = WaitAnswer(
            value=_demand_size(value), by=person.name, at=self._now(), door=person.door
        )
        await self.waits.look_at(
            WaitName("signal", task_id, slot), self._now() + _SOON, if_listed=True
        )
        if (
            earlier := await self.waits.answer(task_id, slot, answer, is_signal=True)
        ) is not None:
            raise _refuse_second(earlier)
        await self._wake_now(task_id, slot)
        return answer

    async def refuse(
        self, task_id: str, slot: str, person: AnsweringPerson, why: str
    ) -> None:
        """Keep with the question that an answer was refused."""
        log.warning(
            "answer_refused", task_id=task_id, slot=slot, door=person.door, why=why
        )
        refusal = WaitRefusal(
            by=person.name,
            at=self._now(),
            door=person.door,
            why=why,
            made_by=person.made_by,
            link=person.link,
        )
        await self.waits.refuse(task_id, slot, refusal)

    async def wake(self, task_id: str, slot: str) -> bool:
        """Let a task that waits in *slot* run now, in place of its schedule; return False where it does not wait.

        Raises:
            NotAccepted: that is not known to be stored.
        """
        state = await self.waits.read(task_id, slot)
        if (
            state is None
            or state.state != "waiting"
            or state.has_report
            or not state.assignment
        ):
            return False
        wait = state.wait
        await wake_up(
            self._outbox,
            task_id=task_id,
            generation=wait.generation,
            attempt=state.attempts + 1,
            agent_id=wait.agent_id,
            task_name=wait.task_name,
            assignment=state.assignment,
            trace=state.trace,
            now=self._now(),
            # Of two answers at once the first lets the run begin that finds both.
            why="answered",
        )
        return True

    async def _wake_now(self, task_id: str, slot: str) -> None:
        try:
            await self.wake(task_id, slot)
        except (NotAccepted, MessageTooLarge) as error:
            # The answer is stored: the notifier wakes the task.
            log.warning("task_not_woken", task_id=task_id, error=str(error))

    async def _check(
        self, state: WaitState, value: JsonValue, person: AnsweringPerson
    ) -> JsonValue:
        """Return *value* as an answer to the question.

        Raises:
            InvalidInput: it is none; the message names the field.
        """
        schema = state.wait.answer_schema
        if schema is None:
            return _read_approval(value)
        _demand_size(value)
        misfit = await self._schemas.find_misfit(schema, value, whose=person.name)
        if misfit is not None:
            raise InvalidInput(
                f"{misfit.place or 'the answer'} does not fit: {misfit.fault}"
            )
        return value

    def _demand(
        self, state: WaitState, answer: WaitAnswer, person: AnsweringPerson
    ) -> None:
        if state.answer is not None:
            raise _refuse_second(state.answer)
        if state.has_report:
            raise AnswerRefused(
                "the task has ended and no longer needs this answer", "ended"
            )
        if state.is_withdrawn:
            raise AnswerRefused(
                "the task no longer needs this answer and has continued", "ended"
            )
        if not person.may_answer(state, answer.at):
            asked = " or ".join(state.wait.those_asked(answer.at))
            raise AnswerRefused(
                f"only {asked} may answer this question, not {person.name}",
                "person",
            )
        if answer.at > state.wait.until:
            until = state.wait.until
            raise AnswerRefused(
                f"the deadline for an answer was {until:%Y-%m-%d %H:%M} UTC",
                "expired",
            )
        if answer.digest != state.wait.digest:
            raise AnswerRefused(
                "the question has changed since it was shown; open it again",
                "changed",
            )


async def demand_question(waits: Waits, task_id: str, slot: str) -> WaitState:
    """Return the question in *slot* of a task.

    Raises:
        AnswerRefused: there is none.
        MemoryUnavailable: the ledger does not answer.
    """
    state = await waits.read(task_id, slot)
    if state is None or state.wait.kind != "ask":
        raise AnswerRefused(
            f"there is no question {wait_id(task_id, slot)!r}, or it has expired",
            "unknown",
        )
    return state


def _refuse_second(answer: WaitAnswer) -> AnswerRefused:
    who = (
        "its time was over"
        if answer.door == "time"
        else f"{answer.by or 'somebody'} answered"
    )
    msg = f"{who} at {answer.at:%Y-%m-%d %H:%M:%S} UTC, and the first answer counts"
    return AnswerRefused(msg, "answered", answer)


def _read_approval(value: JsonValue) -> JsonValue:
    try:
        approval = Approval.model_validate(value, strict=True)
    except ValidationError as error:
        raise InvalidInput(
            fault_of(error.errors(include_url=False)[0], "the answer")
        ) from error
    return approval.model_dump(exclude={"by"})


def _demand_size(value: JsonValue) -> JsonValue:
    if (size := len(to_json(value))) > MOST_BYTES:
        raise InvalidInput(
            f"the value has {size:,} bytes, more than {MOST_BYTES:,}; send a reference"
        )
    return value
