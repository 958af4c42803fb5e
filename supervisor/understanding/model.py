"""The interpreter by a language model, after the rules: it starts grounded tasks and asks about the rest.

The rules come first: an utterance that they read whole needs no model, costs nothing and is the same every time. For
the rest there is one structured call, and a second one when its answer is not grounded, with the faults. Ungrounded
values are asked for; tasks with effects, or with values that are not the person's own words, are shown for a yes.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

import structlog
from pydantic import BaseModel

from tasklore.contracts.admission.limits import Payer
from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.quantities.numerals import DecimalMark
from tasklore.runtime.models.llm import Llm, Reply, Spent, describe
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.answers import (
    CheckedAnswer,
    Reading,
    check,
    start_of,
)
from tasklore.supervisor.understanding.conclusion import conclude
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Interpretation,
    Several,
    Single,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.prompt import (
    NOW,
    SYSTEM,
    Quotable,
    narrow,
    question,
    sources_of,
)
from tasklore.supervisor.understanding.questions import says_cannot
from tasklore.supervisor.understanding.routing import Router
from tasklore.supervisor.understanding.rules import RuleInterpreter, settle_all
from tasklore.supervisor.understanding.utterance import ReadUtterance, collapse_space

if TYPE_CHECKING:
    from tasklore.supervisor.replies.recollection import Recollections

log = structlog.get_logger(__name__)

T = TypeVar("T", bound=BaseModel)

_SPENT: ContextVar[Spent | None] = ContextVar("spent_on_understanding", default=None)


@dataclass
class Reader:
    """For whom words are read: `payer` pays for the model, `trouble` is why none read them, "" where none had to."""

    payer: Payer
    trouble: str = ""


_READER: ContextVar[Reader | None] = ContextVar("reader", default=None)

ROLE = "supervisor"
#: Seconds a person waits for a model before the rules' own answer does as well.
DEADLINE_S = 10.0
#: Characters of an utterance past which its answer is checked in a thread.
_LONG = 1_000
#: Characters of an answer that goes back with its faults, and faults that do.
_LONGEST_ANSWER = 8_000
_MOST_FAULTS = 12


class Asking(Protocol):
    """A language model that can be asked."""

    @property
    def configured(self) -> bool:
        """Whether there is one to ask."""

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,
    ) -> Reply[T]:
        """Return an answer of type *answer*; raises LlmError when there is none."""


class LlmInterpreter:
    """Rules first, then a model for open questions; every LlmError means the rules' own answer.

    With *recalling* the model is also shown memories of the person; nothing is looked up for the rules.
    """

    def __init__(
        self,
        llm: Asking,
        *,
        rules: RuleInterpreter | None = None,
        recalling: "Recollections | None" = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._llm = llm
        self._rules = rules or RuleInterpreter()
        self._recalling = recalling
        self._deadline_s = deadline_s

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Interpretation:
        """Return the interpretation of *text*, after the *previous* turns of its conversation, oldest first."""
        now = now or datetime.now(UTC)
        # What another person of the conversation said is for neither reader.
        theirs = [turn for turn in previous if turn.user_id in (None, user_id)]
        by_rules = await self._rules.interpret(
            text, catalogue=catalogue, previous=theirs, user_id=user_id, now=now
        )
        router = self._rules.router(catalogue)
        if not router.tasks or _is_settled(by_rules):
            return by_rules
        recalled = (
            await self._recalling.of(user_id, text)
            if self._recalling is not None
            else ()
        )
        sources = sources_of(collapse_space(text), theirs, recalled, now)
        answer = await self._ask(sources, router)
        # Not even the rules' own answer stands for itself then: the next time the model may give another.
        found = _conclude_answer(answer, by_rules, sources[NOW].text, router.catalogue)
        parts = tuple(
            replace(part, by_model=True) if isinstance(part, Understood) else part
            for part in settle_all(
                found.parts if isinstance(found, Several) else (found,), router, theirs
            )
        )
        return Several(parts) if isinstance(found, Several) else parts[0]

    async def _ask(
        self, sources: dict[str, Quotable], router: Router
    ) -> CheckedAnswer | None:
        """Return a model's answer, checked; None when it gives none that can be parsed."""
        ends_at = time.monotonic() + self._deadline_s
        utterance = ReadUtterance(sources[NOW].text, now=sources[NOW].now)
        full, listed = narrow(
            router.tasks, lambda: router.rank(utterance, len(router.tasks))
        )
        user = question(sources, full, listed)
        first = await self._once(user, ends_at)
        if first is None:
            return None
        answer = await self._check(
            first, router, sources, {task.key for task in listed}
        )
        if not answer.faults:
            return answer
        log.info("llm_reading_sent_back", faults=len(answer.faults))
        faults = "\n".join(answer.faults[:_MOST_FAULTS])
        said = first.model_dump_json()[:_LONGEST_ANSWER]
        again = f"{user}\nyour answer:\n{said}\nThat cannot be used:\n{faults}\nAnswer again, in full."
        second = await self._once(again, ends_at)
        return (
            answer
            if second is None
            else await self._check(second, router, sources, frozenset())
        )

    async def _check(
        self,
        reading: Reading,
        router: Router,
        sources: dict[str, Quotable],
        names: AbstractSet[tuple[str, str]],
    ) -> CheckedAnswer:
        """Return *reading* checked; a long text takes tenths of a second, in a thread."""
        mark = self._rules.decimal_mark
        if len(sources[NOW].text) <= _LONG:
            return check(
                reading, router=router, sources=sources, decimal_mark=mark, names=names
            )
        return await asyncio.to_thread(check, reading, router, sources, mark, names)

    async def _once(self, user: str, ends_at: float) -> Reading | None:
        left_s = ends_at - time.monotonic()
        if left_s <= 0:
            return None
        try:
            answered = await self._llm.ask(
                ROLE, Reading, system=SYSTEM, user=user, deadline_s=left_s
            )
        except LlmError as error:
            log.warning("llm_gave_no_reading", error_class=type(error).__name__)
            if (reader := _READER.get()) is not None:
                reader.trouble = describe(error)
            return None
        return answered.value


