"""Waiting for a person, a signal or a time: the run ends, and a later one goes on with the answer.

It ends once nothing of it can go on; while another branch does, a person is asked all the same, and an answer is looked
for now and then.
"""

import asyncio
import hashlib
import string
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import category

import structlog
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from tasklore.contracts.admission.waits import (
    LONGEST,
    MOST_OPEN,
    START,
    Approval,
    Escalation,
    Kind,
    Wait,
    WaitAnswer,
    demand_person,
    signal_slot,
)
from tasklore.contracts.errors import (
    ApprovalChanged,
    InvalidInput,
    MemoryUnavailable,
    NotAnswered,
    NotApproved,
)
from tasklore.contracts.messages import TaskAssignment
from tasklore.workers.context.children import aware

if TYPE_CHECKING:
    from tasklore.memory.ledger.runs import RunName
    from tasklore.memory.ledger.waits import Waits
    from tasklore.workers.context.branches import Branches
    from tasklore.workers.context.recorder import RunRecorder
    from tasklore.workers.context.steps import StepPlace, Steps

log = structlog.get_logger(__name__)

R = TypeVar("R")

#: Seconds of a wait that are spent in the run: another one costs more.
_SHORT_S = 1.0
#: Seconds after which a question is put whose run goes on elsewhere, and the longest between looks for its answer.
_ASKED_AFTER_S = 1.0
_MOST_PAUSE_S = 5.0
#: Characters of a question with its arguments.
_MOST_TEXT = 4_000
#: Characters of the words of a person that are shown beside what they became.
_MOST_WORDS = 500

_JSON = TypeAdapter[Any](Any)
_APPROVAL = TypeAdapter(Approval)
#: Characters that are not seen and that emoji and some scripts are written with.
_JOINERS = "\u200c\u200d"
#: The answer of `otherwise` in words, to a question for an Approval.
_WORDS = {"reject": Approval(approved=False, note="not answered in time")}


