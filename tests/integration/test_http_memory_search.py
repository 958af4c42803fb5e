"""Memory over HTTP: what was said is found by those who may read it, and turns are handed in once."""

import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.callers import Role
from tasklore.contracts.messages import ChatTurn
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.store import Episodes
from tasklore.runtime.messaging.direct import open_direct_reads
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tests.http_client import ask
from tests.integration.http_stand import Stand, http_stand
from tests.servers import PATIENCE_S

NOW = datetime.now(UTC)


@pytest.fixture
async def guarded(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[tuple[Stand, dict[str, Any]]]:
    path = tmp_path / "keys.json"
    headers = {}
    made: list[tuple[str, tuple[Role, ...]]] = [
        ("ann", ("ask", "read")),
        ("bob", ("read",)),
    ]
    for name, roles in made:
        headers[name] = {"Authorization": f"Bearer {make_key(path, name, roles, name)}"}
    async with http_stand(servers, redis, keys=KeyRing(path)) as found:
        yield found, headers


async def _said(redis: Redis, *texts: str) -> None:
    episodes = [
        Episode(
            turn_id=f"t{number}",
            conversation_id="c",
            speaker="person",
            at=NOW - timedelta(days=10, minutes=-number),
            text=text,
        )
        for number, text in enumerate(texts)
    ]
    await Episodes(redis, deadline_s=PATIENCE_S).append("ann", episodes)


async def test_words_are_found_with_their_day_and_by_their_user_alone(
    guarded: tuple[Stand, dict[str, Any]], redis: Redis
) -> None:
    stand, headers = guarded
    await _said(redis, "We moved to Porto", "I like the bridges", "It rained on Sunday")

    found = await ask(
        stand.url,
        "GET",
        "/v1/memory/ann/search?q=when+did+we+move",
        headers=headers["ann"],
    )
    assert found.status == 200
    first = found.body["memories"][0]
    assert (first["source"], first["text"], first["reference"]) == (
        "turn",
        "We moved to Porto",
        "t0",
    )
    assert first["at"] == (NOW - timedelta(days=10)).date().isoformat()

    day = (NOW - timedelta(days=30)).date().isoformat()
    before = await ask(
        stand.url,
        "GET",
        f"/v1/memory/ann/search?q=moved&at={day}",
        headers=headers["ann"],
    )
    assert (before.body["memories"], before.body["is_nothing_said"]) == ([], True)

    block = await ask(
        stand.url,
        "GET",
        "/v1/memory/ann/block?q=where+did+we+move",
        headers=headers["ann"],
    )
    assert '"We moved to Porto"' in block.body["text"]
    for path in ("search?q=move", "block?q=move"):
        assert (
            await ask(
                stand.url, "GET", f"/v1/memory/ann/{path}", headers=headers["bob"]
            )
        ).status == 403
        assert (await ask(stand.url, "GET", f"/v1/memory/ann/{path}")).status == 401


async def test_an_unusable_question_is_refused(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    stand, headers = guarded
    for query in ("q=", "q=%3F%21", "q=a&limit=0", "q=a&limit=101", "q=a&at=soon", ""):
        answer = await ask(
            stand.url, "GET", f"/v1/memory/ann/search?{query}", headers=headers["ann"]
        )
        assert answer.status in {400, 422}
        assert answer.headers["content-type"] == "application/problem+json"


async def test_turns_are_handed_in_once_and_by_a_role_that_may_ask(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    stand, headers = guarded
    turn_id = f"mine-{secrets.token_hex(6)}"
    turn = {"turn_id": turn_id, "text": "I love sushi", "conversation_id": "elsewhere"}
    for _ in range(2):
        taken = await ask(
            stand.url, "POST", "/v1/memory/ann/turns", {"turns": [turn]}, headers["ann"]
        )
        assert (taken.status, taken.body["taken"]) == (202, 1)

    async with open_direct_reads(Link(stand.parts.client), subjects.TURNS) as reads:
        stored = [
            one.body
            async for page in reads.pages(subjects.turns("ann"))
            for one in page
        ]
    texts = [
        turn.text
        for turn in map(ChatTurn.model_validate_json, stored)
        if turn.turn_id == turn_id
    ]
    assert texts == ["I love sushi"]
    # Whoever names another's conversation is shown nothing of it.
    assert all(
        turn.conversation_id != "elsewhere"
        for turn in map(ChatTurn.model_validate_json, stored)
    )
    assert (
        await ask(
            stand.url, "POST", "/v1/memory/ann/turns", {"turns": [turn]}, headers["bob"]
        )
    ).status == 403


async def test_the_answer_counts_the_turns_that_are_kept_and_says_why_others_are_not(
    guarded: tuple[Stand, dict[str, Any]], redis: Redis
) -> None:
    """Too old, blank, or of a user whose turns are not kept; all are handed in, and learned from."""
    stand, headers = guarded
    turn = {"text": "I love sushi", "conversation_id": "elsewhere"}
    turns = [
        turn | {"turn_id": "new"},
        turn | {"turn_id": "old", "at": "1990-05-01T12:00:00Z"},
        turn | {"turn_id": "blank", "text": " "},
    ]

    async def send() -> dict[str, Any]:
        path = "/v1/memory/ann/turns"
        answer = await ask(stand.url, "POST", path, {"turns": turns}, headers["ann"])
        assert answer.status == 202
        return dict(answer.body)

    told = await send()
    assert (told["taken"], told["kept"]) == (3, 1)
    reasons = {one["turn_id"]: one["why"] for one in told["not_kept"]}
    assert reasons["old"].startswith("it was said more than 730 days ago")
    assert reasons.keys() == {"old", "blank"}
    await Episodes(redis, deadline_s=PATIENCE_S).settle("ann", is_on=False)
    told = await send()
    assert told["kept"] == 0
    assert told["not_kept"][0]["why"] == "turns of this user are not kept"
    await Episodes(redis, deadline_s=PATIENCE_S).settle("ann")


async def test_unusable_turns_are_refused(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    """Empty, too many, without a zone, from the future, or for another user."""
    stand, headers = guarded
    turn = {"turn_id": "a", "text": "x", "conversation_id": "c"}
    for turns in (
        [],
        [turn | {"text": ""}],
        [turn | {"turn_id": "a b"}],
        [turn | {"at": "2026-01-01T00:00:00"}],
        [turn | {"at": "2036-01-01T00:00:00Z"}],
        [turn | {"user_id": "bob"}],
        [turn | {"turn_id": f"t{number}"} for number in range(101)],
    ):
        assert (
            await ask(
                stand.url,
                "POST",
                "/v1/memory/ann/turns",
                {"turns": turns},
                headers["ann"],
            )
        ).status == 422
