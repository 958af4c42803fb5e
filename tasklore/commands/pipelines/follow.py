"""Follow a run until it is over: an event of its stream wakes the follower, and the run is then read from the API.

So a lost event costs at most a second, and the supervisor that drives the run, or the one that is asked, may end.
"""

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tasklore.commands.exits import UNREACHABLE
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.transport import AnswerCut, Request, quote_path, send
from tasklore.commands.pictures.run import Reused, rows_of
from tasklore.commands.render.board import board
from tasklore.commands.render.screen import printable, say
from tasklore.contracts.errors import TaskloreError, Unreachable

#: Seconds between two reads without an event, and with events at least.
LOOK_S = 1.0
_PAUSE_S = 0.1
#: Seconds without a supervisor that drives the run, or without the API, after which a line says so, and after which
#: the follower gives up.
SAY_AFTER_S = 8.0
GIVE_UP_S = 60.0
#: Seconds in which a stream sends at least a heartbeat, and until it is opened again.
_SILENT_S = 45.0
_REOPEN_S = 1.0
#: Phases at once whose progress is shown: each is a stream of its own.
_LISTENED_TO = 8

Run = dict[str, Any]
#: Called at each read with the run and the progress of its running phases, by phase.
OnLook = Callable[[Run, Mapping[str, str]], None]


class RunFollower:
    """One run at *api*."""

    def __init__(self, api: LocalApi, session_id: str) -> None:
        self._api = api
        self._session_id = session_id
        self._events: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._progress: dict[str, str] = {}
        #: The task of each phase whose progress is followed.
        self._on: dict[str, str] = {}
        self._lacking_since: float | None = None
        self._has_said_lacking = False

    def show(self, *, is_silent: bool, reused: Reused | None = None) -> Run:
        """Return the run once it is over, and show it on stderr until then.

        Raises:
            ApiRefused, Unreachable: as `until_over`.
        """
        with board(is_silent=is_silent) as show:
            return self.until_over(
                lambda run, progress: show(rows_of(run, progress, reused))
            )

    def until_over(self, on_look: OnLook, within_s: float = float("inf")) -> Run:
        """Return the run once it is over, or as it is after *within_s* seconds.

        Raises:
            ApiRefused: it is gone, and its outcome has expired.
            Unreachable: no supervisor drives it, or the API is away, for `GIVE_UP_S`.
        """
        ends_at = time.monotonic() + within_s
        self._listen(f"/v1/pipelines/{quote_path(self._session_id)}/events", None)
        while True:
            run = self._look()
            if run is not None:
                self._follow_progress(run)
                on_look(run, {name: self._progress.get(name, "") for name in self._on})
                if run["state"] != "running" or time.monotonic() >= ends_at:
                    return run
            self._wait(run, on_look)

    def _wait(self, run: Run | None, on_look: OnLook) -> None:
        """Return at the next event of the run, or after `LOOK_S`; what a task says of itself needs no look."""
        began = time.monotonic()
        while (left_s := began + LOOK_S - time.monotonic()) > 0:
            try:
                is_step = self._events.get(timeout=left_s)
            except queue.Empty:
                return
            if is_step:
                time.sleep(max(0.0, began + _PAUSE_S - time.monotonic()))
                return
            if run is not None:
                on_look(run, {name: self._progress.get(name, "") for name in self._on})

    def _follow_progress(self, run: Run) -> None:
        """Listen to the tasks of running phases, so many of them, and to no other."""
        running = {
            one["phase"]: one["task_id"]
            for one in run["phases"]
            if one["status"] == "running" and one["task_id"]
        }
        began = {
            phase: task_id
            for phase, task_id in list(running.items())[:_LISTENED_TO]
            if self._on.get(phase) != task_id
        }
        self._on = {
            phase: task_id
            for phase, task_id in running.items()
            if phase in self._on or phase in began
        }
        for phase, task_id in began.items():
            self._progress.pop(phase, None)
            self._listen(f"/v1/tasks/{quote_path(task_id)}/output", phase)

    def _look(self) -> Run | None:
        try:
            run: Run = self._api.ask("status", session_id=self._session_id)
        except ApiRefused as error:
            if error.code != UNREACHABLE and error.body.get("status") != 429:
                raise
            self._note_lacking("the API", str(error))
            return None
        except (Unreachable, AnswerCut) as error:
            self._note_lacking("the API", str(error))
            return None
        if run["state"] == "running" and not run["is_driven"]:
            self._note_lacking(
                "a supervisor",
                "no supervisor is running this pipeline; it continues as soon as one is started",
            )
        else:
            self._lacking_since = None
            self._has_said_lacking = False
        return run

    def _note_lacking(self, what: str, why: str) -> None:
        """Say once that the run lacks *what*, and give up after a while."""
        now = time.monotonic()
        self._lacking_since = (
            self._lacking_since if self._lacking_since is not None else now
        )
        if now - self._lacking_since > GIVE_UP_S:
            raise Unreachable(
                f"{what} was unreachable for {GIVE_UP_S:.0f} s; the run is kept and "
                "continues with the next `tasklore up` or `tasklore supervisor`, "
                f"`tasklore pipelines status {self._session_id} --follow` shows it"
            )
        if now - self._lacking_since > SAY_AFTER_S and not self._has_said_lacking:
            self._has_said_lacking = True
            say(why)

    def _listen(self, path: str, phase: str | None) -> None:
        """Read the events at *path*, of the run or of the task of *phase*, in a thread of their own.

        It ends with the process: a read of a stream cannot be taken back.
        """
        task_id = None if phase is None else self._on[phase]

        def take(kind: str, data: Any) -> None:
            if phase is not None and self._on.get(phase) != task_id:
                raise _NotWanted
            if kind == "progress" and phase is not None and isinstance(data, dict):
                fraction = data.get("fraction")
                share = "" if fraction is None else f"{fraction:.0%} "
                text = f"{share}{data.get('text', '')}".strip()
                self._progress[phase] = printable(text)
            self._events.put(phase is None)

        def listen() -> None:
            while phase is None or self._on.get(phase) == task_id:
                reader = RunEventReader(take)
                with contextlib.suppress(TaskloreError):
                    answer = send(
                        self._api.target("status"),
                        Request("GET", path),
                        within_s=_SILENT_S,
                        sink=reader.take,
                    )
                    # 404: a task is written down before it is sent.
                    if answer.status == 204 or reader.has_ended:
                        return
                time.sleep(_REOPEN_S)

        def listen_while_wanted() -> None:
            with contextlib.suppress(_NotWanted):
                listen()

        threading.Thread(target=listen_while_wanted, daemon=True).start()


