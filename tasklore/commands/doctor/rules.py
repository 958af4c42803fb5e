"""Findings, and rules of the form (fact, mark, finding, cure) that make one of each fact that holds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

#: From harmless to harmful; `unknown` cannot be told from here, and is never counted as fine. A problem breaks a
#: promise of docs/reference/delivery.md or stops work; a warning does harm when something else happens.
Mark = Literal["ok", "note", "unknown", "warning", "problem"]

MARKS: tuple[Mark, ...] = ("problem", "warning", "unknown", "note", "ok")

#: Parts of a limit from which somebody should make room, and from which it will be hit before anybody does.
FULL_WARNING = 0.80
FULL_PROBLEM = 0.95

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One thing that was looked at.

    `check` names it for programs (`nats.sync_interval`), `found` is a sentence for people, and `cure` says what to do;
    it is None where there is nothing to do. `is_unreachable` marks a server that could not be examined at all.
    """

    check: str
    mark: Mark
    found: str
    cure: str | None = None
    is_unreachable: bool = False

    @property
    def group(self) -> str:
        """The part of the system: nats, redis, processes or settings."""
        return self.check.partition(".")[0]


class FindingRule(NamedTuple, Generic[T]):
    """When `holds` is true of a fact there is a finding; `{...}` in its texts are filled in by `apply_rules`."""

    check: str
    mark: Mark
    holds: Callable[[T], object]
    found: str
    cure: str | None = None


def apply_rules(
    rules: Iterable[FindingRule[T]], fact: T, **words: object
) -> Iterator[Diagnosis]:
    """Yield the finding of each of *rules* that holds for *fact*, with *words* filled into its texts."""
    for rule in rules:
        if rule.holds(fact):
            cure = None if rule.cure is None else rule.cure.format(**words)
            yield Diagnosis(
                check=rule.check,
                mark=rule.mark,
                found=rule.found.format(**words),
                cure=cure,
            )


def ok(check: str, found: str) -> Diagnosis:
    """Return a finding that needs no cure."""
    return Diagnosis(check=check, mark="ok", found=found)


def unreachable(check: str, found: str, cure: str) -> Diagnosis:
    """Return a finding of a server that could not be examined."""
    return Diagnosis(
        check=check, mark="problem", found=found, cure=cure, is_unreachable=True
    )


def check_fullness(
    check: str, what: str, used: float, limit: float, cure: str
) -> Diagnosis:
    """Return how much of *limit* bytes *what* has taken."""
    part = used / limit
    mark: Mark = (
        "problem"
        if part >= FULL_PROBLEM
        else "warning"
        if part >= FULL_WARNING
        else "ok"
    )
    found = f"{what} holds {format_bytes(used)} of {format_bytes(limit)} ({part:.0%})"
    return Diagnosis(
        check=check, mark=mark, found=found, cure=None if mark == "ok" else cure
    )


def format_bytes(number: float) -> str:
    """Return *number* of bytes in the largest unit that leaves a number above one."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:,.3g} TiB"
