"""Work left open: marks in comments such as TODO, and calls of debugging."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from examples.repository_health.shapes import (
    MOST_LISTED,
    Breach,
    Leftovers,
    Rule,
    Shortcoming,
    Unparsed,
)
from examples.repository_health.sources import SourceFile, read_sources
from examples.repository_health.walk import root_of
from tasklore import Agent, Context, Field, Parameters

#: Words that say that something is not done.
MARKS = ("TODO", "FIXME", "XXX", "HACK")
#: Calls that stop a program, or say something, for whoever looks for a fault.
_DEBUGGING = frozenset(
    {
        "breakpoint",
        "pdb.set_trace",
        "ipdb.set_trace",
        "pudb.set_trace",
        "print",
        "pprint",
        "ic",
    }
)
_CALLED = r"\b(?:breakpoint|set_trace|p?print|ic)\s*\("
#: Where printing is what the file is for.
_PRINTERS = ("__main__.py", "setup.py", "conftest.py")
#: Characters of a comment that are shown.
_SHOWN = 80

agent = Agent(
    "RepositoryLeftoversAgent",
    description="Finds what was left to do, and left behind, in Python files.",
)


class Search(Parameters):
    """The Python files of a folder, what marks work that is left to do, and the rules they are held to.

    `allow_prints` takes a `print` for what the program says, as in a command line's own files.
    """

    folder: str
    files: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    marks: tuple[str, ...] = MARKS
    allowed: int = Field(
        0, ge=0, description="How many are tolerated where no rule says another number."
    )
    allow_prints: bool = True


@agent.task(remember=False, in_words=False)
def find_leftovers(search: Search, context: Context) -> Leftovers:
    """Find marks such as TODO and FIXME in comments, and calls that only debugging needs."""
    marked = re.compile(rf"\b(?:{'|'.join(map(re.escape, search.marks)) or '(?!)'})\b")
    marks: list[Shortcoming] = []
    debugging: list[Shortcoming] = []
    having = re.compile(f"{marked.pattern}|{_CALLED}")
    for source in read_sources(root_of(search.folder), search.files, context, having):
        if not isinstance(source, Unparsed):
            marks += _marks(source, marked)
            debugging += _debugging(source, allow_prints=search.allow_prints)
    total = len(marks) + len(debugging)
    rules = [rule for rule in search.rules if rule.kind == "leftovers"]
    return Leftovers(
        marks=len(marks),
        debugging=len(debugging),
        allowed=min((rule.limit for rule in rules), default=search.allowed),
        found=[*debugging, *marks][:MOST_LISTED],
        breaches=[
            Breach(rule=rule, found=total) for rule in rules if total > rule.limit
        ],
    )


def _marks(source: SourceFile, marked: "re.Pattern[str]") -> Iterator[Shortcoming]:
    if not marked.search(source.text):
        # Most files: taking a text apart into tokens costs more than all the rest.
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT and marked.search(token.string):
                text = token.string.lstrip("# ")[:_SHOWN]
                yield Shortcoming(path=source.path, line=token.start[0], text=text)
    except (tokenize.TokenError, SyntaxError):
        # The parser took what the tokenizer does not: what it found so far counts.
        return


def _debugging(source: SourceFile, *, allow_prints: bool) -> Iterator[Shortcoming]:
    prints = allow_prints or source.path.endswith(_PRINTERS)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            name = _name_of(node.func)
            if name in _DEBUGGING and not (name == "print" and prints):
                yield Shortcoming(
                    path=source.path,
                    line=node.lineno,
                    text=f"{name}() of a debugging hour",
                )


def _name_of(called: ast.expr) -> str:
    """Return the name of the called function, such as "print" or "pdb.set_trace", "" for a longer one."""
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        return f"{called.value.id}.{called.attr}"
    return called.id if isinstance(called, ast.Name) else ""
