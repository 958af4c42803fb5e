"""The file form of a session: times, numbers, and lists that fit into one round trip."""

from typing import Any

import pytest

from contracts.errors import InvalidInput
from memory.sessions.files import read
from memory.times import spell_time

ENTRY = {"key": "a:x", "value": 1, "created_at": "2025-11-19T10:00:00Z", "created_by_phase": "a"}
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
    document = {**FILE, "created_at": text, "cache": {"a:x": {**ENTRY, "created_at": text}}}
    found = read(document, None, 0, 100)
    assert (found.created_ms, found.entries[0].created_ms) == (ms, ms)


def test_entries_are_numbered_by_their_times() -> None:
    """Those of one time as they stand in the file."""
    cache = {
        key: {**ENTRY, "key": key, "created_at": spell_time(ms)}
        for key, ms in {"a:3": 9, "a:1": 5, "a:4": 9, "a:2": 6}.items()
    }
    found = read({**FILE, "cache": cache}, "other", 0, 100)
    assert [(one.entry.key, one.number) for one in found.entries] == [("a:1", 1), ("a:2", 2), ("a:3", 3), ("a:4", 4)]
    assert found.session_id == "other"


def test_an_entry_lives_as_long_as_its_own_time_says() -> None:
    """To the millisecond."""
    document = {**FILE, "cache": {"a:x": {**ENTRY, "ttl_ms": 5}}}
    assert read(document, None, MS + 4, 100).expired == ()
    assert read(document, None, MS + 5, 100).expired == ("a:x",)


@pytest.mark.parametrize("entry", [7, None, [], "x", {**ENTRY, "value": 1, "key": None}])
def test_an_entry_that_is_none_is_refused_alone(entry: Any) -> None:
    """With a reason."""
    found = read({**FILE, "cache": {"a:x": entry, "b:x": {**ENTRY, "key": "b:x", "created_by_phase": "b"}}}, None, 0, 9)
    assert [one.entry.key for one in found.entries] == ["b:x"]
    assert found.refused["a:x"]


def test_a_file_of_another_form_says_what_it_should_be() -> None:
    """By the name of the field."""
    with pytest.raises(InvalidInput, match="'cache' is None, but must be an object"):
        read({**FILE, "cache": None}, None, 0, 100)
    with pytest.raises(InvalidInput, match=r"version '3.0.0'"):
        read({**FILE, "version": "3.0.0"}, None, 0, 100)
