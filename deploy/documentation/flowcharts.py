"""Flowcharts of pages as HTML: a chain as a list, another one as a drawing in layers; neither asks a script for it."""

import html
import itertools
import re
import textwrap
from dataclasses import dataclass

_BLOCK = re.compile(r"^```mermaid\n(flowchart .*?)^```$", re.MULTILINE | re.DOTALL)
_NODE = re.compile(r'^\s*(\w+)\["(.*?)"\]\s*$')
_EDGES = re.compile(r"^\s*(\w+(?:\s*-->\s*\w+)+)\s*$")
_BREAK = "<br/>"

#: Pixels of a box and between boxes, and letters of a line in one.
_WIDTH = 290
_LINE = 17
_PADDING = 12
_GAP_X = 30
_GAP_Y = 46
_LETTERS = 40


class NoChart(ValueError):
    """A text is no flowchart of the kind that is drawn here; the message quotes its first line that is not."""


@dataclass(frozen=True)
class Chart:
    """Labels by node, in order, and the edges between nodes."""

    labels: dict[str, str]
    edges: tuple[tuple[str, str], ...]

    @property
    def is_chain(self) -> bool:
        """Whether each node leads to the next one and nothing else."""
        nodes = list(self.labels)
        return self.edges == tuple(itertools.pairwise(nodes))


def draw_charts(markdown: str) -> str:
    """Return *markdown* with its flowcharts as HTML; other diagrams stay blocks of code."""

    def drawn(found: re.Match[str]) -> str:
        return draw(read_chart(found[1]))

    return _BLOCK.sub(drawn, markdown)


def read_chart(text: str) -> Chart:
    """Return the flowchart in *text*: nodes with quoted labels, then chains of edges.

    Raises:
        NoChart: a line is neither, or an edge names a node that there is not.
    """
    labels: dict[str, str] = {}
    edges: list[tuple[str, str]] = []
    for line in text.splitlines()[1:]:
        if node := _NODE.match(line):
            labels[node[1]] = node[2]
        elif chain := _EDGES.match(line):
            names = re.split(r"\s*-->\s*", chain[1])
            edges += itertools.pairwise(names)
        elif line.strip():
            raise NoChart(f"not a node or an edge: {line.strip()!r}")
    unknown = {name for edge in edges for name in edge} - set(labels)
    if unknown:
        raise NoChart(
            f"edges of nodes that are not there: {', '.join(sorted(unknown))}"
        )
    return Chart(labels, tuple(edges))


def draw(chart: Chart) -> str:
    """Return *chart* as HTML on one line, so that Markdown leaves it alone."""
    return _draw_list(chart) if chart.is_chain else _draw_layers(chart)


def _draw_list(chart: Chart) -> str:
    items = []
    for label in chart.labels.values():
        name, _, rest = label.partition(_BREAK)
        items.append(
            f"<li><code>{html.escape(name)}</code> {html.escape(html.unescape(rest))}</li>"
        )
    return f'<ol class="chart">{"".join(items)}</ol>'


def _layers(chart: Chart) -> list[list[str]]:
    """Return nodes by the longest way to them."""
    depth = dict.fromkeys(chart.labels, 0)
    for _ in chart.labels:
        for source, target in chart.edges:
            depth[target] = max(depth[target], depth[source] + 1)
    return [
        [name for name in chart.labels if depth[name] == layer]
        for layer in range(max(depth.values()) + 1)
    ]


def _draw_layers(chart: Chart) -> str:
    layers = _layers(chart)
    lines = {name: _wrap(label) for name, label in chart.labels.items()}
    width = max(len(layer) for layer in layers) * (_WIDTH + _GAP_X) - _GAP_X
    boxes: dict[str, tuple[float, float, float]] = {}
    top = 0.0
    for layer in layers:
        height = max(len(lines[name]) for name in layer) * _LINE + 2 * _PADDING
        left = (width - len(layer) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for index, name in enumerate(layer):
            boxes[name] = (left + index * (_WIDTH + _GAP_X), top, height)
        top += height + _GAP_Y
    drawn = [_arrow(boxes[source], boxes[target]) for source, target in chart.edges]
    drawn += [_box(boxes[name], lines[name]) for name in chart.labels]
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>'
    )
    names = ", ".join(label.partition(_BREAK)[0] for label in chart.labels.values())
    return (
        f'<svg class="chart" role="img" viewBox="-2 -2 {width + 4} {top - _GAP_Y + 4:g}" '
        f'aria-label="{html.escape(names)}"><defs>{head}</defs>{"".join(drawn)}</svg>'
    )


def _wrap(label: str) -> list[str]:
    name, _, rest = html.unescape(label).partition(_BREAK)
    return [name, *textwrap.wrap(rest, _LETTERS)]


def _box(place: tuple[float, float, float], lines: list[str]) -> str:
    left, top, height = place
    texts = [
        f'<text class="{_class_of(n)}" x="{left + _PADDING:g}" '
        f'y="{top + _PADDING + _LINE * (n + 0.75):g}">{html.escape(line)}</text>'
        for n, line in enumerate(lines)
    ]
    box = (
        f'<rect x="{left:g}" y="{top:g}" width="{_WIDTH}" height="{height:g}" rx="6"/>'
    )
    return box + "".join(texts)


def _class_of(line: int) -> str:
    return "rest" if line else "name"


def _arrow(
    source: tuple[float, float, float], target: tuple[float, float, float]
) -> str:
    begin = source[0] + _WIDTH / 2
    bottom = source[1] + source[2]
    end = target[0] + _WIDTH / 2
    middle = (bottom + target[1]) / 2
    return (
        f'<path class="edge" marker-end="url(#head)" d="M{begin:g} {bottom:g}'
        f'C{begin:g} {middle:g} {end:g} {middle:g} {end:g} {target[1]:g}"/>'
    )
