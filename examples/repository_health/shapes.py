"""What the phases of a health report hand to each other, beside what each finds itself."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

#: What a rule, read out of a standard, can be about.
RuleKind = Literal[
    "module_lines", "function_lines", "import_cycles", "docstring_percent", "leftovers"
]

#: Findings of one kind that are listed; the numbers beside them count all.
MOST_LISTED = 50

#: Characters of a sentence about a place: names in code have no limit, messages have.
_LONGEST_TEXT = 200

Count = Annotated[int, Field(ge=0)]
Sentence = Annotated[str, AfterValidator(lambda text: text[:_LONGEST_TEXT])]


class Unparsed(BaseModel):
    """A file that could not be read as Python, and why."""

    path: str
    why: Sentence


class Shortcoming(BaseModel):
    """Something that could be better, and where; `line` counts from 1."""

    path: str
    line: int = 1
    text: Sentence
    weight: int = 1


class Rule(BaseModel):
    """What a standard demands: at most `limit` lines, cycles or leftovers, at least `limit` percent with docstrings."""

    kind: RuleKind
    limit: Count
    standard: str
    text: str


class Measured(BaseModel):
    """How long things are, in lines: `lengths` pairs each length with how many have it, `longest` lists the worst."""

    count: Count
    median: Count
    lengths: list[tuple[int, int]]
    longest: list[Shortcoming]

    def over(self, limit: int) -> int:
        """Return how many are longer than *limit* lines."""
        return sum(many for length, many in self.lengths if length > limit)


class Overview(BaseModel):
    """What lies in the folder: how many files and bytes, and in which languages.

    `is_cut` tells that there is more than was looked at.
    """

    folder: str
    files: Count
    bytes: Count
    languages: list["Language"]
    links: Count
    skipped_folders: Count
    is_cut: bool


class Language(BaseModel):
    """The files of one language; `lines` counts those of files that can be read as text."""

    language: str
    files: Count
    bytes: Count
    lines: Count


class Imports(BaseModel):
    """Imports: `cycles` of modules that need each other at import time, and the modules that most others use.

    The counts are of all; of cycles and of files that could not be read some are listed.
    """

    modules: Count
    imports: Count
    in_cycles: Count
    cycle_count: Count
    cycles: list[list[str]]
    most_used: list["Used"]
    unparsed_count: Count
    unparsed: list[Unparsed]


class Used(BaseModel):
    """A module, and how many others import it."""

    path: str
    used_by: Count


class Sizes(BaseModel):
    """Lines of modules and of functions, and the limits that hold where no standard says another."""

    lines: Count
    modules: Measured
    functions: Measured
    module_limit: Count
    function_limit: Count


class Breach(BaseModel):
    """A rule that is not kept: `found` is what there is instead of its limit."""

    rule: Rule
    found: Count


class Verdict(BaseModel):
    """The project's standards: `rules` read in them, `breaches` of those checked so far, and what says no rule."""

    standards: Count
    rules: list[Rule]
    kept: list[Rule]
    breaches: list[Breach]
    unread: list[str]


class Docstrings(BaseModel):
    """The share of public names with a docstring; `wanted` is the least percentage."""

    public: Count
    documented: Count
    percent: Count
    wanted: Count
    missing: list[Shortcoming]
    breaches: list[Breach]


class Leftovers(BaseModel):
    """Work left open: marks such as TODO, and prints and breakpoints."""

    marks: Count
    debugging: Count
    allowed: Count
    found: list[Shortcoming]
    breaches: list[Breach]
