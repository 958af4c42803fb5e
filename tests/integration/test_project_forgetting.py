"""Forgetting a user of pipelines: sessions, outcomes and evidence go, records of projects lose their words."""

import json
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.commands.memory_hands import lend_hands, stores_of
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.runtime.settings import Settings
from tasklore.supervisor.operator_process import open_operator
from tasklore.workers.forgetting.erasure import UserStore, forget_user
from tasklore.workers.forgetting.server_files import rewrite_redis
from tasklore.workers.forgetting.stores import all_stores, evidence_files
from tests.traces import files_with, until_away

ANN = "ann@example.org"
BOB = "bob"


def secret_of(user: str) -> str:
    """Return a word that only *user* says."""
    return f"zebra{user[:3]}quagga"


def parts_of(redis: Redis, folder: Path) -> tuple[UserStore, ...]:
    """Return the places in which pipelines leave something of a user."""
    nats: Any = SimpleNamespace()
    documents = DocumentStore(redis, Kinds.load(), deadline_s=30.0)
    ledger = Ledger(redis)
    stores = all_stores(
        nats, redis, nats, documents, folder, ledger=ledger, deadline_s=30.0
    )
    return tuple(
        store
        for store in stores
        if store.name in ("sessions", "evidence files", "texts in projects")
    )


async def run_of(user: str, redis: Redis, folder: Path) -> None:
    """Leave what pipelines leave: sessions, one that runs, an outcome, evidence and records of two projects."""
    sessions = SessionCache(redis, deadline_s=30.0)
    memory = ProjectMemory(redis, deadline_s=30.0)
    name = user[:3]
    for session in ("open", "running", "ended"):
        assert await sessions.create(
            f"{name}-{session}", user_id=user, ttl=timedelta(hours=1)
        )
        await sessions.set(f"{name}-{session}", "analysis:results", secret_of(user))
    await redis.hset(keys.session(f"{name}-running").root, "state", "running")
    for session in ("ended", "gone"):
        await redis.set(keys.run(f"{name}-{session}"), secret_of(user), ex=3600)
    await redis.sadd(keys.user_sessions(user_token(user)), f"{name}-gone")
    evidence = {
        "format": "tasklore-evidence/1",
        "user_id": user,
        "inputs": {"text": secret_of(user)},
    }
    (folder / f"{name}-ended-failed.json").write_text(json.dumps(evidence, indent=2))
    for project in ("shop", "other"):
        await memory.append(
            project, "decision", secret_of(user), by=user, tags=["style"]
        )
        await memory.append(
            project,
            "history",
            f"a run of {name}",
            by=user,
            data={"said": secret_of(user)},
        )


def names_in(folder: Path) -> list[str]:
    """Return what lies in *folder*."""
    return sorted(file.name for file in folder.iterdir())


async def count_left(parts: tuple[UserStore, ...], user: str) -> Mapping[str, int]:
    """Return how much is left of *user*, by kind."""
    return {
        kind: count
        for part in parts
        for kind, count in (await part.count(user)).items()
    }


async def test_forgetting_a_user_removes_sessions_and_empties_their_records(
    redis: Redis, tmp_path: Path
) -> None:
    memory = ProjectMemory(redis, deadline_s=30.0)
    parts = parts_of(redis, tmp_path)
    for user in (ANN, BOB):
        await run_of(user, redis, tmp_path)
    before = await count_left(parts, BOB)
    assert before == {"sessions": 4, "evidence files": 1, "texts in projects": 4}
    bobs = [
        record
        for record in [one async for one in memory.export("shop")]
        if record.by == BOB
    ]

    done = await forget_user(ANN, parts)

    assert done.is_complete
    assert done.removed == {
        "sessions": 3,
        "outcomes": 2,
        "evidence files": 1,
        "texts in projects": 4,
    }
    assert await count_left(parts, BOB) == before
    records = [record async for record in memory.export("shop")]
    assert [record.record_id for record in records] == ["d1", "h1", "d2", "h2"]
    assert [record.text for record in records[:2]] == ["[redacted]"] * 2
    assert records[2:] == bobs
    assert names_in(tmp_path) == ["bob-ended-failed.json"]
    assert await redis.keys("*ann*") == []
    assert await redis.keys(f"*{user_token(ANN)}*") == []
    assert await redis.get(keys.run("bob-gone")) == secret_of(BOB).encode()
    for user, folder in ((ANN, tmp_path), ("nobody", tmp_path / "none")):
        done = await forget_user(user, parts_of(redis, folder))
        assert (done.removed, done.left) == ({}, {})


async def test_after_a_rewrite_no_file_of_the_store_holds_the_words(
    own_servers: EmbeddedServers, tmp_path: Path
) -> None:
    folder = own_servers.valkey.data_dir
    async with Redis.from_url(own_servers.redis_url) as redis:
        for user in (ANN, BOB):
            await run_of(user, redis, tmp_path)
        assert files_with(folder, secret_of(ANN))
        await forget_user(
            ANN, parts_of(redis, tmp_path), (partial(rewrite_redis, redis),)
        )
        await until_away([folder], secret_of(ANN))
        assert files_with(folder, secret_of(BOB))


async def test_evidence_that_cannot_be_read_as_json_is_searched_as_text(
    redis: Redis, tmp_path: Path
) -> None:
    (tmp_path / "a-failed.json").write_text('{"user_id": "ann", "inputs": {')
    (tmp_path / "b-failed.json").write_text(
        '{"inputs": {"user_id": "ann"}, "user_id": "bob"}'
    )
    (tmp_path / "notes.json").write_text('{"user_id": "ann"}')
    assert await evidence_files(tmp_path).forget("ann") == {"evidence files": 1}
    assert names_in(tmp_path) == ["b-failed.json", "notes.json"]


async def test_the_command_forgets_in_sessions_evidence_and_projects(
    servers: EmbeddedServers,
    redis: Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)
    monkeypatch.setenv("TASKLORE_EVIDENCE_DIR", str(tmp_path))
    await run_of(ANN, redis, tmp_path)
    settings = Settings.load()
    metrics = Metrics("0")
    async with open_operator(settings, "test", metrics, lend_hands) as opened:
        parts = stores_of(opened.link, opened.redis, opened.outbox, settings)
        names = [part.name for part in parts]
        assert (*names[:4], *names[-2:]) == (
            "hidden keys",
            "schedules",
            "sessions",
            "tasks",
            "evidence files",
            "texts in projects",
        )
        found = await count_left((parts[2], *parts[-2:]), ANN)
        assert found == {"sessions": 4, "evidence files": 1, "texts in projects": 4}
