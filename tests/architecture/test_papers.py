"""Papers beside the code are true: paths and targets exist, decisions keep their shape, words are those in use."""

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tasklore.commands.operations.entries import load_manifest
from tasklore.contracts.messages import MESSAGES
from tests.architecture.page_code import PAGES, pages_with, place_code
from tests.architecture.tree import ROOT, modules, name_of
from tests.architecture.typed_pages import write_modules

DECISIONS = ROOT / "docs" / "decisions"
GLOSSARY = ROOT / "docs" / "glossary.md"

#: Lines of a decision: one page.
_PAGE = 60
_HEADINGS = [
    "Context",
    "Decision",
    "What else was tried or considered",
    "What follows",
]
#: A path of the project in backquotes: below one of its folders, and no pattern.
_PATH = re.compile(
    r"`((?:benchmarks|contracts|deploy|docs|examples|k8s|memory|requirements|runtime"
    r"|supervisor|tasklore|tests|workers|changes|\.ci|\.devcontainer|\.github)/[\w./-]*)`"
)
#: What is named like a path of the project and is none: what a run makes, any noun, and
#: the one that architecture.md adds as an example.
_NOT_OURS = re.compile(
    r"benchmarks/results\.md|.*/NOUN\b.*|memory/notes/.*|supervisor/operations/notes\.py"
)
_TARGET = re.compile(r"`make ([a-z][a-z-]*)`")


def _text(page: Path) -> str:
    return page.read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_path_that_a_page_names_exists(page: Path) -> None:
    """Where a reader is sent, there is something; but for versions that are over."""
    text = _text(page)
    if page.name == "CHANGELOG.md":
        return
    missing = {
        path
        for path in _PATH.findall(text)
        if not _NOT_OURS.fullmatch(path) and not (ROOT / path).exists()
    }
    assert missing == set()


def test_a_target_that_a_page_names_is_one_of_make() -> None:
    """In running text too, where no block of commands is looked at."""
    makefile = _text(ROOT / "Makefile")
    named = {target for page in PAGES for target in _TARGET.findall(_text(page))}
    assert len(named) > 10
    assert {
        target
        for target in named
        if not re.search(rf"^{target}:", makefile, re.MULTILINE)
    } == set()


def test_a_decision_is_one_page_with_its_four_parts_and_in_the_index() -> None:
    """Whoever wants to know why finds context, decision, what else there was, and what follows."""
    index = _text(DECISIONS / "README.md")
    listed = re.findall(
        r"^\| .+ \| \[[\w-]+\]\(([\w-]+\.md)\) \|$", index, re.MULTILINE
    )
    pages = sorted(page for page in DECISIONS.glob("*.md") if page.name != "README.md")

    assert sorted(listed) == [page.name for page in pages]
    for page in pages:
        text = _text(page)
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == _HEADINGS, page.name
        assert len(text.splitlines()) <= _PAGE, page.name


def _terms() -> list[str]:
    """Return the words of the glossary; a row may hold several."""
    rows = re.findall(
        r"^\| ([^|]+) \|[^|]+\|[^|]+\|[^|]+\|$", _text(GLOSSARY), re.MULTILINE
    )
    return [term for row in rows if row != "word" for term in row.split(", ")]


@cache
def _in_use() -> str:
    """Return the text in which a word is in use: pages and code, without marks and what is generated."""
    files = [page for page in PAGES if page != GLOSSARY]
    return "\n".join(_text(file) for file in (*files, *modules())).lower()


@pytest.mark.parametrize("term", _terms())
def test_a_word_of_the_glossary_is_in_use(term: str) -> None:
    """Somewhere else than there: a word that nobody says needs no explanation."""
    spelled = re.escape(term).replace(r"\ ", r"[\s_-]+")
    assert re.search(rf"\b{spelled}(?:s|es)?\b", _in_use()), term


def _singular(noun: str) -> str:
    for ending, instead in (("ies", "y"), ("yses", "ysis"), ("s", "")):
        if noun.endswith(ending):
            return noun.removesuffix(ending) + instead
    return noun


def _key_words() -> Iterator[str]:
    """Yield the words that every reader meets: nouns of commands and paths, roles, parts of names of messages."""
    nouns = {entry["noun"] for entry in load_manifest()["operations"]}
    yield from (_singular(noun).replace("-", " ") for noun in sorted(nouns))
    yield from ("assignment", "report", "card", "dead letter", "fact", "turn")


@pytest.mark.parametrize("word", sorted(set(_key_words())))
def test_a_word_that_every_reader_meets_is_in_the_glossary(word: str) -> None:
    assert word in _terms()


