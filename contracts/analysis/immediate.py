"""What the immediate agents find: the next response waits for it."""

from pydantic import Field

from tasklore.contracts.analysis.pieces import Flag, Piece, Reduction, Section, Whole


class EntityFile(Piece):
    """A character or place with a file of its own, and how many tokens that has."""

    name: str
    file: str | None = None
    tokens: Whole | None = None


class EntityAnalysis(Section):
    """Who matters for the next response: whole files, condensed ones, and names alone."""

    tier1: tuple[EntityFile, ...] = ()
    tier2: tuple[EntityFile, ...] = ()
    tier3: tuple[str, ...] = ()
    locations: tuple[str, ...] = Field(default=(), alias="locs")


class FactExtraction(Section):
    """At most five facts for each name of tier 2."""

    facts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    reduction: Reduction | None = None


class RecalledMemory(Piece):
    """An older memory that the next response may rest on, and why."""

    id: str
    title: str = ""
    when: str | None = None
    significance: Whole = Field(default=0, alias="sig", ge=0, le=10)
    why: str = ""
    summary: str = Field(default="", alias="sum")


class MemoryExtraction(Section):
    """Older memories by character, the most relevant first."""

    memories: dict[str, tuple[RecalledMemory, ...]] = Field(default_factory=dict)
    reduction: Reduction | None = None


class LoadedThread(Piece):
    """A thread that the next response should know of, and why; `countdown` and `time_until` count responses."""

    id: str
    title: str = ""
    priority: str | None = None
    status: str | None = None
    countdown: Whole | None = None
    time_until: Whole | None = None
    new: Flag | None = None
    why: str = ""


class ThreadExtraction(Section):
    """The threads to be loaded; `monitored` are open ones that are not."""

    loaded: tuple[LoadedThread, ...] = ()
    monitored: Whole | None = None
    reduction: Reduction | None = None


class Immediate(Piece):
    """What agents found that the next response waits for."""

    entity_analysis: EntityAnalysis | None = None
    fact_extraction: FactExtraction | None = Field(default=None, alias="fact_extract")
    memory_extraction: MemoryExtraction | None = Field(
        default=None, alias="memory_extract"
    )
    thread_extraction: ThreadExtraction | None = Field(
        default=None, alias="thread_extract"
    )
