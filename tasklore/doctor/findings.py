"""What the doctor says: one finding a check, with its cure."""

from dataclasses import dataclass, replace
from typing import Literal

#: From harmless to harmful; `unknown` is what cannot be told from here, and is never counted as fine.
Mark = Literal["ok", "note", "unknown", "warning", "problem"]

MARKS: tuple[Mark, ...] = ("problem", "warning", "unknown", "note", "ok")


@dataclass(frozen=True, slots=True)
class Finding:
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
        """Whom it is about: nats, redis, processes or settings."""
        return self.check.partition(".")[0]


def ok(check: str, found: str) -> Finding:
    """Return a finding of something that is as it should be."""
    return Finding(check, "ok", found)


def note(check: str, found: str, cure: str | None = None) -> Finding:
    """Return a finding that is worth knowing and harms nobody."""
    return Finding(check, "note", found, cure)


def unknown(check: str, found: str, cure: str) -> Finding:
    """Return a finding of what could not be told from here, with what would let it be told."""
    return Finding(check, "unknown", found, cure)


def warning(check: str, found: str, cure: str) -> Finding:
    """Return a finding that will do harm when something else happens."""
    return Finding(check, "warning", found, cure)


def problem(check: str, found: str, cure: str) -> Finding:
    """Return a finding that breaks a promise of docs/delivery.md, or stops work."""
    return Finding(check, "problem", found, cure)


def unreachable(check: str, found: str, cure: str) -> Finding:
    """Return a finding of a server that could not be examined."""
    return replace(problem(check, found, cure), is_unreachable=True)


def listed(names: list[str], at_most: int = 5) -> str:
    """Return *names* joined by commas, those past *at_most* only counted."""
    rest = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {rest} more" if rest > 0 else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return *number* with the word for it: `1 task`, `2 tasks`; *many* for words that do not end in s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
