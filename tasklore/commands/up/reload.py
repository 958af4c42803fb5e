"""`tasklore worker --reload`: a worker process that is started again when a Python file of its agents changes."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from tasklore.commands.exits import OK
from tasklore.commands.render.screen import print_error, say
from tasklore.commands.up.roles import READY, RoleProcess, end_of
from tasklore.contracts.errors import ConfigurationError, TaskloreError
from tasklore.runtime.settings import Settings
from tasklore.runtime.source_files import make_importable
from tasklore.workers.loading import GROUP

#: Seconds between two looks at the files.
_LOOK_S = 0.3


async def serve_reloading(
    references: Sequence[str], config: Path | None, slots: int | None
) -> int:
    """Run a worker for *references* until cancelled, and start it again when a file of theirs changes.

    One that cannot start, or ends by itself, is started again after the next change.

    Raises:
        ConfigurationError: no agent is named, or a reference names no file and no module.
    """
    if not references:
        raise ConfigurationError(
            "--reload needs the agents that are edited; name a module or a file"
        )
    options = [
        *(("--config", str(config)) if config else ()),
        *(("--slots", str(slots)) if slots else ()),
    ]
    worker = RoleProcess(
        "worker",
        ("worker", *options, "--", *references),
        {},
        grace_s=Settings.load().grace_s,
    )
    folders = [folder_of(reference) for reference in references]
    try:
        while True:
            before = stamps(folders)
            is_running = False
            try:
                await worker.start()
                is_running = True
                print(f"{READY}{worker.address}", flush=True)
            except TaskloreError as error:
                print_error(f"{error}; waiting for a change")
            while not (
                changed := stamps(folders).items() ^ before.items()
            ):  # no event tells
                await asyncio.sleep(_LOOK_S)
                if is_running and worker.status is not None:
                    is_running = False
                    print_error(f"worker {end_of(worker.status)}; waiting for a change")
            say(
                f"{', '.join(sorted({path.name for path, _ in changed}))} changed; "
                "restarting the worker"
            )
            await worker.stop()
    except asyncio.CancelledError:
        return OK
    finally:
        await worker.stop()


def folder_of(reference: str) -> Path:
    """Return the folder with the Python files of *reference*, or its one file when that lies in no package.

    Raises:
        ConfigurationError: *reference* names no file and no module.
    """
    place = reference.partition(":")[0]
    if place.endswith(".py") or "/" in place:
        path = Path(place).expanduser().resolve()
    else:
        make_importable(Path.cwd())
        point = next(iter(entry_points(group=GROUP, name=place)), None)
        # Only the package at the top: to find one inside it would import it here.
        spec = find_spec((point.module if point else place).partition(".")[0])
        if spec is None or spec.origin is None:
            raise ConfigurationError(
                f"there is no module {place!r}; name a module or a file"
            )
        path = Path(spec.origin)
    if not path.is_file():
        raise ConfigurationError(
            f"there is no file {str(path)!r}; give the path of one"
        )
    return path.parent


def stamps(folders: Sequence[Path]) -> dict[Path, int]:
    """Return when each Python file below *folders* was changed, in nanoseconds; hidden folders are left out."""
    found = {}
    for file in (file for folder in folders for file in _python_files(folder)):
        # An editor may be replacing it at this moment.
        with contextlib.suppress(FileNotFoundError):
            found[file] = file.stat().st_mtime_ns
    return found


def _python_files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.suffix == ".py" and path.is_file():
            yield path
        elif path.is_dir() and (path / "__init__.py").is_file():
            yield from _python_files(path)
