"""Files of documents come back byte for byte, however they were written."""

import json

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.files.json_files import read, write
from tasklore.memory.documents.items import METADATA, Body

#: As such files are published: lists of single values on one line, everything else indented.
PUBLISHED = """{
  "_metadata": {
    "resource_id": "resource_user_food_prefs",
    "tags": ["food"],
    "last_updated": "2025-12-28"
  },
  "food": {
    "likes": [
      {
        "item": "creme_brulee",
        "display": "Crème brûlée (especially with lavender)",
        "added": "2025-12-28",
        "expiry": null
      }
    ]
  }
}
"""
BODY: Body = json.loads(PUBLISHED)
LINES = '{\n  "food": {\n    "likes": [\n      { "item": "a", "n": 1 },\n      { "item": "b", "n": 2 }\n    ]\n  }\n}'

REGULAR = {
    "published": PUBLISHED,
    "indented": json.dumps(BODY, indent=2),
    "letters": json.dumps(BODY, indent=4, ensure_ascii=False) + "\n\n",
    "one line": json.dumps(BODY),
    "no blanks": json.dumps(BODY, separators=(",", ":")),
    "tabs": json.dumps(BODY, indent="\t"),
    "line ends": json.dumps(BODY, indent=2).replace("\n", "\r\n") + "\r\n",
    "byte order mark": "\ufeff" + json.dumps(BODY, indent=2),
    "blanks around": "\n\n" + json.dumps(BODY, indent=2) + " ",
    "spread colons": json.dumps(BODY, indent=1, separators=(",", " : ")),
    "no indentation": json.dumps(BODY, indent=0),
    "items on a line": LINES,
    "padded list": '{\n  "tags": [ "a", "b" ]\n}',
    "nothing": "{}",
    "numbers": '{"a": [1, -2, 1.5, 1e+30, 12345678901234567890, true, false, null]}',
}
IRREGULAR = {
    "digits": '{"a": 1.50}',
    "slashes": '{"a": "\\/"}',
    "aligned": '{"a":    1, "bc": 2}',
    "mixed lists": '{\n  "a": [1, 2],\n  "b": [\n    1\n  ]\n}',
    "an open nothing": '{\n  "a": [\n  ]\n}',
    "both escapes": '{"a": "\\u00e9 é"}',
    "minus nothing": '{"a": -0}',
}


def _stamped(body: Body) -> Body:
    """Return *body* with metadata as a store writes it."""
    metadata = body.get(METADATA)
    own = metadata if isinstance(metadata, dict) else {}
    stamped: Body = {**own, "last_updated": "2026-06-01", "revision": 4}
    return (
        {**body, METADATA: stamped} if METADATA in body else {METADATA: stamped, **body}
    )


@pytest.mark.parametrize("text", REGULAR.values(), ids=REGULAR)
def test_a_file_that_follows_rules_comes_back_by_them(text: str) -> None:
    """Nothing of it is kept but the rules: its form holds no sentence of it."""
    found = read(text.encode())

    assert found.irregular is None
    assert write(found.body, found.form) == text.encode()
    assert found.body == json.loads(text.removeprefix("\ufeff"))
    assert "verbatim" not in found.form
    assert "lavender" not in found.form


@pytest.mark.parametrize("text", IRREGULAR.values(), ids=IRREGULAR)
def test_a_file_that_follows_none_comes_back_word_for_word_and_says_so(
    text: str,
) -> None:
    """By the first line that the rules would write otherwise."""
    found = read(text.encode())

    assert found.irregular is not None
    assert found.irregular.startswith("line ")
    assert write(found.body, found.form) == text.encode()


@pytest.mark.parametrize(
    "text", [*REGULAR.values(), *IRREGULAR.values()], ids=[*REGULAR, *IRREGULAR]
)
def test_what_is_stamped_into_the_metadata_does_not_show_while_the_content_is_the_same(
    text: str,
) -> None:
    """After an edit and its undo, too."""
    found = read(text.encode())
    assert write(_stamped(found.body), found.form) == text.encode()


@pytest.mark.parametrize("text", [PUBLISHED, IRREGULAR["digits"]])
def test_an_edited_document_is_written_by_the_rules_of_its_file(text: str) -> None:
    found = read(text.encode())
    edited: Body = {**_stamped(found.body), "new": ["x", "y"]}

    written = write(edited, found.form).decode()

    assert json.loads(written) == edited
    assert '"new": ["x", "y"]' in written
    assert "1.50" not in written
    kept = [
        line
        for line in PUBLISHED.splitlines()
        if "last_updated" not in line and line.strip() not in ("}", "]")
    ]
    assert text != PUBLISHED or set(kept) <= set(written.splitlines())


def test_metadata_that_is_null_is_not_metadata_that_is_missing() -> None:
    """Both come back as they were."""
    for text in (
        '{"_metadata": null, "a": 1}',
        '{"a": 1}',
        '{"a": 1, "_metadata": {}}',
    ):
        found = read(text.encode())
        assert write(_stamped(found.body), found.form) == text.encode()


def test_a_document_that_never_was_a_file_is_written_as_files_are_published() -> None:
    """Indented by two, letters as they are, a line end at the end."""
    assert write(BODY).decode() == PUBLISHED


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (b"[1]", "a document is a JSON object"),
        (b"", "line 1, character 1: invalid JSON"),
        (b'{\n"a": 1', "line 2, character 7: invalid JSON"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' is in one object twice"),
        (b'{"a": NaN}', "NaN is not valid JSON"),
        (b'{"a": 1e999}', "1e999 is larger"),
        (b'{"a": "\\ud800"}', "half of a character"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "more digits"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "more than 100 deep"),
    ],
)
def test_what_cannot_be_kept_whole_is_refused(content: bytes, told: str) -> None:
    """The message says where, and what to do."""
    with pytest.raises(InvalidInput, match=told):
        read(content)
