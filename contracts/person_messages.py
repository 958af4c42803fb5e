"""A person's request to the supervisor, and its reply."""

from operator import not_
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, field_validator, model_validator

from tasklore.contracts.callers import Caller, caller_of, name_tenant
from tasklore.contracts.identifiers import Name, demand_user_id
from tasklore.contracts.message_parts import Message, Part, is_none
from tasklore.contracts.task_messages import CompletionReport, MemoryMode, TaskCall
from tasklore.contracts.words import reads_unknown_as_other, writes_only_known
from tasklore.contracts.zones import TimeZone

ReplyKind = Literal["answer", "question", "unable", "failed", "pending", "other"]


def _is_empty(parts: tuple[Part, ...]) -> bool:
    return not parts


class PersonRequest(Message):
    """A person's words to the supervisor; sent as a request to `requests.{supervisor_id}`.

    Sending it again with the same `request_id` starts nothing twice. `wait_ms` is how long the answer may take before
    the reply says `pending`. `caller` is who asks, by their API key. `tenant` is whose budgets the tasks spend: that of
    the caller, or what a program without one says. `time_zone` is where the person is, by IANA's
    name, when that is not where the supervisor believes its users to be: "tomorrow" is a day there. `not_before` is
    when the tasks may begin; the reply is `pending` where that is later than `wait_ms`. With `unserved_at_once` it is
    `pending` soon, too, where no worker of the agent is alive; else such a task is waited for, as one may start.
    """

    text: str = Field(min_length=1, max_length=20_000)
    request_id: Name | None = None
    conversation_id: str | None = Field(default=None, min_length=1, max_length=256)
    user_id: str | None = Field(default=None, min_length=1, max_length=256)
    tenant: str | None = Field(
        default=None, min_length=1, max_length=200, exclude_if=is_none
    )
    caller: Caller | None = Field(default=None, exclude_if=is_none)
    memory: Annotated[
        MemoryMode, reads_unknown_as_other(MemoryMode), writes_only_known
    ] = "use"
    wait_ms: int = Field(default=30_000, ge=0, le=600_000)
    time_zone: TimeZone | None = Field(default=None, exclude_if=is_none)
    unserved_at_once: bool = Field(default=False, exclude_if=not_)
    not_before: AwareDatetime | None = Field(default=None, exclude_if=is_none)

    @field_validator("user_id")
    @classmethod
    def _demand_user(cls, user_id: str | None) -> str | None:
        return user_id if user_id is None else demand_user_id(user_id)

    _name_tenant = model_validator(mode="after")(name_tenant)

    @property
    def asked_by(self) -> Caller | None:
        """Who asks, None where that is not known."""
        return caller_of(self.caller, self.tenant)


class ReplyPart(Part):
    """What came of one of several tasks that one sentence asked for; its fields are those of a `PersonReply`.

    `task_id` is that of the task it became, None for what became none. `approval_id`, `heading`, `origin`, `taken`
    and `waits_for` are as in a `PersonReply`.
    """

    kind: Annotated[ReplyKind, reads_unknown_as_other(ReplyKind), writes_only_known]
    text: str
    task_id: Name | None = None
    agent_id: Name | None = None
    task: TaskCall | None = None
    missing: tuple[str, ...] = ()
    report: CompletionReport | None = None
    approval_id: str | None = Field(default=None, exclude_if=is_none)
    heading: str | None = Field(default=None, exclude_if=is_none)
    origin: str | None = Field(default=None, exclude_if=is_none)
    taken: str | None = Field(default=None, exclude_if=is_none)
    waits_for: str | None = Field(default=None, exclude_if=is_none)


class PersonReply(Message):
    """The supervisor's answer: `text` for people, the rest for programs.

    `kind` is `answer` (a report with a result), `question` (a value is missing or has two readings; `missing` names the
    fields), `unable` (nothing fits), `failed` (the task did not complete) or `pending` (not yet). `approval_id` is the
    question that another person has to answer with yes before a pending task starts; left out where there is none.

    Words that asked for several tasks have `parts`, in the order they were said; `agent_id`, `task` and `report` are
    None then. Their `kind` is `pending` as long as one of them is, else `question`, `failed` or `answer` when one of
    them is, in that order, and `unable` when nothing fits. Of one task `parts` is left out.

    A result that is a text is `text`, byte for byte. What stands around any other result is in `heading`, the task and
    its parameters ("Letter (topic tea)"), and in `origin`, whether it was remembered or computed, and in what time.
    `taken` is those parameters that the person did not say as they are, but memory or arithmetic did. `waits_for` is
    `worker` while a pending task waits for one, as no worker of its agent is alive, else the kind of a `RunWait`:
    `limit`, `bound`, `turn`, `retry`, `model`, `person`, `signal` or `time`; `text` says for which. `read_by_rules` is
    why no model read the words although one is configured: a budget that is spent, or the provider's words. Each is
    left out where there is none.
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
    approval_id: str | None = Field(default=None, exclude_if=is_none)
    heading: str | None = Field(default=None, exclude_if=is_none)
    origin: str | None = Field(default=None, exclude_if=is_none)
    taken: str | None = Field(default=None, exclude_if=is_none)
    waits_for: str | None = Field(default=None, exclude_if=is_none)
    read_by_rules: str | None = Field(default=None, exclude_if=is_none)
    parts: tuple[ReplyPart, ...] = Field(default=(), exclude_if=_is_empty)
