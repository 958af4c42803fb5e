"""`tasklore story check|load|delete|list|show`: a story in its folder and in the store."""

import sys
from collections import Counter
from collections.abc import Sized
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from pydantic import JsonValue

from tasklore.commands.analysis.documents import open_stores
from tasklore.commands.exits import OK, USAGE, Aborted
from tasklore.commands.render.columns import Column, print_facts, print_records
from tasklore.commands.render.screen import (
    complain,
    patience,
    print_json,
    printable,
    say,
    styled,
)
from tasklore.commands.render.words import age, count_of, one_line
from tasklore.commands.stories.files import InvalidStory, StoryReading, look_at_story
from tasklore.contracts.analysis.roster import ROSTER, roster_of
from tasklore.contracts.analysis.stories import Entity, StoryBase
from tasklore.contracts.errors import UnknownStory
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.stories.arithmetic import (
    Standing,
    countdowns,
    plain,
    thread_status,
    tier_of,
)
from tasklore.memory.stories.store import StoryInfo
from tasklore.memory.stories.view import StandingStory

STORIES = (
    Column[StoryInfo]("STORY", lambda info: info.story_id, whole=True),
    Column[StoryInfo]("TITLE", lambda info: one_line(info.title)),
    Column[StoryInfo]("ENTITIES", lambda info: f"{info.entities:,}", right=True),
    Column[StoryInfo]("RESPONSES", lambda info: f"{info.responses:,}", right=True),
    Column[StoryInfo]("ANALYSES", lambda info: f"{info.analyses:,}", right=True),
    Column[StoryInfo](
        "CHANGED", lambda info: f"{age(info.updated_ms)} ago", right=True
    ),
)


@dataclass(frozen=True, slots=True)
class Bond:
    """The relationship of a pair after the last response."""

    characters: str
    score: float
    standing: Standing

    @property
    def next_text(self) -> str:
        """The next tier and the points that it needs, "" on the highest."""
        if self.standing.next_tier is None or self.standing.points_needed is None:
            return ""
        return f"{one_line(self.standing.next_tier)} with {self.standing.points_needed:g} more"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenThread:
    """A thread that is open after the last response; countdowns are in responses."""

    id: str
    title: str
    status: str
    priority: str
    consequence_countdown: int | None
    time_until: int | None
    last_mention: int | None


BONDS = (
    Column[Bond]("RELATIONSHIP", lambda bond: one_line(bond.characters)),
    Column[Bond]("SCORE", lambda bond: f"{bond.score:g}", right=True),
    Column[Bond]("TIER", lambda bond: bond.standing.tier),
    Column[Bond]("NEXT", lambda bond: bond.next_text),
)


def _responses(count: int | None) -> str:
    return "" if count is None else count_of(count, "response")


THREADS = (
    Column[OpenThread]("OPEN THREAD", lambda one: one_line(one.id), whole=True),
    Column[OpenThread]("TITLE", lambda one: one_line(one.title)),
    Column[OpenThread]("STATUS", lambda one: one.status),
    Column[OpenThread](
        "CONSEQUENCE IN", lambda one: _responses(one.consequence_countdown), right=True
    ),
    Column[OpenThread]("DUE IN", lambda one: _responses(one.time_until), right=True),
    Column[OpenThread](
        "LAST IN",
        lambda one: "" if one.last_mention is None else f"{one.last_mention:,}",
        right=True,
    ),
)


def print_check(folder: Path, *, as_json: bool) -> int:
    """Print the problems and warnings of the story in *folder*, its responses included, and return the exit code."""
    reading = _look(folder, as_json=as_json)
    if reading is None:
        return USAGE
    if as_json:
        print_json(_reading_document(reading))
        return OK
    base = reading.base
    responses = len(reading.responses or ())
    odd = (
        f"{count_of(len(reading.warnings), 'thing')} to look at"
        if reading.warnings
        else "nothing is wrong"
    )
    print(f"{_title(base)}: {_counts(base)}, {count_of(responses, 'response')}; {odd}.")
    print(
        f"Its entity files are {sum(entity.tokens for entity in base.entities):,} tokens."
    )
    return OK