class _NotWanted(Exception):  # ends a stream
    """No phase runs any more whose task this stream is of."""


class RunEventReader:
    """Server-sent events out of the bytes of a stream, as they come; *take* gets each by its kind."""

    def __init__(self, take: Callable[[str, Any], None]) -> None:
        self._take = take
        self._rest = b""
        self.has_ended = False

    def take(self, piece: bytes) -> None:
        """Read the next *piece* of the stream."""
        *events, self._rest = (self._rest + piece).split(b"\n\n")
        for event in events:
            fields = dict(
                line.split(b": ", 1)
                for line in event.split(b"\n")
                if b": " in line and not line.startswith(b":")
            )
            if b"event" not in fields:
                continue
            kind = fields[b"event"].decode(errors="replace")
            self.has_ended = self.has_ended or kind == "done"
            with contextlib.suppress(ValueError):
                self._take(kind, json.loads(fields.get(b"data", b"null")))


@contextlib.contextmanager
def hint_when_stopped(session_id: str) -> Iterator[None]:
    """Print how to follow and to cancel a run when the command is stopped while the run goes on."""
    try:
        yield
    except KeyboardInterrupt:
        say(
            f"the run continues; `tasklore pipelines status {session_id} --follow` "
            "shows it"
        )
        say(f"`tasklore pipelines cancel {session_id}` ends it")
        raise
