"""The history of a storm: what everybody saw and did, one line a fact, in files that are only ever appended to.

Each process writes a file of its own, one `write` a line. A SIGKILL can tear a line only at a page boundary, and then
it is the last one of its file, which the reader leaves out: a torn line tells of something that did not happen yet.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

Kind = Literal[
    "submit",  # an assignment is about to be published; `about` is what it owes, words out of "effect" and "fence"
    "accepted",  # its publish was acknowledged
    "run-start",  # a run of a task began; `about` is its attempt
    "effect",  # the side effect itself, guarded by `context.once`
    "run-end",  # the run is through, its result not yet reported
    "run-raised",  # the run ended with an error, whose class `about` is
    "report",  # a report lies in the stream at `sequence`; `at` is when the server took it, `about` its status
    "ledger",  # the ledger holds a report when all is over; `about` is its status
    "heard",  # a report passed by on the core subject; `about` is its status
    "forked",  # `pid` begins to be a worker
    "ready",  # it takes tasks
    "kill",  # a SIGKILL is about to be sent to `pid`
    "stop",  # a SIGSTOP was sent to `pid`
    "continue",  # a SIGCONT is about to be sent to `pid`
    "dismiss",  # the storm is over, `pid` may go
    "died",  # `pid` is no more; `about` is its status, negative for a signal
    "outage",  # the server `about` is about to be killed
    "restored",  # it answers again
    "cut",  # the link of `pid` to the server `about` is cut
    "healed",  # it stands again
    "miscounted",  # the count of what has ended is not what the ledger holds; `about` says both
    "mislisted",  # a task is not listed as the ledger has it; `about` says how
    "moved",  # the ledger is in layout 2; `about` is how many entries were moved
    "left",  # tasks that nobody takes out of their stream, although all have reports; `about` says how many and where
    "deleted",  # the consumer or stream `about` was deleted
]


@dataclass(frozen=True, slots=True)
class Event:
    """One fact; `at` is in seconds since 1970, `pid` the process it is about.

    Of a report, `digest` is that of its body and `fence` what it says of the ledger.
    """

    kind: Kind
    at: float
    pid: int
    task: str = ""
    generation: int = 1
    run: str = ""
    about: str = ""
    digest: str = ""
    sequence: int = 0
    fence: str = ""


class History:
    """Where one process writes what it sees and does; *folder* is shared by all that take part."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{os.getpid()}-{time.time_ns()}.jsonl"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(
        self,
        kind: Kind,
        *,
        pid: int | None = None,
        at: float | None = None,
        **facts: Any,
    ) -> Event:
        """Write down that *kind* happens now and return the event; *pid* None is this process."""
        event = Event(
            kind,
            time.time() if at is None else at,
            os.getpid() if pid is None else pid,
            **facts,
        )
        os.write(
            self._file,
            json.dumps(asdict(event), separators=(",", ":")).encode() + b"\n",
        )
        return event

    def close(self) -> None:
        """Write nothing more."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exit: object) -> None:
        self.close()


def read_history(folder: Path) -> list[Event]:
    """Return everything that was written in *folder*, by time."""
    events = [
        event
        for path in folder.glob("*.jsonl")
        for event in _events_in(path.read_bytes())
    ]
    return sorted(events, key=lambda event: event.at)


class Follower:
    """Reads a history while it is written: each `news` gives what was added since the last one, file by file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def news(self) -> list[Event]:
        """Return what is new, in order within each file."""
        found: list[Event] = []
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole = file.read()
            whole = whole[: whole.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            found += _events_in(whole)
        return found


def _events_in(text: bytes) -> Iterator[Event]:
    for line in text.split(b"\n")[:-1]:
        yield Event(**json.loads(line))
