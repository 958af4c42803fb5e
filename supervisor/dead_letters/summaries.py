"""Dead letters in short: a line of a list, and how many there are of each agent and error, in bounded memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from tasklore.contracts.messages import ErrorNote, Usage
from tasklore.supervisor.dead_letters.letters import Letter

#: Characters that a summary keeps of each text; a group, of the name of an error.
_TEXT = 4000
_NAME = 200
#: Groups that are told apart: the classes of errors of every agent are fewer, unless somebody makes them up.
MOST_GROUPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterSummary:
    """One dead letter without body, headers and traceback; every text has at most 4,000 characters.

    `tenant` and `user_id` are those of the assignment, None where the letter does not have them.
    """

    sequence: int
    stored_at: datetime
    reason: str
    error: ErrorNote
    agent_id: str | None
    task_name: str | None
    task_id: str | None
    generation: int
    attempts: int
    supervisor_id: str | None
    worker_id: str | None
    trace_id: str | None
    tenant: str | None
    user_id: str | None
    created_at: datetime | None
    died_at: datetime
    queued_ms: int | None
    run_ms: int | None
    usage: Usage
    subject: str


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """The letters of one agent and one class of error: how many, from when to when, and the newest as an example."""

    agent_id: str | None
    error_type: str
    count: int
    oldest: datetime
    newest: datetime
    example: LetterSummary


@dataclass(slots=True)
class LetterCounts:
    """How many letters there are of each agent and class of error.

    Of more than `MOST_GROUPS` groups the later ones are only counted, in `others`.
    """

    others: int = 0
    _groups: dict[tuple[str | None, str], LetterGroup] = field(default_factory=dict)

    def add(self, letters: Iterable[LetterSummary]) -> None:
        """Count *letters*."""
        for letter in letters:
            error_type = letter.error.type[:_NAME]
            key = letter.agent_id, error_type
            known = self._groups.get(key)
            if known is None and len(self._groups) >= MOST_GROUPS:
                self.others += 1
            elif known is None:
                self._groups[key] = LetterGroup(
                    letter.agent_id,
                    error_type,
                    count=1,
                    oldest=letter.stored_at,
                    newest=letter.stored_at,
                    example=letter,
                )
            else:
                is_newer = letter.stored_at >= known.newest
                self._groups[key] = replace(
                    known,
                    count=known.count + 1,
                    oldest=min(known.oldest, letter.stored_at),
                    newest=max(known.newest, letter.stored_at),
                    example=letter if is_newer else known.example,
                )

    @property
    def total(self) -> int:
        """How many letters were counted."""
        return self.others + sum(group.count for group in self._groups.values())

    @property
    def groups(self) -> list[LetterGroup]:
        """The groups, the largest first."""
        return sorted(
            self._groups.values(),
            key=lambda group: (-group.count, group.agent_id or "", group.error_type),
        )


def summary_of(letter: Letter) -> LetterSummary:
    """Return *letter* in short."""
    content = letter.content
    fields = letter.assignment_fields
    error = content.error
    return LetterSummary(
        sequence=letter.sequence,
        stored_at=letter.stored_at,
        reason=content.reason[:_TEXT],
        error=ErrorNote(
            type=error.type[:_TEXT],
            message=error.message[:_TEXT],
            retryable=error.retryable,
        ),
        agent_id=_short(letter.agent_id),
        task_name=_short(letter.task_name),
        task_id=_short(content.task_id),
        generation=letter.generation,
        attempts=content.attempts,
        supervisor_id=_short(content.supervisor_id),
        worker_id=_short(content.worker_id),
        trace_id=letter.trace_id,
        tenant=_short(fields.get("tenant")),
        user_id=_short(fields.get("user_id")),
        created_at=content.created_at,
        died_at=content.died_at,
        queued_ms=content.queued_ms,
        run_ms=content.run_ms,
        usage=content.usage,
        subject=content.subject[:_TEXT],
    )


def _short(text: object) -> str | None:
    return text[:_TEXT] if isinstance(text, str) else None
