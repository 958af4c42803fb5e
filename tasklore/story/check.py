"""`tasklore story check`: a story's folder looked over, every problem with its line and its cure."""

from pathlib import Path

from pydantic import JsonValue

from contracts.analysis.stories import StoryBase
from tasklore.exits import OK, USAGE
from tasklore.render.screen import complain, print_json, printable, say
from tasklore.render.words import count_of
from tasklore.story.files import InvalidStory, StoryReading, look_at_story


def check_aloud(folder: Path, *, as_json: bool) -> int:
    """Print what is wrong, and what is odd, in the story in *folder*, its responses too, and return the exit code."""
    reading = looked_at(folder, as_json=as_json)
    if reading is None:
        return USAGE
    if as_json:
        print_json(as_document(reading))
        return OK
    base, responses = reading.base, len(reading.responses or ())
    tokens = sum(entity.tokens for entity in base.entities)
    odd = f"{count_of(len(reading.warnings), 'thing')} to look at" if reading.warnings else "nothing is wrong"
    print(f"{called(base)}: {counts(base)}, {count_of(responses, 'response')}; {odd}.")
    print(f"Its entity files are {tokens:,} tokens.")
    return OK


def looked_at(folder: Path, *, as_json: bool) -> StoryReading | None:
    """Return what *folder* says, its warnings told; None when it cannot be used, its problems told."""
    try:
        reading = look_at_story(folder, with_responses=True)
    except InvalidStory as error:
        if as_json:
            print_json({"problems": list(error.problems), "warnings": list(error.warnings)})
        for problem in error.problems:
            complain(printable(problem))
        for warning in error.warnings:
            say(printable(warning))
        if len(error.problems) > 1:
            complain(f"{count_of(len(error.problems), 'problem')}; the story cannot be used before they are mended")
        return None
    for warning in reading.warnings:
        say(printable(warning))
    return reading


def as_document(reading: StoryReading) -> dict[str, JsonValue]:
    """Return *reading* for programs: how much of each there is, and what is odd."""
    base = reading.base
    return {
        "story_id": base.settings.story_id,
        "title": base.settings.title,
        "digest": base.digest(),
        "entities": len(base.entities),
        "entity_tokens": sum(entity.tokens for entity in base.entities),
        "memories": len(base.memories),
        "bonds": len(base.relations.bonds),
        "threads": len(base.threads),
        "facts": len(base.knowledge),
        "responses": len(reading.responses or ()),
        "problems": [],
        "warnings": list(reading.warnings),
    }


def called(base: StoryBase) -> str:
    """Return the id of a story with its title, if it has one."""
    title = " ".join(printable(base.settings.title).split())
    return f"{base.settings.story_id} ({title})" if title else base.settings.story_id


def counts(base: StoryBase) -> str:
    """Return how much of each a story begins with."""
    return ", ".join(
        (
            count_of(len(base.entities), "entity"),
            count_of(len(base.memories), "memory"),
            count_of(len(base.relations.bonds), "bond"),
            count_of(len(base.threads), "thread"),
            count_of(len(base.knowledge), "fact"),
        )
    )