class TaskWaits:
    """The waits of one run of a task, in its *branches*."""

    def __init__(
        self,
        *,
        store: "Waits",
        steps: "Steps",
        branches: "Branches",
        assignment: TaskAssignment,
        run: "RunName",
        now: Callable[[], datetime],
        recorder: "RunRecorder | None" = None,
    ) -> None:
        self._store = store
        self._steps = steps
        self._branches = branches
        self._assignment = assignment
        self._run = run
        self._now = now
        self._recorder = recorder
        #: The slots that the run has come to.
        self._found: set[str] = set()

    async def ask(
        self,
        question: str,
        model: type[R],
        arguments: Mapping[str, Any],
        *,
        who: str | None,
        within: timedelta,
        otherwise: Any,
        remind: timedelta | None,
        escalate: tuple[str, timedelta] | None,
    ) -> R:
        """Return the answer of a person; see `Context.ask_person`."""
        await self._branches.demand_waiting(f"the question {question!r}")
        if otherwise is not None and model is Approval:
            otherwise = (
                _WORDS.get(otherwise, otherwise)
                if isinstance(otherwise, str)
                else otherwise
            )
        adapter = TypeAdapter(model)
        schema = None if model is Approval else adapter.json_schema()
        text = _fill(question, arguments)
        asked = [text, dict(arguments), who, schema]
        place = self._steps.take_place(f"the question {question!r}")
        wait = self._make(
            "ask",
            slot=place.slot,
            text=text,
            asked=asked,
            within=within,
            adapter=adapter,
            otherwise=otherwise,
        ).model_copy(
            update={
                "who": who and demand_person(who),
                "remind_s": remind and remind.total_seconds(),
                "escalation": escalate
                and Escalation(
                    who=demand_person(escalate[0]), at=self._now() + escalate[1]
                ),
                "answer_schema": schema,
            }
        )
        answer = await self._await(wait, place)
        value = adapter.validate_json(to_json(answer.value))
        if isinstance(value, Approval):
            return value.model_copy(update={"by": answer.by})
        return value

    async def demand_start(self, parameters: BaseModel) -> datetime:
        """Return when the person agreed whose yes the assignment needs; see `Context.demand_start`."""
        assignment = self._assignment
        needed = self._assignment.approval
        if needed is None:
            return self._now()
        call = assignment.task
        shown = parameters.model_dump(mode="json")
        lines = [f"{name}: {_spell(value)}" for name, value in shown.items()]
        asker = (
            f"asked by {_spell(assignment.user_id)}" if assignment.user_id else "asked"
        )
        words = (
            f" in the words {_spell(needed.words[:_MOST_WORDS])}"
            if needed.words
            else ""
        )
        text = _demand_short(
            "\n".join(
                [f"Start {assignment.agent_id}.{call.name}?", *lines, f"{asker}{words}"]
            )
        )
        # What was sent is in the digest too: a field may not be shown.
        asked = [text, shown, call.parameters, demand_person(needed.who)]
        wait = self._make(
            "ask",
            slot=START,
            text=text,
            asked=asked,
            within=needed.until - self._now(),
            adapter=_APPROVAL,
            otherwise=_WORDS["reject"],
        )
        answer = await self._await(
            wait.model_copy(update={"who": needed.who, "until": needed.until})
        )
        said = Approval.model_validate(answer.value)
        if not said.approved:
            who = (
                f"{answer.by} said no" if answer.by else f"{needed.who} did not say yes"
            )
            raise NotApproved(
                f"{who}{f': {said.note}' if said.note else ''}; nothing was started"
            )
        return answer.at

    async def signal(
        self, name: str, model: type[R] | None, *, within: timedelta, otherwise: Any
    ) -> R | Any:
        """Return the value of a signal; see `Context.signal`."""
        await self._branches.demand_waiting(f"the signal {name!r}")
        adapter = TypeAdapter(model) if model is not None else _JSON
        self._steps.take_place(f"the signal {name!r}")
        answer = await self._await(
            self._make(
                "signal",
                slot=signal_slot(name),
                text=name,
                asked=[name],
                within=within,
                adapter=adapter,
                otherwise=otherwise,
            )
        )
        try:
            return adapter.validate_json(to_json(answer.value))
        except ValidationError as error:
            raise InvalidInput(
                f"signal {name!r} came with a value that does not fit: {error}"
            ) from error

    async def sleep(self, span: timedelta) -> None:
        """Return when *span* is over; see `Context.sleep`."""
        await self._branches.demand_waiting("a sleep")
        place = self._steps.take_place("a sleep")
        await self._await(
            self._make(
                "sleep",
                slot=place.slot,
                text="",
                asked=[span.total_seconds()],
                within=span,
                adapter=_JSON,
                otherwise=None,
            ),
            place,
        )

    def _make(
        self,
        kind: Kind,
        slot: str,
        text: str,
        asked: list[Any],
        within: timedelta,
        adapter: TypeAdapter[Any],
        otherwise: Any,
    ) -> Wait:
        assignment = self._assignment
        now = self._now()
        if within > LONGEST:
            msg = f"{kind} would wait for {within}; at most {LONGEST.days} days are kept: wait again after that"
            raise InvalidInput(msg)
        deadline = assignment.deadline
        if deadline is not None and now + within > aware(deadline):
            msg = (
                f"{kind} would wait for {within}, past the deadline of the task ({deadline.isoformat()}); "
                "send the task without one, or wait for less"
            )
            raise InvalidInput(msg)
        try:
            spelled = to_json([kind, *asked])
            value = (
                None
                if otherwise is None
                else to_jsonable_python(adapter.validate_python(otherwise))
            )
        except PydanticSerializationError as error:
            raise InvalidInput(
                f"the arguments of {kind} are not JSON ({error}); pass numbers, texts "
                "or models"
            ) from error
        except ValidationError as error:
            raise InvalidInput(
                f"otherwise={otherwise!r} is not a valid answer: {error}"
            ) from error
        return Wait(
            kind=kind,
            slot=slot,
            digest=hashlib.blake2b(spelled, digest_size=16).hexdigest(),
            agent_id=assignment.agent_id,
            task_name=assignment.task.name,
            generation=self._run.generation,
            text=text,
            user_id=assignment.user_id,
            asked_at=now,
            until=now + within,
            otherwise=value,
        )

    async def _await(self, wait: Wait, place: "StepPlace | None" = None) -> WaitAnswer:
        """Return the answer to *wait* as `_find_answer`, and note what a person or a program said."""
        answer = await self._find_answer(wait, place)
        if self._recorder is not None and wait.kind != "sleep":
            self._recorder.note(
                "person",
                to_json(answer.value),
                name=answer.by or "",
                given=wait.text,
                wait=wait.kind,
                door=answer.door,
                answered_at=answer.at.isoformat(),
            )
        return answer

    async def _find_answer(
        self, wait: Wait, place: "StepPlace | None" = None
    ) -> WaitAnswer:
        """Return the answer to *wait*, at *place* of the run's own, or end the run.

        Raises:
            ApprovalChanged: it was answered for other arguments.
            NotAnswered: its time is over, and it has no answer for that.
        """
        task_id = self._assignment.named
        known, answer = await self._store.find(task_id, wait)
        if place is not None and (known is None or known.digest != wait.digest):
            slot = await self._find_elsewhere(wait, place, is_known=known is not None)
            if slot is not None:
                wait = wait.model_copy(update={"slot": slot})
                known, answer = await self._store.find(task_id, wait)
        self._found.add(wait.slot)
        if answer is None:
            if known is not None and _is_same(known, wait):
                # Its time counts from the first run that asked; all else is as the code says, whatever is kept.
                times = ("asked_at", "until", "escalation")
                wait = wait.model_copy(
                    update={name: getattr(known, name) for name in times}
                )
            is_asked, answer = await self._rest(wait)
            if answer is None:
                await asyncio.sleep(max(0.0, self._left_s(wait)))
                return await self._end(wait, is_known=is_asked or known is not None)
        if wait.kind == "ask" and answer.digest != wait.digest:
            said = (
                f"{answer.by} answered at {answer.at:%Y-%m-%d %H:%M} UTC"
                if answer.by
                else "it was answered"
            )
            raise ApprovalChanged(
                f"{said}, and the question is another one now: {wait.text!r}; nothing was done"
            )
        return answer

    async def _find_elsewhere(
        self, wait: Wait, place: "StepPlace", *, is_known: bool
    ) -> str | None:
        """Return the slot that has *wait*, if it is not that of its *place*, where *is_known* another one is.

        That is as an earlier worker spelled it; or it is that of a branch like its own, which it is from then on: code
        that begins its branches in the order of a set, as `asyncio.as_completed` does, begins them in any order.
        """
        slots = dict.fromkeys(place.other_slots, "")
        if is_known and not place.number:
            slots |= {f"{name}-0": name for name in place.branch.names_of_alike}
        for page in _pages(list(slots)):
            kept = await self._store.digests(self._run.task_id, page)
            for slot, digest in kept.items():
                if digest == wait.digest and slot not in self._found:
                    self._found.add(slot)
                    if slots[slot]:
                        place.branch.take_name(slots[slot])
                    return slot
        if place.branch.is_main and wait.slot in self._found:
            # That of another branch, as 0.2 counted.
            return place.named_slot
        return None

    async def _rest(self, wait: Wait) -> tuple[bool, WaitAnswer | None]:
        """Return whether *wait* was put to a person, and its answer; None when its time is nearly over.

        The run ends meanwhile, unless another branch of it goes on for that long.
        """
        is_asked = False
        pause_s = _ASKED_AFTER_S
        with self._branches.opened(wait) as over:
            while (left_s := self._left_s(wait)) > _SHORT_S:
                await asyncio.wait({over}, timeout=min(left_s - _SHORT_S, pause_s))
                if over.cancelled():
                    raise asyncio.CancelledError
                pause_s = min(2 * pause_s, _MOST_PAUSE_S)
                if wait.kind == "sleep":
                    continue
                try:
                    if wait.kind == "ask" and not is_asked:
                        is_asked = await self._store.ask(self._run, wait)
                    _, answer = await self._store.find(self._run.task_id, wait)
                except MemoryUnavailable as error:
                    log.info(
                        "wait_not_looked_at",
                        task_id=self._run.task_id,
                        error=str(error),
                    )
                    continue
                await self._branches.demand_going()
                if answer is not None:
                    return is_asked, answer
        return is_asked, None

    async def _end(self, wait: Wait, *, is_known: bool) -> WaitAnswer:
        """Return what holds at the end of *wait*, of which a person may know.

        Raises:
            NotAnswered: nothing does.
        """
        late = WaitAnswer(
            value=wait.otherwise, at=self._now(), door="time", digest=wait.digest
        )
        if wait.kind == "sleep":
            return late
        if wait.otherwise is None:
            msg = (
                f"{wait.text!r} was not answered by {wait.until:%Y-%m-%d %H:%M} UTC; "
                "pass `otherwise` to continue with a default answer"
            )
            raise NotAnswered(msg)
        if not is_known:
            # No person saw it, and its time is over.
            return late
        return (
            await self._store.answer(
                self._run.task_id, wait.slot, late, is_signal=wait.kind == "signal"
            )
            or late
        )

    def _left_s(self, wait: Wait) -> float:
        return (wait.until - self._now()).total_seconds()


