"""Sessions: the parts of an entry, the rules of its key, the form of a file, and the saving."""

import json
import zlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tasklore.contracts.errors import EntryTooLarge, InvalidInput
from tasklore.memory.sessions.entries import (
    check_key,
    encode,
    head_of,
    milliseconds,
    pack,
    read_head,
    read_root,
    root_words,
    unpack,
)
from tasklore.memory.sessions.files import read
from tasklore.memory.sessions.pipeline_records import PhaseState
from tasklore.memory.sessions.session import EntryInfo, NewEntry
from tasklore.memory.sessions.stats import read_states, summarise
from tasklore.memory.times import spell_time


def test_what_nobody_said_is_not_in_a_head() -> None:
    """No time measured is another thing than none taken."""
    assert json.loads(
        head_of(NewEntry(key="a:x", value=0, computation_ms=None), 1, 1)
    ) == {
        "size": 1,
        "stored": 1,
    }
    unknown = read_head(
        "a:x",
        b"0:3:9:" + head_of(NewEntry(key="a:x", value=0, computation_ms=None), 1, 1),
        0,
    )
    instant = read_head(
        "a:x", b"0:3:9:" + head_of(NewEntry(key="a:x", value=0), 1, 1), 0
    )
    assert unknown is not None
    assert instant is not None
    assert (unknown.is_timed, instant.is_timed) == (False, True)
    assert (
        unknown.computation_ms,
        unknown.agent,
        unknown.expires_ms,
        unknown.ttl_ms,
    ) == (0, "", None, None)


@pytest.mark.parametrize(
    ("size", "is_packed"), [(4_095, False), (4_096, True), (1_000_000, True)]
)
def test_what_is_large_is_packed(size: int, is_packed: bool) -> None:
    """From 4 KiB on, when it shrinks."""
    body = b'"' + b"x" * (size - 2) + b'"'
    stored = pack(body)
    assert (stored[:1] == b"x", len(stored) < size) == (is_packed, is_packed)
    assert unpack(stored) == "x" * (size - 2)


@pytest.mark.parametrize(
    "stored", [b"", b"x", b"xyz", b"{", b"\xff\xfe", b"[" * 20_000, zlib.compress(b"{")]
)
def test_what_was_not_stored_by_us_is_no_value(stored: bytes) -> None:
    """One kind of error, whatever is wrong."""
    with pytest.raises(ValueError):
        unpack(stored)


def test_a_value_is_counted_in_bytes_of_its_json() -> None:
    assert encode("a:x", "ü", 4) == '"ü"'.encode()
    with pytest.raises(
        EntryTooLarge,
        match=r"'a:x' has 4 bytes of JSON, a session takes at most 3;.*'a:x:part-1'",
    ):
        encode("a:x", "ü", 3)


def test_a_value_that_never_ends_is_refused() -> None:
    """As one that is no JSON."""
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="nested deeper than 200"):
        encode("a:x", endless, 100)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "deep", [lambda inner: [inner, inner], lambda inner: {"n": inner, "m": 0}]
)
def test_a_value_that_is_nested_too_deeply_is_refused(deep: Any) -> None:
    """With the limit and what to do; up to there it is taken, though its parts be held in many places."""
    value: Any = 1
    for _ in range(10):
        value = deep(value)
    for _ in range(190):
        value = {"n": value}
    assert unpack(encode("a:x", value, 100_000)) == value
    with pytest.raises(
        InvalidInput, match=r"'a:x' is nested deeper than 200 levels; make it flatter"
    ):
        encode("a:x", [value], 100_000)
    for _ in range(5_000):
        value = deep(value)
    with pytest.raises(InvalidInput, match="nested deeper"):
        encode("a:x", value, 100_000)


def test_a_refused_phase_says_what_to_write() -> None:
    assert check_key("a:x:1:2", "a").identifier == "1:2"
    with pytest.raises(
        InvalidInput,
        match="'a:x:1' belongs to phase 'a', not to 'b'; write it as 'b:x:1'",
    ):
        check_key("a:x:1", "b")
    with pytest.raises(InvalidInput, match="belongs to phase 'a', not to ''"):
        check_key("a:x", "")


@pytest.mark.parametrize(
    "ttl",
    [timedelta(0), timedelta(days=-1), timedelta(microseconds=999), timedelta.max],
)
def test_a_time_to_live_is_counted_in_milliseconds(ttl: timedelta) -> None:
    """At least one, and no more than any reader counts exactly."""
    assert milliseconds(timedelta(seconds=1), "it") == 1_000
    with pytest.raises(InvalidInput, match="it must be"):
        milliseconds(ttl, "it")


@pytest.mark.parametrize(
    "change",
    [{"session_id": None}, {"ttl_ms": b"x"}, {"dependencies": b"[]"}, {"run": b""}],
)
def test_a_root_of_somebody_else_is_none(change: dict[str, bytes | None]) -> None:
    """It lies under one of our keys, but we did not write it."""
    words = root_words("s1", domain="seo", ttl=timedelta(minutes=1))
    told = {
        str(name): str(value).encode()
        for name, value in zip(words[::2], words[1::2], strict=True)
    }
    sound = {**told, "created_at": b"1", "updated_at": b"2"}
    assert read_root(sound, -1, 0) is not None
    assert read_root({**sound, **change}, -1, 0) is None


ENTRY = {
    "key": "a:x",
    "value": 1,
    "created_at": "2025-11-19T10:00:00Z",
    "created_by_phase": "a",
}


