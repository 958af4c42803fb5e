"""Stands for `stories.analyses.AnalysisStore` in tests without servers, over a `FakeStories`; the same tests hold."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.stories import StoryChange, StoryResponse
from tasklore.memory.stories.view import demand_changing
from tests.fakes.stories import FakeStories


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is stored of one analysis, and the response that was stored when its document was."""

    record: bytes
    rests_on: int = 0
    is_under_way: bool = False
    document: bytes | None = None
    response: StoryResponse | None = None


class FakeAnalyses:
    """Analyses in memory; *clock_ms* tells when one is due."""

    def __init__(
        self,
        stories: FakeStories,
        *,
        clock_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._stories = stories
        self._clock_ms = clock_ms
        # The last written comes last.
        self._kept: dict[str, dict[int, _Kept]] = {}
        self._due: dict[str, dict[tuple[str, int], int]] = {}
        # The revision since which what an earlier response changed is as it is.
        self._earlier: dict[str, int] = {}
        for kept in (self._kept, self._earlier):
            stories.at_delete(lambda story_id, kept=kept: kept.pop(story_id, None))  # type: ignore[misc]

    async def read(self, story_id: str, number: int) -> AnalysisDocument | None:
        raw = await self.raw(story_id, number)
        if raw is None:
            return None
        document = read_document(raw)
        response = await self._stories.response(story_id, number)
        is_older = self._stories.last_number(story_id) > number
        kept = self._kept[story_id][number]
        is_moved = self._earlier.get(story_id, 0) > kept.rests_on
        if is_older or is_moved or response not in (None, kept.response):
            document = document.model_copy(
                update={"meta": document.meta.model_copy(update={"status": "stale"})}
            )
        return document

    async def raw(self, story_id: str, number: int) -> bytes | None:
        return (await self.record(story_id, number))[1]

    async def numbers(self, story_id: str) -> tuple[int, ...]:
        self._stories.revision(story_id)
        return tuple(
            sorted(
                number
                for number, kept in self._of(story_id).items()
                if kept.document is not None
            )
        )

    async def record(
        self, story_id: str, number: int
    ) -> tuple[int, bytes | None, bytes | None]:
        revision = self._stories.revision(story_id)
        kept = self._of(story_id).get(number)
        return (
            (revision, None, None)
            if kept is None
            else (revision, kept.document, kept.record)
        )

    async def fold(
        self,
        story_id: str,
        number: int,
        revision: int,
        document: bytes | None,
        record: bytes,
        changes: Mapping[str, StoryChange | None],
        keep: int,
        *,
        of: StoryResponse | None = None,
        is_under_way: bool = False,
        rests_on: int | None = None,
    ) -> bool:
        demand_changing(changes)
        response = await self._stories.response(story_id, number)
        is_other_text = of is not None and response != of
        if self._stories.revision(story_id) != revision or is_other_text:
            return False
        kept = self._of(story_id)
        before = kept.pop(number, _Kept(record))
        shown = (
            (before.document, before.response)
            if document is None
            else (document, response)
        )
        kept[number] = _Kept(
            record, revision if rests_on is None else rests_on, is_under_way, *shown
        )
        noted = [
            self._stories.note(story_id, number, section, change)
            for section, change in changes.items()
        ]
        self._stories.hold(story_id, number, is_under_way=is_under_way)
        if document is not None:
            self._stories.leave(story_id, number, _sections_of(document), is_all=True)
        ended = [one for one, what in kept.items() if not what.is_under_way]
        for oldest in (
            () if is_under_way else ended[: max(0, len(ended) - max(1, keep))]
        ):
            del kept[oldest]
            self._stories.forget(story_id, oldest)
        self._stories.move_on(story_id)
        if any(noted) and number < self._stories.last_number(story_id):
            self._earlier[story_id] = self._stories.revision(story_id)
        return True

    async def begin(
        self, supervisor_id: str, story_id: str, number: int, lease_ms: int = 0
    ) -> None:
        self._due.setdefault(supervisor_id, {})[story_id, number] = (
            self._clock_ms() + lease_ms
        )

    async def is_idle(self, supervisor_id: str) -> bool:
        return not self._due.get(supervisor_id)

    async def due(
        self, supervisor_id: str, lease_ms: int, limit: int = 100
    ) -> list[tuple[str, int]]:
        listed = self._due.get(supervisor_id, {})
        now = self._clock_ms()
        found = sorted(
            (at, f"{one[0]}:{one[1]}", one) for one, at in listed.items() if at <= now
        )[:limit]
        for _, _, one in found:
            listed[one] = now + lease_ms
        return [one for _, _, one in found]

    async def renew(
        self, supervisor_id: str, story_id: str, number: int, lease_ms: int
    ) -> bool:
        listed = self._due.get(supervisor_id, {})
        if (story_id, number) not in listed:
            return False
        listed[story_id, number] = self._clock_ms() + lease_ms
        return True

    async def end(self, supervisor_id: str, story_id: str, number: int) -> None:
        self._due.get(supervisor_id, {}).pop((story_id, number), None)

    def _of(self, story_id: str) -> dict[int, _Kept]:
        return self._kept.setdefault(story_id, {})


def _sections_of(document: bytes) -> dict[str, JsonValue]:
    body = json.loads(document)
    return {**body.get("background", {}), **body.get("immediate", {})}
