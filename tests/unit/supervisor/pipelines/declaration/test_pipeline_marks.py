"""Fingerprints of files below a root, and descriptions of their changes."""

import os
import threading
from pathlib import Path

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.declaration import marks
from tasklore.supervisor.pipelines.declaration.marks import (
    DESIGN,
    STANDARD,
    FingerprintBudget,
    changes,
    file_marks,
    summarise,
    tag_marks,
    without_times,
)


def write(root: Path, **files: str) -> None:
    """Write *files* below *root*; `__` in a name is a folder."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_matching_files_are_marked_once(tmp_path: Path) -> None:
    write(tmp_path, a="1", src__b="2", src__deep__c="3", docs__d="4")
    found = file_marks(tmp_path, ["src/**/*.py", "src/b.py", "a.*"])
    assert sorted(found) == ["f:a.py", "f:src/b.py", "f:src/deep/c.py"]


def test_a_change_is_new_gone_or_changed(tmp_path: Path) -> None:
    write(tmp_path, a="1", b="2", c="3")
    before = file_marks(tmp_path, ["*.py"])
    write(tmp_path, a="one", d="4")
    (tmp_path / "b.py").unlink()
    after = file_marks(tmp_path, ["*.py"], before)
    assert changes(before, after) == [
        "file 'a.py' changed",
        "file 'b.py' is gone",
        "file 'd.py' is new",
    ]


def test_a_file_of_the_same_size_with_another_content_changed(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    before = file_marks(tmp_path, ["*.py"])
    write(tmp_path, a="2")
    assert changes(before, file_marks(tmp_path, ["*.py"], before)) == [
        "file 'a.py' changed"
    ]


def test_a_rewritten_file_with_the_same_content_was_touched(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    before = file_marks(tmp_path, ["*.py"])
    os.utime(tmp_path / "a.py", ns=(1, 1))
    after = file_marks(tmp_path, ["*.py"], before)
    assert changes(before, after) == ["file 'a.py' was touched"]
    assert changes(without_times(before), after) == []
    write(tmp_path, a="2")
    assert changes(without_times(before), file_marks(tmp_path, ["*.py"])) == [
        "file 'a.py' changed"
    ]
    assert without_times({"f:": "", "s:style": "s1"}) == {"f:": "", "s:style": "s1"}


def test_a_file_of_known_size_and_time_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    [mark] = file_marks(tmp_path, ["*.py"]).values()
    known = {"f:a.py": mark.rpartition(":")[0] + ":as known"}
    assert file_marks(tmp_path, ["*.py"], known) == known


def test_links_to_files_outside_are_skipped(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, a="1")
    write(tmp_path, outside="2", folder__x="3")
    (root / "inside.py").symlink_to(root / "a.py")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    (root / "out").symlink_to(tmp_path / "folder")
    (root / "nowhere.py").symlink_to(root / "none.py")
    assert sorted(file_marks(root, ["**/*.py"])) == ["f:a.py", "f:inside.py"]


@pytest.mark.parametrize("glob", ["../*.py", "/etc/*", "a/../../b", ""])
def test_a_pattern_that_leads_out_is_refused(tmp_path: Path, glob: str) -> None:
    with pytest.raises(InvalidInput, match=r"root|pattern"):
        file_marks(tmp_path, [glob])


def test_too_many_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, **{f"f{number}": "" for number in range(5)})
    with pytest.raises(InvalidInput, match="FINGERPRINT_FILES"):
        file_marks(tmp_path, ["*.py"], budget=FingerprintBudget(files=4))
    monkeypatch.setattr(marks, "MOST_PASSED", 4)
    with pytest.raises(InvalidInput, match="nearer root"):
        file_marks(tmp_path, ["*.txt"])


def test_too_many_bytes_or_seconds_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "sparse.py").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InvalidInput, match="FINGERPRINT_MAX_BYTES"):
        file_marks(tmp_path, ["*.py"], budget=FingerprintBudget(size=2**21))
    stat = (tmp_path / "sparse.py").stat()
    known = {"f:sparse.py": f"{stat.st_size}:{stat.st_mtime_ns}:known"}
    assert file_marks(tmp_path, ["*.py"], known, FingerprintBudget(size=2**21)) == known
    with pytest.raises(InvalidInput, match="FINGERPRINT_S"):
        file_marks(tmp_path, ["*.py"], budget=FingerprintBudget(seconds=-1))


def test_names_in_other_encodings_stay_distinct(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("1")
    (tmp_path / "two\nlines.py").write_text("2")
    assert sorted(file_marks(tmp_path, ["*.py"])) == [
        "f:caf\\xe9.py",
        "f:two\nlines.py",
    ]


def test_a_folder_replaced_by_a_link_meanwhile_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    write(home, src__a="1")
    write(tmp_path, out__a="2")
    opened = os.open

    def swap(path: Path, flags: int) -> int:
        (home / "src").rename(home / "was")
        (home / "src").symlink_to(tmp_path / "out")
        return opened(path, flags)

    monkeypatch.setattr(marks.os, "open", swap)
    assert file_marks(home, ["src/*.py"]) == {}


def test_folders_of_version_control_are_skipped_unless_named(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    (tmp_path / ".git").mkdir()
    write(tmp_path / ".git", hook="2")
    assert sorted(file_marks(tmp_path, ["**"])) == ["f:a.py"]
    assert sorted(file_marks(tmp_path, [".git/*.py"])) == ["f:.git/hook.py"]
    assert file_marks(tmp_path / "none", ["**/*.py"]) == {}


def test_tags_have_marks_beside_files() -> None:
    before = (
        tag_marks(STANDARD, {"style": "s1"})
        | tag_marks(DESIGN, {"style": ""})
        | {"f:": ""}
    )
    after = tag_marks(STANDARD, {"style": "s2"}) | tag_marks(DESIGN, {"style": "d1"})
    assert changes(before, after) == [
        "design 'style' changed",
        "standard 'style' changed",
    ]
    assert changes({"f:": ""}, {}) == []


def test_many_changes_are_summarised() -> None:
    assert summarise(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert summarise(["a"]) == "a"


def test_a_pipe_is_skipped_without_waiting(tmp_path: Path) -> None:
    write(tmp_path, a="1")
    os.mkfifo(tmp_path / "b.py")
    found: list[dict[str, str]] = []
    looking = threading.Thread(
        target=lambda: found.append(file_marks(tmp_path, ["*.py"])), daemon=True
    )
    looking.start()
    looking.join(30)
    assert [sorted(marks) for marks in found] == [["f:a.py"]]


@pytest.mark.parametrize("place", ["inside", "elsewhere"])
def test_macos_tells_where_an_open_file_lies(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no /proc: a file that became a link while it was opened is found out by F_GETPATH."""
    home = tmp_path / "home"
    write(home, a="1")
    lies_in = home if place == "inside" else tmp_path / "elsewhere"
    write(lies_in, a="1")
    told = os.fsencode(lies_in / "a.py")
    asked: list[int] = []

    def tell(_descriptor: int, command: int, room: bytes) -> bytes:
        asked.append(command)
        return told.ljust(len(room), b"\0")

    monkeypatch.setattr(marks.sys, "platform", "darwin")
    monkeypatch.setattr(marks.fcntl, "F_GETPATH", 50, raising=False)
    monkeypatch.setattr(marks.fcntl, "fcntl", tell)

    found = file_marks(home, ["*.py"])

    assert asked == [50]
    assert ("f:a.py" in found) == (place == "inside")


def test_linked_folders_outside_are_skipped_however_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    outside = tmp_path / "outside"
    write(home, a="1", src__b="2")
    write(outside, c="3", deep__d="4")
    (home / "link").symlink_to(outside)
    (home / "src" / "up").symlink_to(outside)
    (home / "same").symlink_to(home / "src")
    (home / "circle").symlink_to(home / "circle")
    (home / "circle.py").symlink_to(home / "circle.py")
    names = (
        "link/*.py",
        "link/c.py",
        "link/deep/*.py",
        "src/up/*.py",
        "src/up/deep/d.py",
        "same/up/*.py",
    )
    globs = ["**/*.py", *names, "circle/*.py"]
    for glob in globs[1:]:
        assert file_marks(home, [glob]) == {}
    assert sorted(file_marks(home, globs)) == ["f:a.py", "f:src/b.py"]
    assert sorted(file_marks(home, ["same/*.py"])) == ["f:same/b.py"]
    (tmp_path / "entrance").symlink_to(home)
    assert sorted(file_marks(tmp_path / "entrance", ["src/*.py"])) == ["f:src/b.py"]
