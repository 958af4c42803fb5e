"""The two pictures of docs/architecture.md, drawn from the code; `python -m tests.architecture.pictures` writes them.

Rooms are joined by the imports between them. The way of a task is a list of modules, each labelled by its docstring.
"""

import ast
import re
from pathlib import Path

from tests.architecture.tree import ROOT, modules, tree_of

PAGE = ROOT / "docs" / "architecture.md"
_BLOCK = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)

#: The folders that are drawn, from the top down.
_ROOMS = (
    "tasklore/commands",
    "supervisor",
    "workers",
    "memory",
    "runtime",
    "contracts",
    "contracts/quantities",
)
#: The modules that one task passes, in their order, from the words of a person to the reply.
_WAY = (
    "tasklore/commands/ask/ask.py",
    "supervisor/operations/requests.py",
    "supervisor/service.py",
    "supervisor/understanding/rules.py",
    "supervisor/dispatch.py",
    "runtime/messaging/pull.py",
    "workers/execution/consumer.py",
    "workers/execution/job.py",
    "workers/execution/recall.py",
    "workers/execution/executor.py",
    "workers/execution/retry_decision.py",
    "workers/execution/report_publisher.py",
    "workers/execution/acknowledger.py",
    "supervisor/reports/reports.py",
    "supervisor/replies/report_texts.py",
)


def rooms() -> str:
    """Return the rooms with the imports between them; what is reached through another room is left out."""
    joined = {room: _imports(room) for room in _ROOMS}
    lines = ["flowchart TD"]
    lines += [f'  {_node(room)}["{room}/<br/>{_charter(room)}"]' for room in _ROOMS]
    for room, targets in joined.items():
        through = set().union(*(joined[one] for one in targets))
        lines += [
            f"  {_node(room)} --> {_node(target)}"
            for target in _ROOMS
            if target in targets - through
        ]
    return "\n".join(lines) + "\n"


def way() -> str:
    """Return the way of one task through its modules."""
    lines = ["flowchart LR"]
    for number, name in enumerate(_WAY):
        lines.append(f'  m{number}["{name}<br/>{_first_clause(ROOT / name)}"]')
    lines.append("  " + " --> ".join(f"m{number}" for number in range(len(_WAY))))
    return "\n".join(lines) + "\n"


def drawn() -> str:
    """Return the page with both pictures as they are now."""
    pictures = iter((rooms(), way()))
    return _BLOCK.sub(
        lambda _: f"```mermaid\n{next(pictures)}```", PAGE.read_text("utf-8"), count=2
    )


def _imports(room: str) -> set[str]:
    found = set()
    for file in modules(room):
        for node in ast.walk(tree_of(file)):
            names = (
                [one.name for one in node.names] if isinstance(node, ast.Import) else []
            )
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {one for name in names for one in _ROOMS if _lies_in(name, one)}
    return found - {room}


def _lies_in(module: str, room: str) -> bool:
    """Return whether *module* is one of *room*, by the innermost that is drawn."""
    path = module.replace(".", "/").removeprefix("tasklore/")
    innermost = max(
        (one for one in _ROOMS if f"{path}/".startswith(f"{_inside(one)}/")),
        key=len,
        default="",
    )
    return innermost == room


def _inside(room: str) -> str:
    """Return where *room* lies in the package, into which it may be a link."""
    return room.removeprefix("tasklore/")


def _node(room: str) -> str:
    return room.rpartition("/")[2]


def _charter(room: str) -> str:
    """Return what the docstring of *room* lists, as far as a picture has room."""
    words = (
        ast.get_docstring(tree_of(ROOT / room / "__init__.py")) or ""
    ).splitlines()[0]
    return words.partition(": ")[2].rstrip(".").replace('"', "'").replace("`", "")[
        :100
    ] or words.rstrip(".")


def _first_clause(file: Path) -> str:
    """Return the first clause of the docstring of *file*, as far as a picture has room."""
    words = (ast.get_docstring(tree_of(file)) or "").splitlines()[0]
    clause = re.split(r"[:;.]\s|[.]$", words, maxsplit=1)[0]
    return clause.replace('"', "'").replace("`", "")[:60]


if __name__ == "__main__":
    PAGE.write_text(drawn(), "utf-8")