async def load_story(folder: Path, *, as_json: bool) -> int:
    """Load the story in *folder* into the store, print its counts, and return the exit code.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    reading = _look(folder, as_json=as_json)
    if reading is None:
        return USAGE
    async with open_stores() as stores, patience("loading"):
        is_new = await stores.stories.load(reading.base)
    if as_json:
        print_json({**_reading_document(reading), "changed": is_new})
    else:
        as_before = "" if is_new else "; it is as it was before"
        print(f"Loaded {_title(reading.base)}: {_counts(reading.base)}{as_before}.")
    return OK


def _look(folder: Path, *, as_json: bool) -> StoryReading | None:
    """Return the story in *folder* and print its warnings; None after printing its problems."""
    try:
        reading = look_at_story(folder, with_responses=True)
    except InvalidStory as error:
        if as_json:
            print_json(
                {"problems": list(error.problems), "warnings": list(error.warnings)}
            )
        for problem in error.problems:
            complain(printable(problem))
        for warning in error.warnings:
            say(printable(warning))
        if len(error.problems) > 1:
            complain(
                f"{count_of(len(error.problems), 'problem')}; the story cannot be used before they are mended"
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


def _counts(base: StoryBase) -> str:
    return ", ".join(count_of(count, noun) for noun, count in _sizes(base).items())


def _reading_document(reading: StoryReading) -> dict[str, JsonValue]:
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


def _title(base: StoryBase) -> str:
    title = one_line(base.settings.title)
    return f"{base.settings.story_id} ({title})" if title else base.settings.story_id


async def delete_story(story_id: str, *, is_sure: bool, as_json: bool) -> None:
    """Remove a story with its responses and analyses, and print that.

    Raises:
        InvalidInput: *story_id* is no name.
        Aborted: it was not confirmed.
        UnknownStory: there is no such story.
        Unreachable: no system runs here, or its Redis does not answer.
    """
    checked_name(story_id, "STORY")
    async with open_stores() as stores:
        title = one_line((await stores.stories.settings(story_id)).title)
        if not is_sure:
            if not sys.stdin.isatty():
                raise Aborted(
                    "what was found in a story cannot be brought back; say --yes to mean it"
                )
            named = f"{story_id} ({title})" if title else story_id
            if not typer.confirm(
                f"Remove {named}, its responses and their analyses? It cannot be undone.",
                err=True,
            ):
                raise Aborted("nothing was removed")
        if not await stores.stories.delete(story_id):
            raise UnknownStory(
                f"there is no story {story_id!r}; `tasklore story list` shows those there are"
            )
    if as_json:
        print_json({"story_id": story_id, "deleted": True})
    else:
        print(f"Deleted {story_id}.")


async def print_stories(*, as_json: bool) -> None:
    """Print a line for each story, the last changed first.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    async with open_stores() as stores, patience("reading stories"):
        found = await stores.stories.stories()
    if as_json:
        fields = (
            "story_id",
            "title",
            "entities",
            "responses",
            "analyses",
            "updated_ms",
        )
        print_json([{name: getattr(info, name) for name in fields} for info in found])
    elif found:
        print_records(STORIES, found)
    else:
        print("No story is loaded; `tasklore story load DIR` loads one.")


async def print_story(story_id: str, *, as_json: bool) -> None:
    """Print a story after its last response.

    Raises:
        InvalidInput: *story_id* is no name.
        UnknownStory: there is no such story.
        Unreachable: no system runs here, or its Redis does not answer.
    """
    checked_name(story_id, "STORY")
    async with open_stores() as stores, patience("reading the story"):
        responses = await stores.stories.numbers(story_id)
        entities = await stores.stories.entities(story_id)
        story = await stores.stories.standing(
            story_id, max(responses, default=0), after=True
        )
    if as_json:
        print_json(story_document(story, entities, responses))
        return
    last = max(responses, default=0)
    settings = story.settings
    kinds = Counter(entity.kind for entity in entities)
    title = one_line(settings.title)
    print(styled(story_id, "bold") + (f": {title}" if title else ""))
    seats = roster_of(settings.agents)
    ours = {seat.section for seat in ROSTER}
    own = [
        f"{seat.section} ({seat.agent_id})"
        for seat in seats
        if seat.section not in ours and seat.enabled
    ]
    listed = (
        ", ".join(count_of(count, kind) for kind, count in kinds.most_common())
        or "none"
    )
    print_facts(
        {
            "responses": f"{len(responses):,} kept"
            + (f", the last is {last}" if responses else ""),
            "entities": f"{listed}; {sum(entity.tokens for entity in entities):,} tokens",
            "memories": f"{len(story.memories):,}",
            "facts": f"{len(story.knowledge):,}",
            "critical": f"with {count_of(settings.critical_countdown, 'response')} left",
            "agents wait": f"{settings.patience_s:g} s for each other, {settings.late_s:g} s for late ones",
            "prices": f"{settings.reader_usd_per_million:g} USD for a million tokens read",
            "switched off": ", ".join(
                seat.section for seat in seats if not seat.enabled
            ),
            "of its own": ", ".join(own),
        }
    )
    if bonds := bonds_of(story):
        print()
        print_records(BONDS, bonds)
    if threads := open_threads(story, last):
        print()
        print_records(THREADS, threads)
    if resolved := sum(not one.is_open for one in story.threads):
        print(f"\n{count_of(resolved, 'thread')} resolved.")


def bonds_of(story: StandingStory) -> list[Bond]:
    """Return each pair with its score and its tier, the highest score first."""
    scored = sorted(story.scores.items(), key=lambda one: (-one[1], one[0]))
    tiers = story.relations.tiers
    return [
        Bond(pair.replace("|", ", "), plain(score), tier_of(score, tiers))
        for pair, score in scored
    ]


def open_threads(story: StandingStory, last: int) -> list[OpenThread]:
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
            status=str(thread_status(one.thread, last, critical=critical)),
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


def story_document(
    story: StandingStory, entities: tuple[Entity, ...], responses: tuple[int, ...]
) -> dict[str, JsonValue]:
    """Return a story after its last response for programs."""
    last = max(responses, default=0)
    kinds = Counter(entity.kind for entity in entities)
    return {
        "story_id": story.settings.story_id,
        "title": story.settings.title,
        "settings": story.settings.model_dump(
            mode="json", exclude={"story_id", "title"}
        ),
        "responses": list(responses),
        "last_response": last,
        "entities": dict(sorted(kinds.items())),
        "entity_tokens": sum(entity.tokens for entity in entities),
        "memories": len(story.memories),
        "facts": len(story.knowledge),
        "relationships": [
            {
                "characters": list(bond.characters.split(", ")),
                "score": bond.score,
                "tier": bond.standing.tier,
                "next_tier": bond.standing.next_tier,
                "points_needed": bond.standing.points_needed,
            }
            for bond in bonds_of(story)
        ],
        "threads": [asdict(one) for one in open_threads(story, last)],
        "resolved_threads": sum(not one.is_open for one in story.threads),
    }
