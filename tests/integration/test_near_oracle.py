"""Near matches on a real store against brute force, for every kind of value."""

import asyncio
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.contracts.quantities.amounts import Amount, Duration, Percent, Quantity
from tasklore.memory import keys
from tasklore.memory.long_term import neighbours
from tasklore.memory.long_term.entries import NearMatch
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers.embedded import ValkeyServer

HOUR = timedelta(hours=1)
ANNA = user_token("anna")
BEN = user_token("ben")


class Trip(Parameters):
    """Four tolerant values, each in its own terms, beside a text."""

    limit: Amount = Field(tolerance="2.5%")
    luggage: Quantity | None = Field(None, tolerance="500 g")
    stay: Duration | None = Field(None, tolerance="10 minutes")
    rate: Percent | None = Field(None, tolerance="0.5")
    town: str = "Kiel"


class Room(Parameters):
    """Two tolerant numbers."""

    width: Decimal = Field(tolerance=10)
    length: Decimal = Field(tolerance=10)


#: Most near each other, some a hair beyond a border, some as large or as small as an amount can be.
_limits = st.one_of(
    st.integers(-110, 110),
    st.sampled_from(
        [
            "100",
            "102.5",
            "97.5",
            "102.5000000000000000000000001",
            "0",
            "-100",
            "9" * 40,
            "1e-30",
            "1e30",
        ]
    ),
    st.builds(
        lambda digits, power: Decimal(digits).scaleb(power),
        st.integers(990, 1010),
        st.integers(-30, 30),
    ),
)
_trips = st.fixed_dictionaries(
    {"limit": _limits},
    optional={
        "luggage": st.sampled_from(
            [
                "1 kg",
                "1.5 kg",
                "1500 g",
                "3 lb",
                "1 m",
                "1.2 m",
                "1 km/h",
                "-0.3 kg",
                "0.2 kg",
                "1001 g",
            ]
        ),
        "stay": st.sampled_from(
            [
                "1 hour",
                "PT1H10M",
                "PT1H10M1S",
                "P1MT1H",
                "P1MT65M",
                "1 month",
                "0 s",
                "-5 minutes",
            ]
        ),
        "rate": st.sampled_from(["20%", "20.5", "20.6%", "0%", "-0.2%", "0.2%"]),
        "town": st.sampled_from(["Kiel", "kiel"]),
    },
)
_users = st.sampled_from([None, ANNA, BEN])
_versions = st.sampled_from(["1.1", "1.2", "1.1+3fa9c01d"])
_fates = st.sampled_from(["kept", "kept", "kept", "evicted", "forgotten"])
Asked = tuple[dict[str, Any], str | None, str]


@st.composite
def _frames(draw: st.DrawFn) -> tuple[Asked, list[tuple[Asked, str]]]:
    """Draw a question, and others that were made of it by a change or two, with what became of their answers."""
    asked = draw(_trips), draw(_users), draw(_versions)
    known = []
    for _ in range(draw(st.integers(0, 10))):
        other = draw(_trips)
        changed = draw(st.sets(st.sampled_from(sorted(other)), max_size=2))
        raw = {**asked[0], **{name: other[name] for name in changed}}
        if draw(st.booleans()) and "limit" not in changed:
            raw["limit"] = Amount(raw["limit"]) * (
                1 + Decimal(draw(st.integers(-28, 28))).scaleb(-3)
            )
        user, version = (
            draw(st.tuples(_users, _versions))
            if draw(st.integers(0, 5)) == 0
            else asked[1:]
        )
        known.append(((raw, user, version), draw(_fates)))
    return asked, known


