"""Every error of the domain: each class says what happened and how to cure it.

Expected outcomes are values (a `CompletionReport` with `status="failed"`, a miss as None); these are for surprises and
for input that somebody must mend.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from tasklore.contracts.quantities.errors import AmbiguousAmount as AmbiguousAmount
from tasklore.contracts.quantities.errors import InvalidAmount as InvalidAmount
from tasklore.contracts.quantities.errors import InvalidInput as InvalidInput
from tasklore.contracts.quantities.errors import TaskloreError as TaskloreError
from tasklore.contracts.quantities.errors import UnitMismatch as UnitMismatch


class InvalidParameters(InvalidInput):
    """The parameters of a task do not fit its class; `problems` holds one sentence a field."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class VersionConflict(InvalidInput):
    """It has changed since it was read; read it again, then repeat the change."""


class MessageTooLarge(InvalidInput):
    """A message is larger than the wire accepts; send a reference to the content instead."""


class ConfigurationError(TaskloreError):
    """A setting, an agent or a file is wrong; the process does not start until it is mended."""


class DriftedConfiguration(ConfigurationError):
    """A stream, consumer or bucket exists with another configuration; the message lists each difference."""


class AgentConflict(ConfigurationError):
    """Two live workers serve one agent id with different schemas; rename one or raise its version."""


class Unreachable(TaskloreError):
    """A server did not answer in time; check its address and that it runs."""


class Forbidden(Unreachable):
    """A server answers and does not let this user do that; use the credentials of a role that may."""


class UnknownCredentials(Forbidden):
    """A server does not know us, or not yet: keys may reach it after the processes that use them; or correct them."""


class MemoryUnavailable(Unreachable):
    """Redis or Valkey did not answer within the time that remembering is worth; work goes on without it."""


class MemoryRefused(MemoryUnavailable):
    """Redis or Valkey answers, but does not let this role do that; where it should, renew the rights of all roles."""


class NotAccepted(TaskloreError):
    """A message is not known to be stored (no stream, no leader); send it under the same id after `retry_after_s`."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QueueFull(NotAccepted):
    """A stream refused a message because as much waits as may; nothing was stored, try again after `retry_after_s`."""


class OwnerFull(QueueFull):
    """An owner keeps as much as it may, and nothing more was stored; the message says what makes room."""


class NotPermitted(TaskloreError):
    """A caller may not do that; *kind* is one word for programs: `role`, `other-user`, `other-tenant`."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class UndeclaredAccess(TaskloreError):
    """A task touched state of a user, the clock or the LLM without declaring it; declare it on `@agent.task(...)`."""

    retryable = False


class RetryLater(TaskloreError):
    """Raised by an agent's task to be run again: *after_s* seconds from now, or at *at* when that is given.

    With neither, after the pause of any other error. A time without a zone is in UTC. The run that raised it counts.
    """

    def __init__(
        self, message: str, after_s: float | None = None, *, at: datetime | None = None
    ) -> None:
        super().__init__(message)
        self.after_s = after_s
        self.at = at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)


class GiveUp(TaskloreError):
    """Raised by an agent's task to fail at once: running it again cannot help."""


class ResultTooLarge(GiveUp):
    """A result does not fit into a message; return a reference to it instead."""


class TaskExpired(GiveUp):
    """The deadline of a task passed before its end; allow more time, or start more workers. *deadline* is when."""

    def __init__(self, message: str, deadline: datetime | None = None) -> None:
        super().__init__(message)
        self.deadline = deadline


class TaskCancelled(GiveUp):
    """The task was cancelled; the message says why."""


class UserForgotten(GiveUp):
    """The user of the task was forgotten, and no word of it is kept; the message says when."""


class EffectUncertain(GiveUp):
    """An earlier run ended between the right to a step's effect and its result: look whether the effect was made."""


class NotAnswered(GiveUp):
    """No answer or signal came in time; catch it, or say with `otherwise` how to go on."""


class ApprovalChanged(GiveUp):
    """The question or its arguments changed after a person had answered: nothing of it was done; ask anew."""


class NotApproved(GiveUp):
    """The person whose yes a task needs said no, or nothing in time: nothing of it was done."""


