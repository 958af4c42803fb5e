"""What came of one table for one reader: every case, whether it was right, and how long it took."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from time import perf_counter_ns

from benchmarks.table import percentile

#: What a reader returns, and a table expects: the values of one sentence, each in its one spelling.
Values = frozenset[str]

#: The value of a text that must come out as having two readings.
AMBIGUOUS = "ambiguous"
#: Tables write fractions that do not end with 15 digits, and readers calculate with floats.
_ROUNDED = Context(prec=9)


@dataclass(frozen=True)
class Case:
    """One row of a table: a sentence and the values that it holds."""

    text: str
    expected: Values


@dataclass(frozen=True)
class Score:
    """How one reader did on one table; *misses* says of each wrong case what it was and what came of it."""

    right: int
    misses: tuple[str, ...]
    times_ns: tuple[int, ...]

    @property
    def cases(self) -> int:
        """How many there were."""
        return self.right + len(self.misses)

    @property
    def share(self) -> float:
        """The part that was right, 0 to 1."""
        return self.right / self.cases if self.cases else 0.0

    def within_us(self, share: float) -> float:
        """Return the microseconds that *share* (0 to 1) of the sentences did not exceed."""
        return percentile(self.times_ns, share) / 1000


def spelled(value: object) -> str:
    """Return the one spelling of a value, to nine digits; what is no number stays as it is."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return str(value)
    return (
        format(_ROUNDED.create_decimal(number).normalize(_ROUNDED), "f")
        if number.is_finite()
        else str(value)
    )


def values_of(values: Iterable[object]) -> Values:
    """Return *values* without those that are none, each in its one spelling."""
    return frozenset(spelled(value) for value in values if value is not None)


def judged(
    cases: Iterable[Case], answers: Iterable[Values], times_ns: Iterable[int]
) -> Score:
    """Return how often the answer was just what the case expects."""
    misses = []
    right = 0
    for case, found in zip(cases, answers, strict=True):
        if found == case.expected:
            right += 1
        else:
            misses.append(
                f"{case.text!r}: expected {_shown(case.expected)}, found {_shown(found)}"
            )
    return Score(right, tuple(misses), tuple(times_ns))


def _shown(values: Values) -> str:
    return ", ".join(sorted(values)) or "nothing"


def timed(
    read: Callable[[str], Values], texts: Iterable[str]
) -> tuple[list[Values], list[int]]:
    """Return what *read* makes of each text and the nanoseconds it took, after one round that is not counted."""
    texts = list(texts)
    for text in texts:
        read(text)
    answers = []
    times = []
    for text in texts:
        started = perf_counter_ns()
        answer = read(text)
        times.append(perf_counter_ns() - started)
        answers.append(answer)
    return answers, times
