"""The messages on the wire, frozen, one JSON object each (see docs/reference/wire.md for subjects and headers).

Readers ignore fields they do not know and read unknown words of a closed list as `other`, so that old readers can live
beside new writers. Times are UTC in RFC 3339; durations are whole milliseconds in fields that end in `_ms`.
"""

from datetime import date, datetime
from operator import not_
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.admission.waits import AnswerOutcome as AnswerOutcome
from tasklore.contracts.admission.waits import QuestionAnswer as QuestionAnswer
from tasklore.contracts.admission.waits import QuestionNotice as QuestionNotice
from tasklore.contracts.agent_messages import AgentMessage as AgentMessage
from tasklore.contracts.analysis.messages import AnalysisReply as AnalysisReply
from tasklore.contracts.analysis.messages import AnalysisRequest as AnalysisRequest
from tasklore.contracts.identifiers import Name
from tasklore.contracts.message_parts import Message as Message
from tasklore.contracts.message_parts import Part as Part
from tasklore.contracts.message_parts import is_none
from tasklore.contracts.person_messages import PersonReply as PersonReply
from tasklore.contracts.person_messages import PersonRequest as PersonRequest
from tasklore.contracts.person_messages import ReplyKind as ReplyKind
from tasklore.contracts.person_messages import ReplyPart as ReplyPart
from tasklore.contracts.pipeline_messages import PhaseNote as PhaseNote
from tasklore.contracts.pipeline_messages import PipelineEvent as PipelineEvent
from tasklore.contracts.pipeline_messages import PipelineEventKind as PipelineEventKind
from tasklore.contracts.pipeline_messages import PipelineReply as PipelineReply
from tasklore.contracts.pipeline_messages import PipelineRequest as PipelineRequest
from tasklore.contracts.task_messages import Cancellation as Cancellation
from tasklore.contracts.task_messages import CompletionReport as CompletionReport
from tasklore.contracts.task_messages import EmittedValue as EmittedValue
from tasklore.contracts.task_messages import ErrorNote as ErrorNote
from tasklore.contracts.task_messages import Fence as Fence
from tasklore.contracts.task_messages import MemoryMode as MemoryMode
from tasklore.contracts.task_messages import MemoryNote as MemoryNote
from tasklore.contracts.task_messages import MemoryOutcome as MemoryOutcome
from tasklore.contracts.task_messages import Progress as Progress
from tasklore.contracts.task_messages import RequiredApproval as RequiredApproval
from tasklore.contracts.task_messages import Status as Status
from tasklore.contracts.task_messages import TaskAssignment as TaskAssignment
from tasklore.contracts.task_messages import TaskCall as TaskCall
from tasklore.contracts.task_messages import TaskOutput as TaskOutput
from tasklore.contracts.task_messages import Usage as Usage
from tasklore.contracts.words import reads_unknown_as_other, writes_only_known

Remember = Literal["shared", "user", "never", "other"]
Speaker = Literal["person", "assistant", "other"]
Durability = Literal["permanent", "long_term", "short_term", "momentary", "other"]
Polarity = Literal["positive", "negative", "neutral", "other"]
FactRelation = Literal[
    "new", "same", "updates", "ends", "adds_to", "contradicts", "forget", "other"
]


class TaskCard(Part):
    """One task as a supervisor sees it: `description` is read to choose it, `parameters` is its JSON schema.

    `in_words` false keeps it from persons: pipelines, analyses and programs ask for it. `code` is the digest of its
    code, part of the memory's keys; None where nothing is remembered. `confirm` true shows a person what would be
    started, and waits for a yes; it is left out where it is not. `approver` is the user or role whose yes it needs
    instead, None and left out without one; a supervisor that knows no approvers goes by `confirm`, which is true then.
    `schedule` is when it begins by itself, as its code declares; left out where it does not.
    """

    name: Name
    version: int = Field(default=1, ge=1)
    description: str = ""
    parameters: dict[str, JsonValue]
    result: dict[str, JsonValue] | None = None
    remember: Annotated[
        Remember, reads_unknown_as_other(Remember), writes_only_known
    ] = "shared"
    max_attempts: int = Field(default=5, ge=1)
    deadline_s: float | None = None
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    in_words: bool = True
    code: str | None = None
    confirm: bool = Field(default=False, exclude_if=not_)
    approver: str | None = Field(default=None, exclude_if=is_none)
    schedule: Timing | None = Field(default=None, exclude_if=is_none)


class AgentCard(Message):
    """What an agent offers; kept in the bucket `agents` under its id, also while no worker of it is alive.

    `digest` is over everything a caller or a memory depends on: two live cards of one id and version must agree on it.
    """

    agent_id: Name
    version: int = Field(default=1, ge=1)
    description: str = ""
    keywords: tuple[str, ...] = ()
    tasks: tuple[TaskCard, ...]
    digest: str

    def memory_version(self, task: TaskCard) -> str:
        """Return the version part of the keys of *task*, its agent's settings at their defaults."""
        return f"v{self.version}.{task.version}" + (
            f"-{task.code}" if task.code else ""
        )


class AwayModel(Part):
    """A model whose provider does not answer a worker since then; `said` is its last answer, 200 characters of it."""

    model: str
    since: datetime
    said: str = ""


