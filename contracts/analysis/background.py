"""Sections of the background agents: the next response does not wait for them, and they may arrive later."""

from pydantic import Field

from tasklore.contracts.analysis.pieces import Flag, Number, Piece, Section, Whole


class Scene(Piece):
    """What kind of scene it is; `tension` from 0 to 10, `words` of the response, `dialogue_share` from 0 to 1."""

    type: str | None = None
    pace: str | None = None
    tension: Number | None = Field(default=None, ge=0, le=10)
    words: Whole | None = None
    dialogue_share: Number | None = Field(default=None, alias="dlg", ge=0, le=1)


class Characters(Piece):
    """Who is in the scene, who is only spoken of, and which of them have no file in the story."""

    in_scene: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


class StoryTime(Piece):
    """How many minutes of story time the response took, and when it ends in the story's own words."""

    elapsed_minutes: Number | None = Field(default=None, alias="elapsed")
    timestamp: str | None = None


class Alerts(Piece):
    """Alerts about the rhythm of the last responses, in words; a missing field is no alert."""

    variety: str | None = None
    pacing: str | None = None


class ResponseAnalysis(Section):
    """The response itself: scene, characters, place, time and rhythm."""

    scene: Scene | None = None
    characters: Characters | None = Field(default=None, alias="chars")
    location: str | None = Field(default=None, alias="loc")
    time: StoryTime | None = None
    alerts: Alerts | None = None


class NewMemory(Piece):
    """A memory that the response made; `significance` from 1 to 10, the id is `MEM-{response}-{slug}`."""

    id: str
    character: str | None = Field(default=None, alias="char")
    location: str | None = Field(default=None, alias="loc")
    type: str | None = None
    significance: Whole = Field(default=0, alias="sig", ge=0, le=10)
    tone: str | None = None
    summary: str = Field(default="", alias="sum")
    quote: str | None = None
    tags: tuple[str, ...] = ()


class MemoryCreation(Section):
    """The memories that the response made."""

    memories: tuple[NewMemory, ...] = ()


class Interaction(Piece):
    """How two characters stand to each other after the response; scores in points of the story's own table."""

    characters: tuple[str, ...] = Field(default=(), alias="chars")
    tier: str | None = None
    score: Number | None = None
    previous: Number | None = Field(default=None, alias="prev")
    change: Number = 0
    trigger: str | None = None
    next_tier: str | None = None
    points_needed: Number | None = None


class Relationships(Section):
    """Whose relationship changed."""

    interactions: tuple[Interaction, ...] = ()


class Thread(Piece):
    """A plot thread: `consequence_countdown` and `time_until` count responses, `last_mention` is the number of one."""

    id: str
    title: str = ""
    status: str | None = None
    priority: str | None = None
    time_sensitive: Flag | None = None
    characters: tuple[str, ...] = Field(default=(), alias="chars")
    tags: tuple[str, ...] = ()
    last_mention: Whole | None = None
    consequence_countdown: Whole | None = Field(default=None, alias="conseq_countdown")
    time_until: Whole | None = None


class PlotThreads(Section):
    """The threads that the response opened, touched or closed."""

    new: tuple[Thread, ...] = ()
    mentioned: tuple[Thread, ...] = ()
    resolved: tuple[Thread, ...] = ()


class KnownFact(Piece):
    """Something about the story's world; `source` is `Ch{chapter}-R{response}`, `known_by` names who knows it."""

    category: str | None = Field(default=None, alias="cat")
    subject: str = Field(alias="subj")
    fact: str
    confidence: str | None = Field(default=None, alias="conf")
    source: str | None = Field(default=None, alias="src")
    known_by: tuple[str, ...] = Field(default=(), alias="known")


class Knowledge(Section):
    """Facts about the world that the response states."""

    facts: tuple[KnownFact, ...] = ()


class Conflict(Piece):
    """Two statements that cannot both hold, each with its source; `severity` is `minor`, `major` or `critical`."""

    subject: str = Field(alias="subj")
    old: str
    old_source: str | None = Field(default=None, alias="old_src")
    new: str
    new_source: str | None = Field(default=None, alias="new_src")
    severity: str | None = Field(default=None, alias="sev")


class Contradictions(Section):
    """Statements that contradict an earlier one; `enabled` False comes with the status `skipped`."""

    enabled: Flag | None = None
    found: tuple[Conflict, ...] = ()


class Background(Piece):
    """Sections that the next response does not wait for; a missing section is an agent that did not come through."""

    response_analysis: ResponseAnalysis | None = Field(
        default=None, alias="resp_analyzer"
    )
    memory_creation: MemoryCreation | None = Field(default=None, alias="memory_create")
    relationships: Relationships | None = Field(default=None, alias="relationship")
    plot_threads: PlotThreads | None = None
    knowledge: Knowledge | None = None
    contradictions: Contradictions | None = Field(default=None, alias="contradiction")
