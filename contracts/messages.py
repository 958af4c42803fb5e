"""The messages on the wire, frozen, one JSON object each (see docs/reference/wire.md for subjects and headers).

Readers ignore fields they do not know and read unknown words of a closed list as `other`, so that old readers can live
beside new writers. Times are UTC in RFC 3339; durations are whole milliseconds in fields that end in `_ms`.
"""

from datetime import date, datetime
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from contracts.agent_messages import AgentMessage as AgentMessage
from contracts.analysis.messages import AnalysisReply as AnalysisReply
from contracts.analysis.messages import AnalysisRequest as AnalysisRequest
from contracts.identifiers import Name, demand_user_id
from contracts.message_parts import Message as Message
from contracts.message_parts import Part as Part
from contracts.pipeline_messages import PhaseNote as PhaseNote
from contracts.pipeline_messages import PipelineEvent as PipelineEvent
from contracts.pipeline_messages import PipelineEventKind as PipelineEventKind
from contracts.pipeline_messages import PipelineReply as PipelineReply
from contracts.pipeline_messages import PipelineRequest as PipelineRequest
from contracts.words import reads_unknown_as_other, writes_only_known
from contracts.zones import TimeZone

MemoryMode = Literal["use", "refresh", "bypass", "other"]
MemoryOutcome = Literal["hit", "miss", "joined", "near", "refreshed", "bypassed", "off", "unavailable", "other"]
Status = Literal["completed", "failed", "rejected", "expired", "cancelled", "other"]
Fence = Literal["ledger", "none", "other"]
Remember = Literal["shared", "user", "never", "other"]
Speaker = Literal["person", "assistant", "other"]
Durability = Literal["permanent", "long_term", "short_term", "momentary", "other"]
Polarity = Literal["positive", "negative", "neutral", "other"]
FactRelation = Literal["new", "same", "updates", "ends", "adds_to", "contradicts", "forget", "other"]
ReplyKind = Literal["answer", "question", "unable", "failed", "pending", "other"]


def _is_empty(parts: tuple[Part, ...]) -> bool:
    return not parts


def _is_none(value: object) -> bool:
    return value is None


class TaskCall(Part):
    """Which task to run, with parameters in any spelling that the task's `Parameters` accept."""

    name: Name
    parameters: dict[str, Any] = Field(default_factory=dict)


class TaskAssignment(Message):
    """One task for one agent; published to `tasks.{agent_id}.{task.name}`.

    `deadline` counts from anywhere, queue time included; None means no limit. `max_attempts` counts runs, the first
    included. `memory` says whether a remembered answer may serve (`use`), is recomputed and overwritten (`refresh`) or
    neither read nor written (`bypass`). An unknown `memory` word is treated as `bypass`. `session_id` and `phase` name
    the run of a pipeline and the step this is; `writes` names what of the result the worker puts into that session
    before it reports: `results` is the whole, any other name a property of it; `keep_ms` is how long these entries
    live, None as long as the session. `story_id` and `response_number` say which response of which story is analysed.
    """

    task_id: Name
    agent_id: Name
    supervisor_id: Name
    task: TaskCall
    created_at: datetime
    deadline: datetime | None = None
    max_attempts: int = Field(default=5, ge=1, le=1000)
    memory: Annotated[MemoryMode, reads_unknown_as_other(MemoryMode), writes_only_known] = "use"
    request_id: str | None = None
    parent_id: str | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    session_id: str | None = None
    phase: str | None = None
    writes: tuple[Name, ...] | None = None
    keep_ms: int | None = Field(default=None, ge=1)
    story_id: Name | None = None
    response_number: int | None = Field(default=None, ge=0)


class ErrorNote(Part):
    """Why a task did not complete: `type` is the class of the error, `message` names the field and the cure."""

    type: str
    message: str
    retryable: bool = False


