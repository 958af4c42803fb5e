"""The example that turns memories in Markdown into documents."""

import json
from pathlib import Path

import pytest

from examples.migrate_memories.__main__ import list_files, migrate
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.files import json_files
from tasklore.memory.documents.kinds import Kinds

FOOD = "resource_user_food_prefs"
OLDER = "# Food\n\n## Likes\n- Pasta (added 2025-12-01)\n- Sushi on Fridays\n\n## Words\nIt depends.\n"


@pytest.fixture
def kinds() -> Kinds:
    return Kinds.load()


def test_a_memory_becomes_a_document_that_an_import_takes(
    tmp_path: Path, kinds: Kinds
) -> None:
    """Named by its metadata; the original stays, and what was not understood is listed and kept."""
    file = tmp_path / f"{FOOD}.md"
    file.write_text(OLDER, "utf-8")
    (line,) = migrate(file, kinds)
    assert line.startswith(f"{file}:8 is kept at food.other as it is written")
    document = json_files.read((tmp_path / f"{FOOD}.json").read_bytes())
    assert document.body["_metadata"]["resource_id"] == FOOD  # type: ignore[index, call-overload] # an object
    shown = json.dumps(document.body)
    assert all(word in shown for word in ("Pasta", "Sushi on Fridays", "It depends."))
    assert file.read_text("utf-8") == OLDER


def test_a_document_that_is_there_is_not_written_over(
    tmp_path: Path, kinds: Kinds
) -> None:
    """Unless it is to be."""
    file = tmp_path / f"{FOOD}.md"
    file.write_text(OLDER, "utf-8")
    migrate(file, kinds)
    with pytest.raises(InvalidInput, match=rf"{FOOD}\.json is there already"):
        migrate(file, kinds)
    migrate(file, kinds, force=True)


def test_what_cannot_be_read_is_named(tmp_path: Path, kinds: Kinds) -> None:
    """A file that is no text, and a folder without any."""
    with pytest.raises(InvalidInput, match=str(tmp_path)):
        list_files(tmp_path)
    with pytest.raises(InvalidInput, match="/nowhere"):
        list_files(Path("/nowhere"))
    file = tmp_path / f"{FOOD}.md"
    file.write_bytes(b"\xff\xfe")
    assert list_files(tmp_path) == [file]
    with pytest.raises(InvalidInput, match="cannot be read"):
        migrate(file, kinds)
