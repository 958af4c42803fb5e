"""`tasklore story list|show`: which stories there are, and how one stands after its last response."""

import time
from collections import Counter
from dataclasses import dataclass, field

from pydantic import JsonValue

from contracts.analysis.roster import ROSTER, roster_of
from contracts.analysis.stories import Entity
from contracts.identifiers import checked_name
from memory.stories.arithmetic import Standing, countdowns, plain, thread_status, tier_of
from memory.stories.store import StoryInfo
from memory.stories.view import StandingStory, ThreadState
from tasklore.analysis.documents import open_stores
from tasklore.memory.lines import one_line
from tasklore.render.durations import read_aloud
from tasklore.render.screen import patience, print_json, print_table, printable, styled
from tasklore.render.words import count_of


@dataclass(frozen=True, slots=True)
class StoryState:
    """A story after its last response, whose number is `last`: 0 before the first; `responses` are those still kept."""

    story: StandingStory
    entities: tuple[Entity, ...] = ()
    responses: tuple[int, ...] = field(default=())

    @property
    def last(self) -> int:
        """The number of the last response."""
        return max(self.responses, default=0)

    def bonds(self) -> list[tuple[str, float, Standing]]:
        """Return each pair with its score and its tier, the highest score first."""
        scored = sorted(self.story.scores.items(), key=lambda one: (-one[1], one[0]))
        tiers = self.story.relations.tiers
        return [(pair.replace("|", ", "), plain(score), tier_of(score, tiers)) for pair, score in scored]

    def open_threads(self) -> list[tuple[ThreadState, str, int | None, int | None]]:
        """Return each open thread with its status and the responses left until its consequence and until it is due.

        The nearest consequence comes first, then what is due next.
        """
        critical = self.story.settings.critical_countdown
        found = [
            (one, str(thread_status(one.thread, self.last, critical=critical)), *countdowns(one.thread, self.last))
            for one in self.story.threads
            if one.is_open
        ]
        return sorted(found, key=lambda one: (one[2] is None, one[2] or 0, one[3] is None, one[3] or 0))

    def document(self) -> dict[str, JsonValue]:
        """Return all of it for programs."""
        kinds = Counter(entity.kind for entity in self.entities)
        return {
            "story_id": self.story.settings.story_id,
            "title": self.story.settings.title,
            "settings": self.story.settings.model_dump(mode="json", exclude={"story_id", "title"}),
            "responses": list(self.responses),
            "last_response": self.last,
            "entities": dict(sorted(kinds.items())),
            "entity_tokens": sum(entity.tokens for entity in self.entities),
            "memories": len(self.story.memories),
            "facts": len(self.story.knowledge),
            "relationships": [
                {
                    "characters": list(pair.split(", ")),
                    "score": score,
                    "tier": standing.tier,
                    "next_tier": standing.next_tier,
                    "points_needed": standing.points_needed,
                }
                for pair, score, standing in self.bonds()
            ],
            "threads": [
                {
                    "id": one.thread.id,
                    "title": one.thread.title,
                    "status": status,
                    "priority": one.thread.priority,
                    "consequence_countdown": consequence,
                    "time_until": due,
                    "last_mention": one.last_mention,
                }
                for one, status, consequence, due in self.open_threads()
            ],
            "resolved_threads": sum(not one.is_open for one in self.story.threads),
        }


