"""The folder of a story: its files, read with care, and the problems found in them.

Files outside the folder, large ones, and all but text in UTF-8 are refused.
"""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from tasklore.contracts.errors import InvalidInput

#: Bytes of one file: more than a prompt can hold, and its text still fits into one message.
LARGEST_FILE = 256 * 1024
#: Bytes of all files of a story: as one value of Valkey that is quickly sent.
LARGEST_STORY = 8 * 1024 * 1024

#: Characters of a problem; the middle of a longer one is left out.
_LONGEST = 500
_BOM = "\ufeff"
_LEADS_OUT = "it is a link out of the story's folder, which is not followed; put the file itself here"


class InvalidStory(InvalidInput):
    """A story cannot be read; `problems` are sentences with file, place and cure, `warnings` likewise."""

    def __init__(self, problems: Sequence[str], warnings: Sequence[str] = ()) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)


class StoryFolder:
    """The folder of a story, and the problems and warnings about its files.

    Raises:
        InvalidStory: there is no such folder.
    """

    def __init__(self, folder: Path | str) -> None:
        given = Path(folder).expanduser()
        if not given.is_dir():
            why = "is a file" if given.is_file() else "is not there"
            raise InvalidStory(
                [
                    f"{folder}: the folder of a story {why}; `tasklore stories example DIR` makes one"
                ]
            )
        self._label = str(folder).rstrip("/") or "/"
        self._root = given.resolve()
        self._given = given
        self._bytes = 0
        self._problems: list[tuple[str, str]] = []
        self._warnings: list[tuple[str, str]] = []

    def refuse(self, place: str, text: str) -> None:
        """Add a problem at *place*: a file, and a line or a key path in it."""
        self._problems.append((place, text))

    def warn(self, place: str, text: str) -> None:
        """Add a probable mistake at *place*."""
        self._warnings.append((place, text))

    @property
    def warnings(self) -> tuple[str, ...]:
        """All probable mistakes, by file."""
        return self._sentences(self._warnings)

    def has_problems(self, folder: str) -> bool:
        """Return whether a file in *folder* has a problem."""
        return any(
            place == folder or place.startswith(f"{folder}/")
            for place, _ in self._problems
        )

    def demand_none(self) -> None:
        """Return when there is no problem.

        Raises:
            InvalidStory: there is one.
        """
        if self._problems:
            raise InvalidStory(self._sentences(self._problems), self.warnings)

    def _sentences(self, remarks: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        ordered = sorted(remarks, key=lambda remark: remark[0].partition(":")[0])
        texts = [f"{self._label}/{place}: {text}" for place, text in ordered]
        return tuple(
            one
            if len(one) <= _LONGEST
            else f"{one[: _LONGEST // 2]} ... {one[-_LONGEST // 2 :]}"
            for one in texts
        )

    def read(self, name: str) -> str | None:
        """Return the text of the file *name*, lines ending in LF; None when it does not exist or cannot be read."""
        file = self._root / name
        if not (file.exists() or file.is_symlink()):
            return None
        try:
            real = file.resolve(strict=True)
        except (OSError, RuntimeError):
            self.refuse(
                name, "it is a link that leads nowhere; put the file itself here"
            )
            return None
        if not real.is_relative_to(self._root):
            self.refuse(name, _LEADS_OUT)
            return None
        if not real.is_file():
            self.refuse(name, "it is not a file; put a text here, or remove it")
            return None
        return self._read_text(file, name)

    def read_outside(self, file: Path) -> str | None:
        """Return the text of *file*, which lies elsewhere; None when it cannot be read."""
        return self._read_text(file, file.name)

    def _read_text(self, file: Path, name: str) -> str | None:
        try:
            with file.open("rb") as opened:
                content = opened.read(LARGEST_FILE + 1)
        except OSError as error:
            self.refuse(
                name,
                f"it cannot be read ({error.strerror or error}); fix that, or remove it",
            )
            return None
        if len(content) > LARGEST_FILE:
            self.refuse(
                name,
                f"it has more than {LARGEST_FILE // 1024} KB; split it, or shorten it",
            )
            return None
        was_full = self._bytes > LARGEST_STORY
        self._bytes += len(content)
        if self._bytes > LARGEST_STORY:
            limit = f"{LARGEST_STORY // 1024 // 1024} MB"
            if not was_full:
                self.refuse(
                    name, f"up to here the story has more than {limit}; shorten it"
                )
            return None
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            self.refuse(f"{name}:{line}", "it is not UTF-8 text; save it as UTF-8")
            return None
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            self.refuse(f"{name}:{line}", "it is not text: it has a zero byte")
            return None
        return text.removeprefix(_BOM).replace("\r\n", "\n").replace("\r", "\n")

    def names(self, folder: str = "") -> list[str]:
        """Return the paths, from the story's folder, of the files and folders in *folder*, but for hidden ones."""
        place = self._root / folder
        if not place.is_dir():
            return []
        if not place.resolve().is_relative_to(self._root):
            self.refuse(folder, _LEADS_OUT)
            return []
        found = [one.name for one in place.iterdir() if not one.name.startswith(".")]
        return [f"{folder}/{name}" if folder else name for name in sorted(found)]

    def files(
        self, folder: str, suffixes: Collection[str]
    ) -> tuple[list[str], list[str]]:
        """Return the names in *folder* of files that end in *suffixes*, in any case, and all other names there."""
        names = self.names(folder)
        files = [
            one
            for one in names
            if Path(one).suffix.lower() in suffixes and not self.is_folder(one)
        ]
        return files, [one for one in names if one not in files]

    def path(self, name: str) -> Path:
        """Return the path of the file *name*, below the folder as it was given."""
        return self._given / name

    def name_of(self, file: Path) -> str | None:
        """Return the name of *file* from the story's folder, None when it lies elsewhere; links are not followed."""
        for place, root in (
            (file.absolute(), self._given.absolute()),
            (file.parent.resolve() / file.name, self._root),
        ):
            plain = Path(os.path.normpath(place))
            if plain.is_relative_to(os.path.normpath(root)):
                return str(plain.relative_to(os.path.normpath(root)))
        return None

    def is_folder(self, name: str) -> bool:
        """Return whether *name* is a folder."""
        return (self._root / name).is_dir()
