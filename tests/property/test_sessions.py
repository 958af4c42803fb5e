"""Sessions against a plain model: whatever is done in whatever order, by however many, nothing is lost or left over."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.memory.sessions.entries import downstream, pack, read_head, unpack
from tasklore.memory.sessions.files import document_of, read
from tasklore.memory.sessions.session import (
    EntryInfo,
    FoundEntry,
    NewEntry,
    SessionCache,
    SessionRoot,
)
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.sessions import FakeStage, Stage, StoreStage
from tests.property.examples import examples
from tests.servers import PATIENCE_S

PHASES = ("a", "b", "pass_1", "pass_2")
KEYS = tuple(f"{phase}:{rest}" for phase in PHASES for rest in ("x", "x:1", "y"))
READERS = ("t1", "t2")

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=8,
)
one_key = st.sampled_from(KEYS)
steps = st.one_of(
    st.tuples(
        st.just("set"),
        st.dictionaries(one_key, json_values, min_size=1, max_size=3),
        st.booleans(),
    ),
    st.tuples(st.just("get"), one_key, st.none() | st.sampled_from(READERS)),
    st.tuples(st.just("delete"), one_key),
    st.tuples(st.just("invalidate"), st.sets(st.sampled_from(PHASES), max_size=2)),
    st.tuples(st.just("correct")),
    st.tuples(st.just("clear")),
)


class Model:
    """What a session is meant to be: values, uses, and which readers were counted."""

    def __init__(self) -> None:
        self.values: dict[str, JsonValue] = {}
        self.hits: dict[str, int] = {}
        self.readers: dict[str, set[str]] = {}
        self.is_corrected = False

    def set(self, entries: dict[str, JsonValue], if_absent: bool) -> None:
        """Write values, with no uses."""
        for key, value in entries.items():
            if not (if_absent and key in self.values):
                self.values[key] = value
                self.hits[key] = 0
                self.readers[key] = set()

    def get(self, key: str, reader: str | None) -> tuple[JsonValue, int] | None:
        """Return a value and its uses."""
        key = key.replace("pass_1", "pass_2") if self.is_corrected else key
        if key not in self.values:
            return None
        if reader is None or reader not in self.readers[key]:
            self.hits[key] += 1
            self.readers[key] |= {reader} if reader else set()
        return self.values[key], self.hits[key]

    def remove(self, is_meant: Callable[[str], bool]) -> list[str]:
        """Remove values."""
        meant = sorted(filter(is_meant, self.values))
        for key in meant:
            del self.values[key], self.hits[key], self.readers[key]
        return meant


async def _walk(stage: Stage, walked: list[tuple[Any, ...]]) -> None:
    cache = stage.cache
    model = Model()
    await cache.drop("s1", force=True)
    await cache.create("s1")
    for step in walked:
        match step:
            case ("set", entries, if_absent):
                new = [
                    NewEntry(key=key, value=value, if_absent=if_absent)
                    for key, value in entries.items()
                ]
                await cache.set_many("s1", new)
                model.set(entries, if_absent)
            case ("get", key, reader):
                found = await cache.get("s1", key, reader=reader)
                assert (found and (found.value, found.entry.hits)) == model.get(
                    key, reader
                )
            case ("delete", key):
                assert await cache.delete("s1", key) == bool(
                    model.remove(lambda one, key=key: one == key)
                )
            case ("invalidate", phases):
                expected = model.remove(
                    lambda one, phases=phases: one.partition(":")[0] in phases
                )
                assert list(await cache.invalidate_phases("s1", phases)) == expected
            case ("correct",):
                await stage.put_correction("pass_1", "pass_2", "s1")
                model.is_corrected = True
            case ("clear",):
                assert await cache.clear("s1") == len(model.remove(lambda one: True))
    entries = await cache.entries("s1")
    assert {entry.key: entry.hits for entry in entries} == model.hits
    hidden = {entry.key for entry in entries if entry.hidden_by}
    assert hidden == {
        key for key in model.values if model.is_corrected and key.startswith("pass_1:")
    }
    exported = (await cache.export("s1"))["cache"]
    expected = {key: value for key, value in model.values.items() if key not in hidden}
    assert {key: entry["value"] for key, entry in exported.items()} == expected


def _client(servers: EmbeddedServers) -> Redis:
    return Redis.from_url(
        servers.redis_url, socket_timeout=None, socket_connect_timeout=PATIENCE_S
    )  # type: ignore[no-any-return]


def _on(
    servers: EmbeddedServers, work: Callable[[StoreStage], Coroutine[Any, Any, None]]
) -> None:
    async def run() -> None:
        async with _client(servers) as client:
            await work(StoreStage(client))

    asyncio.run(run())


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, max_size=25))
def test_a_session_is_what_a_dict_with_counters_would_be(
    servers: EmbeddedServers, walked: list[Any]
) -> None:
    """Whatever is done, in whatever order."""
    _on(servers, lambda stage: _walk(stage, walked))


@examples(30)
@given(st.lists(steps, max_size=25))
def test_the_fake_is_too(walked: list[Any]) -> None:
    """It stands for the cache."""
    asyncio.run(_walk(FakeStage(), walked))


@examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.tuples(one_key, st.integers(0, 9)), max_size=12),
        min_size=2,
        max_size=4,
    )
)
def test_writers_side_by_side_lose_nothing(
    servers: EmbeddedServers, writers: list[list[tuple[str, int]]]
) -> None:
    async def write_and_read(stage: StoreStage) -> None:
        await stage.cache.drop("s1", force=True)
        await stage.cache.create("s1")

        async def one(number: int, entries: list[tuple[str, int]]) -> None:
            async with _client(servers) as client:
                cache = SessionCache(client, deadline_s=60.0)
                for key, value in entries:
                    await cache.set("s1", key, [number, value])
                    await cache.set("s1", f"own:w{number}:{key}", value)
                    await cache.get("s1", f"own:w{number}:{key}")

        await asyncio.gather(
            *(one(number, entries) for number, entries in enumerate(writers))
        )
        left = {entry.key: entry for entry in await stage.cache.entries("s1")}
        for number, entries in enumerate(writers):
            for key, value in dict(entries).items():
                own = await stage.cache.peek("s1", [f"own:w{number}:{key}", key])
                assert own[0] is not None
                assert own[1] is not None
                assert (own[0].value, own[0].entry.hits) == (value, 1)
                last = [
                    [writer, dict(theirs)[key]]
                    for writer, theirs in enumerate(writers)
                    if key in dict(theirs)
                ]
                assert own[1].value in last
        assert len(left) == len(
            {key for entries in writers for key, _ in entries}
        ) + sum(len(dict(entries)) for entries in writers)

    _on(servers, write_and_read)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, list[str]], str]:
    """Return what each phase directly depends on, without a circle, and one of the phases."""
    names = [f"p{number}" for number in range(draw(st.integers(1, 12)))]
    order = draw(st.permutations(names))
    direct = {
        name: draw(st.lists(st.sampled_from(order[:at]), unique=True, max_size=3))
        if at
        else []
        for at, name in enumerate(order)
    }
    return direct, draw(st.sampled_from(names))


def _depends(direct: dict[str, list[str]], phase: str, on: str) -> bool:
    """Return whether *phase* depends on *on*, by definition."""
    return any(other == on or _depends(direct, other, on) for other in direct[phase])


@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_invalidating_downstream_takes_exactly_the_dependents(
    servers: EmbeddedServers, drawn: tuple[dict[str, list[str]], str]
) -> None:
    """In any graph; every other entry stays."""
    direct, changed = drawn

    async def invalidate(stage: StoreStage) -> None:
        await stage.cache.drop("s1")
        await stage.cache.create("s1", dependencies=direct)
        await stage.cache.set_many(
            "s1",
            [
                NewEntry(key=f"{phase}:r:{number}", value=0)
                for phase in direct
                for number in (1, 2)
            ],
        )
        removed = await stage.cache.invalidate_downstream("s1", changed)
        dependents = {phase for phase in direct if _depends(direct, phase, changed)}
        assert removed == tuple(
            sorted(f"{phase}:r:{number}" for phase in dependents for number in (1, 2))
        )
        assert {entry.phase for entry in await stage.cache.entries("s1")} == set(
            direct
        ) - dependents
        assert downstream(changed, direct, []) == dependents

    _on(servers, invalidate)


@given(json_values, st.integers(0, 3))
def test_what_is_kept_of_a_value_is_the_value(value: JsonValue, times: int) -> None:
    """Compressed or not."""
    grown: JsonValue = [value] * 10**times
    body = json.dumps(grown).encode()
    assert unpack(pack(body)) == grown


times = st.integers(0, 253_402_300_799_999)
entry_infos = st.builds(
    EntryInfo,
    key=st.just("a:x"),
    phase=st.just("a"),
    data_type=st.just("x"),
    identifier=st.none(),
    created_ms=times,
    expires_ms=st.none(),
    ttl_ms=st.none() | st.integers(1, 2**40),
    computation_ms=st.integers(0, 2**40),
    agent=st.text(max_size=5),
    hits=st.integers(0, 2**40),
    bytes=st.just(0),
    stored_bytes=st.just(0),
)


@given(
    st.lists(st.tuples(entry_infos, json_values), max_size=5),
    times,
    times,
    st.integers(1, 2**40),
)
def test_a_file_is_read_as_it_was_written(
    entries: list[tuple[EntryInfo, JsonValue]],
    created_ms: int,
    updated_ms: int,
    ttl_ms: int,
) -> None:
    """Every entry, time and count."""
    root = SessionRoot(
        session_id="s1",
        version="2.0.0",
        domain="data",
        created_ms=created_ms,
        updated_ms=updated_ms,
        ttl_ms=ttl_ms,
        state="open",
    )
    found = [
        FoundEntry(value, replace(info, key=f"a:x:{number}", identifier=str(number)))
        for number, (info, value) in enumerate(entries)
    ]
    document = document_of(root, found)
    again = read(json.loads(json.dumps(document)), None, -1, 10**9)
    assert (again.refused, again.expired) == ({}, ())
    kept = []
    for one in again.entries:
        key, body, head, hits = one.words(one.body)
        info = read_head(key, head, hits)
        assert info is not None
        kept.append(FoundEntry(unpack(body), info))
    assert (again.created_ms, again.updated_ms) == (created_ms, updated_ms)
    assert (
        document_of(root, sorted(kept, key=lambda one: int(one.entry.identifier or 0)))
        == document
    )


@pytest.mark.parametrize("key", ["a:x", "a:x:1:2"])
@given(head=st.binary(max_size=40))
def test_no_head_is_a_surprise(key: str, head: bytes) -> None:
    """Whatever lies there: it is read, or it is none of ours."""
    for text in (
        head,
        b"0:1:2:" + head,
        b'0:1:2:{"size":1,"stored":1,"ttl":' + head + b"}",
    ):
        read_head(key, text, 0)
