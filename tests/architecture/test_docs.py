"""README and docs are true: code runs, commands exist, links resolve, generated pages are current, the wire fits."""

import asyncio
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tasklore.commands.app import sentences_of_nouns
from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import parse_limits
from tasklore.contracts.messages import MESSAGES
from tasklore.runtime.documents import CHANNELS
from tasklore.runtime.messaging.streams import StreamSizes, stream_configurations
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.pipelines.declaration.cards import problems_with
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.files import (
    describe_problems,
    read_pipeline,
)
from tasklore.testing import AgentKit
from tasklore.workers.card import card_of
from tasklore.workers.config import load_config
from tests.acceptance.command import environment, tasklore
from tests.acceptance.conversation import MEMORY, SWITCHBOARD
from tests.acceptance.system import BUDGET, System
from tests.architecture.page_code import PAGES, blocks_of, find_blocks, pages_with
from tests.architecture.tree import ROOT
from tests.fakes.sessions import FakeSessions

REFERENCE = ROOT / "docs" / "reference"
GUIDE = ROOT / "docs" / "guide"
WIRE = (REFERENCE / "wire.md").read_text("utf-8")

_LINK = re.compile(r"\]\(([^)\s]+)\)")

#: Made by `make bench`, when somebody runs it.
_MADE_LATER = {"benchmarks/results.md"}


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _needs_a_system(page: Path) -> bool:
    return any('environ["TASKLORE_API"]' in code for code in blocks_of(page, "python"))


_PYTHON = [page for page in pages_with("python") if page.name != "wire.md"]