class MemoryNote(Part):
    """What the long-term memory had to do with a result.

    `age_ms` is how old a served answer is (None unless one was served). `near` adds `computed_for`, the parameters
    whose answer was served, `distances`, how far each of them exactly is from what was asked, by field ("200", "0.5
    points", "0.2 km", "PT10M", and "0" for not at all), and `distance`, the largest of these as a number. All of it is
    None otherwise, and `distances` is then left out.
    """

    outcome: Annotated[MemoryOutcome, reads_unknown_as_other(MemoryOutcome), writes_only_known]
    key: str | None = None
    age_ms: int | None = None
    distance: float | None = None
    computed_for: dict[str, JsonValue] | None = None
    distances: dict[str, str] | None = Field(default=None, exclude_if=_is_none)


class Usage(Part):
    """What a task spent on language models, over all of its calls.

    `cost_usd` is None when the price of a model is not known, and `unpriced` then says so. Both are left out where they
    say nothing: readers of 0.1 take a number for the cost or none at all, but no null.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = Field(default=0.0, exclude_if=_is_none)
    unpriced: bool = Field(default=False, exclude_if=not_)

    @model_validator(mode="before")
    @classmethod
    def _read_left_out(cls, said: Any) -> Any:
        return {**said, "cost_usd": None} if isinstance(said, dict) and said.get("unpriced") is True else said


class CompletionReport(Message):
    """The one terminal report of a generation of a task; published to `reports.{supervisor_id}.{task_id}.{generation}`.

    `result` is None unless `status` is `completed`; `error` is None only then. `fence` is `none` when the ledger was
    away, so that "exactly one" rests on the stream alone. `queued_ms` runs from `created_at` to the first look at it.
    """

    task_id: Name
    generation: int = Field(default=1, ge=1)
    agent_id: Name
    supervisor_id: Name
    task_name: Name
    status: Annotated[Status, reads_unknown_as_other(Status), writes_only_known]
    result: Any = None
    error: ErrorNote | None = None
    memory: MemoryNote
    attempt: int = Field(default=1, ge=0)
    fence: Annotated[Fence, reads_unknown_as_other(Fence), writes_only_known] = "ledger"
    worker_id: str
    queued_ms: int = 0
    run_ms: int = 0
    usage: Usage = Usage()
    finished_at: datetime


class Progress(Message):
    """How far a running task is; `fraction` is 0 to 1, or None when the end is not known."""

    task_id: Name
    agent_id: Name
    fraction: float | None = Field(default=None, ge=0, le=1)
    text: str = ""
    at: datetime


class Cancellation(Message):
    """The wish to stop a task; published to `cancel.{task_id}`."""

    task_id: Name
    reason: str = ""


class TaskCard(Part):
    """One task as a supervisor sees it: `description` is read to choose it, `parameters` is its JSON schema.

    `in_words` false keeps it from persons: pipelines, analyses and programs ask for it. `code` is the digest of its
    code, part of the memory's keys; None where nothing is remembered. `confirm` true shows a person what would be
    started, and waits for a yes; it is left out where it is not.
    """

    name: Name
    version: int = Field(default=1, ge=1)
    description: str = ""
    parameters: dict[str, JsonValue]
    result: dict[str, JsonValue] | None = None
    remember: Annotated[Remember, reads_unknown_as_other(Remember), writes_only_known] = "shared"
    max_attempts: int = Field(default=5, ge=1)
    deadline_s: float | None = None
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    in_words: bool = True
    code: str | None = None
    confirm: bool = Field(default=False, exclude_if=not_)


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
        return f"v{self.version}.{task.version}" + (f"-{task.code}" if task.code else "")


class WorkerPresence(Message):
    """A worker that is alive; kept in the bucket `workers` under `{agent_id}.{worker_id}` and refreshed every 5 s."""

    worker_id: Name
    agent_id: Name
    version: int = 1
    digest: str
    slots: int
    http: str | None = None
    started_at: datetime


class ChatTurn(Message):
    """One thing said in a conversation; published to `turns.{partition}.{user_token}`.

    An assistant's turn keeps the `agent_id` and `task` it came from, so that "same history" can be resolved later, and
    the `kind` of reply that it was: only a question can be answered. None, and left out, where that is not known.
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
    kind: Annotated[ReplyKind | None, reads_unknown_as_other(ReplyKind), writes_only_known] = Field(
        default=None, exclude_if=_is_none
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
    durability: Annotated[Durability, reads_unknown_as_other(Durability), writes_only_known] = "long_term"
    expiry: date | None = None
    polarity: Annotated[Polarity, reads_unknown_as_other(Polarity), writes_only_known] = "neutral"
    evidence: str = ""
    inferred: bool = False
    extracted_by: str = "rules"
    subject: str | None = Field(default=None, min_length=1, max_length=200, exclude_if=_is_none)
    category: str = Field(default="", max_length=200)
    value: str = Field(default="", max_length=2_000)
    relation: Annotated[FactRelation, reads_unknown_as_other(FactRelation), writes_only_known] = "new"
    related: tuple[str, ...] = Field(default=(), max_length=100)
    valid_from: date | None = Field(default=None, exclude_if=_is_none)


class ExtractedFacts(Message):
    """What one turn told about a user; published to `facts.{partition}.{user_token}`."""

    turn_id: Name
    conversation_id: str = Field(min_length=1, max_length=256)
    user_id: str = Field(min_length=1, max_length=256)
    facts: tuple[Fact, ...]
    at: datetime


class PersonRequest(Message):
    """A person's words to the supervisor; sent as a request to `requests.{supervisor_id}`.

    Sending it again with the same `request_id` starts nothing twice. `wait_ms` is how long the answer may take before
    the reply says `pending`. `time_zone` is where the person is, by IANA's name, when that is not where the supervisor
    believes its users to be: "tomorrow" is a day there.
    """

    text: str = Field(min_length=1, max_length=20_000)
    request_id: Name | None = None
    conversation_id: str | None = Field(default=None, min_length=1, max_length=256)
    user_id: str | None = Field(default=None, min_length=1, max_length=256)
    memory: Annotated[MemoryMode, reads_unknown_as_other(MemoryMode), writes_only_known] = "use"
    wait_ms: int = Field(default=30_000, ge=0, le=600_000)
    time_zone: TimeZone | None = Field(default=None, exclude_if=_is_none)

    @field_validator("user_id")
    @classmethod
    def _demand_user(cls, user_id: str | None) -> str | None:
        return user_id if user_id is None else demand_user_id(user_id)


class ReplyPart(Part):
    """What came of one of several tasks that one sentence asked for; its fields are those of a `PersonReply`.

    `task_id` is that of the task it became, None for what became none.
    """

    kind: Annotated[ReplyKind, reads_unknown_as_other(ReplyKind), writes_only_known]
    text: str
    task_id: Name | None = None
    agent_id: Name | None = None
    task: TaskCall | None = None
    missing: tuple[str, ...] = ()
    report: CompletionReport | None = None


class PersonReply(Message):
    """The supervisor's answer: `text` for people, the rest for programs.

    `kind` is `answer` (a report with a result), `question` (a value is missing or has two readings; `missing` names the
    fields), `unable` (nothing fits), `failed` (the task did not complete) or `pending` (not yet).

    Words that asked for several tasks have `parts`, in the order they were said; `agent_id`, `task` and `report` are
    None then. Their `kind` is `pending` as long as one of them is, else `question`, `failed` or `answer` when one of
    them is, in that order, and `unable` when nothing fits. Of one task `parts` is left out.
    """

    request_id: Name
    conversation_id: str
    kind: Annotated[ReplyKind, reads_unknown_as_other(ReplyKind), writes_only_known]
    text: str
    agent_id: Name | None = None
    task: TaskCall | None = None
    missing: tuple[str, ...] = ()
    report: CompletionReport | None = None
    elapsed_ms: int = 0
    parts: tuple[ReplyPart, ...] = Field(default=(), exclude_if=_is_empty)


class DeadLetter(Message):
    """A message that was given up, kept in DEAD under `dead.{origin subject}`.

    `body` is what it carried, as base64 of at most 512 KiB; `body_bytes` and `body_digest` (BLAKE2b-128, hexadecimal)
    are of the whole. `sequence` is its place in the stream it came from. What is None was not known, or was not written
    down by an older worker: `created_at` and `queued_ms` are the task's, `run_ms` is of the last run, if one began.
    """

    reason: str
    error: ErrorNote
    traceback: str | None = None
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
        AnalysisRequest,
        AnalysisReply,
        DeadLetter,
    )
}
