"""Records of projects as JSON, and their words."""

from typing import Any

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.projects.lines import as_document, read_record
from tasklore.memory.projects.records import Record
from tasklore.memory.projects.words import MAX_WORD, tag_name, words_of

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
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    """Whatever its text and data hold."""
    assert read_record(as_document(record)) == record


def test_a_record_says_its_times_as_people_read_them() -> None:
    """In UTC; other zones are read too."""
    document = as_document(WHOLE)
    assert document["at"] == "2026-11-18T11:06:40.123Z"
    document["at"] = "2026-11-18T12:06:40.123+01:00"
    assert read_record(document) == WHOLE


_SOUND = {"record_id": "d1", "kind": "decision", "text": "x"}
_AT = {"at": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "must be a JSON object"),
        (None, "must be a JSON object"),
        ({}, "record_id: is needed"),
        ({**_SOUND, **_AT, "kind": "rumour"}, "kind: "),
        ({**_SOUND, "at": "2026-01-01T00:00:00"}, "at: "),
        ({**_SOUND, **_AT, "tags": "x"}, "tags"),
        ({**_SOUND, **_AT, "z": 1}, "z: "),
    ],
)
def test_what_is_no_record_is_refused_with_its_place(found: Any, why: str) -> None:
    """One sentence."""
    with pytest.raises(InvalidInput, match=why):
        read_record(found)


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
