"""Public modules, classes and functions that have no docstring."""

import ast
from collections.abc import Iterator

from examples.repository_health.shapes import (
    MOST_LISTED,
    Breach,
    Docstrings,
    Rule,
    Shortcoming,
    Unparsed,
)
from examples.repository_health.sources import (
    Documented,
    SourceFile,
    docstring_of,
    read_sources,
)
from examples.repository_health.walk import root_of
from tasklore import Agent, Context, Field, Parameters

agent = Agent(
    "RepositoryDocstringsAgent",
    description="Counts the docstrings of what is public in Python files.",
)


class Documentation(Parameters):
    """The Python files of a folder, and the rules they are held to."""

    folder: str
    files: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    wanted: int = Field(
        80, ge=0, le=100, description="Percent that holds where no rule says another."
    )


_Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
#: Decorators of what another one of that name describes.
_TOLD_ELSEWHERE = frozenset({"overload", "override", "setter", "deleter"})


@agent.task(remember=False, in_words=False)
def check_docstrings(documentation: Documentation, context: Context) -> Docstrings:
    """Count the public modules, classes and functions of Python files that have a docstring."""
    public = documented = 0
    missing: list[Shortcoming] = []
    for source in read_sources(
        root_of(documentation.folder), documentation.files, context
    ):
        if isinstance(source, Unparsed):
            continue
        for name, node in _public(source):
            public += 1
            if docstring_of(node) is not None:
                documented += 1
            else:
                line = 1 if isinstance(node, ast.Module) else node.lineno
                missing.append(
                    Shortcoming(
                        path=source.path, line=line, text=f"{name} has no docstring"
                    )
                )
    percent = 100 * documented // public if public else 100
    rules = [rule for rule in documentation.rules if rule.kind == "docstring_percent"]
    return Docstrings(
        public=public,
        documented=documented,
        percent=percent,
        wanted=max((rule.limit for rule in rules), default=documentation.wanted),
        missing=missing[:MOST_LISTED],
        breaches=[
            Breach(rule=rule, found=percent) for rule in rules if percent < rule.limit
        ],
    )


def _public(source: SourceFile) -> Iterator[tuple[str, Documented]]:
    """Yield what others may use: the module, its classes and functions, and their methods; not what begins with `_`."""
    if not source.tree.body:
        # An empty file, such as most of those that make a folder a package, has nothing to tell.
        return
    yield "the module", source.tree
    waiting: list[tuple[str, Documented]] = [("", source.tree)]
    while waiting:
        prefix, inside = waiting.pop(0)
        for node in inside.body:
            if (
                isinstance(node, _Named)
                and node.name[0] != "_"
                and not _is_told_elsewhere(node)
            ):
                yield f"{prefix}{node.name}", node
                if isinstance(node, ast.ClassDef):
                    waiting.append((f"{prefix}{node.name}.", node))


def _is_told_elsewhere(node: _Named) -> bool:
    names = (
        one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")
        for one in node.decorator_list
    )
    return any(name in _TOLD_ELSEWHERE for name in names)
