"""Stories: load where one begins, list them, see how one stands, delete one.

They are of the whole deployment: no key for one user or tenant reaches them.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic_core import to_json

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS, roster_of
from tasklore.contracts.analysis.stories import (
    Entity,
    Relations,
    SeatSettings,
    StoryBase,
    StoryMemory,
    StorySettings,
    StoryThread,
)
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import repeats_of
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.rendering.tokens import counter
from tasklore.memory.stories.arithmetic import (
    ThreadStatus,
    countdowns,
    plain,
    thread_status,
    tier_of,
)
from tasklore.memory.stories.store import StoryStore
from tasklore.memory.stories.view import StandingStory, StoryInfo, unknown
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import Fault, unusable
from tasklore.supervisor.operations.table import Operations, Shows, operation

StoryId = Annotated[str, Field(pattern=NAME_PATTERN, description="A story, by its id.")]


@dataclass(frozen=True, kw_only=True)
class StoryServices:
    """The store of stories."""

    stories: StoryStore


class NewStory(Form):
    """Where a story begins: what its folder says. What responses changed stays.

    Characters have their whole names everywhere. A fact of `knowledge` may have its long names (`subject`, `category`,
    `confidence`, `source`, `known_by`) in place of the short ones. `tokens` of an entity are counted where they are
    left out.
    """

    settings: Annotated[
        StorySettings,
        Field(description="Its id, its title, and how it is analysed."),
    ]
    entities: Annotated[
        tuple[Entity, ...], Field(description="Characters, places and things.")
    ] = ()
    memories: Annotated[
        tuple[StoryMemory, ...], Field(description="What characters remember.")
    ] = ()
    relations: Annotated[
        Relations, Field(description="Tiers, tastes, and the scores of pairs.")
    ] = Field(default_factory=Relations)
    threads: Annotated[
        tuple[StoryThread, ...], Field(description="Open plot threads.")
    ] = ()
    knowledge: Annotated[
        tuple[KnownFact, ...], Field(description="Known facts of its world.")
    ] = ()

    @model_validator(mode="before")
    @classmethod
    def _demand_exact_fields(cls, given: Any) -> Any:
        # Parts of a story pass over what they do not know, as later versions may have written it, and read numbers from
        # texts: a mistake, here.
        if isinstance(given, Mapping):
            spelled = to_json(given, inf_nan_mode="constants")
            StoryBase.model_validate_json(spelled, strict=True, extra="forbid")
        return given

    def as_base(self) -> StoryBase:
        """Return it as it is stored."""
        return StoryBase(**dict(self))


class StoryRow(View):
    """A story in a list: the responses and analyses are those that are still kept."""

    story_id: str
    title: str
    entities: int
    responses: int
    analyses: int
    updated_at: datetime


class StoryList(View):
    """A page of stories; `after` is what to ask for the next page with, None at the end."""

    stories: tuple[StoryRow, ...]
    after: str | None


class LoadedStory(View):
    """What a story begins with; `changed` says whether that is another beginning than before."""

    story_id: str
    title: str
    digest: str
    entities: int
    entity_tokens: int
    memories: int
    bonds: int
    threads: int
    facts: int
    changed: bool


class StoryRules(View):
    """How a story is analysed: see the fields of the same names in `StorySettings`."""

    critical_countdown: int
    patience_s: float
    late_s: float
    reader_usd_per_million: float
    traits: dict[str, tuple[str, ...]]
    agents: dict[str, SeatSettings]


class StandingBond(View):
    """How two characters stand to each other; `points_needed` are those up to the next tier, None in the highest."""

    characters: tuple[str, ...]
    score: float
    tier: str
    next_tier: str | None
    points_needed: float | None


class OpenThread(View):
    """A thread that is open after the last response; both countdowns are in responses, None without such an end."""

    id: str
    title: str
    status: ThreadStatus
    priority: str
    consequence_countdown: int | None
    time_until: int | None
    last_mention: int | None


class OwnSeat(View):
    """A section that an agent of the story's own finds."""

    section: str
    agent_id: str


class StoryStanding(View):
    """A story after its last response: `entities` are counted by kind, `responses` are the numbers of those still kept.

    `switched_off` are the sections that no agent is asked for.
    """

    story_id: str
    title: str
    settings: StoryRules
    switched_off: tuple[str, ...]
    own_agents: tuple[OwnSeat, ...]
    responses: tuple[int, ...]
    last_response: int
    entities: dict[str, int]
    entity_tokens: int
    memories: int
    facts: int
    relationships: tuple[StandingBond, ...]
    threads: tuple[OpenThread, ...]
    resolved_threads: int


