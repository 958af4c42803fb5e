"""The example that turns analyses in Markdown into documents."""

import json
from pathlib import Path

import pytest

from examples.migrate_analyses.__main__ import migrate
from tasklore.contracts.analysis.document import read_document, upcast
from tasklore.contracts.errors import InvalidInput

HERE = Path(__file__).parent
BODY = json.loads((HERE / "example.json").read_text("utf-8"))


def test_the_markdown_form_of_the_example_becomes_the_example(tmp_path: Path) -> None:
    file = tmp_path / "analysis.md"
    file.write_bytes((HERE / "example.md").read_bytes())
    assert migrate(file) == []
    assert (
        json.loads((tmp_path / "analysis.json").read_bytes())
        == upcast(read_document(BODY)).body()
    )
    assert file.read_bytes() == (HERE / "example.md").read_bytes()
    with pytest.raises(InvalidInput, match=r"analysis\.json is there already"):
        migrate(file)
    assert migrate(file, force=True) == []
    with pytest.raises(InvalidInput, match="cannot be read"):
        migrate(tmp_path / "none.md")


def test_a_file_without_a_response_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.md").write_text("# Notes\n\n- buy milk\n", "utf-8")
    with pytest.raises(
        InvalidInput, match=r"r\.md:3 was not read(?s:.*)meta\.resp_num: is needed"
    ):
        migrate(tmp_path / "r.md")
    assert not (tmp_path / "r.json").exists()
