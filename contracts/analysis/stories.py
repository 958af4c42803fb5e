"""A story beside its responses: characters, places, memories, threads and facts.

A story's folder says where it begins; what agents find in each response is kept beside it, by response (`StoryChange`),
so that a response that is analysed again, or late, changes nothing twice and nothing out of order.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.identifiers import Name

EntityKind = Literal["character", "location", "object", "group"]
AnalysisGroup = Literal["background", "immediate"]

_Word = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)
]
#: The name of a section of the analysis document.
SectionName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
_Points = Annotated[float, Field(allow_inf_nan=False, ge=-1000, le=1000)]


#: The highest number of a response or a chapter; it stays a number in whatever reads it.
MOST_NUMBER = 1_000_000_000


class StoryPart(BaseModel):
    """What every part of a story shares: it is frozen, and fields that are not known are left out on reading."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="ignore", defer_build=True
    )


class Entity(StoryPart):
    """A character, place or thing with a file of its own; `tokens` is what the file would take in a prompt."""

    name: _Word
    kind: EntityKind = "character"
    aliases: tuple[_Word, ...] = ()
    file: str = ""
    text: str = ""
    tokens: int = Field(default=0, ge=0)


class StoryMemory(StoryPart):
    """What a character remembers; `text` is the whole, `summary` a sentence of it.

    `significance` is from 1 to 10. `response` is the number of the response in which it happened, None before all.
    """

    id: _Word
    character: _Word
    title: str = ""
    summary: str = ""
    text: str = ""
    significance: int = Field(default=5, ge=1, le=10)
    chapter: int | None = Field(default=None, ge=0)
    response: int | None = Field(default=None, ge=0)
    type: str | None = None
    tone: str | None = None
    location: str | None = None
    quote: str | None = None
    tags: tuple[str, ...] = ()


class Tier(StoryPart):
    """A stretch of a relationship's score: from `threshold` points up to the next tier."""

    name: _Word
    threshold: _Points


#: The tiers of a story that declares none.
TIERS = (
    Tier(name="Enemy", threshold=-1000),
    Tier(name="Rival", threshold=-30),
    Tier(name="Stranger", threshold=-10),
    Tier(name="Acquaintance", threshold=11),
    Tier(name="Friend", threshold=31),
    Tier(name="Close Friend", threshold=61),
    Tier(name="Family", threshold=91),
)


class Bond(StoryPart):
    """How two characters stand to each other before the first response; the score is in points."""

    characters: tuple[_Word, _Word]
    score: _Points = 0

    @property
    def pair(self) -> str:
        """The name of the pair, in either order."""
        return pair_of(*self.characters)


class Tastes(StoryPart):
    """What a character likes and dislikes in others: points by trait, positive in both; dislikes are subtracted."""

    likes: dict[_Word, Annotated[float, Field(gt=0, le=1000)]] = Field(
        default_factory=dict
    )
    dislikes: dict[_Word, Annotated[float, Field(gt=0, le=1000)]] = Field(
        default_factory=dict
    )


class Relations(StoryPart):
    """The relationships of a story: tiers, who likes what, by character, and the scores that it begins with."""

    tiers: tuple[Tier, ...] = Field(default=TIERS, min_length=1)
    tastes: dict[_Word, Tastes] = Field(default_factory=dict)
    bonds: tuple[Bond, ...] = ()

    @model_validator(mode="after")
    def _rises(self) -> "Relations":
        for lower, higher in zip(self.tiers, self.tiers[1:], strict=False):
            if higher.threshold <= lower.threshold:
                msg = f"tiers: {higher.name!r} must begin above {lower.name!r}; order them by threshold"
                raise ValueError(msg)
        return self


