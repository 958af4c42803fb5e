"""The analysis as a file: written whole or not at all, in a form that people read."""

import json
import os
from pathlib import Path

import pytest
from pydantic import JsonValue

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.stories.analysis_file import read_file, write_file

EXAMPLE = Path(__file__).parents[1] / "tasklore" / "analysis" / "example.json"


def document_of(number: int = 120, word: str = "Mädchen 😀 {x}") -> AnalysisDocument:
    """Return an analysis in which *word* stands."""
    meta: dict[str, JsonValue] = {
        "resp_num": number,
        "updated": "2026-03-01T10:00:00",
        "status": "fresh",
    }
    meta |= {"agents_run": 0, "agents_ok": 0, "agents_fail": 0, "agents_skip": 0}
    return read_document(
        {
            "version": "1.1",
            "meta": meta,
            "immediate": {"own": {"said": word, "none": []}},
        }
    )


def test_the_example_is_written_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "state" / "agent_analysis.json"
    write_file(path, read_file(EXAMPLE))

    assert json.loads(path.read_bytes()) == json.loads(EXAMPLE.read_bytes())
    assert list(json.loads(path.read_bytes())) == list(json.loads(EXAMPLE.read_bytes()))
    assert read_file(path).minified() == read_file(EXAMPLE).minified()
    assert (
        b'"pct": 94,\n      "saved": 22685\n    },\n    "roi": 42.5\n  }\n}\n'
        in path.read_bytes()
    )


def test_a_file_is_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails on the way leaves the old one as it was, and nothing beside it."""
    path = tmp_path / "a.json"
    write_file(path, document_of(1))

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(
        InvalidInput,
        match=r"a.json' cannot be written \(No space left on device\); free that place",
    ):
        write_file(path, document_of(2))
    monkeypatch.undo()
    assert read_file(path) == document_of(1)
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]

    write_file(path, document_of(2))
    assert read_file(path) == document_of(2)
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut leaves an empty file under the name of the old one."""
    path = tmp_path / "a.json"
    seen: list[bool] = []
    real = os.fsync

    def look(number: int) -> None:
        seen.append(path.exists())
        real(number)

    monkeypatch.setattr(os, "fsync", look)
    write_file(path, document_of())

    assert seen[0] is False
    assert len(seen) == 2


def test_a_link_and_the_rights_of_a_file_stay(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "a.json"
    link = tmp_path / "link.json"
    write_file(real, document_of(1))
    real.chmod(0o640)
    link.symlink_to(real)
    write_file(link, document_of(2))

    assert link.is_symlink()
    assert read_file(real) == document_of(2)
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"# Markdown", "this is not valid JSON"),
        (b'{"version":"1.1"}', "meta: is needed"),
        (b"[" * 9_000_000, "more than 8,388,608 bytes"),
    ],
)
def test_a_file_that_is_no_document_is_named(
    tmp_path: Path, raw: bytes, said: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match=r"odd\.json'") as raised:
        read_file(path)
    assert said in str(raised.value)


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """For reading and for writing."""
    with pytest.raises(
        InvalidInput,
        match=r"nothing.json' cannot be read \(No such file or directory\)",
    ):
        read_file(tmp_path / "nothing.json")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match=r"cannot be written \("):
        write_file(tmp_path / "file" / "a.json", document_of())
