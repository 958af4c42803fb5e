"""What one agent asks a model for, which of its findings may be kept, and what section they make.

A model understands; here is checked form and grounding alone: closed words, names, numbers, and that each quotation
stands in what was shown. Answers of one question for several agents are checked by the same code as single ones.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from pydantic import BeforeValidator, Field

from contracts.analysis.pieces import UNJUDGED, Section
from memory.grounding import locate, numbers_in
from memory.stories.settlement import StandingStory, settled
from quantities.numerals import find_amounts
from workers.agents.story.blocks import plain_prose
from workers.agents.story.prose import one_line
from workers.agents.story.seen import Seen
from workers.answers import Answer

#: What a section says as `by` when no model had a part in it.
RULES = "rules"
#: Findings of one list that are looked at: more than any section keeps.
MOST_CHECKED = 24
#: Characters of a quotation, and of a name, a place or a time.
LONGEST_QUOTATION, LONGEST_NAME = 300, 80
#: Tags of one finding, and characters of each.
_MOST_TAGS, _LONGEST_TAG = 5, 30


def _read_text(value: object) -> object:
    """Take null for no text, and a number for its digits; half of a surrogate pair is no text."""
    text = "" if value is None else str(value) if isinstance(value, int | float) else value
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


def _read_texts(value: object) -> object:
    return () if value is None else (value,) if isinstance(value, str) else value


def _read_whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else -1


Text = Annotated[str, BeforeValidator(_read_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_read_texts)]
#: A whole number; what is none is -1, which no field of ours may be.
Count = Annotated[int, BeforeValidator(_read_whole)]


def one_of(*words: str) -> Any:
    """Return the field of a closed word: *words* stand in the schema, and another one costs its finding alone."""
    return Field(default="", json_schema_extra={"enum": list(words)})


class Finding(Answer):
    """One thing that a model found, with the words that show it."""

    quotation: Text = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a finding: the field, and the complaint with its cure."""

    field: str
    complaint: str

    def __str__(self) -> str:
        return f"{self.field}: {self.complaint}"


@dataclass(frozen=True, slots=True)
class Faulty:
    """A finding of the list `field` that failed its checks."""

    field: str
    finding: Finding
    faults: tuple[Fault, ...]


A = TypeVar("A", bound=Answer)
S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Judged(Generic[A]):
    """What a model found and what of it held: its *answer*, its name, and how many findings were left out."""

    answer: A
    by: str
    left_out: int = 0


