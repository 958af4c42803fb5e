"""The messages about runs of pipelines: what is wished, what became of the wish, and what happens meanwhile."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import Name
from tasklore.contracts.message_parts import Message, Part, is_none
from tasklore.contracts.words import reads_unknown_as_other, writes_only_known

PipelineAction = Literal["run", "resume", "rerun", "invalidate", "cancel", "other"]
PipelineReplyKind = Literal["accepted", "refused", "other"]
PipelineEventKind = Literal[
    "accepted",
    "phase_started",
    "phase_progress",
    "phase_done",
    "phase_failed",
    "phase_skipped",
    "phase_reused",
    "phase_stale",
    "completed",
    "failed",
    "cancelled",
    "other",
]


class PipelineRequest(Message):
    """What is wished of a pipeline; sent as a request to `pipelines.{supervisor_id}`.

    `run` takes *pipeline*, the declaration as JSON, and *inputs*; a `session_id` of one's own makes a repeat start
    nothing twice. The others take the `session_id`: `resume` goes on after a failure, *inputs* then standing for those
    that are not kept; `rerun` begins again at *phase*; `invalidate` only marks what is stale, `cancel` ends the run.
    With a *pipeline* of the same name, `resume` and `rerun` go on by that declaration, and with *inputs* it adds.
    What is stale is named by *phase*, *keys* of entries, *changed* files and tags of *standards* or *design*.
    *caller* is who asks: the tasks of the run are theirs.
    """

    action: Annotated[
        PipelineAction, reads_unknown_as_other(PipelineAction), writes_only_known
    ]
    session_id: Name | None = None
    pipeline: dict[str, JsonValue] | None = None
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    keep: bool = False
    phase: Name | None = None
    keys: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    standards: tuple[str, ...] = ()
    design: tuple[str, ...] = ()
    user_id: str | None = Field(default=None, min_length=1, max_length=256)
    reason: str = ""
    caller: Caller | None = Field(default=None, exclude_if=is_none)


class PhaseNote(Part):
    """One phase in a reply, and why it is named; `saved_ms` is what was not computed again."""

    phase: Name
    why: str
    saved_ms: int = 0


class PipelineReply(Message):
    """What became of a `PipelineRequest`: taken up, or refused with one sentence a problem, each with its place.

    `stale` are phases whose results no longer hold, `reused` those that are not run again.
    """

    session_id: Name | None = None
    kind: Annotated[
        PipelineReplyKind, reads_unknown_as_other(PipelineReplyKind), writes_only_known
    ]
    text: str = ""
    problems: tuple[str, ...] = ()
    stale: tuple[PhaseNote, ...] = ()
    reused: tuple[PhaseNote, ...] = ()


class PipelineEvent(Message):
    """One step of a run of a pipeline, published to `runs.{session_id}`; nobody may listen, and nothing is kept.

    `through` of `total` phases need no more work. `run_ms` is what the phase, or the whole run, took.
    """

    session_id: Name
    pipeline: Name
    kind: Annotated[
        PipelineEventKind, reads_unknown_as_other(PipelineEventKind), writes_only_known
    ]
    phase: Name | None = None
    agent_id: Name | None = None
    task_id: Name | None = None
    text: str = ""
    run_ms: int | None = None
    through: int = 0
    total: int = 0
    at: datetime
