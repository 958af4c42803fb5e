"""What a model that is right says of the response of the stage, section by section."""

from collections.abc import Mapping

from tasklore.workers.agents.story.contradiction import FoundConflict, FoundConflicts
from tasklore.workers.agents.story.entity_analysis import ChosenEntity, EntityChoice
from tasklore.workers.agents.story.fact_extract import CondensedFact, CondensedFacts
from tasklore.workers.agents.story.knowledge import FoundFacts, WordedFact
from tasklore.workers.agents.story.memory_create import FoundMemories, FoundMemory
from tasklore.workers.agents.story.memory_extract import ChosenMemories, ChosenMemory
from tasklore.workers.agents.story.plot_threads import (
    FoundThreads,
    OpenedThread,
    TouchedThread,
)
from tasklore.workers.agents.story.relationship import FoundShow, FoundShows
from tasklore.workers.agents.story.response_analyzer import (
    Elapsed,
    Person,
    Place,
    SceneReading,
    SceneTime,
)
from tasklore.workers.agents.story.thread_extract import ChosenThread, ChosenThreads
from tasklore.workers.answers import AnswerSchema

SCENE = SceneReading(
    reasoning="so",
    scene_type="dialogue",
    tension=6,
    characters=(
        Person(
            name="the keeper", presence="in_scene", quotation="Mara closed the book"
        ),
        Person(
            name="Tobias", presence="in_scene", quotation="Tobias put his hand on hers"
        ),
        Person(
            name="Ines",
            presence="mentioned",
            quotation="Ines asked after the forty crowns",
        ),
        Person(
            name="Corwin Ashdown",
            presence="mentioned",
            quotation="Corwin Ashdown heard it all",
        ),
    ),
    places=(Place(name="lantern house", quotation="the windows of Lantern House"),),
    moments=(SceneTime(words="Monday 9:15 PM", quotation="Monday, 9:15 PM."),),
    elapsed=(Elapsed(minutes=5, quotation="For a while there was only the rain"),),
)
MEMORIES = FoundMemories(
    reasoning="so",
    memories=(
        FoundMemory(
            character="Mara",
            type="revelation",
            significance=9,
            tone="ashamed, relieved",
            summary="Mara confessed to Tobias that she had let go of the rope the night her father drowned.",
            place="Lantern House",
            tags=("the rope", "Confession"),
            slug="rope",
            quotation="I let go of the rope. I have never told anyone.",
        ),
        FoundMemory(
            character="Tobias Reed",
            type="character_moment",
            significance=5,
            tone="tender",
            summary="Tobias comforted Mara without a word.",
            tags=("comfort",),
            slug="hand",
            quotation="Tobias put his hand on hers",
        ),
    ),
)
SHOWS = FoundShows(
    reasoning="so",
    shows=(
        FoundShow(
            giver="Tobias",
            receiver="Mara",
            trait="honesty",
            shown="plain truth",
            direction="up",
            degree="clear",
            quotation="The truth. That we have eleven.",
        ),
        FoundShow(
            giver="Mara",
            receiver="Tobias",
            shown="confided in him",
            direction="up",
            degree="strong",
            quotation="I have never told anyone.",
        ),
    ),
)
THREADS = FoundThreads(
    reasoning="so",
    touched=(
        TouchedThread(
            id="THREAD-001", quotation="the debt is due before the ice comes"
        ),
        TouchedThread(id="thread-002", quotation="the bell rang once"),
    ),
    new=(
        OpenedThread(
            title="What happened in the boat",
            priority="high",
            characters=("Mara", "Tobias"),
            tags=("secret",),
            quotation="I was in the boat that night",
        ),
    ),
)
FACTS = FoundFacts(
    reasoning="so",
    facts=(
        WordedFact(
            category="character",
            subject="Mara",
            fact="Mara was in the boat the night her father drowned.",
            confidence="medium",
            known_by=("Mara", "Tobias"),
            quotation="I was in the boat that night",
        ),
        WordedFact(
            category="object",
            subject="crowns",
            fact="They have 11 of the 40 crowns.",
            confidence="high",
            known_by=("Mara", "Tobias", "Corwin"),
            quotation="That we have eleven.",
        ),
    ),
)
CONFLICTS = FoundConflicts(
    reasoning="so",
    contradictions=(
        FoundConflict(
            old_quotation="Mara watched from the gallery as her father's boat went under",
            quotation="I was in the boat that night",
            why="She cannot have been in both places.",
            severity="critical",
        ),
    ),
)
ENTITIES = EntityChoice(
    reasoning="so",
    entities=(
        ChosenEntity(name="Mara", role="focus", quotation="Mara went white"),
        ChosenEntity(name="Tobias", role="focus", quotation="Tobias admitted"),
        ChosenEntity(name="the captain", role="relevant", quotation="Ines asked after"),
    ),
)
CONDENSED = CondensedFacts(
    reasoning="so",
    facts=(
        CondensedFact(
            name="Ines Calder",
            fact="Smuggles lamp oil",
            quotation="Smuggles lamp oil past the customs boat",
        ),
        CondensedFact(
            name="Ines Calder",
            fact="Distrusts Corwin.",
            quotation="Distrusts Corwin Ashdown since the fire",
        ),
        CondensedFact(
            name="Corwin",
            fact="Owns the tavern",
            quotation="Owner of the Salt Quay Tavern",
        ),
    ),
)
RECALLED = ChosenMemories(
    reasoning="so",
    memories=(
        ChosenMemory(
            id="MEM-001-debt", why="The debt is asked for", quotation="the forty crowns"
        ),
        ChosenMemory(
            id="MEM-000",
            why="Root of what she confesses",
            quotation="I let go of the rope",
        ),
    ),
)
LOADED = ChosenThreads(
    reasoning="so",
    threads=(
        ChosenThread(
            id="THREAD-002", why="The bell rang tonight", quotation="the bell rang once"
        ),
        ChosenThread(
            id="THREAD-001",
            why="Ines asks for the crowns",
            quotation="Ines asked after the forty crowns",
        ),
    ),
)

RIGHT: Mapping[str, AnswerSchema] = {
    "resp_analyzer": SCENE,
    "memory_create": MEMORIES,
    "relationship": SHOWS,
    "plot_threads": THREADS,
    "knowledge": FACTS,
    "contradiction": CONFLICTS,
    "entity_analysis": ENTITIES,
    "fact_extract": CONDENSED,
    "memory_extract": RECALLED,
    "thread_extract": LOADED,
}
