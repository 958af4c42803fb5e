"""What an entry is made of: its head, its body, its size and the rules of its key."""

import json
import zlib
from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import EntryTooLarge, InvalidInput
from memory.sessions.entries import (
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
from memory.sessions.session import NewEntry


def test_what_nobody_said_is_not_in_a_head() -> None:
    """No time measured is another thing than none taken."""
    assert json.loads(head_of(NewEntry("a:x", 0, computation_ms=None), 1, 1)) == {"size": 1, "stored": 1}
    unknown = read_head("a:x", b"0:3:9:" + head_of(NewEntry("a:x", 0, computation_ms=None), 1, 1), 0)
    instant = read_head("a:x", b"0:3:9:" + head_of(NewEntry("a:x", 0), 1, 1), 0)
    assert unknown is not None
    assert instant is not None
    assert (unknown.is_timed, instant.is_timed) == (False, True)
    assert (unknown.computation_ms, unknown.agent, unknown.expires_ms, unknown.ttl_ms) == (0, "", None, None)


@pytest.mark.parametrize(("size", "is_packed"), [(4_095, False), (4_096, True), (1_000_000, True)])
def test_what_is_large_is_packed(size: int, is_packed: bool) -> None:
    """From 4 KiB on, when it shrinks."""
    body = b'"' + b"x" * (size - 2) + b'"'
    stored = pack(body)
    assert (stored[:1] == b"x", len(stored) < size) == (is_packed, is_packed)
    assert unpack(stored) == "x" * (size - 2)


@pytest.mark.parametrize("stored", [b"", b"x", b"xyz", b"{", b"\xff\xfe", b"[" * 20_000, zlib.compress(b"{")])
def test_what_was_not_stored_by_us_is_no_value(stored: bytes) -> None:
    """One kind of error, whatever is wrong."""
    with pytest.raises(ValueError):
        unpack(stored)


def test_a_value_is_counted_in_bytes_of_its_json() -> None:
    """Not in characters, and not in what is kept of it."""
    assert encode("a:x", "ü", 4) == '"ü"'.encode()
    with pytest.raises(EntryTooLarge, match=r"'a:x' has 4 bytes of JSON, a session takes at most 3;.*'a:x:part-1'"):
        encode("a:x", "ü", 3)


def test_a_value_that_never_ends_is_refused() -> None:
    """As one that is no JSON."""
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="nested deeper than 200"):
        encode("a:x", endless, 100)  # type: ignore[arg-type]


@pytest.mark.parametrize("deep", [lambda inner: [inner, inner], lambda inner: {"n": inner, "m": 0}])
def test_a_value_that_is_nested_too_deeply_is_refused(deep: Any) -> None:
    """With the limit and what to do; up to there it is taken, though its parts be held in many places."""
    value: Any = 1
    for _ in range(10):
        value = deep(value)
    for _ in range(190):
        value = {"n": value}
    assert unpack(encode("a:x", value, 100_000)) == value
    with pytest.raises(InvalidInput, match=r"'a:x' is nested deeper than 200 levels; make it flatter"):
        encode("a:x", [value], 100_000)
    for _ in range(5_000):
        value = deep(value)
    with pytest.raises(InvalidInput, match="nested deeper"):
        encode("a:x", value, 100_000)


def test_a_refused_phase_says_what_to_write() -> None:
    """The key, as that phase may write it."""
    assert check_key("a:x:1:2", "a").identifier == "1:2"
    with pytest.raises(InvalidInput, match="'a:x:1' belongs to phase 'a', not to 'b'; write it as 'b:x:1'"):
        check_key("a:x:1", "b")
    with pytest.raises(InvalidInput, match="belongs to phase 'a', not to ''"):
        check_key("a:x", "")


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(days=-1), timedelta(microseconds=999), timedelta.max])
def test_a_time_to_live_is_counted_in_milliseconds(ttl: timedelta) -> None:
    """At least one, and no more than any reader counts exactly."""
    assert milliseconds(timedelta(seconds=1), "it") == 1_000
    with pytest.raises(InvalidInput, match="it must be"):
        milliseconds(ttl, "it")


@pytest.mark.parametrize("change", [{"session_id": None}, {"ttl_ms": b"x"}, {"dependencies": b"[]"}, {"run": b""}])
def test_a_root_of_somebody_else_is_none(change: dict[str, bytes | None]) -> None:
    """It lies under one of our keys, but we did not write it."""
    words = root_words("s1", domain="seo", ttl=timedelta(minutes=1))
    told = {str(name): str(value).encode() for name, value in zip(words[::2], words[1::2], strict=True)}
    sound = {**told, "created_at": b"1", "updated_at": b"2"}
    assert read_root(sound, -1, 0) is not None
    assert read_root({**sound, **change}, -1, 0) is None
