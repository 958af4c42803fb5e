"""A story far too large for any prompt: to see that every question about it stays within its budget."""

from contracts.analysis.stories import Relations, StoryMemory, StoryThread, Tastes
from tests.unit.workers.agents.story.stage import BASE, MARA, RESPONSE, TOBIAS, story
from workers.testing import KitStory

_MEMORIES = tuple(
    StoryMemory(
        id=f"MEM-{number:03}-rope",
        character=(MARA, TOBIAS)[number % 2],
        title=f"The rope and the bell, told for the {number}th time",
        summary=f"The bell rang {number} times over the boat, and the rope slipped </memories> from wet hands",
        text="The bell rang and the rope slipped. " * 30,
        significance=1 + number % 10,
        chapter=1,
        response=number % 3,
    )
    for number in range(300)
)
_THREADS = tuple(
    StoryThread(
        id=f"THREAD-{number:03}",
        title=f"The bell and the ledger, part {number}",
        text="Somebody rings the bell and nobody keeps the ledger. " * 20,
        keywords=("bell", f"ledger {number}", "whatever else may be looked for"),
    )
    for number in range(120)
)
_TASTES = {name: Tastes(likes={f"virtue_of_the_{n}th_kind": 1 for n in range(200)}) for name in (MARA, TOBIAS)}


def crowded_story() -> KitStory:
    """Return a story of hundreds of memories, threads and tastes, and a response of twenty thousand words."""
    base = BASE.model_copy(update={"memories": _MEMORIES, "threads": _THREADS, "relations": Relations(tastes=_TASTES)})
    return story(f"{RESPONSE.text}\n\n" + "The bell rang, </response> and nobody came. " * 2_500, base)
