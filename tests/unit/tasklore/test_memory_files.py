"""`tasklore memory export|import`: what they read and write here, and what they send."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.exits import FAILED, USAGE
from tasklore.commands.memory import files
from tasklore.commands.memory.files import export_documents, import_documents
from tasklore.commands.operations.problems import ApiRefused
from tasklore.contracts.errors import InvalidInput

USER = "ana"
FOOD = "resource_user_food_prefs"


class Api:
    """Answers as the operations do, and keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
        self.poured: list[tuple[str, str]] = []
        self.refuses: Callable[[str], str | None] = lambda _file: None
        self.exported = [{"resource": FOOD, "revision": 1, "content": '{"a": 1}\r\n'}]

    def send_line(
        self, verb: str, given: Mapping[str, Any], line: Mapping[str, Any]
    ) -> Any:
        self.sent.append((verb, given, line))
        error = self.refuses(line["file"])
        one: dict[str, Any] = {"file": line["file"], "error": error}
        one |= {"plan_id": "p", "revisions": {FOOD: 1}}
        return {"user": USER, "files": [one]}

    def pour_lines(
        self, verb: str, given: Mapping[str, Any], sink: Callable[[bytes], object]
    ) -> None:
        self.poured.append((given["user"], given["scope"]))
        body = b"".join(json.dumps(one).encode() + b"\n" for one in self.exported)
        sink(body[:7])
        sink(body[7:])


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api()
    monkeypatch.setattr(files, "send_line", made.send_line)
    monkeypatch.setattr(files, "pour_lines", made.pour_lines)
    return made


def names_in(folder: Path) -> list[str]:
    """Return the names of the files in *folder*."""
    return sorted(one.name for one in folder.iterdir())


def test_documents_are_written_to_the_byte(
    api: Api, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A file each in a new folder, or one on stdout; a server chooses no other folder."""
    export_documents(USER, tmp_path / "new" / "folder", None)
    written = tmp_path / "new" / "folder" / f"{FOOD}.json"
    assert written.read_bytes() == b'{"a": 1}\r\n'
    capfdbinary.readouterr()
    export_documents(USER, Path("-"), "food")
    assert capfdbinary.readouterr().out == b'{"a": 1}\r\n'
    api.exported = [{"resource": "../evil", "revision": 1, "content": "{}"}]
    export_documents(USER, tmp_path / "in", None)
    assert names_in(tmp_path / "in") == ["evil.json"]
    with pytest.raises(InvalidInput, match="--resource"):
        export_documents(USER, Path("-"), None)
    with pytest.raises(InvalidInput, match="/proc/none"):
        export_documents(USER, Path("/proc/none"), None)


def test_each_names_the_owner_in_their_scope(api: Api, tmp_path: Path) -> None:
    """As the operations have it: `x` of the scope `agent`, and never `agent/x`."""
    export_documents("x", tmp_path / "out", None, scope="agent")
    document = tmp_path / "out" / f"{FOOD}.json"
    import_documents("x", [document], None, scope="agent", is_json=True)
    asked = [(given["user"], given["scope"]) for _, given, _ in api.sent]
    assert [*api.poured, *asked] == [("x", "agent")] * 2


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["folder", "no text"])
def test_a_file_that_cannot_be_read_keeps_no_other_from_being_sent(
    content: bytes | None,
    api: Api,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is complained about by its name, and the command ends with 2."""
    bad = tmp_path / "bad.json"
    good = tmp_path / "good.json"
    good.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n')
    if content is None:
        bad.mkdir()
    else:
        bad.write_bytes(content)
    assert import_documents(USER, [bad, good], None, is_json=True) == USAGE
    out, err = capsys.readouterr()
    assert [one["error"] is None for one in json.loads(out)["files"]] == [False, True]
    assert err.startswith(f"tasklore: {bad}: ")
    assert [line["content"] for _, _, line in api.sent] == ['\ufeff{"a": 1}\r\n']


def test_what_the_api_refuses_of_a_file_is_that_files_fault(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One too large, for example; a key that may not is the end."""
    file = tmp_path / "a.json"
    file.write_text("{}")
    status = 413

    def refuse(*_: object) -> Any:
        raise ApiRefused("no", FAILED, {"status": status})

    monkeypatch.setattr(files, "send_line", refuse)
    assert import_documents(USER, [file], None, is_json=False) == USAGE
    status = 403
    with pytest.raises(ApiRefused):
        import_documents(USER, [file], None, is_json=False)
    with pytest.raises(InvalidInput, match="--resource"):
        import_documents(USER, [file, file], "food", is_json=False)