def _pages(slots: list[str]) -> Iterator[list[str]]:
    """Yield *slots* in parts that are read at once."""
    for first in range(0, len(slots), MOST_OPEN):
        yield slots[first : first + MOST_OPEN]


def _is_same(known: Wait, wait: Wait) -> bool:
    """Return whether *known*, which lies where others may write, asks what *wait* asks, and those whom it asks."""
    return (known.digest, known.generation, known.as_asked()) == (
        wait.digest,
        wait.generation,
        wait.as_asked(),
    )


def _fill(question: str, arguments: Mapping[str, Any]) -> str:
    """Return *question* with its arguments in it, and those behind it that it does not name.

    Further lines of an argument are indented, so that none passes for a line of the question.

    Raises:
        InvalidInput: it names one that is not given, or is too long.
    """
    shown = {
        name: "\n    ".join(map(_escape, value.splitlines()))
        if isinstance(value, str)
        else _escape(to_json(value, fallback=str).decode())
        for name, value in arguments.items()
    }
    try:
        named = {
            field.partition(".")[0].partition("[")[0]
            for _, field, _, _ in string.Formatter().parse(question)
            if field
        }
        text = question.format(**shown)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"the question {question!r} cannot be filled in ({error!r}); give what it names"
        ) from error
    return _demand_short(
        text
        + "".join(f"\n{name}: {shown[name]}" for name in shown if name not in named)
    )


def _demand_short(text: str) -> str:
    if len(text) > _MOST_TEXT:
        raise InvalidInput(
            f"the question has {len(text):,} characters, more than {_MOST_TEXT:,}; shorten it"
        )
    return text


def _spell(value: Any) -> str:
    """Return *value* as JSON on one line; see `_escape`."""
    return _escape(to_json(value).decode())


def _escape(text: str) -> str:
    """Return *text* with the codes of characters that are not seen or that turn the order of others."""
    return "".join(
        f"\\u{ord(one):04x}"
        if category(one) in ("Cc", "Cf", "Zl", "Zp") and one not in _JOINERS
        else one
        for one in text
    )
