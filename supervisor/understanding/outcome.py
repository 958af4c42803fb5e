"""The outcomes of an interpretation: frozen types, each with all that the next step needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.supervisor.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class TextSpan:
    """The characters a value of *field* rests on: `text[start:end]` of the sentence, or of the turn *turn_id*.

    A list has one for each item. A value kept from the conversation ("same history") points to the words that ask for
    it, and *turn_id* names the turn whose task held it. *memory* is the place of a memory, as document and path, when
    the value is taken from there.
    """

    field: str
    start: int
    end: int
    text: str
    turn_id: str | None = None
    memory: str | None = None

    @property
    def source(self) -> str | None:
        """The name of the text that it stands in; None for the sentence itself."""
        return self.memory or self.turn_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """A task that can be assigned as it stands.

    *guessed* names the values that nothing in the sentence announced, given to the only field they could be for.
    *computed* has the computation of values that were not said themselves ("double 50,000"). *by_model* is True when a
    language model was asked, which may answer otherwise to the same words; that is no part of their meaning. With
    *is_loose*, rules did not read the words whole (see `wholeness`). *approver* is the user or role
    whose yes it needs before it starts.
    """

    agent_id: str
    task: TaskCall
    spans: tuple[TextSpan, ...] = ()
    guessed: frozenset[str] = frozenset()
    computed: Mapping[str, str] = field(default_factory=dict)
    by_model: bool = field(default=False, compare=False)
    is_loose: bool = field(default=False, compare=False)
    approver: str | None = None

    @property
    def remembered(self) -> frozenset[str]:
        """The fields whose values come from memory, as the person did not say them."""
        return frozenset(span.field for span in self.spans if span.memory is not None)


@dataclass(frozen=True, slots=True)
class Clarification:
    """Words that lack something, or have two readings: *question* is asked before anything starts.

    *agent_id*, *task_name* and *known* are None and empty when not even the task is known; *missing* names the slots
    that the question is about. Keep `call` with the assistant's turn: the answer is understood from it.
    """

    question: str
    agent_id: str | None = None
    task_name: str | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    spans: tuple[TextSpan, ...] = ()

    @property
    def call(self) -> TaskCall | None:
        """The known part of the task, for the turn that asks; None when not even the task is known."""
        return (
            TaskCall(name=self.task_name, parameters=dict(self.known))
            if self.task_name
            else None
        )


@dataclass(frozen=True, slots=True)
class Unfitting:
    """Nothing that any agent does: *text* says what could be asked instead.

    With *is_loose*, rules read over words that a model may make more of, as of "don't book it yet, tell me the price".
    """

    text: str
    is_loose: bool = field(default=False, compare=False)


Single = Understood | Clarification | Unfitting


@dataclass(frozen=True, slots=True)
class Several:
    """Two or more tasks that one sentence asks for, in the order they were said; spans are places in the whole of it.

    `Unfitting` parts are among them only beside others.
    """

    parts: tuple[Single, ...]


Interpretation = Single | Several


def is_repeatable(found: Interpretation) -> bool:
    """Return whether the same words come to *found* again: for none of its tasks was a language model asked."""
    parts = found.parts if isinstance(found, Several) else (found,)
    return not any(isinstance(part, Understood) and part.by_model for part in parts)


class Interpreter(Protocol):
    """Turns words into a task, or into what to say instead."""

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Interpretation:
        """Return the interpretation of *text*, after the *previous* turns of its conversation, oldest first.

        *user_id* is the person who asks, None for an unknown one, without memories. *now* is when it was said, None the
        moment of the call.
        """