@pytest.mark.parametrize(
    "page", [page for page in _PYTHON if not _needs_a_system(page)], ids=_name
)
async def test_python_on_a_page_runs(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it in order, as one module; then each of its own tests."""
    await _run(page, monkeypatch)


async def test_python_on_pages_that_ask_a_running_system(
    own_servers: EmbeddedServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a supervisor and a worker without a model, at the address in the page's variable."""
    pages = [page for page in _PYTHON if _needs_a_system(page)]
    assert pages
    system = System(own_servers, tmp_path)
    try:
        worker = system.worker(
            BUDGET, SWITCHBOARD, MEMORY, llm_base_url="", llm_api_key=""
        )
        supervisor = system.supervisor(llm_base_url="", llm_api_key="")
        worker.ready()
        supervisor.ready().await_log("api_ready")
        monkeypatch.setenv("TASKLORE_API", supervisor.api)
        for page in pages:
            await _run(page, monkeypatch)
    finally:
        system.close()


async def _run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    name = f"page_{page.stem}"
    module = type(sys)(name)
    monkeypatch.setitem(sys.modules, name, module)
    for code in blocks_of(page, "python"):
        exec(compile(code, str(page), "exec"), vars(module))  # noqa: S102 - running it is the test
    tests = [thing for word, thing in vars(module).items() if word.startswith("test_")]
    suites = [thing for word, thing in vars(module).items() if word.startswith("Test")]
    tests += [
        getattr(suite(), word)
        for suite in suites
        for word in dir(suite)
        if word.startswith("test_")
    ]

    assert tests
    for test in tests:
        outcome = test()
        if inspect.isawaitable(outcome):
            await outcome


async def test_the_program_on_the_wire_page_gets_its_report(
    own_servers: EmbeddedServers, tmp_path: Path
) -> None:
    """It runs as it stands, in an interpreter of its own that cannot import ours."""
    system = System(own_servers, tmp_path)
    try:
        system.worker("tasklore.workers.agents.budget").ready()
        environ = {**os.environ, "TASKLORE_NATS_URL": own_servers.nats_url}
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", blocks_of(REFERENCE / "wire.md", "python")[0],
            cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        said, complained = await program.communicate()
    finally:
        system.close()

    assert said.decode().strip() == "completed 8000 miss", complained.decode()


def test_the_pipeline_on_its_page_fits_the_agent_beside_it(tmp_path: Path) -> None:
    """As a file and with its inputs; and the mistakes that the page shows are worded so."""
    page = GUIDE / "run-a-pipeline.md"
    module = type(sys)("notes")
    exec(compile(blocks_of(page, "python")[0], str(page), "exec"), vars(module))  # noqa: S102 - running it is the test
    cards = {"NotesAgent": card_of(module.agent)}
    declaration = blocks_of(page, "toml")[0]

    def problems(text: str) -> list[str]:
        (tmp_path / "notes.toml").write_text(text, "utf-8")
        source = read_pipeline(tmp_path / "notes.toml")
        found = problems_of(source.pipeline) or problems_with(source.pipeline, cards)
        return [
            one.removeprefix(f"{tmp_path}/") for one in describe_problems(found, source)
        ]

    assert problems(declaration) == []
    shown = page.read_text("utf-8")
    for right, wrong in (
        ("NotesAgent", "NoteAgent"),
        ("counting:words", "counting:word"),
    ):
        assert (
            f"tasklore: {problems(declaration.replace(right, wrong, 1))[0]}\n" in shown
        )


def test_the_agent_on_the_first_page_is_the_example() -> None:
    """Whoever copies either gets the same."""
    assert (ROOT / "examples" / "trip.py").read_text("utf-8") == blocks_of(
        ROOT / "README.md", "python"
    )[0]


def _commands() -> Iterator[tuple[str, str]]:
    for page in pages_with("console"):
        for block in blocks_of(page, "console"):
            for line in block.splitlines():
                if line.startswith("$ "):
                    yield _name(page), line.removeprefix("$ ").removesuffix(" &")


@cache
def _help(path: tuple[str, ...]) -> str:
    """Return what the command at *path* says of itself; asked once, however many lines of the pages use it."""
    done = tasklore(*path, "--help", cwd=ROOT, env=environment(COLUMNS="200"))
    assert done.returncode == 0, f"{' '.join(path)}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("command", sorted({command for _, command in _commands()}))
def test_a_command_on_a_page_exists(command: str) -> None:
    """A make target, or a command of ours with options that its help knows; a file it names is there."""
    program, *words = shlex.split(command)
    if program == "make":
        assert re.search(
            rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE
        )
        return
    if words[:1] == ["-m"]:
        assert Path(program).name in ("python", "python3")
        module = ROOT / words[1].replace(".", "/")
        assert (
            module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
        ).is_file()
        return
    assert Path(program).name == "tasklore", command
    # `budget` is a noun and a command.
    group = words[0] in sentences_of_nouns() and not any(
        one[0] == "-" for one in words[1:2]
    )
    told = _help(tuple(words[: 2 if group else 1]))
    for word in words:
        if word.startswith("--"):
            assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", told), word
        if word.startswith("examples/"):
            assert (ROOT / word).is_file()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of the project, and to a heading in it, finds it."""
    for target in _LINK.findall(page.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists() or _name(place) in _MADE_LATER, target
        if anchor:
            assert anchor in _anchors(place), target


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of *page*, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def _tables(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the table below *heading*, cells with their backquotes."""
    part = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in part.splitlines()
        if line.startswith("|")
    ]
    return rows[2:]


def test_the_wire_page_lists_every_subject_with_its_message() -> None:
    """In the order of the AsyncAPI document, none too many."""
    listed = {
        row[0].strip("`"): row[1].split("`")[1] for row in _tables(WIRE, "Subjects")
    }

    assert listed == {channel.address: channel.message.__name__ for channel in CHANNELS}


