"""How long modules and functions are."""

import statistics
from collections import Counter, deque
from collections.abc import Iterator, Sequence

from examples.repository_health.shapes import (
    MOST_LISTED,
    Measured,
    Shortcoming,
    Sizes,
    Unparsed,
)
from examples.repository_health.sources import (
    Function,
    SourceFile,
    docstring_of,
    inner_statements,
    read_sources,
)
from examples.repository_health.walk import root_of
from tasklore import Agent, Context, Field, Parameters

agent = Agent(
    "RepositorySizesAgent",
    description="Measures the Python modules and functions of a folder.",
)


class Measure(Parameters):
    """The Python files of a folder, and the lines that a module and a function may have."""

    folder: str
    files: tuple[str, ...]
    module_lines: int = Field(
        400,
        ge=1,
        description="Holds where no standard of the project says another limit.",
    )
    function_lines: int = Field(
        60, ge=1, description="Likewise for a function, its docstring left out."
    )


@agent.task(remember=False, in_words=False)
def measure_sizes(measure: Measure, context: Context) -> Sizes:
    """Measure how many lines Python modules and functions have."""
    modules: list[Shortcoming] = []
    functions: list[Shortcoming] = []
    for source in read_sources(root_of(measure.folder), measure.files, context):
        if isinstance(source, Unparsed):
            continue
        lines = len(source.text.splitlines())
        modules.append(
            Shortcoming(path=source.path, text=f"{lines} lines", weight=lines)
        )
        functions += _functions(source)
    return Sizes(
        lines=sum(module.weight for module in modules),
        modules=_measure(modules),
        functions=_measure(functions),
        module_limit=measure.module_lines,
        function_limit=measure.function_lines,
    )


def _functions(source: SourceFile) -> Iterator[Shortcoming]:
    waiting = deque(inner_statements(source.tree))
    while waiting:
        node = waiting.popleft()
        waiting.extend(inner_statements(node))
        if isinstance(node, Function):
            lines = lines_of(node)
            yield Shortcoming(
                path=source.path,
                line=node.lineno,
                text=f"{node.name}: {lines} lines",
                weight=lines,
            )


def lines_of(node: Function) -> int:
    """Return the lines of a function, from its `def` to its end, its docstring left out."""
    docstring = docstring_of(node)
    described = (
        0 if docstring is None else (docstring.end_lineno or 0) - docstring.lineno + 1
    )
    return (node.end_lineno or node.lineno) - node.lineno + 1 - described


def _measure(found: Sequence[Shortcoming]) -> Measured:
    lengths = Counter(one.weight for one in found)
    return Measured(
        count=len(found),
        median=int(statistics.median_low(lengths.elements())) if found else 0,
        lengths=sorted(lengths.items()),
        longest=sorted(found, key=lambda one: (-one.weight, one.path, one.line))[
            :MOST_LISTED
        ],
    )
