"""Dead letters as they lie in DEAD, those of older workers too, and the choice of some of them."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.messages import DeadLetter, ErrorNote

#: The reason under which a message in DEAD is shown that is no dead letter.
FOREIGN = "foreign"

_TASKS = subjects.TASKS_ALL.removesuffix(">")


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter at its place in DEAD; subject and headers complete the letter of an older worker."""

    sequence: int
    stored_at: datetime
    content: DeadLetter

    @property
    def agent_id(self) -> str | None:
        """The agent of the task, None when it was none."""
        return self.content.agent_id or self._of_subject(0)

    @property
    def task_name(self) -> str | None:
        """The name of the task, None when neither assignment nor subject has it."""
        return self.content.task_name or self._of_subject(1)

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
                f"the body of letter {self.sequence} is no base64; purge it"
            ) from error

    @property
    def is_whole(self) -> bool:
        """Whether `body` is the whole one."""
        return len(self.body) == self.content.body_bytes

    def is_body(self, body: bytes) -> bool:
        """Return whether *body* is the whole body of the message."""
        return digest_of(body) == self.content.body_digest

    def _of_subject(self, part: int) -> str | None:
        """Return agent (0) or task (1) as the subject names them."""
        if not self.content.subject.startswith(_TASKS):
            return None
        names = self.content.subject.removeprefix(_TASKS).split(".")
        return names[part] if len(names) == 2 else None


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of letters: those that fit every condition; None is no condition.

    `since` is when a letter was put into DEAD, at the earliest.
    """

    agent_id: str | None = None
    task_name: str | None = None
    reason: str | None = None
    since: datetime | None = None

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
        """Whether the server can tell which letters fit, so that they need not be read."""
        return self.task_name is None and self.reason is None

    def fits(self, letter: Letter) -> bool:
        """Return whether *letter*, which fits `subject` and `since`, fits the other conditions too."""
        return self.task_name in (None, letter.task_name) and self.reason in (
            None,
            letter.content.reason,
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
    return Letter(sequence, stored_at, content)


def _foreign(
    subject: str, stored_at: datetime, body: bytes, problem: str
) -> DeadLetter:
    return DeadLetter(
        reason=FOREIGN,
        error=ErrorNote(
            type="ForeignLetter",
            message=f"this is no dead letter of {subject!r}: {problem}",
        ),
        subject=subject.removeprefix(subjects.dead("")),
        sequence=0,
        attempts=0,
        body=base64.b64encode(body).decode(),
        body_bytes=len(body),
        body_digest=digest_of(body),
        died_at=stored_at,
    )


def digest_of(body: bytes) -> str:
    """Return the digest by which a dead letter names its whole body."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()
