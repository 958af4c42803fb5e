"""The files of a story's folder, read with care: nothing outside of it, nothing too large, text in UTF-8 alone."""

import os
from collections.abc import Collection
from pathlib import Path

from tasklore.story.problems import Findings, InvalidStory

#: Bytes of one file: more than a prompt can hold, and its text still fits into one message.
LARGEST_FILE = 256 * 1024
#: Bytes of all files that are read of a story: as one value of Valkey that is quickly sent.
LARGEST_STORY = 8 * 1024 * 1024

_BOM = "\ufeff"


class Texts:
    """Reads the files of the story in *folder*; what cannot be read is noted in `findings`.

    Raises:
        InvalidStory: there is no such folder.
    """

    def __init__(self, folder: Path | str) -> None:
        self.findings = Findings(str(folder).rstrip("/") or "/")
        given = Path(folder).expanduser()
        if not given.is_dir():
            why = "is a file" if given.is_file() else "is not there"
            raise InvalidStory([f"{folder}: the folder of a story {why}; `tasklore story example DIR` makes one"])
        self._root = given.resolve()
        self._given = given
        self._bytes = 0
        self._is_full = False

    def read(self, name: str) -> str | None:
        """Return the text of the file *name*, lines ending in LF; None when it is not there or cannot be read."""
        file = self._root / name
        if not (file.exists() or file.is_symlink()):
            return None
        why = self._refusal(file)
        if why is not None:
            self.findings.refuse(name, None, why)
            return None
        try:
            with file.open("rb") as opened:
                content = opened.read(LARGEST_FILE + 1)
            return self._decoded(name, content)
        except OSError as error:
            self.findings.refuse(name, None, f"it cannot be read ({error.strerror or error}); mend that, or remove it")
            return None

    def names(self, folder: str = "") -> list[str]:
        """Return the paths, from the story's folder, of what lies in *folder* and is not hidden, in order."""
        place = self._root / folder
        if not place.is_dir():
            return []
        if not place.resolve().is_relative_to(self._root):
            self.findings.refuse(folder, None, _LEADS_OUT)
            return []
        found = [one.name for one in place.iterdir() if not one.name.startswith(".")]
        return [f"{folder}/{name}" if folder else name for name in sorted(found)]

    def files(self, folder: str, suffixes: Collection[str]) -> tuple[list[str], list[str]]:
        """Return the names in *folder* of files that end in *suffixes*, in any case, and of everything else there."""
        names = self.names(folder)
        wanted = [one for one in names if Path(one).suffix.lower() in suffixes and not (self._root / one).is_dir()]
        return wanted, [one for one in names if one not in wanted]

    def path(self, name: str) -> Path:
        """Return where the file *name* is, below the folder as it was given."""
        return self._given / name

    def name_of(self, file: Path) -> str | None:
        """Return the name of *file* from the story's folder, None when it lies elsewhere; links are not followed."""
        for place, root in ((file.absolute(), self._given.absolute()), (file.parent.resolve() / file.name, self._root)):
            plain = Path(os.path.normpath(place))
            if plain.is_relative_to(os.path.normpath(root)):
                return str(plain.relative_to(os.path.normpath(root)))
        return None

    def is_folder(self, name: str) -> bool:
        """Return whether *name* is a folder."""
        return (self._root / name).is_dir()

    def _refusal(self, file: Path) -> str | None:
        """Return why *file* is not even opened, None when it can be."""
        try:
            real = file.resolve(strict=True)
        except (OSError, RuntimeError):
            return "it is a link that leads nowhere; put the file itself here"
        if not real.is_relative_to(self._root):
            return _LEADS_OUT
        return None if real.is_file() else "it is no file; put a text here, or remove it"

    def _decoded(self, name: str, content: bytes) -> str | None:
        if len(content) > LARGEST_FILE:
            self.findings.refuse(name, None, f"it has more than {LARGEST_FILE // 1024} KB; split it, or shorten it")
            return None
        self._bytes += len(content)
        if self._bytes > LARGEST_STORY:
            if not self._is_full:
                self.findings.refuse(
                    name, None, f"up to here the story has more than {LARGEST_STORY // 1024 // 1024} MB; shorten it"
                )
            self._is_full = True
            return None
        return text_of(content, name, self.findings)


_LEADS_OUT = "it is a link out of the story's folder, which is not followed; put the file itself here"


def text_of(content: bytes, name: str, findings: Findings) -> str | None:
    """Return *content* as text, lines ending in LF, without a byte order mark; None, and noted, when it is none."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        findings.refuse(name, line, "it is no text in UTF-8; save it as such")
        return None
    if "\0" in text:
        findings.refuse(name, text.count("\n", 0, text.index("\0")) + 1, "it is no text: it has a zero byte")
        return None
    return text.removeprefix(_BOM).replace("\r\n", "\n").replace("\r", "\n")
