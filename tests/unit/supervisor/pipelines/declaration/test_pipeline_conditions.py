"""Conditions of phases: their meaning, types they refuse to compare, and syntax errors."""

import pytest
from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.declaration.conditions import (
    DEEPEST,
    LONGEST,
    Condition,
)
from tasklore.supervisor.pipelines.declaration.references import Reference

VALUES: dict[str, JsonValue] = {
    "folder": "src",
    "deep": True,
    "n": 3,
    "zero": 0,
    "empty": [],
    "a:results": {"score": 2.5, "files": ["x.py", "y.py"], "kind": "deep"},
    "off:results": None,
}


def lookup(reference: Reference) -> JsonValue:
    return VALUES[reference.name]


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "${input.deep}",
        "not ${input.empty}",
        "not null",
        "${off:results?} == null",
        "${input.n} == 3",
        "${a:results.score} > 2",
        "${a:results.score}>=2.5",
        "-1 < 0 and -1e3 < 0",
        '${a:results.kind} == "deep"',
        "${a:results.kind} in ['deep', 'full']",
        "'x.py' in ${a:results.files}",
        "'sr' in ${input.folder}",
        "'score' in ${a:results}",
        "true not in [1, 'true']",
        "1 not in [true]",
        "[1, [2, 'x']] == [1, [2, 'x']]",
        "len(${a:results.files}) == 2",
        "len('abc') == 3 and len(${a:results}) == 3 and len([]) == 0",
        "true or false and false",
        "not (true and false)",
        "(1 == 1) == true",
        "'it\\'s' == \"it's\"",
        "false and ${missing:results} or true",
        "true or ${missing:results}",
        "\n ${input.n}\n  > 1 ",
    ],
)
def test_a_condition_holds(text: str) -> None:
    assert Condition.parse(text).holds(lookup) is True
    assert Condition.parse(f"not ({text})").holds(lookup) is False


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("'10' == 10", "a text", "a number"),
        ("true == 1", "true or false", "a number"),
        ("${a:results.files} == 'x.py'", "a list", "a text"),
        ("${off:results?} > 1", "null", "a number"),
        ("[1] < [2]", "a list", "a list"),
        ("1 in 'a1'", "a number", "a text"),
        ("'a' in null", "a text", "null"),
    ],
)
def test_values_of_different_types_are_not_compared(
    text: str, one: str, other: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Condition.parse(text).holds(lookup)
    assert f"cannot tell {one} " in str(caught.value)
    assert f" {other};" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "invalid syntax at character 1"),
        ("${input.n} = 3", "invalid syntax at character 12"),
        ("  ${input.n} == 3 3", "invalid syntax at character 19"),
        ("1 < 2 < 3", "join two comparisons by 'and' at character 9"),
        ("(1 == 1", "'(' was never closed"),
        ("folder == 'x'", "\"folder == 'x'\" begins with no value"),
        ("__import__('os')", "begins with no value"),
        ("(lambda: 1)()", "':' means nothing at character 8"),
        ("'a'.upper()", "begins with no value"),
        ("1 + 1", "'+' means nothing at character 3"),
        ("[x for x in [1]]", "begins with no value"),
        ("'open", '"\'" is not closed at character 1'),
        ("1.2.3", "invalid syntax"),
        ("${input.n", "'$' is not closed at character 1"),
        ("${nothing} == 1", "names nothing"),
        ("True", "begins with no value"),
        ("not " * (DEEPEST + 1) + "true", "nested too deep"),
        ("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2), "nested too deep"),
        ("(" * 900 + "1" + ")" * 900, "too many nested parentheses"),
        ("1" * (LONGEST + 1), f"keep to {LONGEST}"),
    ],
)
def test_a_syntax_error_is_reported_with_its_character(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Condition.parse(text)
    assert words in str(caught.value)


def test_conditions_up_to_the_limits_are_read() -> None:
    many = " or ".join(["false"] * 200)
    assert len(many) <= LONGEST
    assert Condition.parse(many).holds(lookup) is False
    assert Condition.parse("not " * DEEPEST + "true").holds(lookup) is True


def test_references_of_a_condition_are_known_without_evaluating_it() -> None:
    condition = Condition.parse(
        "${input.n} > 1 or ${a:results.score?} in [1, ${b:results}] and len(${c:results}) > 0"
    )
    assert [reference.name for reference in condition.references] == [
        "n",
        "a:results",
        "b:results",
        "c:results",
    ]
    assert [reference.optional for reference in condition.references] == [
        False,
        True,
        False,
        False,
    ]
