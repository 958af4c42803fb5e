"""References in phases: grammar, values, and the entries that a phase reads."""

import pytest
from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.declaration.graph import keys_read, mentions_of
from tasklore.supervisor.pipelines.declaration.references import (
    Reference,
    references_in,
    resolve,
)
from tests.unit.supervisor.pipelines.fake_system import a_phase

VALUES: dict[tuple[str, str], JsonValue] = {
    ("input", "folder"): "src",
    ("input", "deep"): False,
    ("entry", "analysis:results"): {
        "files": ["a.py", {"name": "b.py"}],
        "count": 2,
        "content-type": "x",
        "a.b": 1,
    },
    ("entry", "analysis:file:src/a.py"): {"lines": 10},
    ("entry", "count:results"): 0,
    ("standards", "standards"): [{"id": "s1", "text": "Say why.", "tags": ["docs"]}],
}


def lookup(reference: Reference) -> JsonValue:
    """Return the whole value, as a run does: nothing is an error unless it may be missing."""
    key = (reference.kind, reference.name)
    if key not in VALUES and not reference.optional:
        raise InvalidInput(f"{reference.name!r} is not there")
    return VALUES.get(key)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", ""),
        ("${input.folder}", "src"),
        ("${input.deep}", False),
        ("${analysis:results.files}", ["a.py", {"name": "b.py"}]),
        ("${analysis:results.files.1.name}", "b.py"),
        ('${analysis:results."a.b"}', 1),
        ("${analysis:file:src/a.py}", {"lines": 10}),
        ('${analysis:file:"src/a.py".lines}', 10),
        ("${standards.0.text}", "Say why."),
        ("${review:results?}", None),
        ("${analysis:results.nothing?}", None),
        ("${count:results?}", 0),
        ("in ${input.folder}: ${analysis:results.files.0}", "in src: a.py"),
        (
            "deep=${input.deep}, n=${count:results}, none=${review:results?}",
            "deep=false, n=0, none=null",
        ),
        ("of ${analysis:results.files}", 'of ["a.py",{"name":"b.py"}]'),
        ("$$${input.folder}", "$${input.folder}"),
        (["${input.folder}", {"x": "${count:results}"}, None], ["src", {"x": 0}, None]),
        ({"${input.folder}": 1}, {"${input.folder}": 1}),
    ],
)
def test_a_reference_is_replaced_by_its_value(
    written: JsonValue, value: JsonValue
) -> None:
    found = resolve(written, lookup)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (
            "${analysis:results.fils}",
            ["leads nowhere", "'analysis:results'", "'files'", "'fils'"],
        ),
        (
            "${analysis:results.files.7}",
            ["'analysis:results.files'", "a list of 2", "'7'"],
        ),
        ("${count:results.total}", ["a number", "'total'"]),
        ("${other:results}", ["'other:results' is not there"]),
        ("${folder}", ["names nothing", "${input.name}", "$${"]),
        ("${input.a b}", ["names nothing"]),
        ("${analysis:results..x}", ["naming rule"]),
        ("${an alysis:results}", ["naming rule", "'analysis:dependencyMap'"]),
        ("${analysis:results", ["not closed", "'}'"]),
        ('${analysis:file:""}', ["identifier that is empty"]),
    ],
)
def test_an_invalid_reference_is_reported_with_the_cure(
    written: str, words: list[str]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        resolve(written, lookup)
    assert [word for word in words if word not in str(caught.value)] == []


def test_references_are_found_at_any_depth_in_order() -> None:
    found = references_in(
        {
            "a": ["x ${input.folder} ${analysis:results.files.0?}", "$${no:one}"],
            "b": "${standards}",
        }
    )
    assert found == (
        Reference(
            kind="input", name="folder", path=(), optional=False, text="${input.folder}"
        ),
        Reference(
            kind="entry",
            name="analysis:results",
            path=("files", "0"),
            optional=True,
            text="${analysis:results.files.0?}",
        ),
        Reference(
            kind="standards",
            name="standards",
            path=(),
            optional=False,
            text="${standards}",
        ),
    )
    assert [reference.phase for reference in found] == ["", "analysis", ""]


def test_an_entry_is_optional_only_if_every_mention_is() -> None:
    phase = a_phase(
        parameters={
            "x": "${a:results?} ${e:results} ${e:results.path?}",
            "y": {"z": ["${b:results.path?}", "${input.n}"]},
        },
        reads=("a:results", "c:file:src/x.py?"),
        when="${d:results?} == null or ${b:results?} == 1",
    )

    assert keys_read(phase) == {
        "a:results": False,
        "e:results": False,
        "b:results": True,
        "c:file:src/x.py": True,
        "d:results": True,
    }


def test_mentions_and_unreadable_ones_have_their_places() -> None:
    phase = a_phase(
        parameters={"x": "${a:results}", "y": "${b"},
        reads=("c d", "e:results"),
        when="${f:results",
    )
    mentions, problems = mentions_of(phase)
    assert [mention.place for mention in mentions] == [
        ("parameters", "x"),
        ("reads", 1),
    ]
    assert [problem.place for problem in problems] == [
        ("parameters", "y"),
        ("reads", 0),
        ("when",),
    ]
    with pytest.raises(InvalidInput, match=r"phase p: parameters\.y"):
        keys_read(phase)
