"""The request to analyse a response of a story, and its reply (see `tasklore.contracts.messages`)."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tasklore.contracts.analysis.stories import MOST_NUMBER
from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import Name
from tasklore.contracts.message_parts import Message, is_none
from tasklore.contracts.words import reads_unknown_as_other, writes_only_known

AnalysisReplyKind = Literal["done", "pending", "refused", "other"]
AnalysisExtent = Literal["immediate", "all", "other"]


class AnalysisRequest(Message):
    """The request to have a response of a story analysed; request-reply on `analyses.{supervisor_id}`.

    With `text` the response is stored first; without it, it was stored before. `until` says what is waited for, at most
    `wait_ms`: what the next response needs (`immediate`), or every agent. Asked again for the same text and story, it
    is served from memory, and agents that failed or were late are asked again; `refresh` asks all of them again.
    `caller` is who asks: the tasks of the agents are theirs.
    """

    story_id: Name
    response_number: int = Field(ge=0, le=MOST_NUMBER)
    chapter: int | None = Field(default=None, ge=0, le=MOST_NUMBER)
    text: str | None = Field(default=None, min_length=1, max_length=400_000)
    until: Annotated[
        AnalysisExtent, reads_unknown_as_other(AnalysisExtent), writes_only_known
    ] = "all"
    wait_ms: int = Field(default=30_000, ge=0, le=600_000)
    refresh: bool = False
    caller: Caller | None = Field(default=None, exclude_if=is_none)


class AnalysisReply(Message):
    """What there is of an analysis: `done` as far as it was waited for, `pending` when that took longer.

    `document` is the analysis by its short keys, None when there is nothing yet or it is `refused`; `served` says that
    no agent was asked for it.
    """

    story_id: Name | None = None
    response_number: int | None = None
    kind: Annotated[
        AnalysisReplyKind, reads_unknown_as_other(AnalysisReplyKind), writes_only_known
    ]
    text: str = ""
    document: dict[str, JsonValue] | None = None
    served: bool = False
