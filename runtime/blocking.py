"""Who blocks an event loop: looked at from a thread while it happens, and named by task and line.

A coroutine that computes or waits without `await` holds up every other task of its worker. Afterwards nothing is left
to see; a thread sees the frame in which the loop stands.
"""

import asyncio
import sys
import sysconfig
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import structlog

from tasklore.runtime.health import Pulse

log = structlog.get_logger(__name__)

#: Seconds without a beat of the loop after which it counts as blocked, and between two looks.
BLOCKED_AFTER_S = 2.0
_LOOK_S = 0.5
#: Modules of ours in which an author's code may stand.
_AGENTS = "tasklore.workers.agents"


@dataclass(frozen=True, slots=True)
class Runner:
    """The task whose run a coroutine belongs to."""

    agent_id: str
    task: str
    task_id: str


class BlockWatch:
    """Looks at *pulse*, and says who holds up the loop that it was started in, from `start` to `stop`.

    *find* names the run of a coroutine, None for one without; *count* is called with each block and the names of agent
    and task, empty where none is known. Both are called from another thread.
    """

    def __init__(
        self,
        pulse: Pulse,
        find: Callable[["asyncio.Task[object]"], Runner | None] = lambda _task: None,
        count: Callable[[str, str], None] = lambda _agent, _task: None,
    ) -> None:
        self._pulse = pulse
        self._find = find
        self._count = count
        self._stopped = threading.Event()
        self._blocked_by: str | None = None

    def start(self) -> None:
        """Watch the running event loop."""
        watched = (asyncio.get_running_loop(), threading.get_ident())
        threading.Thread(
            target=self._watch, args=watched, name="tasklore-block-watch", daemon=True
        ).start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()

    def check(self) -> tuple[bool, str]:
        """Say whether the loop turns; if not, since when it does not, and at which line of which task it stands."""
        by = self._blocked_by
        if by is None:
            return True, "turning"
        return False, f"blocked for {self._pulse.silent_s():.0f} s by {by}"

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._stopped.wait(_LOOK_S):
            silent_s = self._pulse.silent_s()
            if silent_s < BLOCKED_AFTER_S:
                self._blocked_by = None
            elif self._blocked_by is None:
                self._name(loop, thread, silent_s)

    def _name(
        self, loop: asyncio.AbstractEventLoop, thread: int, silent_s: float
    ) -> None:
        place = place_of(sys._current_frames().get(thread))  # noqa: SLF001 - how a debugger looks at another thread
        task = asyncio.current_task(loop)
        run = self._find(task) if task is not None else None
        whose = f"{run.agent_id}.{run.task}, task {run.task_id}, " if run else ""
        self._blocked_by = f"{whose}at {place}"
        agent, name = (run.agent_id, run.task) if run else ("", "")
        self._count(agent, name)
        log.warning(
            "event_loop_blocked",
            seconds=round(silent_s, 1),
            agent=agent,
            task=name,
            task_id=run.task_id if run else "",
            at=place,
            cure="await it, or run it in a thread: asyncio.to_thread",
        )


def place_of(frame: FrameType | None) -> str:
    """Return file, line and function of the innermost frame out of *frame* that is an author's own, else of *frame*."""
    inner = frame
    while frame is not None:
        if _is_authors(frame):
            return _told(frame)
        frame = frame.f_back
    return _told(inner) if inner is not None else "an unknown place"


def _is_authors(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    if module.split(".")[0] == "tasklore":
        return module.startswith(_AGENTS)
    libraries = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib"))
    file = frame.f_code.co_filename
    return not file.startswith((*libraries, "<"))


def _told(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
