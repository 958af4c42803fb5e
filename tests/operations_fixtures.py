"""The command line with the operations of a small document."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasklore.__main__ import main
from tasklore.commands import app
from tasklore.commands.operations import entries
from tests.operations_document import MANIFEST


@pytest.fixture(autouse=True)
def own_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the operations of the document, in an empty directory."""
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(MANIFEST))
    monkeypatch.setattr(entries, "FILE", file)
    for noun in ("schedules", "requests", "results"):
        monkeypatch.setitem(app.GROUPS, noun, f"See {noun}.")
    monkeypatch.setattr(
        app, "WRITTEN", app.WRITTEN - {"schedules", "requests", "results"}
    )
    monkeypatch.chdir(tmp_path)
    entries.load_manifest.cache_clear()
    yield
    entries.load_manifest.cache_clear()


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that runs a command and returns its exit code."""

    def run(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["tasklore", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return end.value.code

    return run