def test_the_wire_page_lists_every_stream_as_it_is_declared() -> None:
    """Name, subjects, whether it forgets what was read, and what happens when it is full."""
    declared = {
        one["name"]: one
        for one in stream_configurations(StreamSizes())
        if not one["name"].startswith("KV_")
    }
    rows = {row[0]: row for row in _tables(WIRE, "Streams")}

    assert set(rows) == set(declared)
    for name, (_, listed, kept, full) in rows.items():
        stream = declared[name]
        assert [
            one for part in re.findall(r"`([^`]+)`", listed) for one in _each(part)
        ] == stream["subjects"]
        assert kept.startswith("until acknowledged") == (
            stream["retention"] == "workqueue"
        )
        assert full.startswith(
            {"new": "refuses new", "old": "drops old"}[stream["discard"]]
        )
        size = re.search(r"(\d+) ([MG])iB", kept)
        if size is not None:
            assert (
                int(size[1]) * 1024 ** {"M": 2, "G": 3}[size[2]] == stream["max_bytes"]
            )
        days = re.search(r"(\d+) days", kept)
        if days is not None:
            assert int(days[1]) * 86_400 * 10**9 == stream["max_age"]


def _each(subject: str) -> list[str]:
    """Return the subjects that one with a range such as `{0..15}` stands for."""
    found = re.fullmatch(r"(.*)\{(\d+)\.\.(\d+)\}(.*)", subject)
    return (
        [f"{found[1]}{n}{found[4]}" for n in range(int(found[2]), int(found[3]) + 1)]
        if found
        else [subject]
    )


def test_the_wire_page_lists_every_header() -> None:
    """By the names that `tasklore.contracts.subjects` spells."""
    listed = [row[0].strip("`") for row in _tables(WIRE, "Headers")]

    assert sorted(listed) == sorted(
        [
            subjects.MESSAGE_ID_HEADER,
            subjects.GENERATION_HEADER,
            subjects.ATTEMPT_HEADER,
            subjects.TRACE_HEADER,
            subjects.TRACE_STATE_HEADER,
            subjects.USER_HEADER,
            subjects.SIGNATURE_HEADER,
        ]
    )
    assert f"{subjects.MAX_BODY // 1024} KiB" in WIRE


@pytest.mark.parametrize("name", MESSAGES)
def test_the_wire_page_shows_every_message_whole(name: str) -> None:
    """Its example fits, and has every field of the message and of its parts and no other."""
    part = WIRE.split(f"\n### {name}\n", 1)[1].split("\n### ", 1)[0]
    shown = json.loads(find_blocks(part, "json")[0])
    message = MESSAGES[name].model_validate(shown)

    _demand_fields(message, shown, name)


def _demand_fields(model: BaseModel, shown: dict[str, Any], where: str) -> None:
    assert set(shown) == set(type(model).model_fields), where
    for field, value in shown.items():
        inner = getattr(model, field)
        items = inner if isinstance(inner, tuple | frozenset) else (inner,)
        raw = value if isinstance(value, list) else [value]
        for one, written in zip(items, raw, strict=True):
            if isinstance(one, BaseModel):
                _demand_fields(one, written, f"{where}.{field}")


def test_an_operation_names_a_command_that_the_page_of_commands_has() -> None:
    """A word at the top of the command line may stand in the place of a noun, as `budget` does, with an option."""
    operations = (REFERENCE / "operations.md").read_text("utf-8")
    commands = (REFERENCE / "cli.md").read_text("utf-8")
    named = set(
        re.findall(
            r"^(?:R|Operator.s address; r)ole .*; `tasklore ([a-z -]+?)(?: --[a-z]+)?`\.$",
            operations,
            re.MULTILINE,
        )
    )
    assert len(named) > 100

    assert (
        named - set(re.findall(r"^## `tasklore (.+)`$", commands, re.MULTILINE))
        == set()
    )


def test_the_index_lists_every_page() -> None:
    """A page that no list names is found by nobody."""
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / target).resolve()
        for target in _LINK.findall(index.read_text("utf-8"))
    }
    pages = {
        *GUIDE.glob("*"),
        *REFERENCE.glob("*"),
        *(ROOT / "docs" / name for name in ("architecture.md", "glossary.md")),
        ROOT / "docs" / "decisions" / "README.md",
    }

    unlinked = sorted(_name(page) for page in pages - linked)
    assert not unlinked, f"link {', '.join(unlinked)} in docs/README.md"


