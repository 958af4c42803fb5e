"""Cycles of a directed graph: which nodes reach each other, and the shortest way round."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping

Graph = Mapping[str, Collection[str]]


def knots(graph: Graph) -> list[list[str]]:
    """Return every set of two or more nodes that all reach each other, sorted, the largest first."""
    search = _Search(graph)
    for start in sorted(graph):
        search.run(start)
    return sorted(search.found, key=lambda members: (-len(members), members))


class _Search:
    """Tarjan's algorithm, on a stack of its own: a chain of imports may be longer than Python's."""

    def __init__(self, graph: Graph) -> None:
        self.found: list[list[str]] = []
        self._graph = graph
        self._order: dict[str, int] = {}
        self._lowest: dict[str, int] = {}
        self._open: dict[str, None] = {}

    def run(self, start: str) -> None:
        """Look at all that *start* reaches and was not looked at yet."""
        if start in self._order:
            return
        way = [(start, self._enter(start))]
        while way:
            node, targets = way[-1]
            following = self._next(node, targets)
            if following is not None:
                way.append((following, self._enter(following)))
                continue
            way.pop()
            if way:
                above = way[-1][0]
                self._lowest[above] = min(self._lowest[above], self._lowest[node])
            if self._lowest[node] == self._order[node]:
                self._close(node)

    def _enter(self, node: str) -> Iterator[str]:
        self._order[node] = self._lowest[node] = len(self._order)
        self._open[node] = None
        return iter(sorted(self._graph.get(node, ())))

    def _next(self, node: str, targets: Iterator[str]) -> str | None:
        for target in targets:
            if target not in self._order:
                return target
            if target in self._open:
                self._lowest[node] = min(self._lowest[node], self._order[target])
        return None

    def _close(self, node: str) -> None:
        members: list[str] = []
        while not members or members[-1] != node:
            members.append(self._open.popitem()[0])
        if len(members) > 1:
            self.found.append(sorted(members))


def way_round(graph: Graph, members: Collection[str]) -> list[str]:
    """Return the shortest way from the first of *members* through others of them back to it, itself at both ends."""
    start = min(members)
    came_from: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for target in sorted(graph.get(node, ())):
            if target == start:
                way = [start, node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if target in members and target not in came_from:
                came_from[target] = node
                waiting.append(target)
    return [start]
