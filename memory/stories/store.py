"""The store of stories: their beginnings, their last responses, and the changes of each response.

A story is a hash with the parts of its folder as JSON (`settings`, `memories`, `threads`, `knowledge`, `relations`),
the `digest` of all that, and a `revision`, which grows with all that another analysis may rest on. Beside it lie its
entities, its responses, and for each section that changes the story a hash of its changes, by response.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from time import time
from typing import Any

from pydantic import JsonValue, ValidationError
from redis.asyncio import Redis

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Changes,
    Entity,
    Relations,
    StoryBase,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
)
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.stories import scripts
from tasklore.memory.stories.reader import (
    ALL,
    COUNT,
    NAMES,
    Wanted,
    changes_in,
    changes_of,
    digest_of,
    is_much,
    look,
    look_command,
    numbers_in,
    pairs_in,
    read_of,
    section_in,
    spelled,
    unreadable,
)
from tasklore.memory.stories.view import (
    CHANGING,
    StandingStory,
    StoryInfo,
    standing,
    unknown,
)

__all__ = ["StoryInfo", "StoryStore"]

#: What a story begins with beside its settings and entities, and what spells it.
_PARTS: Mapping[str, Any] = {
    "memories": tuple[StoryMemory, ...],
    "threads": tuple[StoryThread, ...],
    "knowledge": tuple[KnownFact, ...],
    "relations": Relations,
}
#: What of that is needed beside what the agent of a section found.
_BEGINNINGS = {
    "memory_create": "memories",
    "plot_threads": "threads",
    "knowledge": "knowledge",
    "relationship": "relations",
}


class StoryStore:
    """Reads stories, and writes where they begin and their responses; changes are written with the analysis.

    Every method raises MemoryUnavailable when Redis did not answer within *deadline_s* seconds, and all but `load`,
    `stories` and `delete` raise UnknownStory when there is no such story. A value that cannot be read any
    more is an InvalidInput with the key and the cure.

    Args:
        client: A client that does not decode responses.
        deadline_s: Seconds for one round trip; each method is one, `stories` two.
        clock_ms: The time in ms since 1970, by which stories are listed.
    """

    def __init__(
        self,
        client: Redis,
        *,
        deadline_s: float = 1.0,
        clock_ms: Callable[[], int] = lambda: int(time() * 1000),
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)
        self._clock_ms = clock_ms

    async def load(self, base: StoryBase) -> bool:
        """Make *base* where its story begins, and return whether it is another one than before.

        What responses changed stays.
        """
        story_id = base.settings.story_id
        fields: dict[str, str | bytes] = {
            "settings": base.settings.model_dump_json(),
            "digest": base.digest(),
        }
        fields |= {
            part: spelled(kind, getattr(base, part)) for part, kind in _PARTS.items()
        }
        of = keys.story(story_id)
        entities = [
            word for one in base.entities for word in (one.name, one.model_dump_json())
        ]
        words = (
            len(fields),
            *(word for field in fields.items() for word in field),
            *entities,
        )
        # Listed first: what is not listed is not found by somebody who wants it deleted.
        listed = ("ZADD", keys.index("stories"), "GT", self._clock_ms(), story_id)
        replies = await self._batch.run(
            [listed, ("FCALL", scripts.LOAD, 2, of.base, of.entities, *words)]
        )
        return bool(replies[1])

    async def settings(self, story_id: str) -> StorySettings:
        """Return how it is analysed."""
        return (await self._beginning(story_id)).settings

    async def base_digest(self, story_id: str) -> str:
        """Return the digest of where it begins (`StoryBase.digest`)."""
        [[digest]] = await look(
            self._batch, story_id, {keys.story(story_id).base: ("digest",)}
        )
        return digest.decode() if digest else ""

    async def entities(self, story_id: str) -> tuple[Entity, ...]:
        """Return everybody and everything with a file, in the order of their names."""
        key = keys.story(story_id).entities
        [reply] = await look(self._batch, story_id, {key: ALL})
        found = (
            read_of(Entity, raw=raw, key=key, field=name, cure=_load_again(story_id))
            for name, raw in pairs_in(reply)
        )
        return tuple(sorted(found, key=lambda entity: entity.name))

    async def relations(self, story_id: str) -> Relations:
        """Return tiers, tastes and the scores that it begins with."""
        return (await self._beginning(story_id, "relations")).relations

    async def changes(self, story_id: str, sections: Collection[str]) -> Changes:
        """Return what every response changed, as the agents of *sections* found it."""
        told = {section: ALL for section in CHANGING if section in sections}
        found = await look(
            self._batch,
            story_id,
            {keys.story_changes(story_id, section): ALL for section in told},
        )
        return await changes_of(story_id, dict(zip(told, found, strict=True)))

    async def standing(
        self,
        story_id: str,
        number: int,
        sections: Collection[str] = CHANGING,
        *,
        after: bool = False,
    ) -> StandingStory:
        """Return the story before response *number*, or *after* it, as far as *sections* tell; the rest is empty.

        What this response changed when it was analysed before may be unreadable: it is passed over then.
        """
        told = [section for section in CHANGING if section in sections]
        parts = [_BEGINNINGS[section] for section in told if section in _BEGINNINGS]
        of = keys.story(story_id)
        wanted: dict[str, Wanted] = {of.base: ("settings", *parts)}
        wanted |= {keys.story_changes(story_id, section): ALL for section in told}
        fields, *replies = await look(self._batch, story_id, wanted)

        def understood() -> StandingStory:
            changes = changes_in(
                story_id, dict(zip(told, replies, strict=True)), spared=number
            )
            return standing(
                _base_of(story_id, parts, fields), changes, number, after=after
            )

        if is_much(replies, fields):
            return await asyncio.to_thread(understood)
        return understood()

    async def put_response(
        self, story_id: str, response: StoryResponse, *, keep: int, hold_ms: int = 0
    ) -> bool:
        """Store a response, and return whether it is another text or chapter than before.

        The *keep* responses that were written last stay, and those whose analysis is under way; this one stays for
        *hold_ms*, so that its analysis can begin.
        """
        of = keys.story(story_id)
        words = (
            response.number,
            response.model_dump_json(),
            digest_of(response),
            max(1, keep),
            hold_ms,
        )
        put = (
            "FCALL",
            scripts.PUT_RESPONSE,
            4,
            of.base,
            of.responses,
            of.written,
            of.records,
            *words,
        )
        found, _ = await self._batch.run([put, self._touched(story_id)])
        if found < 0:
            raise unknown(story_id)
        return bool(found)

    async def response(self, story_id: str, number: int) -> StoryResponse | None:
        """Return one response, None when it is not there (any more)."""
        key = keys.story(story_id).responses
        [[raw]] = await look(self._batch, story_id, {key: (number,)})
        cure = f"analyse response {number} of story {story_id!r} again, with its text"
        return (
            None
            if raw is None
            else read_of(StoryResponse, raw=raw, key=key, field=str(number), cure=cure)
        )

    async def numbers(self, story_id: str) -> tuple[int, ...]:
        """Return the numbers of the responses that are still there, in their order."""
        [names] = await look(
            self._batch, story_id, {keys.story(story_id).responses: NAMES}
        )
        return numbers_in(names)

    async def section(self, story_id: str, number: int, section: str) -> JsonValue:
        """Return what stands in one section of the analysis of a response, None when nothing does yet."""
        key = keys.story(story_id).documents
        [[raw]] = await look(self._batch, story_id, {key: (number,)})
        if raw is None:
            return None
        try:
            return section_in(raw, section)
        except (ValueError, TypeError) as error:
            cure = (
                f"analyse response {number} of story {story_id!r} again, with --refresh"
            )
            raise unreadable(key, str(number), cure, error) from error

    async def stories(self) -> tuple[StoryInfo, ...]:
        """Return every story, the one updated last first."""
        listed = (
            await self._batch.run([("ZRANGE", keys.index("stories"), 0, -1, "REV")])
        )[0]
        story_ids = [one.decode() for one in listed]
        told = await self._batch.run([_told_of(story_id) for story_id in story_ids])
        found = (
            _info(story_id, reply)
            for story_id, reply in zip(story_ids, told, strict=True)
            if reply is not None
        )
        return tuple(sorted(found, key=lambda info: (-info.updated_ms, info.story_id)))

    async def info(self, story_id: str) -> StoryInfo:
        """Return one story as `stories` has it."""
        [reply] = await self._batch.run([_told_of(story_id)])
        if reply is None:
            raise unknown(story_id)
        return _info(story_id, reply)

    async def delete(self, story_id: str) -> bool:
        """Remove a story with its responses and analyses; return whether there was one."""
        every = (
            *keys.story(story_id),
            *(keys.story_changes(story_id, section) for section in CHANGING),
        )
        commands: list[Command] = [
            ("FCALL", scripts.DELETE, len(every), *every),
            ("ZREM", keys.index("stories"), story_id),
        ]
        return bool((await self._batch.run(commands))[0])

    async def _beginning(self, story_id: str, *parts: str) -> StoryBase:
        """Return where it begins: its settings and *parts*."""
        [fields] = await look(
            self._batch, story_id, {keys.story(story_id).base: ("settings", *parts)}
        )
        return _base_of(story_id, parts, fields)

    def _touched(self, story_id: str) -> Command:
        # One that is being deleted is not listed anew.
        return ("ZADD", keys.index("stories"), "XX", "GT", self._clock_ms(), story_id)


def _base_of(
    story_id: str, parts: Collection[str], fields: list[bytes | None]
) -> StoryBase:
    key = keys.story(story_id).base
    cure = _load_again(story_id)
    settings = read_of(
        StorySettings, raw=fields[0] or b"", key=key, field="settings", cure=cure
    )
    found = {
        part: read_of(_PARTS[part], raw=raw or b"", key=key, field=part, cure=cure)
        for part, raw in zip(parts, fields[1:], strict=True)
    }
    return StoryBase.model_construct(settings=settings, **found)


def _told_of(story_id: str) -> Command:
    of = keys.story(story_id)
    fields = ("settings", "updated_at")
    return look_command(
        story_id,
        {of.base: fields, of.entities: COUNT, of.responses: COUNT, of.documents: COUNT},
    )


def _info(story_id: str, reply: list[Any]) -> StoryInfo:
    _, (raw, updated), entities, responses, analyses = reply
    try:
        title = StorySettings.model_validate_json(raw or b"").title
    except ValidationError:
        # One that cannot be read does not hide the others.
        title = f"(cannot be read; {_load_again(story_id)})"
    # Beside each response lies its digest.
    return StoryInfo(
        story_id=story_id,
        title=title,
        entities=entities,
        responses=responses // 2,
        analyses=analyses,
        updated_ms=int(updated or 0),
    )


def _load_again(story_id: str) -> str:
    return f"load story {story_id!r} again with `tasklore stories load FOLDER`"
