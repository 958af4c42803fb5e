"""The example that turns analyses in Markdown into documents."""

import json
import re
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


MARKDOWN = (HERE / "example.md").read_text("utf-8")
DIALECTS = {
    "names in bold": re.sub(r"(?m)^(\s*- )([^:\n]+):", r"\1**\2**:", MARKDOWN),
    "lines in bold": re.sub(r"(?m)^- ([^:\n]+): (.+)$", r"**\1**: \2\n", MARKDOWN),
    "colons in bold": re.sub(r"(?m)^- ([^:\n]+): (.+)$", r"__\1:__ \2\n", MARKDOWN),
    "stars and signs": re.sub(r"(?m)^(#+) ", "\\1 \u2728 ", MARKDOWN).replace(
        "- ", "* "
    ),
    "keys of JSON": MARKDOWN.replace("Response number:", "resp_num:").replace(
        "Duration:", "dur:"
    ),
    "a block of JSON": f"# Analysis\n\n```json\n{json.dumps(BODY, indent=2)}\n```\n",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_of_the_example_becomes_the_example(
    dialect: str, tmp_path: Path
) -> None:
    file = tmp_path / "analysis.md"
    file.write_text(DIALECTS[dialect], "utf-8")
    assert migrate(file) == []
    assert (
        json.loads((tmp_path / "analysis.json").read_bytes())
        == upcast(read_document(BODY)).body()
    )


def test_what_stands_beside_a_block_of_json_is_listed(tmp_path: Path) -> None:
    file = tmp_path / "analysis.md"
    file.write_text(
        f"# A\n\n```json\n{json.dumps(BODY)}\n```\n\nWritten late.\n", "utf-8"
    )
    assert migrate(file) == [
        f"{file}:7 was not read (it stands beside the document): Written late."
    ]