def test_messages_are_told_by_words_of_the_glossary() -> None:
    """Of the wire, each message that a task needs links from there to its row."""
    text = _text(GLOSSARY)
    for name in ("TaskAssignment", "CompletionReport", "AgentCard"):
        assert name in MESSAGES
        assert f"wire.md#{name.lower()}" in text


def _collector() -> ModuleType:
    """Return `changes/collect.py`, which is a program and in no package."""
    path = ROOT / "changes" / "collect.py"
    found = importlib.util.spec_from_file_location("collect", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["collect"] = module
    found.loader.exec_module(module)
    return module


def test_fragments_of_the_changelog_can_be_read() -> None:
    """Their links lead somewhere from the root of the repository, where the changelog is."""
    collect = _collector()
    for file in collect.find_fragments(ROOT / "changes"):
        text = collect.read_fragment(file).text
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = target.partition("#")[0]
            assert "://" in target or (ROOT / path).exists(), f"{file.name}: {target}"


def test_fragments_stand_at_the_head_of_their_kind_in_the_top_section() -> None:
    """A kind that has no heading yet gets one, in the order of kinds; older versions stay as they are."""
    collect = _collector()
    older = "## [0.2.0]\n\n### Added\n\n- Older.\n"
    changelog = f"# Changelog\n\n## [0.3.0]\n\n### Added\n\n- First.\n\n### Fixed\n\n- Mend.\n\n{older}"
    fragments = [
        collect.Fragment("added", "Second."),
        collect.Fragment("security", "Third."),
        collect.Fragment("fixed", "Fourth " + "word " * 40 + "end."),
    ]

    after = collect.add_fragments(changelog, fragments)

    assert after.endswith(older)
    top = after.removesuffix(older)
    assert re.findall(r"^### (\w+)", top, re.MULTILINE) == [
        "Added",
        "Security",
        "Fixed",
    ]
    assert "### Added\n\n- Second.\n- First.\n" in top
    assert "### Security\n\n- Third.\n" in top
    assert "- Fourth word" in top
    assert "\n  word" in top
    assert all(len(line) <= 120 for line in top.splitlines())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.new.md", "Text."),
        ("A b.added.md", "Text."),
        ("a.added.md", ""),
        ("a.added.md", "One.\n\nTwo."),
        ("a.added.md", "- One."),
    ],
)
def test_a_fragment_that_no_changelog_can_take_is_refused_by_its_name(
    name: str, text: str, tmp_path: Path
) -> None:
    collect = _collector()
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(collect.Unreadable, match=re.escape(name)):
        collect.read_fragment(tmp_path / name)


def test_hooks_before_a_commit_run_what_the_environment_holds() -> None:
    """No hook is fetched from anywhere, so that it is the version that `make lint` runs."""
    hooks = yaml.safe_load(_text(ROOT / ".pre-commit-config.yaml"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    [local] = hooks["repos"]
    for hook in local["hooks"]:
        assert hook["entry"].startswith(".venv/bin/"), hook["id"]
        assert hook["language"] == "system"


def test_the_workflow_runs_what_has_to_pass_and_nothing_else() -> None:
    """One place says what has to pass."""
    workflow: dict[str, Any] = yaml.safe_load(_text(ROOT / ".github/workflows/ci.yml"))
    [job] = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]


def test_the_container_for_development_is_set_up_by_make() -> None:
    """By a target that there is; its image is named without a host."""
    container = json.loads(_text(ROOT / ".devcontainer" / "devcontainer.json"))
    program, target = container["postCreateCommand"].split()
    assert program == "make"
    assert re.search(rf"^{target}:", _text(ROOT / "Makefile"), re.MULTILINE)
    assert "/" not in container["image"]


def test_code_of_a_page_keeps_its_lines_for_the_type_checker() -> None:
    """An error of mypy is looked for on the page, at that line."""
    page = "# Page\n\n```python\nx = 1\n```\n\n```toml\ny = 2\n```\n\n```python\nz = x\n```\n"
    placed = place_code(page, "python").splitlines()

    assert {n: line for n, line in enumerate(placed, 1) if line} == {
        n: line
        for n, line in enumerate(page.splitlines(), 1)
        if line in ("x = 1", "z = x")
    }


def test_every_page_with_code_is_a_module_for_the_type_checker(tmp_path: Path) -> None:
    """What is left of a page that is gone goes as well."""
    left = tmp_path / "gone.py"
    left.touch()

    written = write_modules(tmp_path)

    assert set(written.values()) == {name_of(page) for page in pages_with("python")}
    assert set(tmp_path.glob("*.py")) == set(written)