class Part(ABC, Generic[A, S]):
    """One section: what a model is asked for, what it is shown, and what is made of its answer.

    `needs` are fields of `Seen`, `blocks` names of `workers.agents.story.shown.BLOCKS`, and `limits` what its prompt
    says of how much is wanted. Its prompt lies in the folder of its section's name.
    """

    section: ClassVar[str]
    answer: type[A]
    needs: ClassVar[tuple[str, ...]] = ()
    blocks: ClassVar[tuple[str, ...]] = ("response",)
    limits: ClassVar[Mapping[str, int]] = {}

    def is_askable(self, seen: Seen) -> bool:  # noqa: ARG002 - most always are
        """Return whether there is anything to judge."""
        return True

    def text_of(self, finding: Finding, seen: Seen) -> str:  # noqa: ARG002 - of most it is the response
        """Return the text in which the quotation of *finding* must stand."""
        return plain_prose(seen.response.text)

    @abstractmethod
    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield what is wrong with *finding* beside its closed words and its quotation."""

    @abstractmethod
    def reduce(self, seen: Seen, answer: A | None) -> S:
        """Return the section without who found it; *answer* None: by names and counts only."""

    def finish(self, seen: Seen, judged: Judged[A] | None) -> S:
        """Return the section with who found it; what no model judged says so."""
        section = self.reduce(seen, None if judged is None else judged.answer)
        told: dict[str, object] = {"by": RULES if judged is None else judged.by}
        if judged is None and self.is_askable(seen):
            told["note"] = UNJUDGED
        if judged is not None and judged.left_out:
            told["left_out"] = judged.left_out
        # Who found it comes first, as in every section.
        return type(section).model_validate(told | section.model_dump(mode="json"))

    def settle(self, draft: S, seen: Seen) -> S:
        """Return *draft* with ids, scores and countdowns worked out by how the story stood before the response."""
        story = StandingStory(
            seen.settings,
            seen.relations,
            threads=seen.threads_before,
            scores=seen.scores,
            memory_ids=frozenset(one.id for one in seen.memories_before),
            thread_ids=frozenset(one.thread.id for one in seen.threads_before),
        )
        return cast("S", settled(self.section, seen.response.number, seen.response.chapter, draft, story)[0])

    def check(self, answer: A, seen: Seen) -> tuple[A, list[Faulty]]:
        """Return *answer* with the findings that may be kept, and those that failed."""
        kept: dict[str, tuple[Finding, ...]] = {}
        faulty: list[Faulty] = []
        for field in lists_of(answer):
            found = [(one, tuple(self._all_faults(one, seen))) for one in getattr(answer, field)[:MOST_CHECKED]]
            kept[field] = tuple(one for one, faults in found if not faults)
            faulty += [Faulty(field, one, faults) for one, faults in found if faults]
        return answer.model_copy(update=kept), faulty

    def _all_faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        for name, field in type(finding).model_fields.items():
            extra = field.json_schema_extra
            words = extra.get("enum") if isinstance(extra, dict) else None
            if isinstance(words, list) and getattr(finding, name) not in words:
                yield Fault(name, f"must be one of {', '.join(map(str, words))}")
        if not stands_in(finding.quotation, self.text_of(finding, seen)):
            yield Fault("quotation", f"does not stand there; copy its words, at most {LONGEST_QUOTATION} characters")
        yield from self.faults(finding, seen)


#: The part of each section, by its key, as `enroll` has filled it.
PARTS: dict[str, Part[Answer, Section]] = {}


def enroll(part: Part[A, S]) -> Part[A, S]:
    """Note that *part* may share a question with the others, and return it."""
    PARTS[part.section] = part  # type: ignore[assignment] # each is asked with its own answer
    return part


def lists_of(answer: Answer) -> Iterator[str]:
    """Yield the names of the fields of *answer* that hold findings."""
    for name in type(answer).model_fields:
        held = getattr(answer, name)
        if isinstance(held, tuple) and all(isinstance(one, Finding) for one in held):
            yield name


def stands_in(quotation: str, text: str) -> bool:
    """Return whether *quotation* has a letter or digit, is short enough, and stands in *text*."""
    if len(quotation) > LONGEST_QUOTATION or not any(map(str.isalnum, quotation)):
        return False
    return next(locate(quotation.strip(" .\u2026"), text), None) is not None


def length_faults(field: str, said: str, most: int) -> Iterator[Fault]:
    """Yield what is wrong with the length of *said*, which is needed."""
    if not said.strip():
        yield Fault(field, "is needed")
    elif len(said) > most:
        yield Fault(field, f"has more than {most} characters; shorten it")


def number_faults(field: str, said: str, *sources: str) -> Iterator[Fault]:
    """Yield the numbers in digits of *said* that none of *sources* has, in digits or in words."""
    if not (numbers := numbers_in(said)):
        return
    told = {reading for text in sources for one in numbers_in(text) for reading in one.readings}
    told |= {reading for text in sources for one in find_amounts(text) for reading in one.readings}
    for number in numbers:
        if number.readings and told.isdisjoint(number.readings):
            yield Fault(field, f"{said[number.start : number.end]} was not told; leave it out")


def person_faults(field: str, name: str, seen: Seen) -> Iterator[Fault]:
    """Yield what is wrong with the *name* of a character: declared in the story's files, or new in the response."""
    owner = seen.handles.owner(name)
    if owner is not None and not seen.is_character(owner):
        yield Fault(field, f"{name!r} is no character")
    elif owner is None and (len(name) > LONGEST_NAME or not stands_in(name, plain_prose(seen.response.text))):
        yield Fault(field, f"{name[:LONGEST_NAME]!r} is nobody's name; use a name as it is given or as the text has it")


def tags_from(said: Texts) -> tuple[str, ...]:
    """Return *said* as tags: single words in small letters, once each, at most five."""
    joined = ("_".join("".join(sign if sign.isalnum() else " " for sign in tag).split()) for tag in said)
    tags = (one_line(tag.casefold(), _LONGEST_TAG) for tag in joined)
    return tuple(dict.fromkeys(filter(None, tags)))[:_MOST_TAGS]