FILE = {
    "version": "2.0.0",
    "session_id": "s1",
    "domain": "data",
    "created_at": "2025-11-19T10:00:00.000Z",
    "updated_at": "2025-11-19T10:00:00.000Z",
    "ttl_ms": 1,
    "cache": {},
}


MS = 1_763_546_400_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2025-11-19T10:00:00.000Z", MS),
        ("2025-11-19T11:00:00+01:00", MS),
        ("2025-11-19T10:00:00.007999", MS + 7),
        ("1969-12-31T23:59:59Z", 0),
        ("9999-12-31T23:59:59-14:00", 253_402_300_799_999),
    ],
)
def test_a_time_is_read_however_it_is_spelled(text: str, ms: int) -> None:
    """Without a zone it is in UTC; before 1970 there was no session."""
    document = {
        **FILE,
        "created_at": text,
        "cache": {"a:x": {**ENTRY, "created_at": text}},
    }
    found = read(document, None, 0, 100)
    assert (found.created_ms, found.entries[0].created_ms) == (ms, ms)


def test_entries_are_numbered_by_their_times() -> None:
    """Those of one time as they stand in the file."""
    cache = {
        key: {**ENTRY, "key": key, "created_at": spell_time(ms)}
        for key, ms in {"a:3": 9, "a:1": 5, "a:4": 9, "a:2": 6}.items()
    }
    found = read({**FILE, "cache": cache}, "other", 0, 100)
    assert [(one.entry.key, one.number) for one in found.entries] == [
        ("a:1", 1),
        ("a:2", 2),
        ("a:3", 3),
        ("a:4", 4),
    ]
    assert found.session_id == "other"


def test_an_entry_lives_as_long_as_its_own_time_says() -> None:
    """To the millisecond."""
    document = {**FILE, "cache": {"a:x": {**ENTRY, "ttl_ms": 5}}}
    assert read(document, None, MS + 4, 100).expired == ()
    assert read(document, None, MS + 5, 100).expired == ("a:x",)


@pytest.mark.parametrize(
    "entry", [7, None, [], "x", {**ENTRY, "value": 1, "key": None}]
)
def test_an_entry_that_is_none_is_refused_alone(entry: Any) -> None:
    """With a reason."""
    found = read(
        {
            **FILE,
            "cache": {
                "a:x": entry,
                "b:x": {**ENTRY, "key": "b:x", "created_by_phase": "b"},
            },
        },
        None,
        0,
        9,
    )
    assert [one.entry.key for one in found.entries] == ["b:x"]
    assert found.refused["a:x"]


def test_a_file_of_another_form_says_what_it_should_be() -> None:
    """By the name of the field."""
    with pytest.raises(InvalidInput, match="'cache' is None, but must be an object"):
        read({**FILE, "cache": None}, None, 0, 100)
    with pytest.raises(InvalidInput, match=r"version '3.0.0'"):
        read({**FILE, "version": "3.0.0"}, None, 0, 100)


INFO = EntryInfo("a:x", "a", "x", None, 1_000, None, None, 120_000, "", 3, 1, 1)


def test_time_is_saved_by_each_use() -> None:
    """Not by being there."""
    entries = [
        INFO,
        replace(INFO, key="a:y", computation_ms=50_000, hits=0, created_ms=2_000),
    ]
    stats = summarise(entries, {}, 4_000)
    assert (stats.total_entries, stats.total_hits, stats.total_saved_time_ms) == (
        2,
        3,
        360_000,
    )
    assert stats.avg_entry_age_ms == 2_500


def test_what_one_computed_for_all_is_saved_by_the_others() -> None:
    """In the very run of a pipeline; what a phase reads of another one's results was computed for it."""
    shared = replace(INFO, key="a:map", computation_ms=1_200, hits=2, is_shared=True)
    own = replace(INFO, key="b:results", phase="b", computation_ms=700, hits=1)
    phases = {
        "a": PhaseState(status="done", took_ms=1_300, ended_ms=5_000),
        "b": PhaseState(status="done", took_ms=1_900, computed_ms=700, ended_ms=5_000),
        "c": PhaseState(status="done", took_ms=1_250, computed_ms=50, ended_ms=5_000),
    }
    first = summarise([shared, own], phases, 6_000, began_ms=0)
    assert first.total_saved_time_ms == 2_400
    again = summarise([shared, own], phases, 9_000, began_ms=8_000)
    assert again.saved_by_phase == {"a": 1_300, "b": 700, "c": 50}
    assert again.total_saved_time_ms == 2_400 + 2_050


def test_a_phase_of_over_ten_seconds_should_have_kept_something() -> None:
    """Unless it did."""
    took = {"a": 99_000, "b": 10_000, "d": 10_001, "c": 20_000}
    stats = summarise(
        [INFO], {name: PhaseState(took_ms=ms) for name, ms in took.items()}, 0
    )
    assert stats.uncached_phases == ("c", "d")


def test_states_that_cannot_be_read_tell_no_time() -> None:
    odd = [
        b"a",
        b'{"took_ms": 5}',
        b"b",
        b"{",
        b"c",
        b"[]",
        b"d",
        b"{}",
        b"e",
        b'{"took_ms": null}',
        b"f",
        b"\xff",
    ]
    assert {name: state.took_ms for name, state in read_states(odd).items()} == {
        "a": 5,
        "d": 0,
    }
