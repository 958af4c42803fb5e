"""What other programs depend on is spelled in one place each: Redis keys, and NATS subjects, streams and headers."""

import re
from collections import defaultdict
from functools import cache

from tasklore.contracts import subjects
from tasklore.memory import keys
from tests.architecture.tree import modules, name_of, strings, tree_of

_KEY = re.compile(r"(^|[^\w])tl:")
_OF_STORE = re.compile(r"memory/\w+/(keys|declaration)\.py")
_STREAMS = "TASKS|LATER|REPORTS|TURNS|FACTS|MESSAGES|DEAD"
_SUBJECT = re.compile(
    r"(tasks|reports|progress|cancel|requests|turns|facts|messages|dead|schedules|due)\.([^ ]|$)"
    rf"|({_STREAMS})$|Tasklore-|Nats-Msg-Id|traceparent$"
)

#: Strings that only look like a stream, and what they are.
_OTHERWISE = {
    ("supervisor/operations/agents.py", "tasks.name"): "a column of a table",
    ("contracts/manifest.py", "Tasklore-Version"): "a header of HTTP",
    ("supervisor/http/chat/forms.py", "messages."): "where a field of a request stands",
}


@cache
def _spelled() -> list[tuple[str, str]]:
    """Return each string of the product after the name of its module; read once, as reading all takes seconds."""
    return [
        (name_of(file), string.value)
        for file in modules()
        for string in strings(tree_of(file))
    ]


def _spellers(pattern: re.Pattern[str]) -> set[str]:
    return {
        name
        for name, value in _spelled()
        if pattern.search(value) and (name, value) not in _OTHERWISE
    }


def _subject_spellers() -> set[str]:
    return _spellers(re.compile(rf"^(?:{_SUBJECT.pattern})"))


def test_only_a_store_spells_its_redis_keys() -> None:
    """In `keys.py` and `declaration.py` of its folder, each kind in one folder; and what all share in `memory`."""
    spellers = _spellers(_KEY)
    own = {one for one in spellers if _OF_STORE.fullmatch(one)}
    assert spellers - own == {"memory/keys.py", "memory/declarations.py"}
    folders = defaultdict(set)
    for name, value in _spelled():
        if name in own:
            for kind in re.findall(r"tl:([a-z-]+)", value):
                folders[kind].add(name.rpartition("/")[0])
    # The lease of whoever computes an entry is one thing, for sessions and stories too.
    folders.pop("flight")
    assert {kind: found for kind, found in folders.items() if len(found) > 1} == {}


def test_only_one_file_spells_a_subject_stream_or_header() -> None:
    """`contracts/subjects.py` and nobody else."""
    assert _subject_spellers() == {"contracts/subjects.py"}


def test_what_is_looked_for_is_what_is_used() -> None:
    """The patterns of these tests match the real names, so that they cannot pass by looking for others."""
    assert _KEY.search(keys.task("t1"))
    assert _KEY.search(keys.ltm("A", "1.1", "x:1"))
    for subject in (
        subjects.task("A", "x"),
        subjects.report("S", "t", 1),
        subjects.turns("u"),
        subjects.requests("S"),
    ):
        assert _SUBJECT.match(subject)
    for word in (
        subjects.TASKS,
        subjects.DEAD,
        subjects.GENERATION_HEADER,
        subjects.ATTEMPT_HEADER,
    ):
        assert _SUBJECT.match(word)
