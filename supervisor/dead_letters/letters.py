"""Dead letters as they lie in DEAD, those of older workers too, and the choice of some of them.

Whoever runs a worker of an agent may have written anything under that agent's subjects: a letter is believed
only what does not reach beyond them.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.messages import DeadLetter, ErrorNote

#: The reason under which a message in DEAD is shown that is no dead letter.
FOREIGN = "foreign"

_TASKS = subjects.TASKS_ALL.removesuffix(">")
#: Between two lines of the author's own code in a letter's `place`.
_NEXT_FRAME = re.compile(r" > (?=[^\n\"]{1,1000}, line \d{1,9}, in )")
#: Lines of the author's own code that a letter shows, and characters of each; workers write four.
_MOST_FRAMES = 16
_FRAME_WIDTH = 1000


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter at its place in DEAD; subject and headers complete the letter of an older worker."""

    sequence: int
    stored_at: datetime
    content: DeadLetter

    @property
    def agent_id(self) -> str | None:
        """The agent of the task, None when it was none."""
        return _agent_in(self.content.subject)

    @property
    def task_name(self) -> str | None:
        """The name of the task, None when neither assignment nor subject has it."""
        if self.content.task_name is not None:
            return self.content.task_name
        names = _names_in(self.content.subject)
        return names[1] if len(names) == 2 else None

    @property
    def generation(self) -> int:
        """The number of times it was sent, 1 without any redrive."""
        if self.content.generation is not None:
            return self.content.generation
        text = self.content.headers.get(subjects.GENERATION_HEADER, "")
        return (
            max(1, int(text))
            if text.isascii() and text.isdigit() and len(text) < 10
            else 1
        )

    @property
    def trace_id(self) -> str | None:
        """The W3C trace id it travelled with, None without one."""
        parts = self.content.headers.get(subjects.TRACE_HEADER, "").split("-")
        return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else None

    @property
    def body(self) -> bytes:
        """The body of the message, or the beginning of it when `is_whole` is False.

        Raises:
            InvalidInput: it cannot be decoded.
        """
        try:
            return base64.b64decode(self.content.body, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(
                f"the body of letter {self.sequence} is not valid base64; purge it"
            ) from error

    @property
    def assignment_fields(self) -> Mapping[str, Any]:
        """The fields of the assignment that can be read, also of one that was cut off; none where it is no object."""
        try:
            found = from_json(self.body, allow_partial=True)
        except (InvalidInput, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def frames(self) -> list[str]:
        """The lines of the author's own code that the error passed, the innermost first; none in older letters."""
        if self.content.place is None:
            return []
        place = self.content.place[-_MOST_FRAMES * _FRAME_WIDTH :]
        lines = _NEXT_FRAME.split(place)[-_MOST_FRAMES:]
        return [line[:_FRAME_WIDTH] for line in reversed(lines)]

    @property
    def is_whole(self) -> bool:
        """Whether `body` is the whole one; one that cannot be decoded is not."""
        try:
            return len(self.body) == self.content.body_bytes
        except InvalidInput:
            return False

    def is_body(self, body: bytes) -> bool:
        """Return whether *body* is the whole body of the message."""
        return digest_of(body) == self.content.body_digest


@dataclass(frozen=True, slots=True)
class LetterSelection:
    """A selection of letters: those that fit every condition; None is no condition.

    `since` and `until` are when a letter was put into DEAD, at the earliest and before when; `up_to` is the highest
    sequence, so that what is put there meanwhile is left out. `error_type` is the class of the error. `tenant` and
    `user_id` are those of the assignment, where the letter has it.
    """

    agent_id: str | None = None
    task_name: str | None = None
    reason: str | None = None
    since: datetime | None = None
    error_type: str | None = None
    tenant: str | None = None
    user_id: str | None = None
    until: datetime | None = None
    up_to: int | None = None

    @property
    def subject(self) -> str:
        """The filter that the server applies.

        Raises:
            InvalidInput: `agent_id` is no name.
        """
        return (
            subjects.DEAD_ALL
            if self.agent_id is None
            else subjects.dead(subjects.tasks_of(self.agent_id))
        )

    @property
    def is_by_subject(self) -> bool:
        """Whether the server can tell how many letters fit, so that they need not be read."""
        return all(
            condition is None
            for condition in (
                self.task_name,
                self.reason,
                self.error_type,
                self.tenant,
                self.user_id,
                self.until,
                self.up_to,
            )
        )

    @property
    def is_everything(self) -> bool:
        """Whether every letter fits, up to `up_to`."""
        return self == LetterSelection(up_to=self.up_to)

    def fits(self, letter: Letter) -> bool:
        """Return whether *letter*, which fits `subject` and `since`, fits the other conditions too."""
        if self.up_to is not None and letter.sequence > self.up_to:
            return False
        if self.until is not None and letter.stored_at >= self.until:
            return False
        content = letter.content
        if (
            self.task_name not in (None, letter.task_name)
            or self.reason not in (None, content.reason)
            or self.error_type not in (None, content.error.type)
        ):
            return False
        if self.tenant is None and self.user_id is None:
            return True
        fields = letter.assignment_fields
        return self.tenant in (None, fields.get("tenant")) and self.user_id in (
            None,
            fields.get("user_id"),
        )


def read_letter(
    sequence: int, subject: str, stored_at: datetime, body: bytes
) -> Letter:
    """Return the letter that lies in DEAD on *subject*; any other message becomes one of reason `FOREIGN`."""
    try:
        content = DeadLetter.model_validate_json(body)
    except ValidationError as error:
        problem = error.errors(
            include_url=False, include_input=False, include_context=False
        )[0]
        return Letter(
            sequence, stored_at, _foreign(subject, stored_at, body, fault_of(problem))
        )
    if subjects.dead(content.subject) != subject:
        # A worker may only bury tasks of its own agent, and must not have them sent to another.
        content = _foreign(
            subject, stored_at, body, f"it names the subject {content.subject!r}"
        )
    elif content.agent_id not in (None, _agent_in(content.subject)):
        content = _foreign(
            subject, stored_at, body, f"it names the agent {content.agent_id!r}"
        )
    return Letter(sequence, stored_at, content)


def _foreign(
    subject: str, stored_at: datetime, body: bytes, problem: str
) -> DeadLetter:
    return DeadLetter(
        reason=FOREIGN,
        error=ErrorNote(
            type="ForeignLetter",
            message=f"this is not a dead letter of {subject!r}: {problem}",
        ),
        subject=subject.removeprefix(subjects.dead("")),
        sequence=0,
        attempts=0,
        body=base64.b64encode(body).decode(),
        body_bytes=len(body),
        body_digest=digest_of(body),
        died_at=stored_at,
    )


def _names_in(subject: str) -> list[str]:
    """Return agent and task as the subject of a task has them, nothing for another subject."""
    return subject.removeprefix(_TASKS).split(".") if subject.startswith(_TASKS) else []


def _agent_in(subject: str) -> str | None:
    return next(iter(_names_in(subject)), None)


def digest_of(body: bytes) -> str:
    """Return the digest by which a dead letter names its whole body."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()
