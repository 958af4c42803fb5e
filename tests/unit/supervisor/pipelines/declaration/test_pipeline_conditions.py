"""Conditions: their meaning, the kinds that they refuse to compare, and errors."""

import pytest
from pydantic import JsonValue

from contracts.errors import InvalidInput
from supervisor.pipelines.declaration.conditions import DEEPEST, LONGEST, Condition
from supervisor.pipelines.declaration.references import Reference

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
    """Return the value of an input or entry of that name."""
    return VALUES[reference.name]


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "${input.deep}",
        "not ${input.zero}",
        "not ${input.empty}",
        "not null",
        "${off:results?} == null",
        "${a:results} != null",
        "${input.n} == 3",
        "${input.n} == 3.0",
        "${a:results.score} > 2",
        "${a:results.score}>=2.5",
        "-1 < 0 and -1e3 < 0",
        '${a:results.kind} == "deep"',
        "${a:results.kind} in ['deep', 'full']",
        "'x.py' in ${a:results.files}",
        "'z.py' not in ${a:results.files}",
        "'sr' in ${input.folder}",
        "'score' in ${a:results}",
        "true not in [1, 'true']",
        "1 not in [true]",
        "[1, [2, 'x']] == [1, [2, 'x']]",
        "len(${a:results.files}) == 2",
        "len('abc') == 3 and len(${a:results}) == 3 and len([]) == 0",
        "false or true and true",
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
    """And its contrary does not; values that do not decide are not looked up."""
    assert Condition.parse(text).holds(lookup) is True
    assert Condition.parse(f"not ({text})").holds(lookup) is False


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("'10' == 10", "a text", "a number"),
        ("true == 1", "true or false", "a number"),
        ("${a:results.files} == 'x.py'", "a list", "a text"),
        ("'a' < 1", "a text", "a number"),
        ("${off:results?} > 1", "null", "a number"),
        ("[1] < [2]", "a list", "a list"),
        ("1 in 'a1'", "a number", "a text"),
        ("len(${a:results.files}) > 'a'", "a number", "a text"),
        ("'a' in null", "a text", "null"),
    ],
)
def test_unlike_things_are_not_compared(text: str, one: str, other: str) -> None:
    """It is an error that names both, because false would leave a phase out in silence."""
    with pytest.raises(InvalidInput) as caught:
        Condition.parse(text).holds(lookup)

    assert f"cannot tell {one} " in str(caught.value)
    assert f" {other};" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "invalid syntax at character 1"),
        ("${input.n} = 3", "invalid syntax at character 12"),
        ("${input.n} ==", "invalid syntax at character 14"),
        ("  ${input.n} == 3 3", "invalid syntax at character 19"),
        ("1 < 2 < 3", "join two comparisons by 'and' at character 9"),
        ("(1 == 1", "'(' was never closed"),
        ("(1, 2) == 3", "'(1, 2) == 3' begins with no value at character 1"),
        ("folder == 'x'", "\"folder == 'x'\" begins with no value"),
        ("__import__('os')", "begins with no value"),
        ("(lambda: 1)()", "':' means nothing at character 8"),
        ("'a'.upper()", "begins with no value"),
        ("1 + 1", "'+' means nothing at character 3"),
        ("3 - 1", "begins with no value"),
        ("1 if 2 else 3", "begins with no value"),
        ("[x for x in [1]]", "begins with no value"),
        ("1 is 1", "begins with no value"),
        ("'open", '"\'" is not closed at character 1'),
        ("1.2.3", "invalid syntax"),
        ("${input.n", "'$' is not closed at character 1"),
        ("${nothing} == 1", "names nothing"),
        ("'${input.n}' == 'x'", "write it without the quotes"),
        ("True", "begins with no value"),
        ("not " * (DEEPEST + 1) + "true", "nested too deep"),
        ("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2), "nested too deep"),
        ("(" * 900 + "1" + ")" * 900, "too many nested parentheses"),
        ("1" * (LONGEST + 1), f"keep to {LONGEST}"),
    ],
)
def test_a_broken_condition_is_refused_with_its_character(text: str, words: str) -> None:
    """And nothing of it is ever run."""
    with pytest.raises(InvalidInput) as caught:
        Condition.parse(text)

    assert words in str(caught.value)


def test_a_number_has_no_length() -> None:
    """Only texts, lists and objects have one."""
    with pytest.raises(InvalidInput, match=r"asks for len\(\) of a number"):
        Condition.parse("len(${input.n}) > 1").holds(lookup)


def test_as_long_and_as_deep_as_may_be_is_still_understood() -> None:
    """The limits are reached, not only set."""
    many = " or ".join(["false"] * 200)

    assert len(many) <= LONGEST
    assert Condition.parse(many).holds(lookup) is False
    assert Condition.parse("not " * DEEPEST + "true").holds(lookup) is True


def test_what_a_condition_mentions_is_known_without_asking_it() -> None:
    """Also what stands in lists and behind `or`."""
    condition = Condition.parse("${input.n} > 1 or ${a:results.score?} in [1, ${b:results}] and len(${c:results}) > 0")

    assert [reference.name for reference in condition.references] == ["n", "a:results", "b:results", "c:results"]
    assert [reference.optional for reference in condition.references] == [False, True, False, False]
