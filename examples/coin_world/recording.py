"""A run kept as a file while it goes; `replaying` runs it again.

A line of JSON each: what the world began with, then for every step what was chosen and a hash of the world it made,
and last that it ended. Each line holds a seal over itself and all before it, so that no line can be changed, moved or
left out of the middle unseen.
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from examples.coin_world.world import Choice, Plan, World
from tasklore.contracts.errors import InvalidInput

#: Of the form of the file, and of the rules of the world: with other rules, other things come of the same choices.
VERSION = 1

#: What the first line of every recording begins with.
_BEGINNING = b'{"coin_world": '


class Recorder:
    """Writes a run to *path* while it goes; a step is there as soon as it was made, and `close` says that it ended.

    Nothing is touched before the first step: an older recording stays when nothing comes of the run.

    Raises:
        InvalidInput: there is something else under that name, or no folder to write into.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        _demand_own(path)
        self._path = path
        self._plan = plan
        self._file: IO[str] | None = None
        self._seal = ""
        self._steps = 0

    def note(self, world: World, choices: Mapping[str, Choice | None]) -> None:
        """Write what was chosen, and what it made of *world*.

        Raises:
            InvalidInput: it cannot be written.
        """
        told = {
            name: choice.as_data() if choice is not None else None
            for name, choice in choices.items()
        }
        step = {"step": world.step, "choices": told, "world": world.digest()}
        try:
            if self._file is None:
                self._file = self._path.open("w", encoding="utf-8")
                self._write({"coin_world": VERSION, **asdict(self._plan)})
            self._write(step)
        except OSError as error:
            self._give_up()
            raise _unwritable(self._path, error) from error
        self._steps = world.step

    def close(self) -> None:
        """Write that there is no more; nothing when there was no step, or when this was said.

        Raises:
            InvalidInput: it cannot be written.
        """
        if self._file is None:
            return
        try:
            self._write({"end": self._steps})
        except OSError as error:
            raise _unwritable(self._path, error) from error
        finally:
            self._give_up()

    def _give_up(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = None

    def _write(self, content: Mapping[str, Any]) -> None:
        assert self._file is not None  # noqa: S101 - whoever calls has opened it
        self._seal = sealed(self._seal, content)
        self._file.write(json.dumps({**content, "seal": self._seal}) + "\n")
        # Whoever is killed leaves what was done up to then.
        self._file.flush()


def sealed(before: str, content: Mapping[str, Any]) -> str:
    """Return the seal of a line that holds *content*, after a line with the seal *before*."""
    told = json.dumps(
        {name: value for name, value in content.items() if name != "seal"},
        sort_keys=True,
    )
    return hashlib.sha256(f"{before}{told}".encode()).hexdigest()[:16]


def _demand_own(path: Path) -> None:
    """Refuse what would be lost, or cannot be written, before anything is started for it."""
    try:
        if not path.exists():
            if not path.parent.is_dir():
                raise InvalidInput(
                    f"--record: there is no folder {str(path.parent)!r}; make it, or name another file"
                )
            return
        is_own = path.is_file() and _begins_like_ours(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    if not is_own:
        raise InvalidInput(
            f"--record: {str(path)!r} is there and is no recording; name another file"
        )


def _begins_like_ours(path: Path) -> bool:
    """Return whether *path* is a recording, or empty."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) in (_BEGINNING, b"")


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"--record: {str(path)!r} cannot be written ({error.strerror}); name another file"
    )
