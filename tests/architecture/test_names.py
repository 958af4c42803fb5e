"""The house keeps its voice: verbs name functions, nouns name modules, docstrings say it plainly."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.architecture.tree import (
    ROOMS,
    Function,
    docstring_of,
    functions,
    modules,
    tree_of,
)

#: Shares, of all functions and of all docstrings.
MOST_PARTICIPLES = 0.032
MOST_RIDDLES = 0.033
#: Modules that are named by a gerund; the words below are nouns of the field.
MOST_GERUNDS = 20
_NOUNS = {"testing", "pricing", "tracing", "string", "logging", "routing"}

_IRREGULAR = frozenset(
    re.findall(
        r"\w+",
        """told said found held kept left made given taken known shown meant sent begun spoken written heard seen spent
        stood lent gone done brought built bought caught chosen drawn felt got grown laid led lost met paid sat sold
        sought stuck taught thought thrown understood won""",
    )
)
_VERBS = {"need", "feed", "seed", "speed", "proceed", "exceed", "embed"}
_RIDDLE = re.compile(
    r"\b(what (is|was|has|does|it|they|came|comes|becomes|can|may|of)"
    r"|told|tells|whoever|whom|nobody|somebody)\b",
    re.IGNORECASE,
)


@cache
def _modules() -> dict[Path, ast.Module]:
    """Return the syntax tree of each module of the product and of the deployment."""
    return {file: tree_of(file) for file in modules(*ROOMS, "deploy")}


@cache
def _functions() -> list[Function]:
    return [function for tree in _modules().values() for function in functions(tree)]


def test_functions_are_named_by_verbs_and_modules_by_nouns() -> None:
    """A past participle names no function, beyond a share that only falls; few modules end in -ing."""
    named = [
        one.name
        for one in _functions()
        if not one.name.startswith("__") and _is_participle(one.name)
    ]
    assert len(named) <= MOST_PARTICIPLES * len(_functions()), sorted(named)
    gerunds = [
        file
        for file in _modules()
        if file.stem.endswith("ing") and file.stem not in _NOUNS
    ]
    assert len(gerunds) <= MOST_GERUNDS, gerunds


def test_docstrings_say_it_without_riddles() -> None:
    """Subject, verb, object: no "what is", "told" or "whoever"."""
    docstrings = [
        (file, str(one.value))
        for file, tree in _modules().items()
        for node in ast.walk(tree)
        if (one := docstring_of(node)) is not None
    ]
    riddles = [
        f"{file}: {text.splitlines()[0]}"
        for file, text in docstrings
        if _RIDDLE.search(text)
    ]
    assert len(riddles) <= MOST_RIDDLES * len(docstrings), "\n".join(riddles)


def _is_participle(name: str) -> bool:
    first = name.strip("_").split("_")[0]
    return first in _IRREGULAR or (
        first.endswith("ed") and len(first) > 4 and first not in _VERBS
    )