@settings(max_examples=80)
@given(_frames(), st.integers(0, 3).map(lambda drawn: drawn == 0))
def test_the_nearest_that_may_be_served_is_served(
    store_server: ValkeyServer,
    frame: tuple[Asked, list[tuple[Asked, str]]],
    anna_is_forgotten: bool,
) -> None:
    """Never across units, signs, texts, users, versions or settings, and never a removed one; else the nearest."""
    asked, known = frame
    found, stands = asyncio.run(
        _served(store_server.url, asked, known, anna_is_forgotten)
    )
    fates = {_key(other): (other, fate) for other, fate in known}
    living = [
        one
        for one, fate in fates.values()
        if fate == "kept" and not (anna_is_forgotten and one[1] == ANNA)
    ]
    near = {
        _key(one): used
        for one in living
        if (used := _used(asked, one)) is not None and _key(one) != _key(asked)
    }
    if found is None:
        assert near == {}
    else:
        assert found.answer.result_json == b'"%b"' % found.key.encode()
        assert near[found.key] == min(near.values())
    remembered = [
        Trip.read(one[0]) for one, fate in fates.values() if fate != "forgotten"
    ]
    assert stands <= {
        near.place
        for one in remembered
        if (near := Parameters.neighbourhood(one, "trip"))
    }


async def _served(
    url: str, asked: Asked, known: list[tuple[Asked, str]], anna_is_forgotten: bool
) -> tuple[NearMatch | None, set[str]]:
    """Return the served neighbour, and every place that an index has by then."""
    async with Redis.from_url(url) as client:
        await client.flushdb()
        memory = LongTermMemory(client, budget_s=60.0)
        for other, _ in known:
            key = _key(other)
            near = Parameters.neighbourhood(Trip.read(other[0]), "trip")
            await memory.remember(
                key,
                b'"%b"' % key.encode(),
                computed_ms=1,
                ttl=HOUR,
                now_ms=1,
                near=near,
            )
        for other, fate in {
            _key(other): (other, fate) for other, fate in known
        }.values():
            if fate == "evicted":
                await client.unlink(_key(other))
            elif fate == "forgotten":
                await memory.forget(_key(other))
        if anna_is_forgotten:
            await memory.forget(user_token=ANNA)
        here = Parameters.neighbourhood(Trip.read(asked[0]), "trip")
        found = (
            (await memory.nearest([(_key(asked), here)]))[0]
            if here is not None
            else None
        )
        return found, {place for index in await _indexes(client) for place in index}


async def _indexes(client: Redis) -> list[list[str]]:
    names = sorted(
        [name async for name in client.scan_iter(match="tl:ltm:{*}:near:*", count=1000)]
    )
    return [
        [place.decode() for place in await client.zrange(name, 0, -1)] for name in names
    ]


def _key(asked: Asked) -> str:
    raw, user, version = asked
    return keys.ltm("Planner", version, Parameters.key(Trip.read(raw), "trip"), user)


def _used(asked: Asked, other: Asked) -> Fraction | None:
    """Return the shares of the tolerances that lie between two trips, None when they are not near."""
    one = Trip.read(asked[0])
    two = Trip.read(other[0])
    if asked[1:] != other[1:] or one.town != two.town:
        return None
    steps = [
        _share(
            one.limit.value,
            two.limit.value,
            abs(Fraction(one.limit.value)) * Fraction(25, 1000),
        ),
        Fraction()
        if one.luggage == two.luggage
        else _luggage_share(one.luggage, two.luggage),
        Fraction() if one.stay == two.stay else _stay_share(one.stay, two.stay),
        Fraction() if one.rate == two.rate else _rate_share(one.rate, two.rate),
    ]
    shares = [step for step in steps if step is not None]
    return sum(shares, Fraction()) if len(shares) == len(steps) else None


def _share(one: Decimal, two: Decimal, reach: Fraction) -> Fraction | None:
    away = abs(Fraction(one) - Fraction(two))
    if not away:
        return away
    return away / reach if one * two > 0 and away <= reach else None


def _luggage_share(one: Quantity | None, two: Quantity | None) -> Fraction | None:
    if (
        one is None
        or two is None
        or one.dimension != "weight"
        or two.dimension != "weight"
    ):
        return None
    return _share(one.to("g").value, two.to("g").value, Fraction(500))


