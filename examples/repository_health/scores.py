"""The score: what part of each area is sound, and the mean of that over all areas."""

from collections.abc import Sequence

from pydantic import BaseModel

from examples.repository_health.shapes import (
    Docstrings,
    Imports,
    Leftovers,
    Rule,
    RuleKind,
    Sizes,
    Verdict,
)

#: Leftovers in 1,000 lines that are as bad as can be: one on every page.
_WORST_PER_THOUSAND = 20
_NO_VERDICT = Verdict(standards=0, rules=[], kept=[], breaches=[], unread=[])


class Area(BaseModel):
    """One row of the report: `found` against `limit`, and the sound share in percent."""

    name: str
    found: str
    limit: str
    percent: int
    is_kept: bool


def areas_of(
    sizes: Sizes,
    imports: Imports,
    docstrings: Docstrings,
    leftovers: Leftovers,
    verdict: Verdict | None,
) -> list[Area]:
    """Return every area in the order of the report; a standard's limit comes before the defaults of the phases."""
    rules = (verdict or _NO_VERDICT).rules
    modules = _limit(rules, "module_lines", sizes.module_limit)
    functions = _limit(rules, "function_lines", sizes.function_limit)
    cycles = _limit(rules, "import_cycles", 0)
    return [
        _parsing(imports),
        _area(
            "import cycles",
            found=f"{imports.cycle_count} ({imports.in_cycles} modules)",
            limit=f"at most {cycles}",
            sound=imports.modules
            - (imports.in_cycles if imports.cycle_count > cycles else 0),
            total=imports.modules,
        ),
        _area(
            "long modules",
            found=f"{sizes.modules.over(modules)} of {sizes.modules.count}",
            limit=f"{modules} lines",
            sound=sizes.modules.count - sizes.modules.over(modules),
            total=sizes.modules.count,
        ),
        _area(
            "long functions",
            found=f"{sizes.functions.over(functions)} of {sizes.functions.count}",
            limit=f"{functions} lines",
            sound=sizes.functions.count - sizes.functions.over(functions),
            total=sizes.functions.count,
        ),
        _area(
            "docstrings",
            found=f"{docstrings.percent} %",
            limit=f"{docstrings.wanted} %",
            sound=docstrings.percent,
            total=docstrings.wanted,
        ),
        _leftovers(leftovers, sizes.lines),
    ]


def score_of(areas: Sequence[Area]) -> int:
    """Return the mean of all *areas*, 0 to 100."""
    return sum(area.percent for area in areas) // len(areas)


def _parsing(imports: Imports) -> Area:
    unread = imports.unparsed_count
    return _area(
        "unreadable files",
        found=str(unread),
        limit="0",
        sound=imports.modules,
        total=imports.modules + unread,
    )


def _leftovers(leftovers: Leftovers, lines: int) -> Area:
    total = leftovers.marks + leftovers.debugging
    worst = max(1, lines * _WORST_PER_THOUSAND // 1000)
    too_many = min(max(0, total - leftovers.allowed), worst)
    return _area(
        "leftovers",
        found=f"{leftovers.marks} mark{'s' * (leftovers.marks != 1)}, {leftovers.debugging} of debugging",
        limit=f"at most {leftovers.allowed}",
        sound=worst - too_many,
        total=worst,
    )


def _area(name: str, found: str, limit: str, sound: int, total: int) -> Area:
    """Return an area of which *sound* of *total* is as it should be; nothing at all is sound."""
    percent = min(100, 100 * sound // total) if total else 100
    return Area(
        name=name, found=found, limit=limit, percent=percent, is_kept=sound >= total
    )


def _limit(rules: Sequence[Rule], kind: RuleKind, otherwise: int) -> int:
    """Return the strictest limit that *rules* set for *kind*, *otherwise* when none does."""
    return min((rule.limit for rule in rules if rule.kind == kind), default=otherwise)
