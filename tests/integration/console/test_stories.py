"""Pages of stories and worlds: how a story stands, what was found in it, and what agents of a world were told."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.agent_messages import agent_message
from tasklore.contracts.analysis.stories import StoryThread
from tasklore.memory.conversations.inbox import Inbox
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.console.browsing import (
    PAYLOADS,
    ConsoleStand,
    console_stand,
)
from tests.integration.stories import BASE, STORY, shelf_on


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


async def test_a_story_shows_how_it_stands_and_what_was_found(
    console: ConsoleStand, redis: Redis
) -> None:
    """The latest analysis, or the one that is chosen; who may read alone is offered no removal."""
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    for number in (1, 2):
        await shelf.told(number)
        await shelf.folded(number)
    async with console.tab("reader") as tab:
        text = await tab.open("/console/stories")
        assert f'href="/console/stories/{STORY}"' in text
        text = await tab.open(f"/console/stories/{STORY}")
        assert "Jon {Ebb} ⚓ and Mara Voss" in text
        assert "The supply boat" in text
        assert "Analysis of response 2" in text
        assert "Remove" not in text
        text = await tab.open(f"/console/stories/{STORY}?response=1")
        assert "Analysis of response 1" in text
        text = await tab.open(f"/console/stories/{STORY}?response=7")
        assert "no analysis of response 7" in text
        await tab.open("/console/stories/nowhere", 404)


async def test_a_story_is_removed_once_it_was_said_what_goes(
    console: ConsoleStand, redis: Redis
) -> None:
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE)
    async with console.tab("admin") as tab:
        await tab.open(f"/console/stories/{STORY}")
        text = await tab.send("/console/stories/delete", 200, story_id=STORY)
        assert "3 entities" in text
        assert (await shelf.stories.info(STORY)).entities == 3
        text = await tab.send("/console/stories/delete", story_id=STORY, sure="yes")
        assert "Removed: The lamp" in text
        assert "No story is loaded." in text


async def test_stories_are_for_keys_of_no_user_and_no_tenant(
    console: ConsoleStand, redis: Redis
) -> None:
    """Others are not offered them, and are refused."""
    await shelf_on(redis).stories.load(BASE)
    for name in ("ana", "acme"):
        async with console.tab(name) as tab:
            assert "/console/stories" not in tab.text
            for path in ("stories", f"stories/{STORY}"):
                assert "lamp" not in await tab.open(f"/console/{path}", 403)


async def tell(
    redis: Redis, conversation_id: str, words: str, user_id: str | None
) -> None:
    """Have something wait for an agent of a world."""
    said = agent_message(
        message_id=f"m-{user_id}",
        conversation_id=conversation_id,
        sender="Bob",
        message=words,
        time=8.0,
        user_id=user_id,
    )
    await Inbox(redis).post(
        conversation_id,
        said.as_utterance(),
        user_id=user_id,
        known_as=said.inbox_id,
    )


async def test_an_agent_of_a_world_is_told_something(console: ConsoleStand) -> None:
    """What was said stands among what waits; what cannot be said is refused with the field."""
    async with console.tab("admin") as tab:
        text = await tab.open("/console/worlds?conversation=coins.Ana")
        assert "No messages are waiting." in text
        fields = {"conversation_id": "coins.Ana", "sender": "Bob", "message": "A storm"}
        text = await tab.send("/console/worlds/tell", time="8", **fields)
        assert "It is said, at 8 s of the world." in text
        assert '<p class="words">A storm</p>' in text
        text = await tab.send("/console/worlds/tell", time="soon", **fields)
        assert 'class="said bad"' in text
        assert "time" in text


async def test_a_key_of_one_user_hears_no_words_to_agents_of_another(
    console: ConsoleStand, redis: Redis
) -> None:
    await tell(redis, "coins.Ana", "For Ben alone", "ben")
    for name in ("ana", "acme", "rival"):
        async with console.tab(name) as tab:
            text = await tab.open("/console/worlds?conversation=coins.Ana")
            assert "For Ben alone" not in text
            assert "there is no conversation" in text
    async with console.tab("ben") as tab:
        text = await tab.open("/console/worlds?conversation=coins.Ana")
        assert "For Ben alone" in text


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_words_of_stories_and_worlds_are_text(
    console: ConsoleStand, redis: Redis, payload: str
) -> None:
    """Titles, names, threads, messages and senders."""
    settings = BASE.settings.model_copy(update={"title": payload})
    threads = (StoryThread(id="THREAD-001", title=payload, consequence_at=12),)
    changed = {"settings": settings, "threads": threads}
    shelf = shelf_on(redis)
    await shelf.stories.load(BASE.model_copy(update=changed))
    await shelf.told(1)
    await shelf.folded(1, word=payload)
    await tell(redis, "coins.Ana", payload, None)
    async with console.tab("admin") as tab:
        for path in (
            "stories",
            f"stories/{STORY}",
            "worlds?conversation=coins.Ana",
        ):
            text = await tab.open(f"/console/{path}")
            assert not re.search(
                r"<script(?! src=\"/console/static)|<img|<svg onload", text
            )
            assert payload not in text or not re.search("[<>\"']", payload)
        for path, name in (
            ("worlds", "conversation"),
            ("stories", "after"),
            (f"stories/{STORY}", "response"),
        ):
            answer = await tab.client.get(f"/console/{path}", params={name: payload})
            assert answer.status_code in (200, 422)
            assert payload not in answer.text or not re.search("[<>\"']", payload)
