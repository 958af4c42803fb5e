"""What may be frozen: no fault of ours."""

import json
from pathlib import Path

import pytest

from tests.golden import frozen


def test_a_fault_of_ours_is_not_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place is said, and the file stays as it was."""
    monkeypatch.setattr(frozen, "FOLDER", tmp_path)
    shown = [{"command": "notes list --json", "stdout": {"status": 500}}]

    frozen.write("notes.json", {"shown": []})
    with pytest.raises(ValueError, match=r"status 500 at notes\.json shown 0 stdout"):
        frozen.write("notes.json", {"shown": shown})

    assert json.loads((tmp_path / "notes.json").read_text("utf-8")) == {"shown": []}