def _stay_share(one: Duration | None, two: Duration | None) -> Fraction | None:
    if one is None or two is None or one.months != two.months:
        return None
    return _share(one.seconds, two.seconds, Fraction(600))


def _rate_share(one: Percent | None, two: Percent | None) -> Fraction | None:
    return (
        None
        if one is None or two is None
        else _share(one.value, two.value, Fraction(1, 2))
    )


def _standing(width: object, length: object) -> tuple[str, Neighbourhood]:
    room = Room.read({"width": width, "length": length})
    near = Parameters.neighbourhood(room, "room")
    assert near is not None
    return keys.ltm("Planner", "1.1", Parameters.key(room, "room")), near


async def _remember(
    memory: LongTermMemory, width: object, length: object, **options: Any
) -> str:
    key, near = _standing(width, length)
    terms = {"computed_ms": 1, "ttl": HOUR, "now_ms": 1, "near": near, **options}
    await memory.remember(key, b"1", **terms)
    return key


@pytest.fixture
def memory(valkey_or_redis: Redis) -> LongTermMemory:
    return LongTermMemory(valkey_or_redis, budget_s=60.0)


async def test_in_a_dense_frame_the_nearest_is_found_however_many_stand_beside_it(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    for step in range(150):
        await _remember(memory, 100 + Decimal(step) / 100, 200 + step)
        await _remember(memory, 300 + step, 100 + Decimal(step) / 100)
    wanted = await _remember(memory, 107, 109)
    await _remember(memory, 108, 109)
    [found] = await memory.nearest([_standing(100, 100)])
    assert (found.key, found.place) == (wanted, "107|109")
    # Foreign places in an index are passed over.
    key, near = _standing(100, 100)
    hostile = [
        "nonsense",
        "100",
        "101|x",
        "101|1e2",
        "nan|nan",
        "101|101|101",
        "inf|100",
        "0x65|101",
        "|",
        b"\xff|1",
    ]
    for index in (keys.near(key, near.frame, 2)[0], keys.near(key, near.frame, 2)[2]):
        await valkey_or_redis.zadd(index, dict.fromkeys(hostile, 100.5))
    [found] = await memory.nearest([_standing(100, 100)])
    assert found.key == wanted


async def test_a_bounded_search_serves_a_near_answer_or_none(
    memory: LongTermMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "MOST_LOOKED_AT", 8)
    for step in range(60):
        await _remember(memory, 100 + Decimal(step) / 10, 150)
        await _remember(memory, 150, 100 + Decimal(step) / 10)
    await _remember(memory, 109, 109)
    assert await memory.nearest([_standing(100, 100)]) == [None]
    await _remember(memory, 100, 101)
    [found] = await memory.nearest([_standing(100, 100)])
    assert found.place == "100|101"


async def test_places_of_several_fields_go_with_their_answers(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    gone = await _remember(memory, 100, 100)
    await _remember(memory, 104, 104)
    assert await _indexes(valkey_or_redis) == [["100|100", "104|104"]] * 3
    await memory.forget(gone)
    assert await _indexes(valkey_or_redis) == [["104|104"]] * 3
    late = await _remember(memory, 108, 108, now_ms=3_600_002)
    assert await _indexes(valkey_or_redis) == [["108|108"]] * 3
    await valkey_or_redis.unlink(late)
    assert await memory.nearest([_standing(107, 107)]) == [None]
    assert await _indexes(valkey_or_redis) == []


async def test_the_indexes_of_several_fields_live_as_long_as_their_last_answer(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await _remember(memory, 100, 100)
    key, near = _standing(100, 100)
    names = keys.near(key, near.frame, 2)
    assert len(names) == 3
    assert all([0 < await valkey_or_redis.pttl(name) <= 3_600_000 for name in names])
    await _remember(memory, 101, 101, ttl=None)
    assert [await valkey_or_redis.pttl(name) for name in names] == [-1] * 3