@contextmanager
def counting() -> Iterator[Spent]:
    """Count the usage of a `Counted` model by this asyncio task within the block."""
    spent = Spent()
    before = _SPENT.set(spent)
    try:
        yield spent
    finally:
        _SPENT.reset(before)


@contextmanager
def reading_for(payer: Payer) -> Iterator[Reader]:
    """Let *payer* pay for the models that read words within the block, and hear why none did."""
    reader = Reader(payer)
    before = _READER.set(reader)
    try:
        yield reader
    finally:
        _READER.reset(before)


class Counted:
    """A language model whose questions are counted by `counting`, and paid for as `reading_for` says."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    @property
    def configured(self) -> bool:
        """Whether there is a model to ask."""
        return self._llm.configured

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,
    ) -> Reply[T]:
        """Return an answer of type *answer*; raises LlmError when there is none."""
        spent = _SPENT.get()
        if (reader := _READER.get()) is not None:
            spent = Spent() if spent is None else spent
            spent.payer = reader.payer
        return await self._llm.ask(
            role,
            answer,
            system=system,
            user=user,
            deadline_s=deadline_s,
            spent=spent,
        )


def make_interpreter(
    llm: Asking | None,
    recalling: "Recollections | None" = None,
    decimal_mark: DecimalMark | None = None,
) -> RuleInterpreter | LlmInterpreter:
    """Return the interpreter for this process: with *llm* when there is one to ask, else the rules alone."""
    rules = RuleInterpreter(decimal_mark=decimal_mark)
    if llm is None or not llm.configured:
        return rules
    return LlmInterpreter(llm, rules=rules, recalling=recalling)


def _is_settled(by_rules: Interpretation) -> bool:
    """Return whether no model could add anything: rules read the words whole, or the person left it at that."""
    if isinstance(by_rules, Several):
        return all(map(_is_settled, by_rules.parts))
    if isinstance(by_rules, Understood):
        return not by_rules.guessed and not by_rules.is_loose
    return (
        isinstance(by_rules, Unfitting)
        and not by_rules.is_loose
        and not says_cannot(by_rules.text)
    )


def _conclude_answer(
    answer: CheckedAnswer | None,
    by_rules: Interpretation,
    text: str,
    catalogue: Catalogue,
) -> Interpretation:
    """Return the conclusion from *answer*; the rules' own answer when the model has nothing usable."""
    if answer is None or not (answer.intents or answer.unfit):
        is_open = isinstance(by_rules, Clarification) and not by_rules.known
        if answer is None or answer.faults or not is_open:
            return by_rules
        return Unfitting(f"I cannot tell what to do with that. {catalogue.abilities()}")
    parts: list[Single] = [conclude(one, text) for one in answer.intents]
    for place in reversed(answer.unfit):
        behind = [
            at for at, one in enumerate(answer.intents) if start_of(one) > place.start
        ]
        quotation = text[place.start : place.end]
        unable = Unfitting(f"No agent does '{quotation}'. {catalogue.abilities()}")
        parts.insert(behind[0] if behind else len(parts), unable)
    return parts[0] if len(parts) == 1 else Several(tuple(parts))
