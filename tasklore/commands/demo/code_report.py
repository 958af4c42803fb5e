"""The agent of the demonstration's pipeline, `code_report.toml`: it measures the Python code of a folder.

It reads folders of the machine that the worker runs on, so that it is no default agent.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from tasklore import Agent, Context, Field, GiveUp, Parameters
from tasklore.contracts.errors import InvalidInput

agent = Agent("CodeReportAgent", description="Measures the Python code of a folder.")

_LIMIT = re.compile(r"\bno module over (\d+) lines\b", re.IGNORECASE)


class Folder(Parameters):
    """The folder to look at, on the worker's machine."""

    folder: str


class Modules(BaseModel):
    """How many lines each module has, by its path."""

    lines: dict[str, int]


class Imports(BaseModel):
    """How often anything is imported, and what most often."""

    count: int
    most: str


class Functions(BaseModel):
    """The number of functions and classes, and of those with a docstring."""

    count: int
    documented: int


class Standard(BaseModel):
    """A standard in force, as the project's memory has it."""

    id: str
    text: str


class Measures(Parameters):
    """The modules, and the standards for them."""

    modules: Modules
    standards: tuple[Standard, ...] = Field(description="The standards in force.")


class Verdict(BaseModel):
    """A line for each standard: whether it is met."""

    lines: list[str]


class Findings(Parameters):
    """All that a report is made of."""

    folder: str
    modules: Modules
    imports: Imports
    functions: Functions
    verdict: Verdict


@agent.task(remember=False, in_words=False)
def measure_modules(place: Folder) -> Modules:
    """Count the lines of each module in a folder."""
    return Modules(
        lines={str(path): text.count("\n") + 1 for path, text in _modules(place.folder)}
    )


@agent.task(remember=False, in_words=False)
def count_imports(place: Folder) -> Imports:
    """Count what the modules of a folder import."""
    found = Counter(
        name
        for _, text in _modules(place.folder)
        for node in ast.walk(ast.parse(text))
        for name in _imported(node)
    )
    [(most, _)] = found.most_common(1) or [("nothing", 0)]
    return Imports(count=found.total(), most=most)


@agent.task(remember=False, in_words=False)
def count_functions(place: Folder) -> Functions:
    """Count functions and classes in a folder, and their docstrings."""
    found = [
        ast.get_docstring(node) is not None
        for _, text in _modules(place.folder)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return Functions(count=len(found), documented=sum(found))


@agent.task(remember=False, in_words=False)
async def check_standards(measures: Measures, context: Context) -> Verdict:
    """Hold the modules to the standards that a project has recorded."""
    if not measures.standards:
        project = await context.project.project_id()
        raise GiveUp(
            "the project has no standard tagged 'code', so that there is nothing to hold the code to; record one: "
            f'tasklore projects standard {project} "no module over 400 lines" --tag code'
        )
    return Verdict(
        lines=[_judge(standard, measures.modules) for standard in measures.standards]
    )


@agent.task(remember=False, in_words=False)
def write_report(findings: Findings) -> str:
    """Write the findings as Markdown."""
    lines = findings.modules.lines
    longest = max(lines, key=lambda path: (lines[path], path))
    functions = findings.functions
    rows = {
        "modules": f"{len(lines):,}",
        "lines": f"{sum(lines.values()):,}",
        "longest module": f"{longest}: {lines[longest]:,} lines",
        "imports": f"{findings.imports.count:,}, most of {findings.imports.most}",
        "functions and classes": f"{functions.count:,}, {functions.documented:,} with a docstring",
    }
    table = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(
        [
            f"# Code of {findings.folder}",
            "",
            "| what | found |",
            "|---|---|",
            *table,
            "",
            *(f"- {line}" for line in findings.verdict.lines),
        ]
    )


def _modules(folder: str) -> Iterator[tuple[Path, str]]:
    """Yield each module below *folder* by its path there, sorted, with its text."""
    root = Path(folder)
    paths = sorted(root.rglob("*.py")) if root.is_dir() else []
    if not paths:
        raise InvalidInput(
            f"there is no Python module in {folder!r}; name a folder of the worker's machine"
        )
    for path in paths:
        yield path.relative_to(root), path.read_text("utf-8")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def _judge(standard: Standard, modules: Modules) -> str:
    limit = _LIMIT.search(standard.text)
    if limit is None:
        return f"{standard.id} is left to people: {standard.text}"
    over = sum(lines > int(limit[1]) for lines in modules.lines.values())
    verdict = f"not kept by {over} modules" if over else "kept"
    return f"{standard.id} is {verdict}: {standard.text}"