class DeletedStory(View):
    """The counts that were removed, or would be in a dry run."""

    story_id: str
    title: str
    entities: int
    responses: int
    analyses: int
    dry_run: bool


@operation(
    "stories",
    "list",
    "GET /v1/stories",
    roles=("read", "operate"),
    shows=Shows(
        rows="stories",
        columns=(
            "story_id",
            "title",
            "entities",
            "responses",
            "analyses",
            "updated_at",
        ),
        example="stories list",
    ),
)
async def list_stories(
    services: StoryServices,
    caller: Caller,
    *,
    after: Annotated[
        str,
        Field(
            pattern=r"^([0-9]{1,16}-[A-Za-z0-9_-]{1,64})?$",
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 100,
) -> StoryList:
    """List the stories that are loaded, the last changed first."""
    caller.demand_unbound()
    changed_ms, _, story_id = after.partition("-")
    place = (-int(changed_ms), story_id) if story_id else None
    found = [
        info
        for info in await services.stories.stories()
        if place is None or (-info.updated_ms, info.story_id) > place
    ]
    shown = found[:limit]
    last = shown[-1] if len(found) > limit else None
    return StoryList(
        stories=tuple(map(_view_row, shown)),
        after=f"{last.updated_ms}-{last.story_id}" if last is not None else None,
    )


@operation(
    "stories",
    "show",
    "GET /v1/stories/{story_id}",
    roles=("read", "operate"),
    problems=(404,),
    shows=Shows(picture="story", example="stories show lighthouse"),
)
async def show_story(
    services: StoryServices, caller: Caller, story_id: StoryId
) -> StoryStanding:
    """Show the state of a story after its last response: settings, relationships, open threads, how much is known.

    Raises:
        UnknownStory: there is none.
    """
    caller.demand_unbound()
    stories = services.stories
    responses = await stories.numbers(story_id)
    entities = await stories.entities(story_id)
    last = max(responses, default=0)
    story = await stories.standing(story_id, last, after=True)
    settings = story.settings
    seats = roster_of(settings.agents)
    ours = {seat.section for seat in SECTION_AGENTS}
    return StoryStanding(
        story_id=settings.story_id,
        title=settings.title,
        settings=StoryRules.model_validate(settings),
        switched_off=tuple(seat.section for seat in seats if not seat.enabled),
        own_agents=tuple(
            OwnSeat(section=seat.section, agent_id=seat.agent_id)
            for seat in seats
            if seat.section not in ours and seat.enabled
        ),
        responses=responses,
        last_response=last,
        entities=dict(sorted(Counter(one.kind for one in entities).items())),
        entity_tokens=sum(one.tokens for one in entities),
        memories=len(story.memories),
        facts=len(story.knowledge),
        relationships=tuple(_bonds_of(story)),
        threads=tuple(_open_threads(story, last)),
        resolved_threads=sum(not one.is_open for one in story.threads),
    )


@operation(
    "stories",
    "load",
    "POST /v1/stories",
    roles=("operate",),
    shows=Shows(example="stories load lighthouse"),
)
async def load_story(
    services: StoryServices, caller: Caller, new: NewStory
) -> LoadedStory:
    """Load the initial state of a story, for the agents.

    Changes by responses are kept. Repeating it changes nothing.

    Raises:
        Refused: 422, a name or an id stands twice.
        InvalidInput: an agent of its own lacks what it needs.
    """
    caller.demand_unbound()
    base = new.as_base()
    faults = list(_repeats_in(base))
    try:
        roster_of(base.settings.agents)
    except InvalidInput as error:
        faults.append(Fault(where="settings.agents", message=str(error)))
    if faults:
        raise unusable(faults)
    base = await asyncio.to_thread(_count_tokens, base)
    is_other = await services.stories.load(base)
    return LoadedStory(
        story_id=base.settings.story_id,
        title=base.settings.title,
        digest=base.digest(),
        entities=len(base.entities),
        entity_tokens=sum(one.tokens for one in base.entities),
        memories=len(base.memories),
        bonds=len(base.relations.bonds),
        threads=len(base.threads),
        facts=len(base.knowledge),
        changed=is_other,
    )


@operation(
    "stories",
    "delete",
    "DELETE /v1/stories/{story_id}",
    roles=("operate",),
    problems=(404,),
    shows=Shows(
        confirm="Remove {story_id}, its responses and their analyses? It cannot be undone.",
        example="stories delete lighthouse --yes",
    ),
)
async def delete_story(
    services: StoryServices,
    caller: Caller,
    story_id: StoryId,
    *,
    dry_run: Annotated[
        bool, Field(description="Only show what would be removed.")
    ] = False,
) -> DeletedStory:
    """Remove a story with its responses and their analyses; its folder stays.

    Raises:
        UnknownStory: there is none.
    """
    caller.demand_unbound()
    info = await services.stories.info(story_id)
    if not dry_run and not await services.stories.delete(story_id):
        # Somebody else removed it just now.
        raise unknown(story_id)
    return DeletedStory(
        story_id=story_id,
        title=info.title,
        entities=info.entities,
        responses=info.responses,
        analyses=info.analyses,
        dry_run=dry_run,
    )


OPERATIONS: Operations[StoryServices] = (
    list_stories,
    show_story,
    load_story,
    delete_story,
)


def _view_row(info: StoryInfo) -> StoryRow:
    return StoryRow(
        story_id=info.story_id,
        title=info.title,
        entities=info.entities,
        responses=info.responses,
        analyses=info.analyses,
        updated_at=datetime.fromtimestamp(info.updated_ms / 1000, UTC),
    )


def _count_tokens(base: StoryBase) -> StoryBase:
    """Return *base* with the tokens of each entity, counted where they are not said."""
    count = counter()
    counted = (
        one if one.tokens else one.model_copy(update={"tokens": count(one.text)})
        for one in base.entities
    )
    return base.model_copy(update={"entities": tuple(counted)})


def _repeats_in(base: StoryBase) -> Iterator[Fault]:
    """Yield a fault for each name or id that was there before it in *base*."""
    marks: Mapping[str, Iterable[str]] = {
        "entities": [" ".join(one.name.split()).casefold() for one in base.entities],
        "memories": [one.id for one in base.memories],
        "relations.tiers": [one.name for one in base.relations.tiers],
        "relations.bonds": [one.pair for one in base.relations.bonds],
        "threads": [one.id for one in base.threads],
    }
    for part, of_part in marks.items():
        for place, earlier, mark in repeats_of(of_part):
            yield Fault(
                where=f"{part}.{place}",
                message=f"{mark!r} is {part}.{earlier} already; rename it, or remove one of them",
            )


def _bonds_of(story: StandingStory) -> Iterator[StandingBond]:
    """Yield each pair with its score and its tier, the highest score first."""
    scored = sorted(story.scores.items(), key=lambda one: (-one[1], one[0]))
    for pair, score in scored:
        standing = tier_of(score, story.relations.tiers)
        yield StandingBond(
            characters=tuple(pair.split("|")),
            score=plain(score),
            tier=standing.tier,
            next_tier=standing.next_tier,
            points_needed=standing.points_needed,
        )


def _open_threads(story: StandingStory, last: int) -> list[OpenThread]:
    """Return each open thread after response *last*, the nearest consequence first, then those due next."""
    critical = story.settings.critical_countdown
    found: list[OpenThread] = []
    for one in story.threads:
        if not one.is_open:
            continue
        consequence_countdown, time_until = countdowns(one.thread, last)
        thread = OpenThread(
            id=one.thread.id,
            title=one.thread.title,
            status=thread_status(one.thread, last, critical=critical),
            priority=one.thread.priority,
            consequence_countdown=consequence_countdown,
            time_until=time_until,
            last_mention=one.last_mention,
        )
        found.append(thread)

    def rank(one: OpenThread) -> tuple[bool, int, bool, int]:
        consequence = one.consequence_countdown
        due = one.time_until
        return consequence is None, consequence or 0, due is None, due or 0

    return sorted(found, key=rank)


def make_services(
    parts: SupervisorDependencies | OperatorDependencies,
) -> StoryServices:
    """Return the services of operations of stories, in either process."""
    return StoryServices(stories=StoryStore(parts.redis))


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(make_services, OPERATIONS),
    operator=serve(make_services, OPERATIONS),
)
