"""Records of projects as lines of a file, their words, and what a person may mean by a time."""

import json
from datetime import UTC, datetime

import pytest

from tasklore.commands.project.stores import time_of
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.projects.lines import read_line, write_line
from tasklore.memory.projects.records import Record
from tasklore.memory.projects.words import MAX_WORD, tag_name, words_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


WHOLE = Record(
    record_id="d7",
    kind="decision",
    text="a\nb \u2028 ✓",
    tags=("x", "y z"),
    at_ms=1_795_000_000_123,
    by="ana",
    supersedes="d3",
    superseded_by="d9",
    session_id="run-1",
    data={"n": [1, "é"]},
    redacted_ms=5,
)


@pytest.mark.parametrize(
    "record",
    [
        WHOLE,
        Record(record_id="h1", kind="history", text="x"),
        Record(
            record_id="s1",
            kind="standard",
            text="x",
            data={"half": "\ud800", "whole": "😀"},
        ),
    ],
)
def test_a_line_is_read_as_it_was_written(record: Record) -> None:
    """One line each, whatever the text holds."""
    line = write_line(record)
    assert line.count(b"\n") == 1
    assert read_line(line) == record


def test_a_line_says_its_times_as_people_read_them() -> None:
    """In UTC; other zones are read too."""
    document = json.loads(write_line(WHOLE))
    assert document["at"] == "2026-11-18T11:06:40.123Z"
    document["at"] = "2026-11-18T12:06:40.123+01:00"
    assert read_line(json.dumps(document).encode()) == WHOLE


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "is no JSON"),
        (b"[]", "must be a JSON object"),
        (b"[" * 100_000, "is no JSON"),
        (b"{}", "record_id: is needed"),
        (
            b'{"record_id": "d1", "kind": "rumour", "text": "x", "at": "2026-01-01T00:00:00Z"}',
            "kind: ",
        ),
        (
            b'{"record_id": "d1", "kind": "decision", "text": "x", "at": "2026-01-01T00:00:00"}',
            "at: ",
        ),
        (
            b'{"record_id": "d1", "kind": "decision", "text": "x", "tags": "x", "at": "2026-01-01T00:00:00Z"}',
            "tags",
        ),
        (
            b'{"record_id": "d1", "kind": "decision", "text": "x", "at": "2026-01-01T00:00:00Z", "z": 1}',
            "z: ",
        ),
    ],
)
def test_what_is_no_record_is_refused_with_its_place(line: bytes, why: str) -> None:
    """One sentence."""
    with pytest.raises(InvalidInput, match=why):
        read_line(line)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("2h", -2),
        ("1d", -24),
        ("2026-11-21T13:00:00Z", 1),
        ("2026-11-21 13:00", 1),
        ("2026-11-21T13:00:00+01:00", 0),
    ],
)
def test_a_time_is_so_long_ago_or_a_moment(text: str, hours: int) -> None:
    """Without a zone it is in UTC."""
    assert (
        time_of(text, "--since", NOW) == int(NOW.timestamp() * 1000) + hours * 3_600_000
    )


@pytest.mark.parametrize("text", ["9999999w", "0001-01-01"])
def test_a_time_before_all_time_is_its_beginning(text: str) -> None:
    """Everything is after it."""
    assert time_of(text, "--since", NOW) == 0


def test_what_is_no_time_is_refused_and_none_is_none() -> None:
    """The option is named."""
    assert time_of(None, "--until", NOW) is None
    with pytest.raises(InvalidInput, match="--until 'soon' is no span of time"):
        time_of("soon", "--until", NOW)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("?! -- \n", []),
        ("The the THE", ["the"]),
        ("Max_value=2, CAFÉ", ["max", "value", "2", "café"]),
        ("don't stop-it", ["don", "t", "stop", "it"]),
        ("\ufb01ne \uff37\uff29\uff24\uff25 ²", ["fine", "wide", "2"]),
        ("cafe\u0301", ["café"]),
        ("हिन्दी", ["हिन्दी"]),
        ("API決定を", ["api", "決", "定", "を"]),
        ("\U0001f600 ok\x00b", ["ok", "b"]),
        ("x" * 70, ["x" * MAX_WORD]),
    ],
)
def test_words_are_what_people_would_type(text: str, words: list[str]) -> None:
    """Folded, each once, in their order."""
    assert words_of(text) == words


def test_tags_are_one_however_they_are_spelled() -> None:
    """Capitals, space around them and the spelling of accents do not count; accents do."""
    assert tag_name(" Café ") == tag_name("CAFE\u0301") != tag_name("cafe")