class CallFailed(GiveUp):
    """A task that was called ended otherwise than completed: *status* says how, *error_type* names its error's class.

    It has had all of its own runs: catch this error to go on without the result.
    """

    def __init__(
        self, message: str, status: str, error_type: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type


class RunReplaced(GiveUp):
    """Another worker has taken the task meanwhile, or it has ended: stop, whatever comes of this run is refused."""


class WorkerLost(GiveUp):
    """Too many deliveries of a task ended without a word; it probably kills the process that runs it."""


class InvalidPath(InvalidInput):
    """The path of an edit cannot be read; the message says at which character, and what would fit there."""


class UnknownPath(InvalidInput):
    """A document has nothing at a path; the message names the nearest one that exists."""


class EditRefused(InvalidInput):
    """A plan does not fit the documents or their limits, and nothing of it was applied; `reason` is one word of a list.

    The words label a metric: `path`, `missing`, `protected`, `type`, `size`, `depth`, `overlap`, `file`, `value`.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class UndoRefused(InvalidInput):
    """An edit cannot be taken back, because a later one touched the same place; undo that one first."""


class InvalidPipeline(InvalidInput):
    """A pipeline cannot run as it is declared; `problems` holds one sentence each, with its place and its cure."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class RunSetAside(TaskloreError):
    """Three supervisors in turn froze or died over a run: it is driven again only after a resume."""


class UnknownSession(InvalidInput):
    """There is no session of this id, or its time to live is over; GET /v1/sessions lists them."""


class UnknownStory(InvalidInput):
    """There is no story of this id; load it with `tasklore stories load FOLDER`."""


class EntryTooLarge(InvalidInput):
    """A value is larger than a session takes; store it elsewhere and keep a reference, or split it by identifiers."""


class PhaseReplaced(GiveUp):
    """The phase was invalidated or started anew meanwhile: what this run of it writes is refused."""


class LlmError(TaskloreError):
    """Base of the errors of a language model; `retryable` says whether asking again may help.

    `away_s` is set while the provider of `model` counts as away: the seconds after which a task that needs it comes
    back. Such a run is not counted as an attempt. `said` is what the provider last said, `code` what it calls the
    error, "" where it does not say.
    """

    retryable = False
    away_s: float | None = None
    model = ""
    said = ""
    code = ""


class LlmNotConfigured(LlmError):
    """No key and no base URL: set `TASKLORE_LLM_API_KEY` or `TASKLORE_LLM_BASE_URL`, or rely on the built-in rules.

    Or the provider of the role cannot be used: correct its entry of `TASKLORE_LLM_ROLES`.
    """


class LlmRefused(LlmError):
    """The model declined to answer; the message is its own words."""


class LlmCutOff(LlmError):
    """The answer ended at the token limit; raise `max_output_tokens` or ask for less."""


class LlmMalformed(LlmError):
    """The answer does not fit the schema it was asked for; `answer` is its text, None when there is none to show."""

    retryable = True

    def __init__(self, message: str, answer: str | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class LlmTimeout(LlmError):
    """The model did not answer before the deadline of the attempt."""

    retryable = True


class LlmRateLimited(LlmError):
    """The provider asks for patience; `retry_after_s` is its own word when it gave one."""

    retryable = True

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class LlmThrottled(LlmRateLimited):
    """A limit of the deployment has no room for the call now: its task comes back after `away_s`, uncounted.

    `limit` names it and `words` say whose and how large it is; there is room in `room_in_s` at the latest.
    """

    limit = ""
    words = ""
    room_in_s = 0.0


class BudgetSpent(LlmError):
    """A limit has no room for a call and refuses it; `limit` names it, `at_limit` is `next` where another model may.

    `unit` says of what it has none: `usd`, `tokens`, `requests` or `at_once`.
    """

    def __init__(
        self, message: str, limit: str, at_limit: str = "refuse", *, unit: str = ""
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.at_limit = at_limit
        self.unit = unit


class LlmUnavailable(LlmError):
    """The provider cannot be reached or answers 5xx."""

    retryable = True


class LlmRejected(LlmError):
    """The provider refuses the request itself (4xx): key, model name or schema is wrong."""