class StoryThread(StoryPart):
    """A plot thread that is open until a response resolves it; `text` describes it in full.

    `consequence_at` and `due_at` are numbers of responses: when something happens unless the thread is taken up, and
    when what it waits for takes place. `keywords` are words by which it is taken up; with those in
    `resolved_by`, which tell of its end, a model is told them.
    `opened` is the response that introduced it, None before all.
    """

    id: _Word
    title: str = ""
    text: str = ""
    priority: Literal["low", "medium", "high"] = "medium"
    time_sensitive: bool = False
    characters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    keywords: tuple[_Word, ...] = ()
    resolved_by: tuple[_Word, ...] = ()
    opened: int | None = Field(default=None, ge=0)
    consequence_at: int | None = Field(default=None, ge=0)
    due_at: int | None = Field(default=None, ge=0)


class SeatSettings(StoryPart):
    """What a story says of one agent; an agent of the story's own needs `group`, `agent` and `task`.

    `enabled` None leaves it as it is by default: on, but for `contradiction`. `after` names sections that it waits for,
    as long as the story's patience lasts. `deadline_s` is seconds from its dispatch until its section is marked late.
    """

    enabled: bool | None = None
    group: AnalysisGroup | None = None
    agent: Name | None = None
    task: Name | None = None
    after: tuple[SectionName, ...] | None = None
    deadline_s: float | None = Field(default=None, gt=0, le=3600)


class StorySettings(StoryPart):
    """Settings of the analyses of a story.

    `critical_countdown` is in responses: a thread with so many or fewer left is critical. `patience_s` is how many
    seconds an agent waits for those whose findings it would use. `late_s` is how many seconds past its deadline what a
    background agent finds is still taken. `reader_usd_per_million` is what a million input tokens cost the model that
    is given the context. `traits` are words of what characters like, as they
    may be shown; a model is told them.
    """

    story_id: Name
    title: str = ""
    critical_countdown: int = Field(default=5, ge=0)
    patience_s: float = Field(default=10.0, ge=0, le=3600)
    late_s: float = Field(default=300.0, ge=0, le=86400)
    reader_usd_per_million: float = Field(
        default=3.0, ge=0, le=1_000_000, allow_inf_nan=False
    )
    traits: dict[_Word, tuple[_Word, ...]] = Field(default_factory=dict)
    agents: dict[SectionName, SeatSettings] = Field(default_factory=dict)


class StoryBase(StoryPart):
    """Where a story begins: everything that its folder says."""

    settings: StorySettings
    entities: tuple[Entity, ...] = ()
    memories: tuple[StoryMemory, ...] = ()
    relations: Relations = Field(default_factory=Relations)
    threads: tuple[StoryThread, ...] = ()
    knowledge: tuple[KnownFact, ...] = ()

    def digest(self) -> str:
        """Return the digest of this beginning, 32 hexadecimal digits; the counter of tokens does not change it."""
        said = self.model_dump_json(exclude={"entities": {"__all__": {"tokens"}}})
        return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


class StoryResponse(StoryPart):
    """One response of the story, as it was written."""

    number: int = Field(ge=0, le=MOST_NUMBER)
    chapter: int = Field(default=1, ge=0, le=MOST_NUMBER)
    text: str = Field(min_length=1)

    @property
    def source(self) -> str:
        """How the response is named as a source: `Ch{chapter}-R{number}`."""
        return source_of(self.chapter, self.number)


class StoryChange(StoryPart):
    """What one response changed in its story, as one agent found it; each agent fills its own fields.

    `points` are by pair (`pair_of`). `mentioned` and `resolved` are ids of threads. `scene`, `tension` and `timestamp`
    are the response's own.
    """

    memories: tuple[StoryMemory, ...] = ()
    points: dict[str, float] = Field(default_factory=dict)
    threads: tuple[StoryThread, ...] = ()
    mentioned: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    facts: tuple[KnownFact, ...] = ()
    scene: str | None = None
    tension: float | None = None
    timestamp: str | None = None


#: What responses changed, by number and by the section that found it.
Changes = Mapping[int, Mapping[str, StoryChange]]


def pair_of(one: str, other: str) -> str:
    """Return the name of the pair of two characters, in either order."""
    return "|".join(sorted((one.replace("|", "/"), other.replace("|", "/"))))


def source_of(chapter: int | None, number: int) -> str:
    """Return how response *number* is named as a source; chapter 0 stands for one that is not known."""
    return f"Ch{chapter or 0}-R{number}"