@cache
def promises() -> dict[str, str]:
    """Return every promise, the first cell of its row, with the last: the tests that hold us to it."""
    rows = dict[str, str]()
    for name in ("delivery.md", "promises.md"):
        page = (REFERENCE / name).read_text("utf-8")
        for table in re.findall(r"^\| promise .*\n((?:\|.*\n)+)", page, re.MULTILINE):
            cells = (row.strip("| ").split(" | ") for row in table.splitlines()[1:])
            rows |= {first: last for first, *_, last in cells}
    return rows


@cache
def names_of_tests() -> frozenset[str]:
    """Return the names of all tests."""
    files = (ROOT / "tests").rglob("test_*.py")
    return frozenset(
        name
        for file in files
        for name in re.findall(r"def (test_\w+)\(", file.read_text("utf-8"))
    )


def test_a_promise_names_tests_that_exist() -> None:
    """Each points at what holds us to it."""
    tests = {
        one: set(re.findall(r"`(test_\w+)`", cell)) for one, cell in promises().items()
    }

    assert len(tests) >= 60
    assert [one for one, named in tests.items() if not named] == []
    assert set().union(*tests.values()) - names_of_tests() == set()


def test_a_promise_of_the_readme_has_its_tests() -> None:
    """What a reader sees first stands word for word among those that are held."""
    page = (ROOT / "README.md").read_text("utf-8")
    section = page.partition("\n## Promises and limits\n")[2].partition("\n[")[0]
    points = [" ".join(one.split()) for one in section.split("\n- ")[1:]]
    assert len(points) >= 5

    missing = [
        one for one in points if one.partition(". ")[0].rstrip(".") not in promises()
    ]
    assert not missing, f"a row in docs/reference/promises.md for each of {missing}"


def test_a_configuration_on_a_page_is_read(tmp_path: Path) -> None:
    """The JSON of an agent's configuration, its comment included."""
    (tmp_path / "price.json").write_text(
        blocks_of(GUIDE / "write-an-agent.md", "json")[0]
    )

    assert load_config(tmp_path / "price.json").settings == {"tax_percent": 19}


def test_the_limits_on_their_page_are_read() -> None:
    """Each of the fields that the page explains is one."""
    [text] = blocks_of(GUIDE / "limit-cost.md", "toml")
    assert [limit.name for limit in parse_limits(text).limits] == [
        "openai",
        "tenants",
        "research",
        "local",
    ]


def test_the_pipeline_in_python_on_its_page_is_the_one_in_toml(tmp_path: Path) -> None:
    """Both forms declare the same pipeline."""
    [declared] = [
        code
        for code in blocks_of(REFERENCE / "pipelines.md", "python")
        if "Pipeline(" in code
    ]
    (tmp_path / "notes.toml").write_text(
        blocks_of(GUIDE / "run-a-pipeline.md", "toml")[0], "utf-8"
    )
    (tmp_path / "notes.py").write_text(declared, "utf-8")

    assert (
        read_pipeline(tmp_path / "notes.py").pipeline
        == read_pipeline(tmp_path / "notes.toml").pipeline
    )


async def test_the_session_on_its_page_can_be_imported() -> None:
    """With its entries, however long ago it was written."""
    report = await FakeSessions().load(
        json.loads(blocks_of(REFERENCE / "sessions.md", "json")[0])
    )

    assert (report.loaded, report.expired, report.refused) == (1, (), {})


def test_the_arguments_of_the_kit_that_the_page_names_exist() -> None:
    """Those of the kit itself, and of its `run`."""
    page = (GUIDE / "test-an-agent.md").read_text("utf-8")
    told = re.search(
        r"Other arguments of the kit:(.*?)Its `run` takes(.*?)\. `tasklore",
        page,
        re.DOTALL,
    )
    assert told is not None
    for names, method in zip(
        told.groups(), (AgentKit.__init__, AgentKit.run), strict=True
    ):
        named = set(re.findall(r"`(\w+)`", names))
        assert named
        assert named <= inspect.signature(method).parameters.keys()
