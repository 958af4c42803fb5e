"""The report that people read: a score, a table, and where to begin."""

from collections.abc import Sequence
from itertools import zip_longest

from pydantic import BaseModel

from examples.repository_health.scores import Area, areas_of, score_of
from examples.repository_health.shapes import (
    Breach,
    Docstrings,
    Imports,
    Leftovers,
    Overview,
    RuleKind,
    Shortcoming,
    Sizes,
    Verdict,
)
from tasklore import Agent, Field, Parameters

#: Places that are named: what somebody can do this week.
_WORST = 10
#: Languages that are named, those with the most bytes.
_LANGUAGES = 4

_BREACHES: dict[RuleKind, str] = {
    "module_lines": "{found} modules are longer than {limit} lines",
    "function_lines": "{found} functions are longer than {limit} lines",
    "import_cycles": "{found} import cycles, at most {limit} are allowed",
    "docstring_percent": "{found} % of what is public has a docstring, {limit} % are asked for",
    "leftovers": "{found} leftovers, at most {limit} are allowed",
}

agent = Agent(
    "RepositoryReportAgent", description="Writes the health report of a repository."
)


class Findings(Parameters):
    """What every phase found; `standards` None where a pipeline holds the code to none."""

    overview: Overview
    sizes: Sizes
    imports: Imports
    docstrings: Docstrings
    leftovers: Leftovers
    standards: Verdict | None = None
    healthy_from: int = Field(
        80,
        ge=0,
        le=100,
        description="The score from which a repository counts as healthy.",
    )


class Health(BaseModel):
    """The health of a repository: `score` from 0 to 100, `markdown` for people, `worst` the places to begin with."""

    score: int
    is_healthy: bool
    areas: list[Area]
    breaches: list[str]
    worst: list[Shortcoming]
    markdown: str


@agent.task(remember=False, in_words=False)
def write_report(findings: Findings) -> Health:
    """Write a health report on a repository from what the phases before have found."""
    areas = areas_of(
        findings.sizes,
        imports=findings.imports,
        docstrings=findings.docstrings,
        leftovers=findings.leftovers,
        verdict=findings.standards,
    )
    score = score_of(areas)
    health = Health(
        score=score,
        is_healthy=score >= findings.healthy_from,
        areas=areas,
        breaches=[_describe_breach(breach) for breach in _breaches(findings)],
        worst=worst_of(findings),
        markdown="",
    )
    return health.model_copy(update={"markdown": markdown_of(findings, health)})


def worst_of(findings: Findings) -> list[Shortcoming]:
    """Return where to begin: the worst of each kind first, then the next of each."""
    imports = findings.imports
    sizes = findings.sizes
    leftovers = findings.leftovers
    modules = _limit(findings, "module_lines", sizes.module_limit)
    functions = _limit(findings, "function_lines", sizes.function_limit)
    are_too_many = leftovers.marks + leftovers.debugging > leftovers.allowed
    is_missing = findings.docstrings.percent < findings.docstrings.wanted
    kinds = (
        [
            Shortcoming(path=one.path, text=f"cannot be read: {one.why}")
            for one in imports.unparsed
        ],
        [
            Shortcoming(path=cycle[0], text=f"imports in a circle: {' > '.join(cycle)}")
            for cycle in imports.cycles
        ],
        [one for one in sizes.modules.longest if one.weight > modules],
        [one for one in sizes.functions.longest if one.weight > functions],
        leftovers.found if are_too_many else [],
        findings.docstrings.missing if is_missing else [],
    )
    return [one for rank in zip_longest(*kinds) for one in rank if one is not None][
        :_WORST
    ]


def markdown_of(findings: Findings, health: Health) -> str:
    """Return the report as Markdown."""
    overview = findings.overview
    spoken = [one for one in overview.languages if one.lines]
    languages = ", ".join(
        f"{one.language} {one.lines:,} lines" for one in spoken[:_LANGUAGES]
    )
    lines = [
        f"# Health of {_plain(overview.folder)}: {health.score} of 100",
        "",
        f"{overview.files:,} files{' (cut there)' if overview.is_cut else ''}: {languages}.",
        f"{findings.imports.modules:,} Python modules, {findings.imports.imports:,} imports between them.",
        "",
        *_table(health.areas),
        "",
        "## Standards",
        "",
        *_standards_lines(findings, health),
        "",
        "## Where to begin",
        "",
        *(
            [
                f"- `{_plain(one.path)}:{one.line}` {_plain(one.text)}"
                for one in health.worst
            ]
            or ["Nowhere: all is well."]
        ),
    ]
    return "\n".join(lines) + "\n"


def _table(areas: Sequence[Area]) -> list[str]:
    """Return a table of Markdown that can be read as it stands, too."""
    heading = ("area", "found", "limit", "sound")
    rows = [
        heading,
        *((area.name, area.found, area.limit, f"{area.percent} %") for area in areas),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heading))]
    lines = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False))} | "
        f"{row[-1].rjust(widths[-1])} |"
        for row in rows
    ]
    rule = "|".join("-" * (width + 2) for width in widths[:-1])
    return [lines[0], f"|{rule}|{'-' * (widths[-1] + 1)}:|", *lines[1:]]


def _standards_lines(findings: Findings, health: Health) -> list[str]:
    verdict = findings.standards
    if verdict is None:
        return ["None were asked for; the limits are those of the pipeline."]
    lines = [f"- not kept: {breach}" for breach in health.breaches]
    lines += [f"- for people to judge: {_plain(one)}" for one in verdict.unread]
    return lines or ["All are kept."]


def _breaches(findings: Findings) -> list[Breach]:
    earlier = findings.standards.breaches if findings.standards is not None else []
    return [*earlier, *findings.docstrings.breaches, *findings.leftovers.breaches]


def _describe_breach(breach: Breach) -> str:
    return f"{_BREACHES[breach.rule.kind].format(found=breach.found, limit=breach.rule.limit)} ({breach.rule.standard})"


def _limit(findings: Findings, kind: RuleKind, otherwise: int) -> int:
    rules = findings.standards.rules if findings.standards is not None else []
    return min((rule.limit for rule in rules if rule.kind == kind), default=otherwise)


def _plain(text: str) -> str:
    """Return *text* as one line that ends no code span: paths and comments are foreign text."""
    return " ".join(text.replace("`", "'").split())
