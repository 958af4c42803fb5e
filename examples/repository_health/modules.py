"""Which file a dotted name means, in a folder that may hold several packages, scripts and a `src`."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

_INIT = "__init__"


def package_of(root: Path) -> str:
    """Return the dotted name of the folder *root* when it is a package itself, "" when it is none."""
    parts: list[str] = []
    while root.joinpath(f"{_INIT}.py").is_file() and root.name:
        parts.insert(0, root.name)
        root = root.parent
    return ".".join(parts)


class Modules:
    """The modules of a folder by name; *files* are their paths relative to it, *package* its own name as a package."""

    def __init__(self, files: Sequence[str], package: str = "") -> None:
        self._files = frozenset(files)
        self._package = package
        self._packages = {
            str(PurePosixPath(file).parent)
            for file in files
            if PurePosixPath(file).stem == _INIT
        }
        self._named: dict[str, list[str]] = defaultdict(list)
        for file in files:
            for name in self._names_of(file):
                self._named[name].append(file)

    def find(
        self, importer: str, base: str, name: str, *, is_relative: bool
    ) -> str | None:
        """Return the file that `from base import name` means in *importer*, None when it is none of the folder.

        With *is_relative* the base is a folder's path as `base_of` gives it. A name of several files means the one
        beside the importer, and none otherwise.
        """
        if is_relative:
            inner = f"{base}/{name}" if base != "." else name
            return self._file_at(inner) or self._file_at(base)
        parts = [*filter(None, base.split(".")), *filter(None, [name])]
        while parts:
            found = self._nearest(importer, self._named.get(".".join(parts), []))
            if found is not None:
                return found
            parts.pop()
        return None

    def base_of(self, importer: str, level: int, module: str) -> str:
        """Return the path, without its ending, that *level* dots and *module* mean in *importer*."""
        folder = PurePosixPath(importer)
        for _ in range(level):
            folder = folder.parent
        return str(folder.joinpath(*filter(None, module.split("."))))

    def _file_at(self, path: str) -> str | None:
        prefix = "" if path == "." else f"{path}/"
        return next(
            (
                file
                for file in (f"{path}.py", f"{prefix}{_INIT}.py")
                if file in self._files
            ),
            None,
        )

    def _names_of(self, file: str) -> set[str]:
        """Return the names of *file*: from the folder itself, and from where its outermost package lies."""
        path = PurePosixPath(file).with_suffix("")
        parts = path.parts[:-1] if path.name == _INIT else path.parts
        top = len(path.parts) - 1
        while top and "/".join(path.parts[:top]) in self._packages:
            top -= 1
        names = {".".join(parts[begin:]) for begin in (0, top) if parts[begin:]}
        return names | {".".join([self._package, *parts])} if self._package else names

    def _nearest(self, importer: str, files: Sequence[str]) -> str | None:
        if len(files) == 1:
            return files[0]
        folder = PurePosixPath(importer).parent
        beside = [file for file in files if PurePosixPath(file).parent == folder]
        return beside[0] if len(beside) == 1 else None
