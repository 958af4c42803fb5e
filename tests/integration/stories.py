"""What tests of stories and their analyses share: a small story, and both kinds of stores of it."""

import json
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Bond,
    Entity,
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
    Tastes,
    pair_of,
)
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tests.fakes.analyses import FakeAnalyses
from tests.fakes.stories import FakeStories

STORY = "lighthouse"
KEEP = 100
MARA = "Mara Voss"
JON = "Jon {Ebb} ⚓"
PAIR = pair_of(MARA, JON)
BASE = StoryBase(
    settings=StorySettings(
        story_id=STORY,
        title="The lamp: „Zwölf\u2028“",
        traits={"calm": ("breath", "still")},
    ),
    entities=(
        Entity(
            name=MARA,
            aliases=("Mara",),
            file="entities/Mara.md",
            text="# Mara\n\nKeeps {{the}} lamp.",
            tokens=9,
        ),
        Entity(name=JON, text="A diver. \\u0000 is no byte \x00 here."),
        Entity(name="Gull Rock", kind="location"),
    ),
    memories=(
        StoryMemory(
            id="MEM-0-fire",
            character=MARA,
            summary="The old lamp burnt",
            significance=9,
        ),
    ),
    relations=Relations(
        bonds=(Bond(characters=(MARA, JON), score=18),),
        tastes={MARA: Tastes(likes={"calm": 10})},
    ),
    threads=(StoryThread(id="THREAD-001", title="The supply boat", consequence_at=12),),
    knowledge=(
        KnownFact(
            category="place",
            subject="Gull Rock",
            fact="has no landing",
            confidence="high",
            source="Ch0-R0",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Stories and their analyses, of one kind."""

    stories: StoryStore | FakeStories
    analyses: AnalysisStore | FakeAnalyses

    async def told(
        self,
        number: int,
        text: str = "The lamp went out.",
        keep: int = KEEP,
        *,
        hold_ms: int = 0,
    ) -> bool:
        """Store a response; return whether it is another one than before."""
        response = StoryResponse(number=number, text=text)
        return await self.stories.put_response(
            STORY, response, keep=keep, hold_ms=hold_ms
        )

    async def folded(
        self,
        number: int,
        changes: dict[str, StoryChange | None] | None = None,
        *,
        keep: int = KEEP,
        word: str = "x",
        is_under_way: bool = False,
        rests_on: int | None = None,
    ) -> bytes:
        """Fold what is known of a response, as often as others are faster; return the document."""
        document = document_of(number, word)
        while True:
            revision, _, _ = await self.analyses.record(STORY, number)
            record = f"record of {number}".encode()
            what = number, revision, document, record, changes or {}, keep
            if await self.analyses.fold(
                STORY, *what, is_under_way=is_under_way, rests_on=rests_on
            ):
                return document


def shelf_on(client: Redis) -> Shelf:
    """Return the real ones; nothing that a slow machine takes is a failure."""
    return Shelf(
        StoryStore(client, deadline_s=60.0), AnalysisStore(client, deadline_s=60.0)
    )


def fake_shelf() -> Shelf:
    """Return the ones that stand for them."""
    stories = FakeStories()
    return Shelf(stories, FakeAnalyses(stories))


def document_of(number: int, word: str = "x", **sections: Any) -> bytes:
    """Return an analysis of response *number* in which *word* stands."""
    body = {
        "version": "1.1",
        "meta": {
            "resp_num": number,
            "updated": "2026-03-01T10:00:00",
            "status": "fresh",
            "agents_run": 1,
            "agents_ok": 1,
            "agents_fail": 0,
            "agents_skip": 0,
        },
        "background": {"knowledge": {"facts": [], "by": word, "more": [{}, [], None]}},
        "immediate": sections,
        "stats": {},
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
