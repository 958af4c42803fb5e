"""Nothing in the product can take a record out of a project's memory, by its code and by its interface."""

import fnmatch
import inspect
import re

import pytest

from tasklore.memory import keys
from tasklore.memory.projects import scripts as project_scripts
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.scripts import LIBRARIES
from tasklore.supervisor.operations import projects
from tests.architecture.tree import modules, name_of, strings, tree_of

#: What takes a key or a field away, or gives it an end.
_TAKES = {
    *(
        "DEL",
        "UNLINK",
        "HDEL",
        "EXPIRE",
        "PEXPIRE",
        "EXPIREAT",
        "PEXPIREAT",
        "HEXPIRE",
        "HPEXPIRE",
        "HEXPIREAT",
    ),
    *(
        "HPEXPIREAT",
        "GETDEL",
        "HGETDEL",
        "GETEX",
        "HGETEX",
        "RENAME",
        "RENAMENX",
        "MOVE",
        "MIGRATE",
        "RESTORE",
    ),
    *(
        "FLUSHDB",
        "FLUSHALL",
        "SWAPDB",
        "SET",
        "GETSET",
        "SETEX",
        "PSETEX",
        "ZREM",
        "ZPOPMIN",
        "ZPOPMAX",
        "SREM",
    ),
    *(
        "ZREMRANGEBYSCORE",
        "ZREMRANGEBYRANK",
        "ZREMRANGEBYLEX",
        "ZRANGESTORE",
        "ZUNIONSTORE",
        "ZINTERSTORE",
    ),
    *("ZDIFFSTORE", "SPOP", "LPOP", "RPOP", "LTRIM", "LREM", "SORT", "COPY"),
}
#: What a name of an index may be taken out of: that of what is in force, of words, of their vocabulary, of an author.
_FROM_INDEXES = {
    "APPEND": ["ZREM KEYS[10]"],
    "REDACT": ["ZREM KEYS[index]", "ZREM vocabulary", "ZREM by"],
}

_SCRIPTS = ("APPEND", "SEARCH", "FOLLOW", "REDACT")
_CALL = re.compile(r"redis\.p?call\(\s*'(\w+)'\s*,?\s*([\w.\[\]]*)")


def calls_of(script: str) -> list[tuple[str, str]]:
    """Return the commands of a script, each with its first word."""
    return _CALL.findall(LIBRARIES[getattr(project_scripts, script)])


def test_the_scripts_looked_at_are_all_there_are() -> None:
    """One that is added has to be looked at too; and each command stands where it is found by reading."""
    own = {
        name
        for name, value in vars(project_scripts).items()
        if isinstance(value, str) and value in LIBRARIES
    }
    assert own == set(_SCRIPTS)
    for script in _SCRIPTS:
        assert len(calls_of(script)) == LIBRARIES[
            getattr(project_scripts, script)
        ].count("call(")


@pytest.mark.parametrize("script", _SCRIPTS)
def test_no_script_takes_a_record_away(script: str) -> None:
    """Only names in indexes are, and a key ends by itself in none."""
    taken = [
        f"{command} {first}"
        for command, first in calls_of(script)
        if command.upper() in _TAKES
    ]
    assert taken == _FROM_INDEXES.get(script, [])


@pytest.mark.parametrize(
    ("script", "writes"), [("APPEND", 1), ("SEARCH", 0), ("FOLLOW", 0), ("REDACT", 1)]
)
def test_a_record_is_written_once_and_once_when_redacted(
    script: str, writes: int
) -> None:
    """Nothing else writes to it; appending looks first whether the id is taken."""
    calls = calls_of(script)
    assert calls.count(("HSET", "records")) == writes
    assert {command for command, first in calls if first == "records"} <= {
        "HSET",
        "HGET",
        "HMGET",
        "HEXISTS",
    }
    if script == "APPEND":
        assert calls.index(("HEXISTS", "records")) < calls.index(("HSET", "records"))


def _modules_that_say(pattern: str) -> set[str]:
    """Return the modules of the product in whose text *pattern* is found."""
    return {
        name_of(file)
        for file in modules()
        if re.search(pattern, file.read_text("utf-8"))
    }


def test_only_its_own_modules_know_the_keys_of_a_project() -> None:
    """So that no other part of the product can name one."""
    assert _modules_that_say(r"\bkeys\s*\.\s*project(_part|s)?\b") == {
        "memory/projects/project.py",
        "memory/projects/reader.py",
        "memory/projects/search.py",
    }


@pytest.mark.parametrize(
    "module",
    [
        "memory/projects/project.py",
        "memory/projects/reader.py",
        "memory/projects/search.py",
    ],
)
def test_no_command_of_those_takes_anything_away(module: str) -> None:
    """They add to the list of projects, read, and run scripts."""
    (file,) = [file for file in modules() if name_of(file) == module]
    said = {
        str(one.value)
        for one in strings(tree_of(file))
        if re.fullmatch(r"[A-Z]{2,}", str(one.value))
    }
    assert said <= {
        "FCALL",
        "ZADD",
        "ZRANGE",
        "ZCARD",
        "ZRANGEBYLEX",
        "HMGET",
        "GT",
        "BYSCORE",
        "LIMIT",
        "WITHSCORES",
    }
    assert not said & set(_TAKES)


def test_no_pattern_of_keys_that_are_removed_meets_one_of_a_project() -> None:
    of_project = [
        keys.project("tl"),
        keys.project_part("ltm", "tag", "doc"),
        keys.index("projects"),
    ]
    patterns = [
        make(
            *[
                "QQ"
                for parameter in inspect.signature(make).parameters.values()
                if parameter.default is parameter.empty
            ]
        )
        for name, make in vars(keys).items()
        if name.endswith("_pattern")
    ]
    assert len(patterns) >= 6
    assert [
        (one, key)
        for one in patterns
        for key in of_project
        if fnmatch.fnmatch(key, one.replace("[", "[[]"))
    ] == []


def test_nothing_empties_a_whole_database() -> None:
    """No module of the product says so, but the testing kit of the one that it had from a server of its own."""
    assert _modules_that_say(r"(?i)\b(flushdb|flushall|swapdb)\b") == {
        "workers/testing/server.py"
    }


def test_what_can_be_done_to_a_project_is_known() -> None:
    methods = {name for name in dir(ProjectMemory) if not name.startswith("_")}
    assert methods == {
        "append", "chain", "count_by", "export", "load", "marks", "projects", "read", "redact", "search", "standards",
    }  # fmt: skip
    assert {one.verb for one in projects.OPERATIONS} == {
        "decide",
        "standard",
        "history",
        "search",
        "show",
        "export",
        "import",
        "list",
    }
