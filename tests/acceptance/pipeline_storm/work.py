"""What the nine phases compute: pure functions of an input number, so that a run's result is known beforehand."""

from typing import Final, TypedDict

from pydantic import BaseModel

#: What is found wrong with pass 1 unless the number is even: then there is nothing to correct.
_LARGE: Final = 50


class Seen(BaseModel):
    """What there is to work on."""

    files: list[int]


class Planned(BaseModel):
    """In which order."""

    steps: list[int]


class Mapped(BaseModel):
    """Which file needs which, and how many such needs there are."""

    dependencyMap: dict[str, list[int]]  # noqa: N815 - a session key, named as people name them there
    edges: int


class Made(BaseModel):
    """What was made of it, in which pass."""

    parts: list[int]
    made_in: int


class Enforced(BaseModel):
    """Which parts break a standard."""

    violations: list[int]


class Checked(BaseModel):
    """How good it is."""

    score: int


class Reported(BaseModel):
    """All of it in a few numbers."""

    total: int
    made_in: int
    design: int
    security: int
    corrected: int


def look_around(number: int) -> Seen:
    """Return some files."""
    return Seen(files=[(number * 7 + index * 13) % 97 for index in range(12)])


def plan(files: list[int]) -> Planned:
    """Return their order."""
    return Planned(steps=sorted(files))


def map_imports(files: list[int], steps: list[int]) -> Mapped:
    """Return who needs whom."""
    needs = {
        str(file): [step for step in steps if step < file and (file - step) % 3 == 0]
        for file in files
    }
    return Mapped(dependencyMap=needs, edges=sum(map(len, needs.values())))


def implement(steps: list[int], needs: dict[str, list[int]], number: int) -> Made:
    """Return the first pass."""
    extra = 0 if number % 2 == 0 else _LARGE
    return Made(
        parts=[step + len(needs[str(step)]) + extra for step in steps], made_in=1
    )


def enforce(parts: list[int], number: int) -> Enforced:
    """Return what is too large."""
    return Enforced(
        violations=[] if number % 2 == 0 else [part for part in parts if part > _LARGE]
    )


def correct(parts: list[int], violations: list[int]) -> Made:
    """Return the second pass."""
    return Made(
        parts=[part - _LARGE if part in violations else part for part in parts],
        made_in=2,
    )


def check(parts: list[int], factor: int) -> Checked:
    """Return a score."""
    return Checked(score=sum(parts) * factor % 1_009)


class _Whole(TypedDict):
    total: int
    made_in: int
    design: int
    security: int
    corrected: int


def expected(number: int) -> _Whole:
    """Return the result of a run for *number*, computed here and now."""
    files = look_around(number).files
    steps = plan(files).steps
    made = first = implement(steps, map_imports(files, steps).dependencyMap, number)
    violations = enforce(first.parts, number).violations
    if violations:
        made = correct(first.parts, violations)
    return _Whole(
        total=sum(made.parts),
        made_in=made.made_in,
        design=check(made.parts, 3).score,
        security=check(made.parts, 5).score,
        corrected=len(violations),
    )
