"""Imports between modules: cycles at import time, and the modules that most others use."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from examples.repository_health.cycles import knots, way_round
from examples.repository_health.modules import Modules, package_of
from examples.repository_health.shapes import (
    MOST_LISTED,
    Imports,
    Unparsed,
    Used,
)
from examples.repository_health.sources import (
    SourceFile,
    inner_statements,
    read_sources,
)
from examples.repository_health.walk import root_of
from tasklore import Agent, Context, Parameters

#: Modules that are listed as used most.
_MOST_USED = 10
#: Modules of a cycle that are named.
_MOST_SHOWN = 12

agent = Agent(
    "RepositoryImportsAgent",
    description="Maps the imports between the Python modules of a folder.",
)


class PythonFiles(Parameters):
    """A folder, and the Python files in it by relative path."""

    folder: str
    files: tuple[str, ...]


@agent.task(remember=False, in_words=False)
def map_imports(python: PythonFiles, context: Context) -> Imports:
    """Map the imports between Python modules: cycles, and which modules are imported most."""
    root = root_of(python.folder)
    modules = Modules(python.files, package_of(root))
    at_import: dict[str, set[str]] = {}
    users: dict[str, set[str]] = defaultdict(set)
    unparsed: list[Unparsed] = []
    for source in read_sources(root, python.files, context):
        if isinstance(source, Unparsed):
            unparsed.append(source)
            continue
        at_import[source.path] = set()
        for found in _imports_in(source, modules):
            users[found.target].add(source.path)
            if found.is_at_import:
                at_import[source.path].add(found.target)
    tied = knots(at_import)
    used = Counter({path: len(by) for path, by in users.items()})
    return Imports(
        modules=len(at_import),
        imports=used.total(),
        in_cycles=sum(map(len, tied)),
        cycle_count=len(tied),
        cycles=[
            _show_way(way_round(at_import, members)) for members in tied[:MOST_LISTED]
        ],
        most_used=[Used(path=path, used_by=many) for path, many in _highest(used)],
        unparsed_count=len(unparsed),
        unparsed=unparsed[:MOST_LISTED],
    )


class _Import(NamedTuple):
    target: str
    is_at_import: bool


def _imports_in(source: SourceFile, modules: Modules) -> Iterator[_Import]:
    """Yield what *source* imports of the folder's own modules; what only a function imports is not at import time."""
    waiting: list[tuple[ast.AST, bool]] = [(source.tree, True)]
    while waiting:
        node, is_at_import = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in _targets(node, source.path, modules):
                if target != source.path:
                    yield _Import(target, is_at_import)
            continue
        runs_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.If) and _is_for_checkers(node.test):
            waiting += [(child, False) for child in node.body]
            waiting += [(child, is_at_import) for child in node.orelse]
        else:
            waiting += [
                (child, is_at_import and not runs_later)
                for child in inner_statements(node)
            ]


def _targets(
    node: ast.Import | ast.ImportFrom, path: str, modules: Modules
) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [(alias.name, "") for alias in node.names]
    else:
        base = node.module or ""
        if node.level:
            base = modules.base_of(path, node.level, base)
        names = [(base, alias.name) for alias in node.names]
    for base, name in names:
        found = modules.find(
            path,
            base,
            name,
            is_relative=isinstance(node, ast.ImportFrom) and node.level > 0,
        )
        if found is not None:
            yield found


def _is_for_checkers(test: ast.expr) -> bool:
    name = (
        test.attr
        if isinstance(test, ast.Attribute)
        else test.id
        if isinstance(test, ast.Name)
        else ""
    )
    return name == "TYPE_CHECKING"


def _show_way(way: list[str]) -> list[str]:
    return way if len(way) <= _MOST_SHOWN else [*way[: _MOST_SHOWN - 2], "...", way[-1]]


def _highest(used: Counter[str]) -> Sequence[tuple[str, int]]:
    return sorted(used.items(), key=lambda item: (-item[1], item[0]))[:_MOST_USED]
