"""The house keeps its shape: a charter for every room, few Protocols, nothing of this machine."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.tree import (
    ROOMS,
    ROOT,
    Function,
    functions,
    modules,
    name_of,
    project_files,
    tree_of,
)

#: Protocols: what has one implementation is named itself.
MOST_PROTOCOLS = 30

PACKAGE = ROOT / "tasklore"

#: Public functions that may return Any, and why.
RETURN_ANY = {
    "contracts/parameters/model.py Field": "stands for a value of any type, as pydantic's own",
    "contracts/parameters/model.py read": "a raw value, before pydantic checks it",
    "contracts/words.py read": "a raw value, before pydantic checks it",
    "runtime/servers/valkey.py execute_command": "redis-py's own signature",
    "runtime/servers/valkey.py immediate_execute_command": "redis-py's own signature",
    "tasklore/client/answers.py result": "JSON of a shape that the caller knows",
    "tasklore/client/calls.py encode": "JSON",
    "tasklore/client/calls.py read_as": "a value of the shape that is passed",
    "tasklore/client/calls.py spell_body": "JSON",
    "tasklore/commands/options.py coerce": "typer's own signature",
    "tasklore/commands/options.py get_runtime_param": "typer's own signature",
    "workers/agent.py task": "two overloads say what it is",
    "workers/context/waits/asks.py ask_person": "two overloads say what it is",
    "workers/context/waits/asks.py signal": "two overloads say what it is",
    "workers/context/calls.py call": "two overloads say what it is",
    "workers/context/children.py call": "the result of whichever task is called",
    "workers/agents/story/parts.py one_of": "stands for a value of its field, as pydantic's own",
}


#: What takes any number of values of one meaning, or hands them on to such a function.
TAKE_MANY = {
    "_call",
    "_keys",
    "_script",
    "call",
    "call_soon_threadsafe",
    "counter",
    "histogram",
    "listed",
    "one_of",
    "print",
    "run",
    "says",
    "to_thread",
    "unified_diff",  # of difflib
}


@cache
def _functions() -> list[tuple[str, Function]]:
    """Return each function of the product after the name of its module; read once, as reading all takes seconds."""
    return [
        (name_of(file), function)
        for file in modules()
        for function in functions(tree_of(file))
    ]


#: Modules that compile JSON schemas, and what keeps anybody's schema from costing whatever it likes there.
COMPILE_SCHEMAS = {
    "supervisor/json_schema_child.py": "a child process, within bounds of the system",
    "supervisor/pipelines/declaration/schemas.py": "names of types and numbers, never a pattern",
    "supervisor/understanding/texts.py": "one short pattern without groups, within a bound of the library",
}


def test_schemas_are_compiled_where_their_cost_is_bounded() -> None:
    """Anybody may write a schema; the libraries hold the interpreter while they compile it."""
    found = {
        name_of(file)
        for file in modules()
        for one in ast.walk(tree_of(file))
        if isinstance(one, ast.Import | ast.ImportFrom)
        and {"jsonschema", "jsonschema_rs", "fastjsonschema"}.intersection(
            [getattr(one, "module", None), *(alias.name for alias in one.names)]
        )
    }
    assert found == COMPILE_SCHEMAS.keys()


def test_what_is_one_class_is_no_protocol_beside_it() -> None:
    """A test's double may be less than the class it stands for; nothing of the product has to say so."""
    bases = [
        f"{name_of(file)} {one.name}"
        for file in modules()
        for one in ast.walk(tree_of(file))
        if isinstance(one, ast.ClassDef)
        and any(ast.unparse(base).split("[")[0] == "Protocol" for base in one.bases)
    ]
    assert len(bases) <= MOST_PROTOCOLS, "\n".join(bases)


def test_an_assignment_gives_one_name_one_value() -> None:
    """`a, b = x, y` hides a statement in another; only values that change places need it."""
    packed = [
        f"{name_of(file)}:{node.lineno}"
        for file in modules(*ROOMS, "deploy")
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and not any(isinstance(one, ast.Starred) for one in node.value.elts)
        and sorted(map(ast.unparse, node.targets[0].elts))
        != sorted(map(ast.unparse, node.value.elts))
    ]
    assert packed == []


def test_a_call_names_its_values_beyond_the_fourth() -> None:
    """Unlike values in a row are told apart by their names alone."""
    unnamed = [
        f"{name_of(file)}:{node.lineno} {ast.unparse(node.func)}"
        for file in modules(*ROOMS, "deploy")
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call)
        and sum(not isinstance(one, ast.Starred) for one in node.args) > 4
        and ast.unparse(node.func).rpartition(".")[2] not in TAKE_MANY
    ]
    assert unnamed == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_belongs_in_it(room: str) -> None:
    """Its docstring has at least two sentences: what is in it, and what is not; and it ships its types."""
    charter = ast.get_docstring(tree_of(ROOT / room / "__init__.py")) or ""

    assert len(re.findall(r"[^.\s][.](?=\s|$)", charter)) >= 2, charter
    assert (ROOT / room / "py.typed").is_file()


def test_what_is_shipped_is_the_house() -> None:
    """The wheel holds one package, every room a link in it, and an example; each public thing has a docstring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert wheel["packages"] == ["tasklore"]
    links = {one.name: one.resolve() for one in PACKAGE.iterdir() if one.is_symlink()}
    assert links == {room: ROOT / room for room in ROOMS if room != "tasklore"}
    assert wheel["force-include"] == {
        "examples/lighthouse": "tasklore/commands/stories/lighthouse"
    }
    assert (ROOT / "examples" / "lighthouse" / "story.toml").is_file()
    assert "D" in project["tool"]["ruff"]["lint"]["select"]
    assert not {"D100", "D101", "D102", "D103", "D104"} & set(
        project["tool"]["ruff"]["lint"]["ignore"]
    )


def test_any_is_returned_only_where_nothing_else_is_true() -> None:
    """A public function that returns Any switches off its caller's types; each one has its reason."""
    found = {
        f"{name} {function.name}"
        for name, function in _functions()
        if not function.name.startswith("_")
        and isinstance(function.returns, ast.Name)
        and function.returns.id == "Any"
    }

    assert found <= set(RETURN_ANY), found - set(RETURN_ANY)


def test_what_installs_the_project_names_no_host() -> None:
    """Where packages come from is the business of whoever installs: pins carry hashes, no address."""
    files = [
        *(ROOT / "requirements").glob("*.txt"),
        ROOT / "pyproject.toml",
        ROOT / "Makefile",
    ]
    files += [
        file
        for file in project_files()
        if file.suffix in (".txt", ".in") and file not in files
    ]

    assert [
        name_of(file)
        for file in files
        if re.search(r"https?://|--(extra-)?index-url", file.read_text())
    ] == []
    assert not [file.name for file in ROOT.iterdir() if file.name.endswith(".lock")]


def test_the_project_knows_no_path_of_the_machine_it_was_written_on() -> None:
    """Nothing names a folder beside the checkout."""
    foreign = re.compile(
        "|".join(
            (r"(?<![\w.])/wor" + r"k/", "/tm" + r"p/w\b", r"\bshare" + r"d/(?=\w)")
        )
    )
    naming = [name_of(file) for file in project_files() if foreign.search(_text(file))]

    assert naming == []


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        return ""
