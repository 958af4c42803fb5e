"""The example that turns analyses in Markdown into documents."""

import json
from pathlib import Path

import pytest

from contracts.analysis.document import read_document, upcast
from contracts.errors import InvalidInput
from examples.migrate_analyses.__main__ import migrate
from examples.migrate_analyses.markdown import read_markdown

HERE = Path(__file__).parent
BODY = json.loads((HERE / "example.json").read_text("utf-8"))
NOW = "2026-01-02T03:04:05+00:00"


def test_the_markdown_form_of_the_example_becomes_the_example(tmp_path: Path) -> None:
    file = tmp_path / "analysis.md"
    file.write_bytes((HERE / "example.md").read_bytes())

    assert migrate(file) == []
    assert json.loads((tmp_path / "analysis.json").read_bytes()) == upcast(read_document(BODY)).body()
    assert file.read_bytes() == (HERE / "example.md").read_bytes()
    with pytest.raises(InvalidInput, match=r"analysis\.json is there already"):
        migrate(file)
    assert migrate(file, force=True) == []
    with pytest.raises(InvalidInput, match="cannot be read"):
        migrate(tmp_path / "none.md")


def test_unreadable_lines_are_reported(tmp_path: Path) -> None:
    lines = [
        *("# Response 7", "", "Some prose.", "", "## Meta", "- Response number: 7", "- Colour: green", ""),
        *("## Background", "### Knowledge", "- Facts:", "  - Cafe: It is closed", "    - Confidence: high"),
        *("    until spring", "  - Nothing but a name", "", "### Weather", "- Sky: grey", ""),
        *("### Relationships", "- Duration: long", "- Status: failed"),
    ]
    (tmp_path / "r7.md").write_text("\n".join(lines), "utf-8")

    told = [int(line.split(" ")[0].rpartition(":")[2]) for line in migrate(tmp_path / "r7.md")]

    document = read_document((tmp_path / "r7.json").read_bytes())
    assert told == [3, 7, 14, 15, 17, 18, 21]
    assert document.background.knowledge is not None
    assert [fact.model_dump() for fact in document.background.knowledge.facts] == [
        {"subj": "Cafe", "fact": "It is closed", "conf": "high"}
    ]
    assert (document.meta.agents_run, document.meta.agents_failed, document.meta.status) == (2, 1, "partial")


def test_a_file_without_a_response_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.md").write_text("# Notes\n\n- buy milk\n", "utf-8")

    with pytest.raises(InvalidInput, match=r"r\.md:3 was not read(?s:.*)meta\.resp_num: is needed"):
        migrate(tmp_path / "r.md")
    assert not (tmp_path / "r.json").exists()


def test_parts_may_be_headings_or_entries() -> None:
    entries = (
        "## Background\n### Response analysis\n- Scene:\n  - Type: action\n- Characters:\n  - In scene:\n    - Ann\n"
    )
    headings = "## Background\n### resp_analyzer\n#### Scene\n- Type: action\n#### chars\n##### In scene\n- Ann\n"

    assert read_markdown(entries, updated=NOW) == read_markdown(headings, updated=NOW)
    assert read_markdown(headings, updated=NOW)[1] == []
