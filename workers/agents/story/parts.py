"""A part of the analysis document: its question to a model, the checks of its findings, and the section they make.

Answers of one question for several sections are checked by the same code as single ones.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from pydantic import BeforeValidator, Field

from tasklore.contracts.analysis.pieces import UNJUDGED, Section
from tasklore.memory.stories.settlement import StandingStory, settle_section
from tasklore.workers.agents.story.blocks import plain_prose
from tasklore.workers.agents.story.checks import (
    LONGEST_QUOTATION,
    FindingFault,
    stands_in,
)
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: The `by` of a section in which no model had a part.
RULES = "rules"
#: Findings of one list that are checked: more than any section keeps.
MOST_CHECKED = 24
#: Tags of one finding, and characters of each.
_MOST_TAGS = 5
_LONGEST_TAG = 30


def _read_text(value: object) -> object:
    """Take null for no text, and a number for its digits; half of a surrogate pair is no text."""
    text = (
        "" if value is None else str(value) if isinstance(value, int | float) else value
    )
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


def _read_count(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else -1


Text = Annotated[str, BeforeValidator(_read_text)]
Texts = Annotated[
    tuple[Text, ...],
    BeforeValidator(
        lambda value: (
            () if value is None else (value,) if isinstance(value, str) else value
        )
    ),
]
#: A whole number; anything else is -1, which no field of ours may be.
Count = Annotated[int, BeforeValidator(_read_count)]


def one_of(*words: str) -> Any:
    """Return the field of a closed word: *words* stand in the schema, and another one costs its finding alone."""
    return Field(default="", json_schema_extra={"enum": list(words)})


class Finding(AnswerSchema):
    """A finding of a model, with the words that show it."""

    quotation: Text = ""


@dataclass(frozen=True, slots=True)
class Faulty:
    """A finding of the list `field` that failed its checks."""

    field: str
    finding: Finding
    faults: tuple[FindingFault, ...]


A = TypeVar("A", bound=AnswerSchema)
S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Judged(Generic[A]):
    """The sound findings of a model: its *answer*, the model's name, and how many findings were left out."""

    answer: A
    by: str
    left_out: int = 0


class Part(ABC, Generic[A, S]):
    """One section: the schema of its answer, the blocks of its question, and the reducer of its findings.

    The docstring of a subclass describes its task. `needs` are fields of `StoryView`, `blocks` names of
    `tasklore.workers.agents.story.blocks.BLOCKS`, and `limits` the values of its prompt, which lies in the folder of
    its section's name.
    """

    section: ClassVar[str]
    answer: type[A]
    result: type[S]
    needs: ClassVar[tuple[str, ...]] = ()
    blocks: ClassVar[tuple[str, ...]] = ("response",)
    limits: ClassVar[Mapping[str, int]] = {}

    def is_askable(self, view: StoryView) -> bool:  # noqa: ARG002 - most always are
        """Return whether there is anything to judge."""
        return True

    def source_of(self, finding: Finding, view: StoryView) -> str:  # noqa: ARG002 - of most it is the response
        """Return the text in which the quotation of *finding* must stand."""
        return plain_prose(view.response.text)

    @abstractmethod
    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield the faults of *finding* beside its closed words and its quotation."""

    @abstractmethod
    def reduce(self, view: StoryView, answer: A | None) -> S:
        """Return the section without its `by`; *answer* None: by names and counts only."""

    def finish(self, view: StoryView, judged: Judged[A] | None, why: str = "") -> S:
        """Return the section with its `by`; one that no model judged says so in its `note`, and *why* if one failed."""
        section = self.reduce(view, None if judged is None else judged.answer)
        marks: dict[str, object] = {"by": RULES if judged is None else judged.by}
        if judged is None and self.is_askable(view):
            marks["note"] = f"{UNJUDGED}; {why}" if why else UNJUDGED
        if judged is not None and judged.left_out:
            marks["left_out"] = judged.left_out
        # `by` comes first, as in every section.
        return type(section).model_validate(marks | section.model_dump(mode="json"))

    def settle(self, draft: S, view: StoryView) -> S:
        """Return *draft* with ids, scores and countdowns computed from the story before the response."""
        story = StandingStory(
            settings=view.settings,
            relations=view.relations,
            threads=view.threads_before,
            scores=view.scores,
            memory_ids=frozenset(one.id for one in view.memories_before),
            thread_ids=frozenset(one.thread.id for one in view.threads_before),
        )
        return cast(
            "S",
            settle_section(
                self.section,
                number=view.response.number,
                chapter=view.response.chapter,
                found=draft,
                story=story,
            )[0],
        )

    def check(self, answer: A, view: StoryView) -> tuple[A, list[Faulty]]:
        """Return *answer* with its sound findings, and the findings that failed."""
        kept: dict[str, tuple[Finding, ...]] = {}
        faulty: list[Faulty] = []
        for field in lists_of(answer):
            checked = [
                (one, tuple(self._all_faults(one, view)))
                for one in getattr(answer, field)[:MOST_CHECKED]
            ]
            kept[field] = tuple(one for one, faults in checked if not faults)
            faulty += [Faulty(field, one, faults) for one, faults in checked if faults]
        return answer.model_copy(update=kept), faulty

    def _all_faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        for name, field in type(finding).model_fields.items():
            extra = field.json_schema_extra
            words = extra.get("enum") if isinstance(extra, dict) else None
            if isinstance(words, list) and getattr(finding, name) not in words:
                yield FindingFault(name, f"must be one of {', '.join(map(str, words))}")
        if not stands_in(finding.quotation, self.source_of(finding, view)):
            yield FindingFault(
                "quotation",
                f"does not stand there; copy its words, at most {LONGEST_QUOTATION} characters",
            )
        yield from self.faults(finding, view)


def lists_of(answer: AnswerSchema) -> Iterator[str]:
    """Yield the names of the fields of *answer* that hold findings."""
    for name in type(answer).model_fields:
        held = getattr(answer, name)
        if isinstance(held, tuple) and all(isinstance(one, Finding) for one in held):
            yield name


def tags_from(words: Texts) -> tuple[str, ...]:
    """Return *words* as tags: single words in small letters, once each, at most five."""
    joined = (
        "_".join("".join(sign if sign.isalnum() else " " for sign in tag).split())
        for tag in words
    )
    tags = (one_line(tag.casefold(), _LONGEST_TAG) for tag in joined)
    return tuple(dict.fromkeys(filter(None, tags)))[:_MOST_TAGS]


def without_none(**values: object) -> dict[str, object]:
    """Return *values* without None and empty tables."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value != {}
    }