class WorkerPresence(Message):
    """A worker that is alive; kept in the bucket `workers` under `{agent_id}.{worker_id}` and refreshed every 5 s.

    `away` are the models that it does not ask for now; left out where there are none.
    """

    worker_id: Name
    agent_id: Name
    version: int = 1
    digest: str
    slots: int
    http: str | None = None
    started_at: datetime
    away: tuple[AwayModel, ...] = Field(default=(), exclude_if=not_)


class ChatTurn(Message):
    """One thing said in a conversation; published to `turns.{partition}.{user_token}`.

    An assistant's turn keeps the `agent_id` and `task` it came from, so that "same history" can be resolved later, and
    the `kind` of reply that it was: only a question can be answered. `tenant` is whose budgets pay for the models that
    read it. None, and left out, where that is not known.
    """

    turn_id: Name
    conversation_id: str = Field(min_length=1, max_length=256)
    user_id: str | None = None
    speaker: Annotated[Speaker, reads_unknown_as_other(Speaker), writes_only_known]
    text: str
    at: datetime
    request_id: str | None = None
    agent_id: Name | None = None
    task: TaskCall | None = None
    kind: Annotated[
        ReplyKind | None, reads_unknown_as_other(ReplyKind), writes_only_known
    ] = Field(default=None, exclude_if=is_none)
    tenant: str | None = Field(
        default=None, min_length=1, max_length=200, exclude_if=is_none
    )


class Fact(Part):
    """One thing learned about a user; `reasoning` says what in the turn it rests on.

    `text` is a statement of its own ("User likes omelettes"). `evidence` is the part of the turn that says it, letter
    by letter. `expiry` is the last day on which it holds, None for no end. `confidence` is 0 to 1. `inferred` tells
    that the person did not say so but somebody concluded it. `extracted_by` is `rules` or the name of a model.

    `subject` names whom it is about, None for the person who speaks. `category` is the path of the list that keeps such
    facts, as `food.likes`; "" leaves that to `tags`. `value` is what the list shows, "" for `text`. `relation` says how
    it stands to the items in `related`, each named `RESOURCE_ID:PATH.ITEM`; `forget` asks for their removal. An unknown
    relation is treated as `new`. `valid_from` is the first day on which it holds, None for the day of its turn.
    """

    fact_id: Name
    text: str = Field(min_length=1, max_length=2_000)
    tags: tuple[str, ...] = ()
    reasoning: str = ""
    confidence: float = Field(default=1.0, ge=0, le=1)
    durability: Annotated[
        Durability, reads_unknown_as_other(Durability), writes_only_known
    ] = "long_term"
    expiry: date | None = None
    polarity: Annotated[
        Polarity, reads_unknown_as_other(Polarity), writes_only_known
    ] = "neutral"
    evidence: str = ""
    inferred: bool = False
    extracted_by: str = "rules"
    subject: str | None = Field(
        default=None, min_length=1, max_length=200, exclude_if=is_none
    )
    category: str = Field(default="", max_length=200)
    value: str = Field(default="", max_length=2_000)
    relation: Annotated[
        FactRelation, reads_unknown_as_other(FactRelation), writes_only_known
    ] = "new"
    related: tuple[str, ...] = Field(default=(), max_length=100)
    valid_from: date | None = Field(default=None, exclude_if=is_none)


class ExtractedFacts(Message):
    """What one turn told about a user; published to `facts.{partition}.{user_token}`.

    `tenant` is that of the turn, left out where it has none.
    """

    turn_id: Name
    conversation_id: str = Field(min_length=1, max_length=256)
    user_id: str = Field(min_length=1, max_length=256)
    facts: tuple[Fact, ...]
    at: datetime
    tenant: str | None = Field(
        default=None, min_length=1, max_length=200, exclude_if=is_none
    )


class DeadLetter(Message):
    """A message that was given up, kept in DEAD under `dead.{origin subject}`.

    `body` is what it carried, as base64 of at most 512 KiB; `body_bytes` and `body_digest` (BLAKE2b-128, hexadecimal)
    are of the whole. `sequence` is its place in the stream it came from. What is None was not known, or was not written
    down by an older worker: `created_at` and `queued_ms` are the task's, `run_ms` is of the last run, if one began.
    `place` is the lines of the agent's own code that raised, left out where there is none.
    """

    reason: str
    error: ErrorNote
    traceback: str | None = None
    place: str | None = Field(default=None, exclude_if=is_none)
    subject: str
    sequence: int
    attempts: int
    headers: dict[str, str] = Field(default_factory=dict)
    body: str
    body_bytes: int
    body_digest: str
    task_id: str | None = None
    generation: int | None = Field(default=None, ge=1)
    agent_id: str | None = None
    task_name: str | None = None
    supervisor_id: str | None = None
    worker_id: str | None = None
    created_at: datetime | None = None
    queued_ms: int | None = None
    run_ms: int | None = None
    usage: Usage = Usage()
    died_at: datetime


#: Every message, by the name of its golden schema.
MESSAGES: dict[str, type[Message]] = {
    model.__name__: model
    for model in (
        TaskAssignment,
        CompletionReport,
        Progress,
        TaskOutput,
        Cancellation,
        AgentCard,
        WorkerPresence,
        ChatTurn,
        ExtractedFacts,
        AgentMessage,
        PersonRequest,
        PersonReply,
        PipelineRequest,
        PipelineReply,
        PipelineEvent,
        QuestionNotice,
        QuestionAnswer,
        AnswerOutcome,
        AnalysisRequest,
        AnalysisReply,
        DeadLetter,
    )
}
