"""An answer while it comes: one connection waits for the reply, another one follows the task that makes it."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from tasklore.commands.ask.asked_request import AskedRequest
from tasklore.commands.operations.events import StreamedEvent, follow_events
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.transport import Json, quote_path
from tasklore.commands.render.screen import printable
from tasklore.commands.render.spinner import show_patience
from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.shown_text import ShownText

#: Seconds after which the task is followed: what is answered sooner comes whole, in one connection.
_QUICK_S = 0.2
#: Seconds between two looks whether a supervisor has the request.
_LOOK_S = 0.2
#: Seconds that the last words may come behind the reply.
_REST_S = 2.0


@dataclass(frozen=True)
class _Heard:
    """What a thread has heard: the view of the request, why there is none, or that the output of the task has ended."""

    view: Json | None = None
    error: BaseException | None = None


@dataclass
class _Live:
    """The threads of one question; all that they hear is taken by the one that prints."""

    question: AskedRequest
    heard: "SimpleQueue[_Heard | StreamedEvent]" = field(default_factory=SimpleQueue)
    #: Whether the one task is known that makes the answer.
    is_followed: bool = False

    def wait(self) -> None:
        """Hear the reply."""
        try:
            self.heard.put(_Heard(view=self.question.hear()))
        except BaseException as error:  # noqa: BLE001  # it is raised where it is taken
            self.heard.put(_Heard(error=error))

    def follow(self) -> None:
        """Hear what the task puts out, once it is known which one it is."""
        time.sleep(_QUICK_S)
        # All of it is in the reply, too, which says why there is none.
        with contextlib.suppress(TaskloreError, OSError, ValueError):
            task_id = self._await_task()
            if task_id is not None:
                self.is_followed = True
                self._follow_events(
                    f"/v1/tasks/{quote_path(task_id)}/output", self._take
                )
        self.heard.put(_Heard())

    def _await_task(self) -> str | None:
        """Return which task the request becomes; None where it is none, or several."""
        found: list[str | None] = []

        def take(event: StreamedEvent) -> bool:
            if event.event not in ("routed", "done"):
                return False
            found.append(event.data.get("task_id"))
            return True

        place = f"/v1/requests/{quote_path(self.question.id)}/events"
        while not found:
            try:
                self._follow_events(place, take)
            except ApiRefused as error:
                # It is on its way to be kept.
                if error.body.get("status") != 404:
                    raise
                time.sleep(_LOOK_S)
        return found[0]

    def _follow_events(self, path: str, take: Any) -> None:
        follow_events(self.question.exchange.pour, path, take)

    def _take(self, event: StreamedEvent) -> bool:
        self.heard.put(event)
        return event.event == "done"

    def read(self) -> Iterator[_Heard | StreamedEvent]:
        """Yield what is heard until the reply is there, and then for as long as the output may lack its end."""
        is_answered = False
        has_ended = False
        ends_at: float | None = None
        while not (is_answered and has_ended):
            left_s = None if ends_at is None else max(0.0, ends_at - time.monotonic())
            try:
                one = self.heard.get(timeout=left_s)
            except Empty:
                return
            yield one
            if isinstance(one, StreamedEvent):
                continue
            if one.view is None:
                has_ended = True
                continue
            reply = one.view.get("reply") or {}
            is_answered = True
            has_ended |= not (self.is_followed and reply.get("report"))
            ends_at = time.monotonic() + _REST_S


def hear_live(question: AskedRequest) -> Json:
    """Return the view of *question* as `AskedRequest.hear` does, once all words of its reply have been printed.

    Raises:
        ApiRefused, Unreachable, TaskloreError: as `AskedRequest.hear`.
    """
    live = _Live(question)
    for work in (live.wait, live.follow):
        # Daemons: Ctrl-C ends the command at once, whatever they wait for.
        Thread(target=work, daemon=True).start()
    shown = ShownText()
    view: Json = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(show_patience("asking"))
        for one in live.read():
            if isinstance(one, StreamedEvent):
                words = _to_words(shown, one)
                if words:
                    stack.close()
                    _print(words)
            elif one.error is not None:
                raise one.error
            elif one.view is not None:
                view = one.view
    reply = view.get("reply")
    if reply is not None:
        _print(shown.finish(str(reply["text"])))
    return view


def _to_words(shown: ShownText, event: StreamedEvent) -> str:
    """Return what to print of *event*."""
    if event.event == "text":
        return shown.add(str(event.data["text"]))
    if event.event == "restarted":
        return shown.restart(has_waited=bool(event.data["waited"]))
    return shown.skip() if event.event == "gap" else ""


def _print(words: str) -> None:
    print(printable(words), end="", flush=True)
