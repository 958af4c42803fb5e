"""Analyses of the responses of a story: have one made, see how far it is, and read what agents found.

They are of the whole deployment, as stories are: no key for one user or tenant reaches them.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.stories import (
    MOST_NUMBER,
    AnalysisGroup,
)
from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.messages import AnalysisRequest
from tasklore.memory.rendering.prompt_context import BUDGET_TOKENS, within
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Form, Seconds, Text, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import not_found
from tasklore.supervisor.operations.table import (
    Operations,
    Shows,
    Unfinished,
    operation,
)
from tasklore.supervisor.pipelines.analysis.places import value_at
from tasklore.supervisor.pipelines.analysis.records import (
    OVER,
    AnalysisRecord,
    SectionState,
    read_record,
)
from tasklore.supervisor.pipelines.analysis.requests import AnalysisRequests

#: Seconds for one look: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0
#: Of a document whose record cannot be read, each section is there.
_GROUPS: tuple[AnalysisGroup, ...] = ("background", "immediate")

StoryId = Annotated[
    str,
    Field(
        pattern=NAME_PATTERN,
        description="A story, by its id.",
        json_schema_extra={"x-cli": {"metavar": "STORY"}},
    ),
]
Response = Annotated[
    int | None,
    Field(
        ge=0,
        le=MOST_NUMBER,
        description="The number of the response; default: the latest that was "
        "analysed.",
        json_schema_extra={"x-cli": {"metavar": "N"}},
    ),
]


@dataclass(frozen=True, kw_only=True)
class AnalysisLooks:
    """The stores of stories and of their analyses; `absent` returns the agents that have no live worker."""

    stories: StoryStore
    analyses: AnalysisStore
    absent: Callable[[Collection[str]], Awaitable[frozenset[str]]]


@dataclass(frozen=True, kw_only=True)
class AnalysisServices(AnalysisLooks):
    """The stores of stories and of their analyses, and `requests`, which has new ones made."""

    requests: AnalysisRequests


class ResponseToAnalyse(Form):
    """A response of a story; with `text` it is stored first, without it was stored before.

    For the same text of the same story stored findings are returned; agents that failed
    or were late are asked again, with `refresh` every one.
    """

    response: Annotated[
        int, Field(ge=0, le=MOST_NUMBER, description="The number of the response.")
    ]
    text: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=400_000,
            description="The text of the response; default: the stored one.",
        ),
    ] = None
    chapter: Annotated[
        int | None, Field(ge=0, le=MOST_NUMBER, description="The chapter it is in.")
    ] = None
    until: Annotated[
        Literal["immediate", "all"],
        Field(description="Wait for what the next response needs, or for every agent."),
    ] = "all"
    refresh: Annotated[
        bool,
        Field(description="Ask every agent again, including those that have answered."),
    ] = False
    wait_seconds: Annotated[
        Seconds,
        Field(
            ge=0,
            le=600,
            description="How long to wait for it.",
            json_schema_extra={"x-cli": {"option": "--wait", "metavar": "SPAN"}},
        ),
    ] = 30.0


class AnalysedSection(View):
    """One section and its agent: `waiting` for others, `asked`, `late` while it may still come, or how it ended."""

    section: str
    group: AnalysisGroup
    agent_id: str | None
    state: SectionState


class Analysis(View):
    """The analysis of one response, `running` while a section is waited for.

    `document` has the findings so far, by their short keys (docs/reference/analysis-keys.md), None without any.
    `without_worker` are the agents of awaited sections that have no live worker. `served` says that this request had
    no agent asked.
    """

    story_id: str
    response: int
    state: Literal["running", "done"]
    served: bool = False
    sections: tuple[AnalysedSection, ...]
    without_worker: tuple[str, ...] = ()
    document: dict[str, JsonValue] | None


class AnalysisContext(View):
    """The context for the prompt of the next response: its tokens of o200k_base, and how many lines were left out."""

    text: str
    tokens: int
    left_out: int


@operation(
    "analyses",
    "run",
    "POST /v1/analyses/{story_id}",
    roles=("ask", "operate"),
    problems=(404,),
    waits=True,
    shows=Shows(example="analyses run ./lighthouse"),
)
async def run_analysis(
    services: AnalysisServices,
    caller: Caller,
    story_id: StoryId,
    new: ResponseToAnalyse,
) -> Analysis | Unfinished[Analysis]:
    """Have agents analyse a response in parallel; once accepted, the analysis continues without the client.

    Raises:
        UnknownStory: there is no such story.
        InvalidInput: the response has no text, or no agent of a story is known.
    """
    caller.demand_unbound()
    reply = await services.requests.take_up(
        AnalysisRequest(
            story_id=story_id,
            response_number=new.response,
            chapter=new.chapter,
            text=new.text,
            until=new.until,
            wait_ms=int(new.wait_seconds * 1000),
            refresh=new.refresh,
            caller=caller,
        )
    )
    found = await _read(services, story_id, new.response, is_served=reply.served)
    if reply.kind == "done":
        return found
    return Unfinished(
        view=found, location=f"/v1/analyses/{story_id}?response={new.response}"
    )


@operation(
    "analyses",
    "show",
    "GET /v1/analyses/{story_id}",
    roles=("ask", "read", "operate"),
    problems=(404,),
    shows=Shows(example="analyses show lighthouse --response 9"),
)
async def show_analysis(
    services: AnalysisLooks,
    caller: Caller,
    story_id: StoryId,
    *,
    response: Response = None,
) -> Analysis:
    """Show the findings of each agent for a response, and which agents are still running.

    Raises:
        UnknownStory: there is no such story.
        Refused: 404, there is no such analysis.
    """
    caller.demand_unbound()
    number = await _choose(services, story_id, response)
    return await _read(services, story_id, number)


@operation(
    "analyses",
    "context",
    "GET /v1/analyses/{story_id}/context",
    roles=("ask", "read", "operate"),
    problems=(404,),
    shows=Shows(example="analyses context lighthouse --tokens 200"),
)
async def show_context(
    services: AnalysisLooks,
    caller: Caller,
    story_id: StoryId,
    *,
    response: Response = None,
    tokens: Annotated[
        int,
        Field(ge=0, le=100_000, description="Maximum number of tokens (o200k_base)."),
    ] = BUDGET_TOKENS,
) -> AnalysisContext:
    """Return the context for the prompt of the next response.

    The least important lines are dropped first, and counted; alerts, critical threads
    and the characters in the scene last. Tokens are counted exactly if the extra
    `tokens` is installed, else overestimated.

    Raises:
        UnknownStory: there is no such story.
        Refused: 404, there is no such analysis.
    """
    document = await _demand_document(services, caller, story_id, response)
    found = within(document, tokens)
    return AnalysisContext(
        text=found.text, tokens=found.tokens, left_out=found.left_out
    )


@operation(
    "analyses",
    "get",
    "GET /v1/analyses/{story_id}/value",
    roles=("ask", "read", "operate"),
    problems=(404,),
    shows=Shows(
        arguments=("path",),
        picture="document",
        example="analyses get lighthouse background.relationship.interactions[0].score",
    ),
)
async def get_value(
    services: AnalysisLooks,
    caller: Caller,
    story_id: StoryId,
    *,
    path: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            description="A place in the document, by short keys or long names.",
        ),
    ],
    response: Response = None,
) -> Text:
    """Return the value at a place of an analysis, as JSON.

    A name may be any name of an entity of the story. A path that does not begin at a
    key of the root may begin anywhere in the document, if that is unambiguous.

    Raises:
        UnknownStory: there is no such story.
        Refused: 404, there is no such analysis.
        InvalidInput: nothing stands there, or more than one place is meant; names the nearest.
    """
    document = await _demand_document(services, caller, story_id, response)
    entities = await services.stories.entities(story_id)
    value = value_at(document.body(), path, entities)
    return Text(text=json.dumps(value), media_type="application/json")


#: Those that have no analysis made.
OPERATOR_OPERATIONS = (show_analysis, show_context, get_value)
OPERATIONS: Operations[AnalysisServices] = (run_analysis, *OPERATOR_OPERATIONS)


def for_supervisor(parts: SupervisorDependencies) -> AnalysisServices:
    """Return the services of operations of analyses, in a supervisor."""
    return AnalysisServices(**vars(for_operator(parts)), requests=parts.analyses)


def for_operator(
    parts: SupervisorDependencies | OperatorDependencies,
) -> AnalysisLooks:
    """Return the services of those operations that have no analysis made, in either process."""
    return AnalysisLooks(
        stories=StoryStore(parts.redis, deadline_s=_DEADLINE_S),
        analyses=AnalysisStore(parts.redis, deadline_s=_DEADLINE_S),
        absent=parts.attendance.absent,
    )


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, OPERATIONS),
    operator=serve(for_operator, OPERATOR_OPERATIONS),
)


async def _choose(services: AnalysisLooks, story_id: str, response: int | None) -> int:
    """Return which response is meant: the latest one that was analysed where none is named.

    Raises:
        UnknownStory: there is no such story.
        Refused: 404, there is no such analysis; the message names those there are.
    """
    numbers = await services.analyses.numbers(story_id)
    if not numbers:
        raise not_found(
            f"nothing of story {story_id!r} was analysed; POST /v1/analyses/{story_id} does"
        )
    if response is None:
        return numbers[-1]
    if response not in numbers:
        raise not_found(
            f"no analysis of response {response} of {story_id!r} is kept; there are {_spell_ranges(numbers)}"
        )
    return response


async def _demand_document(
    services: AnalysisLooks, caller: Caller, story_id: str, response: int | None
) -> AnalysisDocument:
    """Return the analysis that *caller* means.

    Raises:
        NotPermitted: the key is for one user or tenant.
        UnknownStory, Refused: as `_choose`.
    """
    caller.demand_unbound()
    number = await _choose(services, story_id, response)
    document = await services.analyses.read(story_id, number)
    if document is None:
        # It was given up for a later one just now.
        raise not_found(f"no analysis of response {number} of {story_id!r} is kept")
    return document


async def _read(
    services: AnalysisLooks, story_id: str, number: int, *, is_served: bool = False
) -> Analysis:
    """Return how far the analysis of a response is."""
    _, _, body = await services.analyses.record(story_id, number)
    document = await services.analyses.read(story_id, number)
    sections = _sections_of(read_record(body), document)
    awaited = [one for one in sections if one.state not in OVER]
    agents = {one.agent_id for one in awaited if one.agent_id is not None}
    away = await services.absent(agents)
    return Analysis(
        story_id=story_id,
        response=number,
        state="running" if awaited else "done",
        served=is_served,
        sections=tuple(sections),
        without_worker=tuple(sorted(away)),
        document=None if document is None else document.body(),
    )


def _sections_of(
    record: AnalysisRecord | None, document: AnalysisDocument | None
) -> Sequence[AnalysedSection]:
    """Return how far each section is: by the record, else by the document, in which all that is there has ended."""
    if record is not None:
        return [
            AnalysedSection(
                section=seat.section,
                group=seat.group,
                agent_id=seat.agent_id,
                state=seat.state,
            )
            for seat in record.seats
        ]
    if document is None:
        return []
    groups = zip(_GROUPS, (document.background, document.immediate), strict=True)
    return [
        AnalysedSection(section=name, group=group, agent_id=None, state=_end_of(found))
        for group, part in groups
        for name, found in part.model_dump(mode="json").items()
    ]


def _end_of(found: JsonValue) -> SectionState:
    match found:
        case {"status": "failed"}:
            return "failed"
        case {"status": "late"}:
            return "late"
        case {"status": "skipped"}:
            return "skipped"
    return "ok"


def _spell_ranges(numbers: Sequence[int]) -> str:
    """Return sorted *numbers* as people write them: "3, 7 to 12"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    return ", ".join(
        str(first) if first == last else f"{first} to {last}" for first, last in runs
    )
