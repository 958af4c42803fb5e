"""The example that looks after a repository, over a real folder, by the commands that its own messages name."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.system import System, running_system

HEALTH = (
    Path(__file__).resolve().parents[2]
    / "examples"
    / "repository_health"
    / "health.toml"
)

#: A package whose two modules need each other, and a script; a link that leads out, and what tools left.
TREE = {
    "shop/__init__.py": '"""A shop."""\n',
    "shop/cart.py": '"""The cart."""\n\nfrom shop import prices\n\n\ndef total():\n    return prices.of(1)\n',
    "shop/prices.py": '"""Sum."""\nfrom shop.cart import total\n\n\ndef of(count):\n    """Say."""\n    return count\n',
    "broken.py": "def\n",
    "node_modules/left.py": "import shop.cart\n",
}

FIRST = ["context_query", "imports", "sizes"]
LAST = ["standards_check", "docstrings", "leftovers", "report"]

REPORT = """\
# Health of {folder}: 84 of 100

4 files: Python 16 lines.
3 Python modules, 2 imports between them.

| area             | found                   | limit     | sound |
|------------------|-------------------------|-----------|------:|
| unreadable files | 1                       | 0         |  75 % |
| import cycles    | 1 (2 modules)           | at most 0 |  33 % |
| long modules     | 0 of 3                  | 400 lines | 100 % |
| long functions   | 0 of 2                  | 60 lines  | 100 % |
| docstrings       | 80 %                    | 80 %      | 100 % |
| leftovers        | 0 marks, 0 of debugging | at most 0 | 100 % |

## Standards

All are kept.

## Where to begin

- `broken.py:1` cannot be read: line 1: invalid syntax
- `shop/cart.py:1` imports in a circle: shop/cart.py > shop/prices.py > shop/cart.py
"""


class Shop:
    """A repository, and the commands that are given beside it."""

    def __init__(self, system: System) -> None:
        folder = system.folder
        self.folder = folder / "repository"
        for name, text in TREE.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        (self.folder / "linked").symlink_to(folder)
        self.evidence = folder / "evidence"
        self._system = system

    def command(self, *words: str, code: int = 0) -> Any:
        """Return what a command of ours prints as JSON."""
        done = self._system.command(*words, "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def text(self, *words: str) -> str:
        """Return what a command of ours prints for people."""
        done = self._system.command(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Give a repository, and a system whose workers look after one."""
    folder = tmp_path_factory.mktemp("health")
    with running_system(folder) as system:
        shop = Shop(system)
        worker = system.worker("examples.repository_health")
        system.supervisor(evidence_dir=shop.evidence).ready()
        worker.ready()
        yield shop


def by_status(outcome: Any, status: str) -> list[str]:
    """Return the phases of a run that ended so, in the pipeline's order."""
    return [phase["phase"] for phase in outcome["phases"] if phase["status"] == status]


def runs(outcome: Any) -> dict[str, int]:
    """Return how often each phase was dispatched."""
    return {phase["phase"]: phase["run"] for phase in outcome["phases"]}


def test_it_fails_without_a_standard_and_goes_on_with_one(shop: Shop) -> None:
    """By the command that the failure names: nothing is computed twice, and the report is exact."""
    failed = shop.command(
        "pipelines",
        "run",
        str(HEALTH),
        "--input",
        f"folder={shop.folder}",
        "--session",
        "s1",
        code=1,
    )
    assert (failed["state"], failed["result"]) == ("failed", None)
    assert by_status(failed, "done") == FIRST
    assert by_status(failed, "failed") == ["standards_check"]
    assert by_status(failed, "pending") == LAST[1:]
    assert (
        json.loads((shop.evidence / "s1-failed.json").read_text())["session_id"] == "s1"
    )

    error = next(
        phase["error"] for phase in failed["phases"] if phase["status"] == "failed"
    )
    cure = re.search(r"tasklore (projects standard .*)", error)
    assert cure is not None
    assert len(shop.command("--direct", "dead-letters", "list")["letters"]) == 1
    shop.text(*shlex.split(cure[1]))
    completed = shop.command("pipelines", "resume", "s1")
    assert shop.command("--direct", "dead-letters", "list")["letters"] == []

    assert (completed["state"], by_status(completed, "done")) == (
        "completed",
        FIRST + LAST,
    )
    assert runs(completed) == dict.fromkeys(FIRST, 1) | {
        "standards_check": 2
    } | dict.fromkeys(LAST[1:], 1)
    assert completed["result"] == REPORT.format(folder=shop.folder)
    # By every phase that reads an entry; four were there before the resumption.
    assert completed["stats"]["total_hits"] == 4 + 2 + 2 + 2 + 6
    assert completed["stats"]["total_saved_time_ms"] == sum(
        phase["saved_ms"] for phase in completed["phases"]
    )
    assert shop.command("--direct", "sessions", "list")["sessions"] == []
