"""A story's folder, looked over without a server: its problems and warnings, and what is in it."""

from collections.abc import Sized
from pathlib import Path

from pydantic import JsonValue

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.render.screen import print_error, print_json, printable, say
from tasklore.commands.render.words import count_of, one_line
from tasklore.commands.stories.files import InvalidStory, StoryReading, look_at_story
from tasklore.contracts.analysis.stories import StoryBase


def print_check(folder: Path, *, as_json: bool) -> int:
    """Print the problems and warnings of the story in *folder*, its responses included, and return the exit code."""
    reading = look(folder, as_json=as_json)
    if reading is None:
        return USAGE
    if as_json:
        print_json(document_of(reading))
        return OK
    base = reading.base
    responses = len(reading.responses or ())
    odd = (
        f"{count_of(len(reading.warnings), 'thing')} to look at"
        if reading.warnings
        else "nothing is wrong"
    )
    print(
        f"{title_of(base)}: {spell_counts(base)}, {count_of(responses, 'response')}; {odd}."
    )
    print(
        f"Its entity files are {sum(entity.tokens for entity in base.entities):,} tokens."
    )
    return OK


def look(folder: Path, *, as_json: bool) -> StoryReading | None:
    """Return the story in *folder* and print its warnings; None after printing its problems."""
    try:
        reading = look_at_story(folder, with_responses=True)
    except InvalidStory as error:
        if as_json:
            print_json(
                {"problems": list(error.problems), "warnings": list(error.warnings)}
            )
        for problem in error.problems:
            print_error(printable(problem))
        for warning in error.warnings:
            say(printable(warning))
        if len(error.problems) > 1:
            print_error(
                f"{count_of(len(error.problems), 'problem')}; the story cannot be used "
                "until they are fixed"
            )
        return None
    for warning in reading.warnings:
        say(printable(warning))
    return reading


def _sizes(base: StoryBase) -> dict[str, int]:
    parts: dict[str, Sized] = {
        "entity": base.entities,
        "memory": base.memories,
        "bond": base.relations.bonds,
    }
    parts |= {"thread": base.threads, "fact": base.knowledge}
    return {noun: len(part) for noun, part in parts.items()}


def spell_counts(base: StoryBase) -> str:
    """Return how much of each kind is in *base*, for people."""
    return ", ".join(count_of(count, noun) for noun, count in _sizes(base).items())


def document_of(reading: StoryReading) -> dict[str, JsonValue]:
    """Return *reading* for programs: its counts and its warnings."""
    base = reading.base
    entities, memories, bonds, threads, facts = _sizes(base).values()
    return {
        "story_id": base.settings.story_id,
        "title": base.settings.title,
        "digest": base.digest(),
        "entities": entities,
        "entity_tokens": sum(entity.tokens for entity in base.entities),
        "memories": memories,
        "bonds": bonds,
        "threads": threads,
        "facts": facts,
        "responses": len(reading.responses or ()),
        "problems": [],
        "warnings": list(reading.warnings),
    }


def title_of(base: StoryBase) -> str:
    """Return the id of *base*, and its title where it has one, in one line."""
    title = one_line(base.settings.title)
    return f"{base.settings.story_id} ({title})" if title else base.settings.story_id
