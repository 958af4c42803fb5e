"""The findings as a list for people, as JSON for programs, and as an exit code."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tasklore.commands.doctor.rules import MARKS, Diagnosis, Mark
from tasklore.commands.doctor.server_checks import MEANINGS, Durability
from tasklore.commands.exits import FAILED, OK, UNREACHABLE
from tasklore.commands.render.screen import printable, styled
from tasklore.commands.render.words import count_of

#: Columns that the marks take, and the fewest that are left for a sentence.
_MARGIN = 11
_NARROWEST = 20

_STYLES: dict[Mark, str] = {
    "ok": "green",
    "note": "cyan",
    "unknown": "yellow",
    "warning": "yellow",
    "problem": "red",
}
#: The order in which groups are shown, and how they are called.
_GROUPS = {
    "nats": "NATS",
    "redis": "Redis or Valkey",
    "processes": "Supervisor and workers",
    "settings": "Settings",
    "models": "Models",
}


@dataclass(frozen=True, slots=True)
class Report:
    """All findings; *addresses* names the servers by group, without passwords."""

    findings: Sequence[Diagnosis]
    durability: Durability
    addresses: dict[str, str]

    def exit_code(self, *, strict: bool) -> int:
        """Return 3 when a server could not be examined, 1 for problems (when *strict* for any doubt), else 0."""
        if any(finding.is_unreachable for finding in self.findings):
            return UNREACHABLE
        bad: set[Mark] = {"problem", "warning", "unknown"} if strict else {"problem"}
        return FAILED if any(finding.mark in bad for finding in self.findings) else OK

    def document(self, *, strict: bool) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "exit_code": self.exit_code(strict=strict),
            "durability": self.durability,
            "durability_means": MEANINGS[self.durability],
            "counts": self._counts(),
            "addresses": self.addresses,
            "findings": [asdict(finding) for finding in self.findings],
        }

    def lines(self, width: int | None) -> Iterator[str]:
        """Yield the report for people, folded to *width* columns; None folds nothing."""
        for group, title in _GROUPS.items():
            found = [finding for finding in self.findings if finding.group == group]
            if not found:
                continue
            address = self.addresses.get(group)
            yield from _fold(
                f"{title} {address}" if address else title, width, "", "bold"
            )
            for finding in found:
                first, *rest = _fold(printable(finding.found), width, " " * _MARGIN)
                # Coloured after folding, which counts letters.
                yield f"  {styled(finding.mark, _STYLES[finding.mark])}{first[2 + len(finding.mark) :]}"
                yield from rest
                if finding.cure:
                    yield from _fold(
                        f"fix: {printable(finding.cure)}", width, " " * _MARGIN, "dim"
                    )
            yield ""
        if self.addresses:
            yield from _fold(
                f"Durability: {self.durability} - {MEANINGS[self.durability]}.", width
            )
        counts = self._counts()
        many = {"ok": "ok", "unknown": "unknown"}
        said = [
            count_of(counts[mark], mark, many.get(mark))
            for mark in MARKS
            if counts[mark]
        ]
        yield from _fold(f"{', '.join(said)}.", width)

    def _counts(self) -> dict[str, int]:
        counts = Counter(finding.mark for finding in self.findings)
        return {mark: counts[mark] for mark in MARKS}


def _fold(
    text: str, width: int | None, indent: str = "", style: str | None = None
) -> list[str]:
    text = " ".join(text.split())
    if width is None:
        lines = [indent + text]
    else:
        room = max(width, len(indent) + _NARROWEST)
        lines = textwrap.wrap(
            text,
            room,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
    return [styled(line, style) for line in lines] if style else lines
