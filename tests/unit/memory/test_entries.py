"""The value of a remembered entry: written fast, read fast, and read at all when another program wrote it."""

import json
import zlib

import pytest

from tasklore.memory import keys
from tasklore.memory.long_term.entries import (
    CachedResult,
    EntrySelection,
    decode,
    decode_entry,
    encode,
    summarise,
)


def value_of(result: bytes, parameters: bytes = b'{"limit":5}') -> bytes:
    """Return an entry's value."""
    return encode(
        result,
        created_at_ms=1000,
        computed_ms=20,
        agent_version="1.1",
        parameters_json=parameters,
    )


@pytest.mark.parametrize(
    "result",
    [
        b"null",
        b"0",
        b'"x"',
        b'{"remaining":8000.0}',
        '{"a":"ä,\\"result\\":1}"}'.encode(),
        b'{"result":{"result":[]}}',
    ],
)
def test_a_result_comes_back_byte_for_byte(result: bytes) -> None:
    """Also one that holds what looks like our own head or tail."""
    assert decode(value_of(result)) == CachedResult(1000, 20, result)


def test_a_value_is_one_json_object() -> None:
    """Programs in other languages read it as such."""
    assert json.loads(value_of(b'{"a":1}')) == {
        "format": 1,
        "created_at": 1000,
        "computed_ms": 20,
        "check": zlib.crc32(b'{"a":1}'),
        "size": 7,
        "result": {"a": 1},
        "agent_version": "1.1",
        "parameters": {"limit": 5},
    }


def test_plain_json_of_another_program_is_read() -> None:
    """Order, spaces and our own bookkeeping do not matter to it."""
    foreign = b'{ "result": {"a": 1}, "computed_ms": 7, "created_at": 5 }'
    assert decode(foreign) == CachedResult(5, 7, b'{"a":1}')


def test_an_entry_edited_by_hand_is_read() -> None:
    """The checksum no longer fits, but it is JSON all the same."""
    edited = value_of(b'{"a":1}').replace(b'{"a":1}', b'{"a":2222}')
    assert decode(edited) == CachedResult(1000, 20, b'{"a":2222}')


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"null",
        b"[1]",
        b'{"created_at":1,"computed_ms":1}',
        b'{"created_at":"1","computed_ms":1,"result":1}',
        b'{"created_at":1,"computed_ms":1,"result":NaN}',
        b"[" * 100_000,
        value_of(b'{"a":"long enough"}')[:-2],
        value_of(b'{"a":1}').replace(b'{"a":1}', b'{"a"\x00}'),
    ],
)
def test_what_nobody_can_read_is_no_answer(value: bytes) -> None:
    assert decode(value) is None


def test_an_entry_tells_its_parameters_and_task() -> None:
    """What `results show` and the export need."""
    key = keys.ltm("Agent", "1.1", "analyze_budget:5")
    entry = decode_entry(key, value_of(b"1"), hits=3, expires_in_ms=None)
    assert entry is not None
    assert (entry.parts.task_name, entry.parameters_json, entry.hits) == (
        "analyze_budget",
        b'{"limit":5}',
        3,
    )


def test_saved_time_is_hits_times_the_time_each_answer_took() -> None:
    """Summed in all and by task."""
    stats = summarise([("a", 3, 100), ("a", 0, 999), ("b", 2, 10)])
    assert (stats.entries, stats.hits, stats.saved_ms) == (3, 5, 320)
    assert stats.by_task["a"].saved_ms == 300


def test_a_selection_needs_every_condition() -> None:
    """Created at the very limit counts as since, not as before."""
    wanted = EntrySelection(
        agent_id="A", task="t", created_before_ms=20, created_since_ms=10
    )
    assert wanted.names(keys.LongTermKey("A", "1", None, "t:1"))
    assert not wanted.names(keys.LongTermKey("B", "1", None, "t:1"))
    assert not wanted.names(keys.LongTermKey("A", "1", None, "tt:1"))
    assert [wanted.holds(CachedResult(at, 0, b"")) for at in (9, 10, 19, 20)] == [
        False,
        True,
        True,
        False,
    ]