async def print_stories(*, as_json: bool) -> None:
    """Print a line for each story, the last changed first.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    async with open_stores() as stores, patience("reading stories"):
        found = await stores.stories.stories()
    if as_json:
        print_json([_info_document(info) for info in found])
        return
    if not found:
        print("No story is loaded; `tasklore story load DIR` loads one.")
        return
    now_ms = time.time() * 1000
    numbers = ("ENTITIES", "RESPONSES", "ANALYSES", "CHANGED")
    print_table(
        ("STORY", "TITLE", *numbers),
        [
            (
                info.story_id,
                one_line(info.title),
                f"{info.entities:,}",
                f"{info.responses:,}",
                f"{info.analyses:,}",
                f"{read_aloud(max(0, now_ms - info.updated_ms))} ago",
            )
            for info in found
        ],
        right=numbers,
        whole=("STORY",),
    )


async def print_story(story_id: str, *, as_json: bool) -> None:
    """Print how a story stands after its last response.

    Raises:
        InvalidInput: *story_id* is none.
        UnknownStory: there is none of that id.
        Unreachable: no system runs here, or its Redis does not answer.
    """
    checked_name(story_id, "STORY")
    async with open_stores() as stores, patience("reading the story"):
        responses = await stores.stories.numbers(story_id)
        entities = await stores.stories.entities(story_id)
        story = await stores.stories.standing(story_id, max(responses, default=0), after=True)
    state = StoryState(story, entities, responses)
    if as_json:
        print_json(state.document())
        return
    title = one_line(story.settings.title)
    print(styled(story_id, "bold") + (f": {title}" if title else ""))
    for what, value in _facts(state):
        print(f"{styled(what.ljust(16), 'dim')}{value}")
    _print_bonds(state)
    _print_threads(state)


def _facts(state: StoryState) -> list[tuple[str, str]]:
    """Return what is known of a story beside its relationships and threads, each with its title."""
    settings = state.story.settings
    kinds = Counter(entity.kind for entity in state.entities)
    tokens = sum(entity.tokens for entity in state.entities)
    told = ", ".join(count_of(count, kind) for kind, count in kinds.most_common())
    last = f", the last is {state.last}" if state.responses else ""
    seats, ours = roster_of(settings.agents), {seat.section for seat in ROSTER}
    off = [seat.section for seat in seats if not seat.enabled]
    own = [f"{seat.section} ({seat.agent_id})" for seat in seats if seat.section not in ours and seat.enabled]
    facts = [
        ("responses", f"{len(state.responses):,} kept{last}"),
        ("entities", f"{told or 'none'}; {tokens:,} tokens"),
        ("memories", f"{len(state.story.memories):,}"),
        ("facts", f"{len(state.story.knowledge):,}"),
        ("critical", f"with {count_of(settings.critical_countdown, 'response')} left"),
        ("agents wait", f"{settings.patience_s:g} s for each other, {settings.late_s:g} s for late ones"),
        ("prices", f"{settings.reader_usd_per_million:g} USD for a million tokens read"),
        ("switched off", ", ".join(off)),
        ("of its own", ", ".join(own)),
    ]
    return [(what, printable(value)) for what, value in facts if value]


def _print_bonds(state: StoryState) -> None:
    bonds = state.bonds()
    if not bonds:
        return
    print()
    print_table(
        ("RELATIONSHIP", "SCORE", "TIER", "NEXT"),
        [(one_line(pair), f"{score:g}", standing.tier, _next(standing)) for pair, score, standing in bonds],
        right=("SCORE",),
    )


def _next(standing: Standing) -> str:
    if standing.next_tier is None or standing.points_needed is None:
        return ""
    return f"{one_line(standing.next_tier)} with {standing.points_needed:g} more"


def _print_threads(state: StoryState) -> None:
    found = state.open_threads()
    resolved = sum(not one.is_open for one in state.story.threads)
    if found:
        print()
        print_table(
            ("OPEN THREAD", "TITLE", "STATUS", "CONSEQUENCE IN", "DUE IN", "LAST IN"),
            [_thread_line(*one) for one in found],
            right=("CONSEQUENCE IN", "DUE IN", "LAST IN"),
            whole=("OPEN THREAD",),
        )
    if resolved:
        print(f"\n{count_of(resolved, 'thread')} resolved.")


def _thread_line(one: ThreadState, status: str, consequence: int | None, due: int | None) -> tuple[str, ...]:
    left = ("" if count is None else count_of(count, "response") for count in (consequence, due))
    last = "" if one.last_mention is None else f"{one.last_mention:,}"
    return (one_line(one.thread.id), one_line(one.thread.title), status, *left, last)


def _info_document(info: StoryInfo) -> dict[str, JsonValue]:
    return {
        "story_id": info.story_id,
        "title": info.title,
        "entities": info.entities,
        "responses": info.responses,
        "analyses": info.analyses,
        "updated_ms": info.updated_ms,
    }
