"""The agents of the repository-health demo, on small trees."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from examples.repository_health.rules import rules_in
from tasklore.contracts.messages import CompletionReport
from tasklore.supervisor.pipelines.declaration.cards import problems_with
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.files import (
    describe_problems,
    read_pipeline,
)
from tasklore.workers.card import card_of
from tasklore.workers.loading import load_agents
from tasklore.workers.testing import run_task

ROOT = Path(__file__).resolve().parents[3]
AGENTS = {agent.agent_id: agent for agent in load_agents("examples.repository_health")}

TASKS = {
    "look_around": "RepositoryContextAgent",
    "map_imports": "RepositoryImportsAgent",
    "measure_sizes": "RepositorySizesAgent",
    "check_standards": "RepositoryStandardsAgent",
    "check_docstrings": "RepositoryDocstringsAgent",
    "find_leftovers": "RepositoryLeftoversAgent",
    "write_report": "RepositoryReportAgent",
}

#: A package whose two modules need each other, one that is documented, a script, and what nobody wrote here.
TREE = {
    "shop/__init__.py": "",
    "shop/cart.py": '"""The cart."""\nfrom shop import prices\n\n\ndef total():\n    return prices.of(1)\n',
    "shop/prices.py": "from .cart import total\n\n\ndef of(count):\n    # TODO\n    breakpoint()\n    return count\n",
    "shop/later.py": "def late():\n    from shop.cart import total\n\n    return total\n",
    "run.py": '"""Run it."""\nimport json\n\nimport shop.cart as cart\n\nprint(cart.total())\n',
    "README.md": "# Shop\n",
    ".git/config": "[core]\n",
    "node_modules/left.py": "import shop.cart\n",
    "env/pyvenv.cfg": "home = /usr\n",
    "env/lib/site.py": "import shop.cart\n",
}


def grow(folder: Path, tree: Mapping[str, str] = TREE) -> Path:
    for name, text in tree.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


async def reported(task: str, **parameters: Any) -> CompletionReport:
    return await run_task(AGENTS[TASKS[task]], task, parameters)


async def done(task: str, **parameters: Any) -> dict[str, Any]:
    report = await reported(task, **parameters)
    assert report.status == "completed", report.error
    result: dict[str, Any] = report.result
    return result


async def looked(folder: Path, **parameters: Any) -> dict[str, Any]:
    """Return what all four looks at *folder* found, by task."""
    around = await done("look_around", folder=str(folder), **parameters)
    where = {"folder": str(folder), "files": around["python_files"]}
    tasks = ("map_imports", "measure_sizes", "check_docstrings", "find_leftovers")
    return {
        "look_around": around,
        **{task: await done(task, **where) for task in tasks},
    }


def standard(text: str, number: int = 1) -> dict[str, Any]:
    return {"id": f"s{number}", "text": text, "tags": ["code"]}


async def test_a_folder_is_listed_without_generated_files(tmp_path: Path) -> None:
    found = await done("look_around", folder=str(grow(tmp_path)))

    python = [text for name, text in TREE.items() if name.startswith(("shop/", "run"))]
    assert found["python_files"] == [
        "run.py",
        "shop/__init__.py",
        "shop/cart.py",
        "shop/later.py",
        "shop/prices.py",
    ]
    assert found["overview"] == {
        "folder": str(tmp_path),
        "files": 6,
        "bytes": sum(map(len, python)) + len(TREE["README.md"]),
        "languages": [
            {
                "language": "Python",
                "files": 5,
                "bytes": sum(map(len, python)),
                "lines": sum(len(text.splitlines()) for text in python),
            },
            {"language": "Markdown", "files": 1, "bytes": 7, "lines": 1},
        ],
        "links": 0,
        "skipped_folders": 3,
        "is_cut": False,
    }


async def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    outside = grow(tmp_path / "outside", {"secret.py": "x = 1\n"})
    inside = grow(tmp_path / "inside")
    (inside / "linked").symlink_to(outside)
    (inside / "shop" / "linked.py").symlink_to(outside / "secret.py")
    (inside / "round").symlink_to(inside)
    found = await done("look_around", folder=str(inside))
    asked = [
        "../outside/secret.py",
        "shop/linked.py",
        "linked/secret.py",
        str(outside / "secret.py"),
    ]
    sizes = await done("measure_sizes", folder=str(inside), files=asked)
    assert (found["overview"]["links"], found["overview"]["files"]) == (3, 6)
    assert sizes["modules"]["count"] == 0


async def test_import_cycles_are_found(tmp_path: Path) -> None:
    found = (await looked(grow(tmp_path)))["map_imports"]

    assert found == {
        "modules": 5,
        "imports": 4,
        "in_cycles": 2,
        "cycle_count": 1,
        "cycles": [["shop/cart.py", "shop/prices.py", "shop/cart.py"]],
        "most_used": [
            {"path": "shop/cart.py", "used_by": 3},
            {"path": "shop/prices.py", "used_by": 1},
        ],
        "unparsed_count": 0,
        "unparsed": [],
    }


async def test_unparsable_files_are_reported(tmp_path: Path) -> None:
    grow(
        tmp_path,
        {
            "good.py": '"""Fine."""\n',
            "broken.py": "def\n",
            "nul.py": "x = '\0'\n",
            "deep.py": "(" * 5_000,
        },
    )
    (tmp_path / "latin.py").write_bytes(b"\n\n\nx = '\xe4'\n")
    (tmp_path / "large.py").write_text("x = 1\n" * 200_000)
    files = [
        "good.py",
        "broken.py",
        "nul.py",
        "deep.py",
        "latin.py",
        "large.py",
        "gone.py",
    ]
    found = {
        task: await done(task, folder=str(tmp_path), files=files)
        for task in list(TASKS)[1:6:1]
        if "_st" not in task
    }
    assert found["map_imports"]["modules"] == 1
    assert [one["path"] for one in found["map_imports"]["unparsed"]] == files[1:6]
    assert found["map_imports"]["unparsed"][0]["why"] == "line 1: invalid syntax"
    assert "at most 1,000,000 are parsed" in found["map_imports"]["unparsed"][-1]["why"]
    assert found["measure_sizes"]["modules"]["count"] == 1
    assert found["check_docstrings"]["percent"] == 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No module over 400 lines.", [("module_lines", 400)]),
        (
            "A module has at most 300 lines, a function at most 40 lines",
            [("module_lines", 300), ("function_lines", 40)],
        ),
        ("No import cycles", [("import_cycles", 0)]),
        ("Every public function has a docstring", [("docstring_percent", 100)]),
        ("No TODOs, and no debug prints", [("leftovers", 0)]),
        ("Names are nouns", []),
    ],
)
def test_standards_are_read_as_rules(
    text: str, expected: list[tuple[str, int]]
) -> None:
    assert [(rule.kind, rule.limit) for rule in rules_in("s1", text)] == expected


async def test_standards_are_checked_and_passed_on(tmp_path: Path) -> None:
    found = await looked(grow(tmp_path))
    texts = [
        "no module over 6 lines",
        "no import cycles",
        "no function over 50 lines",
        "no TODOs",
        "names are nouns",
    ]
    verdict = await done(
        "check_standards",
        sizes=found["measure_sizes"],
        imports=found["map_imports"],
        standards=[
            standard(text, number) for number, text in enumerate(texts, start=1)
        ],
    )
    leftovers = await done(
        "find_leftovers",
        folder=str(tmp_path),
        files=found["look_around"]["python_files"],
        rules=verdict["rules"],
    )

    assert [(one["rule"]["standard"], one["found"]) for one in verdict["breaches"]] == [
        ("s1", 1),
        ("s2", 1),
    ]
    assert [rule["standard"] for rule in verdict["kept"]] == ["s3"]
    assert verdict["unread"] == ["s5: names are nouns"]
    assert [
        (one["rule"]["standard"], one["found"]) for one in leftovers["breaches"]
    ] == [("s4", 2)]


async def test_the_report_has_score_table_and_worst_places(tmp_path: Path) -> None:
    found = await looked(grow(tmp_path))
    parts = {
        "overview": found["look_around"]["overview"],
        "sizes": found["measure_sizes"],
    }
    parts |= {"imports": found["map_imports"], "docstrings": found["check_docstrings"]}
    parts |= {"leftovers": found["find_leftovers"]}
    verdict = await done(
        "check_standards",
        sizes=parts["sizes"],
        imports=parts["imports"],
        standards=[standard("no import cycles")],
    )

    health = await done("write_report", **parts, standards=verdict)

    assert {area["name"]: area["percent"] for area in health["areas"]} == {
        "unreadable files": 100,
        "import cycles": 60,
        "long modules": 100,
        "long functions": 100,
        "docstrings": 35,
        "leftovers": 0,
    }
    assert (health["score"], health["is_healthy"]) == (65, False)
    assert health["breaches"] == ["1 import cycles, at most 0 are allowed (s1)"]
    assert [(one["path"], one["line"], one["text"]) for one in health["worst"][:5]] == [
        (
            "shop/cart.py",
            1,
            "imports in a circle: shop/cart.py > shop/prices.py > shop/cart.py",
        ),
        ("shop/prices.py", 6, "breakpoint() of a debugging hour"),
        ("shop/cart.py", 5, "total has no docstring"),
        ("shop/prices.py", 5, "TODO"),
        ("shop/later.py", 1, "the module has no docstring"),
    ]
    assert f"# Health of {tmp_path}: 65 of 100" in health["markdown"]
    assert (
        "| area             | found                  | limit     | sound |"
        in health["markdown"]
    )
    assert (
        "|------------------|------------------------|-----------|------:|"
        in health["markdown"]
    )
    assert (
        "| import cycles    | 1 (2 modules)          | at most 0 |  60 % |"
        in health["markdown"]
    )
    assert (
        "- not kept: 1 import cycles, at most 0 are allowed (s1)" in health["markdown"]
    )


@pytest.mark.parametrize(
    "file",
    [
        "examples/repository_health/health.toml",
        "examples/health_with_own_limits.toml",
    ],
)
def test_shipped_pipelines_fit_their_agents(file: str) -> None:
    source = read_pipeline(ROOT / file)
    cards = {agent_id: card_of(agent) for agent_id, agent in AGENTS.items()}
    assert describe_problems(problems_of(source.pipeline), source) == []
    assert describe_problems(problems_with(source.pipeline, cards), source) == []


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("absent", "is not on the worker's machine"),
        ("run.py", "is no folder but a file"),
    ],
)
async def test_a_folder_that_is_none_is_refused(
    folder: str, said: str, tmp_path: Path
) -> None:
    report = await reported("look_around", folder=str(grow(tmp_path) / folder))

    assert (report.status, report.attempt) == ("rejected", 1)
    assert report.error is not None
    assert said in report.error.message
    assert folder in report.error.message
