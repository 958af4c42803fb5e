"""What RFC 6902 can say, our edits can do: its own examples (appendix A), and what they leave open."""

import json
from copy import deepcopy
from typing import Any

import pytest

from benchmarks.compliance import patch_verdicts, path_verdicts
from memory.documents.edits import apply_changes, inverse
from tests.json_patch import NotAPatch, apply_patch, equal

#: Section, document, patch, expected document; None when it must fail.
APPENDIX_A: list[tuple[str, Any, list[Any], Any]] = [
    (
        "A.1 adding an object member",
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux"}],
        {"baz": "qux", "foo": "bar"},
    ),
    (
        "A.2 adding an array element",
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    (
        "A.3 removing an object member",
        {"baz": "qux", "foo": "bar"},
        [{"op": "remove", "path": "/baz"}],
        {"foo": "bar"},
    ),
    (
        "A.4 removing an array element",
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    (
        "A.5 replacing a value",
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    (
        "A.6 moving a value",
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        "A.7 moving an array element",
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        "A.8 testing a value, with success",
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    ("A.9 testing a value, with an error", {"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}], None),
    (
        "A.10 adding a nested member object",
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    (
        "A.11 ignoring unrecognized elements",
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        {"foo": "bar", "baz": "qux"},
    ),
    ("A.12 adding to a nonexistent target", {"foo": "bar"}, [{"op": "add", "path": "/baz/bat", "value": "qux"}], None),
    (
        "A.14 ~ escape ordering",
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}],
        {"/": 9, "~1": 10},
    ),
    ("A.15 comparing strings and numbers", {"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": "10"}], None),
    (
        "A.16 adding an array value",
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
]

#: What the appendix leaves open, in the same form.
OTHERS: list[tuple[str, Any, list[Any], Any]] = [
    ("add at the length of a list appends", [1], [{"op": "add", "path": "/1", "value": 2}], [1, 2]),
    ("add beyond the length of a list", [1], [{"op": "add", "path": "/2", "value": 2}], None),
    ("add with an index from the end", [1], [{"op": "add", "path": "/-1", "value": 2}], None),
    ("add with a leading zero", [1, 2], [{"op": "add", "path": "/01", "value": 2}], None),
    ("add a name to a list", [1], [{"op": "add", "path": "/a", "value": 2}], None),
    ("add into a text", {"a": "text"}, [{"op": "add", "path": "/a/b", "value": 2}], None),
    ("add a list to a list of lists", [[1]], [{"op": "add", "path": "/0", "value": [2]}], [[2], [1]]),
    ("add at the end of an inner list", [[1]], [{"op": "add", "path": "/0/-", "value": 2}], [[1, 2]]),
    ("add replaces a name that is there", {"a": [1]}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
    ("add replaces the whole document", {"a": 1}, [{"op": "add", "path": "", "value": [1]}], [1]),
    ("add an empty name", {}, [{"op": "add", "path": "/", "value": 1}], {"": 1}),
    ("add - as a name", {}, [{"op": "add", "path": "/-", "value": 1}], {"-": 1}),
    ("add null", {}, [{"op": "add", "path": "/a", "value": None}], {"a": None}),
    ("remove what is not there", {"a": 1}, [{"op": "remove", "path": "/b"}], None),
    ("remove behind the end", [1], [{"op": "remove", "path": "/-"}], None),
    ("remove the whole document", [1], [{"op": "remove", "path": ""}], None),
    ("replace what is not there", {}, [{"op": "replace", "path": "/a", "value": 1}], None),
    ("replace the whole document", [1], [{"op": "replace", "path": "", "value": {}}], {}),
    ("replace without a value", {"a": 1}, [{"op": "replace", "path": "/a"}], None),
    ("move onto itself", {"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
    ("move into itself", {"a": {}}, [{"op": "move", "from": "/a", "path": "/a/b"}], None),
    ("move to the root", {"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": ""}], {"b": 1}),
    ("move over another name", {"a": 1, "b": 2}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    ("copy, then change the copy", {"a": [1]}, [
        {"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 2},
    ], {"a": [1], "b": [1, 2]}),
    ("copy what is not there", {}, [{"op": "copy", "from": "/a", "path": "/b"}], None),
    ("copy from nowhere", {}, [{"op": "copy", "path": "/b"}], None),
    ("test numbers by value", {"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    ("test that true is no number", {"a": 1}, [{"op": "test", "path": "/a", "value": True}], None),
    ("test whatever the order of names", {"a": {"b": 1, "c": 2}}, [
        {"op": "test", "path": "/a", "value": {"c": 2, "b": 1}},
    ], {"a": {"b": 1, "c": 2}}),
    ("test without a value", {"a": None}, [{"op": "test", "path": "/a"}], None),
    ("an index in exponents", [1, 2], [{"op": "test", "path": "/1e0", "value": 2}], None),
    ("no leading slash", {"a": 1}, [{"op": "remove", "path": "a"}], None),
    ("a bad escape", {"~2": 1}, [{"op": "remove", "path": "/~2"}], None),
    ("a path that is no text", {"a": 1}, [{"op": "remove", "path": 1}], None),
    ("an unknown operation", {"a": 1}, [{"op": "spam", "path": "/a"}], None),
    ("no operation", {"a": 1}, [{"path": "/a"}], None),
    ("a failing operation behind a good one", {"a": 1}, [
        {"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"},
    ], None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [pytest.param(*case[1:], id=case[0]) for case in (*APPENDIX_A, *OTHERS)],
)
def test_a_json_patch_comes_out_as_its_standard_says(document: Any, patch: list[Any], expected: Any) -> None:
    """The document given stays as it is, and what was done can be taken back to the byte."""
    given = deepcopy(document)
    if expected is None:
        with pytest.raises(NotAPatch):
            apply_patch(document, patch)
    else:
        patched = apply_patch(document, patch)
        assert equal(patched.body, expected)
        assert json.dumps(apply_changes(patched.body, inverse(patched.changes))) == json.dumps(given)
    assert json.dumps(document) == json.dumps(given)


def test_published_tables_are_judged_case_by_case() -> None:
    """What comes out otherwise than a table says is named, and so is a selector that should have been refused."""
    patches = [
        {"comment": "right", "doc": {}, "patch": [], "expected": {}},
        {"comment": "wrong", "doc": {}, "patch": [], "expected": {"a": 1}},
        {"comment": "refused", "doc": {}, "patch": [{"op": "remove", "path": "/a"}], "expected": {}},
        {"comment": "not refused", "doc": {}, "patch": [], "error": "because"},
        {"comment": "left out", "doc": {}, "patch": [], "expected": 1, "disabled": True},
    ]
    paths = [
        {"name": "right", "selector": "$.a", "document": {"a": 1}, "result": [1], "result_paths": ["$['a']"]},
        {"name": "wrong", "selector": "$.a", "document": {"a": 1}, "result": [2]},
        {"name": "nothing there", "selector": "$.b", "document": {"a": 1}, "result": []},
        {"name": "not refused", "selector": "$.a", "invalid_selector": True},
        {"name": "several", "selector": "$['*', \"'\"]", "document": {}, "result": []},
    ]
    wrong = [verdict.case for verdict in (*patch_verdicts(patches), *path_verdicts(paths)) if verdict.wrong]

    assert wrong == ["wrong", "refused", "not refused", "wrong", "not refused"]
