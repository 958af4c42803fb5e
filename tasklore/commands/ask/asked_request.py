"""A request in plain words under an id: asked, asked again where a supervisor left, and found again."""

import contextlib
import os
import shlex
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from tasklore.commands.exits import UNREACHABLE
from tasklore.commands.operations.entries import operations_of, param_name, spell_name
from tasklore.commands.operations.exchange import Exchange
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.run import VersionWatch, code_of_view, read_wait
from tasklore.commands.operations.target import find_target
from tasklore.commands.operations.transport import (
    AnswerCut,
    AnswerLate,
    ConnectionBroke,
    Json,
)
from tasklore.commands.operations.values import fill_request, make_request, read_values
from tasklore.commands.render.durations import parse_span
from tasklore.commands.render.screen import printable
from tasklore.contracts.errors import InvalidInput, TaskloreError, Unreachable
from tasklore.contracts.manifest import OperationEntry

#: The field with the id of a request.
REQUEST_ID = "Idempotency-Key"
#: Fields that ask for the same again, and those that answer a question back.
_AGAIN = (REQUEST_ID, "conversation", "memory", "user", "time_zone", "at")
_ANSWERING = ("conversation", "user", "time_zone", "at")
#: Seconds that the answer may be late after the time the supervisor was given for it.
LATE_S = 10.0
#: Seconds after which a connection that breaks had brought the request to a supervisor, and not to something else.
_TAKEN_AFTER_S = 0.5
#: Seconds for another one to be there: one that was killed is started anew by whoever looks after it.
RESTARTED_S = 10.0
_PAUSE_S = 0.2
#: Seconds for looking up where a task failed.
PLACE_S = 3.0


class AskedRequest:
    """One request in plain words, under an id with which it may be sent any number of times."""

    def __init__(self, entry: OperationEntry, typed: Mapping[str, Any]) -> None:
        given = read_values(
            entry,
            {field["name"]: typed.get(param_name(field)) for field in entry["fields"]},
        )
        if not str(given.get("text") or "").strip():
            text = next(field for field in entry["fields"] if field["positional"])
            raise InvalidInput(f"{spell_name(text)}: say what you want to know")
        if typed.get("no_memory"):
            given["memory"] = "bypass"
        # The one who chooses the id can ask for the answer again, whatever happens before it comes.
        given[REQUEST_ID] = given[REQUEST_ID] or os.urandom(16).hex()
        given["pending_reply"] = True
        self._entry = entry
        self._given = given
        self._wait_s = read_wait(entry, typed) or 0.0
        self._asked_at = datetime.now(UTC)
        self._api = typed.get("api")
        self.exchange = Exchange(
            find_target(entry["mounted"], self._api), entry, VersionWatch().hear
        )
        #: Whether a supervisor may have it.
        self.is_taken = False

    @property
    def id(self) -> str:
        """The id of the request."""
        return str(self._given[REQUEST_ID])

    @property
    def is_remote(self) -> bool:
        """Whether the API is in another process, which can say something before the end."""
        return self.exchange.target.scheme != "direct"

    @property
    def begins_later(self) -> bool:
        """Whether it was asked for at a time."""
        return bool(self._given.get("at") or self._given.get("after"))

    def hear(self) -> Json:
        """Return the view of the request at its end, or with why it has none in the time that it was given.

        Raises:
            ApiRefused: the API refuses it.
            Unreachable, TaskloreError: nobody answers.
        """
        ends_at = time.monotonic() + self._wait_s
        gives_up_at: float | None = None
        given = self._given
        while True:
            sent_at = time.monotonic()
            left_s = max(0.0, ends_at - sent_at)
            try:
                answer = self.exchange.ask(
                    fill_request(self._entry, given), waits_s=left_s, late_s=LATE_S
                )
            except TaskloreError as error:
                now = time.monotonic()
                if not _is_away(error):
                    self.is_taken = False
                    raise
                if isinstance(error, ConnectionBroke | AnswerCut | AnswerLate):
                    self.is_taken |= now - sent_at > _TAKEN_AFTER_S
                if self.is_taken and isinstance(error, ConnectionBroke | AnswerCut):
                    gives_up_at = gives_up_at or now + RESTARTED_S
                if gives_up_at is None or now > gives_up_at:
                    raise
            else:
                self.is_taken = True
                gives_up_at = None
                view = self.exchange.read_view(answer)
                if not isinstance(view, dict):
                    raise TaskloreError(
                        f"{self.exchange.target.url} answers with an unexpected "
                        "response; upgrade it or this command"
                    )
                is_done = answer.status != HTTPStatus.ACCEPTED
                if is_done or view.get("reply") or time.monotonic() > ends_at:
                    return view
            # Whoever took it has left; another one finds what was started under the same id.
            time.sleep(_PAUSE_S)
            given = {
                **self._given,
                "wait_seconds": max(0.0, ends_at - time.monotonic()),
            }

    def code_of(self, view: Json) -> int:
        """Return the exit code that *view* means: what waits for its time is as it should be."""
        if self.begins_later and (view.get("reply") or {}).get("waits_for") == "time":
            return 0
        return code_of_view(self._entry, view)

    def tell_how_to_fetch(self) -> str:
        """Return the command that asks the same again, under the same id: it starts nothing twice."""
        words = self._spell_command(_AGAIN, self._given)
        return f"for the answer: {words} {shlex.quote(str(self._given['text']))}"

    def tell_how_to_answer(self, conversation_id: str) -> str:
        """Return the command that answers a question back."""
        answering = {**self._given, "conversation": conversation_id}
        words = self._spell_command(_ANSWERING, answering)
        return f'answer with: {words} "..."'

    def _spell_command(self, names: tuple[str, ...], values: Mapping[str, Any]) -> str:
        """Return the beginning of a command that gives the fields *names* by *values*, where they are there."""
        if values.get("after"):
            start = self._asked_at + parse_span(str(values["after"]), "--after")
            values = {**values, "at": start.isoformat()}
        options = {one["name"]: one["option"] for one in self._entry["fields"]}
        words = [
            word
            for name in names
            if values.get(name)
            for word in (options[name], str(values[name]))
        ]
        return shlex.join(("tasklore", "ask", *words))

    def find_places(self, task_ids: list[str]) -> list[str]:
        """Return which lines of agents' code failed, for who may read dead letters; others see nothing."""
        entry = next(
            one for one in operations_of("dead-letters") if one["verb"] == "show"
        )
        found = []
        with contextlib.suppress(TaskloreError):
            # An address that was typed for the question gets no key but that of the question.
            target = (
                self.exchange.target if self._api else find_target(entry["mounted"])
            )
            letters = Exchange(target, entry, lambda _answer: None)
            for task_id in task_ids:
                request = make_request(entry, {"letter": task_id})
                letter = letters.read_view(letters.ask(request, late_s=PLACE_S))
                if isinstance(letter, dict) and letter.get("place"):
                    found.append(" ".join(printable(str(letter["place"])).split()))
        return found


def _is_away(error: TaskloreError) -> bool:
    """Return whether *error* says that no supervisor is there now."""
    if isinstance(error, ApiRefused):
        return error.code == UNREACHABLE
    return isinstance(error, Unreachable | AnswerCut)
