"""Stands for `memory.stories.store.StoryStore` and `shared_answers` in tests without servers; the same tests hold."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from pydantic import JsonValue

from tasklore.contracts.analysis.stories import (
    Changes,
    Entity,
    Relations,
    StoryBase,
    StoryChange,
    StoryResponse,
    StorySettings,
)
from tasklore.memory.stories.view import (
    CHANGING,
    StandingStory,
    StoryInfo,
    demand_changing,
    standing,
    unknown,
)


class FakeStories:
    """Stories in memory: `put` one, `add_response`, `note` what a response changed, `leave` a section."""

    def __init__(
        self, *, clock_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    ) -> None:
        self._clock_ms = clock_ms
        self._bases: dict[str, StoryBase] = {}
        self._updated: dict[str, int] = {}
        # The last written comes last.
        self._responses: dict[str, dict[int, StoryResponse]] = {}
        self._changes: dict[str, dict[int, dict[str, StoryChange]]] = {}
        self._sections: dict[str, dict[int, dict[str, JsonValue]]] = {}
        self._revisions: dict[str, int] = {}
        #: Until when nothing of a response goes, in ms since 1970; None: as long as its analysis is under way.
        self._held: dict[str, dict[int, int | None]] = {}
        self._at_delete: list[Callable[[str], object]] = []

    def put(self, base: StoryBase) -> None:
        """Take *base* as the beginning of its story."""
        story_id = base.settings.story_id
        before = self._bases.get(story_id)
        self._bases[story_id] = base
        self._touch(story_id)
        if before is None or before.digest() != base.digest():
            self.move_on(story_id)

    def add_response(self, story_id: str, response: StoryResponse) -> None:
        """Store a response."""
        responses = self._responses.setdefault(story_id, {})
        if responses.pop(response.number, None) != response:
            self.move_on(story_id)
        responses[response.number] = response

    def note(
        self, story_id: str, number: int, section: str, change: StoryChange | None
    ) -> bool:
        """Note what a response changed, as the agent of *section* found it; None takes that back.

        Returns whether that is another change than before.
        """
        demand_changing({section: change})
        told = self._changes.setdefault(story_id, {}).setdefault(number, {})
        before = told.pop(section, None)
        if change is not None:
            told[section] = change
        return change != before

    def hold(self, story_id: str, number: int, *, is_under_way: bool) -> None:
        """Let a response stay while its analysis *is_under_way*, and no longer."""
        held = self._held.setdefault(story_id, {})
        held.pop(number, None)
        if is_under_way:
            held[number] = None

    def leave(
        self,
        story_id: str,
        number: int,
        sections: Mapping[str, JsonValue],
        *,
        is_all: bool = False,
    ) -> None:
        """Note the findings of agents in a response, beside the earlier ones or instead of them."""
        analyses = self._sections.setdefault(story_id, {})
        known = {} if is_all else analyses.get(number, {})
        analyses[number] = {**known, **sections}

    def forget(self, story_id: str, number: int) -> None:
        """Remove the analysis of a response; its changes stay."""
        self._sections.get(story_id, {}).pop(number, None)

    def revision(self, story_id: str) -> int:
        """Return what grows with all that an analysis may rest on."""
        self._base(story_id)
        return self._revisions[story_id]

    def move_on(self, story_id: str) -> None:
        """Let the story have another revision."""
        self._revisions[story_id] = self._revisions.get(story_id, 0) + 1

    def last_number(self, story_id: str) -> int:
        """Return the highest number of a response that is still there, -1 for none."""
        return max(self._responses.get(story_id, {}), default=-1)

    def at_delete(self, tell: Callable[[str], object]) -> None:
        """Let *tell* know of every story that is deleted."""
        self._at_delete.append(tell)

    async def load(self, base: StoryBase) -> bool:
        """Take *base* as the beginning of its story; return whether it is another one than before."""
        before = self._bases.get(base.settings.story_id)
        self.put(base)
        return before is None or before.digest() != base.digest()

    async def settings(self, story_id: str) -> StorySettings:
        """Return how it is analysed."""
        return self._base(story_id).settings

    async def base_digest(self, story_id: str) -> str:
        """Return the digest of where it begins."""
        return self._base(story_id).digest()

    async def entities(self, story_id: str) -> tuple[Entity, ...]:
        """Return everybody and everything with a file, in the order of their names."""
        return tuple(
            sorted(self._base(story_id).entities, key=lambda entity: entity.name)
        )

    async def relations(self, story_id: str) -> Relations:
        """Return tiers, tastes and the scores that it begins with."""
        return self._base(story_id).relations

    async def changes(self, story_id: str, sections: Collection[str]) -> Changes:
        """Return what every response changed, as the agents of *sections* found it."""
        self._base(story_id)
        told = self._changes.get(story_id, {})
        found = {
            number: {
                section: by[section]
                for section in CHANGING
                if section in sections and section in by
            }
            for number, by in told.items()
        }
        return {number: by for number, by in found.items() if by}

    async def standing(
        self,
        story_id: str,
        number: int,
        sections: Collection[str] = CHANGING,
        *,
        after: bool = False,
    ) -> StandingStory:
        """Return the story before response *number*, or *after* it, as far as *sections* tell; the rest is empty."""
        base = self._base(story_id)
        told = StoryBase(
            settings=base.settings,
            memories=base.memories if "memory_create" in sections else (),
            threads=base.threads if "plot_threads" in sections else (),
            knowledge=base.knowledge if "knowledge" in sections else (),
            relations=base.relations if "relationship" in sections else Relations(),
        )
        return standing(
            told, await self.changes(story_id, sections), number, after=after
        )

    async def put_response(
        self, story_id: str, response: StoryResponse, *, keep: int, hold_ms: int = 0
    ) -> bool:
        """Store a response, the last *keep* and what is held staying; return whether it is another one than before."""
        self._base(story_id)
        responses = self._responses.setdefault(story_id, {})
        before = responses.get(response.number)
        self.add_response(story_id, response)
        if hold_ms:
            self._held.setdefault(story_id, {})[response.number] = (
                self._clock_ms() + hold_ms
            )
        for oldest in list(responses)[: max(0, len(responses) - max(1, keep))]:
            if not self._is_held(story_id, oldest):
                del responses[oldest]
        self._touch(story_id)
        return before != response

    async def response(self, story_id: str, number: int) -> StoryResponse | None:
        """Return one response, None when it is not there."""
        self._base(story_id)
        return self._responses.get(story_id, {}).get(number)

    async def numbers(self, story_id: str) -> tuple[int, ...]:
        """Return the numbers of the responses that are still there, in their order."""
        self._base(story_id)
        return tuple(sorted(self._responses.get(story_id, {})))

    async def section(self, story_id: str, number: int, section: str) -> JsonValue:
        """Return what stands in one section of the analysis of a response, None when nothing does yet."""
        self._base(story_id)
        return self._sections.get(story_id, {}).get(number, {}).get(section)

    async def stories(self) -> tuple[StoryInfo, ...]:
        """Return every story, the one updated last first."""
        found = (
            StoryInfo(
                story_id=story_id,
                title=base.settings.title,
                entities=len({entity.name for entity in base.entities}),
                responses=len(self._responses.get(story_id, {})),
                analyses=len(self._sections.get(story_id, {})),
                updated_ms=self._updated[story_id],
            )
            for story_id, base in self._bases.items()
        )
        return tuple(sorted(found, key=lambda info: (-info.updated_ms, info.story_id)))

    async def delete(self, story_id: str) -> bool:
        """Remove a story with its responses and analyses; return whether there was one."""
        for kept in (
            self._responses,
            self._changes,
            self._sections,
            self._updated,
            self._revisions,
            self._held,
        ):
            kept.pop(story_id, None)
        for tell in self._at_delete:
            tell(story_id)
        return self._bases.pop(story_id, None) is not None

    def _is_held(self, story_id: str, number: int) -> bool:
        held = self._held.get(story_id, {})
        until = held.get(number)
        return number in held and (until is None or until > self._clock_ms())

    def _touch(self, story_id: str) -> None:
        self._updated[story_id] = self._clock_ms()

    def _base(self, story_id: str) -> StoryBase:
        if story_id not in self._bases:
            raise unknown(story_id)
        return self._bases[story_id]


class FakeSharedAnswers:
    """Stands for `tasklore.memory.stories.shared_answers.SharedAnswers` where one process is all there is."""

    def __init__(self, calls: str = "ten") -> None:
        self.calls = calls
        self._answers: dict[tuple[str, int, str], asyncio.Task[JsonValue]] = {}

    async def get_or_compute(
        self,
        story_id: str,
        number: int,
        name: str,
        compute: Callable[[], Awaitable[JsonValue]],
        *,
        wait_s: float,
    ) -> JsonValue:
        """Return the answer *name*, or what *compute* returns in the first that asks for it."""
        key = story_id, number, name
        if key not in self._answers:
            self._answers[key] = asyncio.ensure_future(compute())
        return await asyncio.wait_for(asyncio.shield(self._answers[key]), wait_s)
