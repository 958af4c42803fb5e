"""Edited code serves no old answer; an edit of comments or layout leaves memory alone."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tasklore.memory import keys
from tasklore.workers.agents.budget import agent as budget
from tasklore.workers.card import card_of, same_contract
from tasklore.workers.code import code_digest
from tasklore.workers.loading import load_agents
from tasklore.workers.testing import AgentKit

SOURCE = '''
"""Prices."""

from tasklore import Agent, Parameters

agent = Agent("PriceAgent")
TAX = 20


class Net(Parameters):
    """What it costs without tax."""

    net: int


def with_tax(net: int) -> int:
    return net + TAX


@agent.task(remember="shared")
async def price(net: Net) -> int:
    """Tell a price."""
    return with_tax(net.net)
'''


@pytest.fixture
def version_of(tmp_path: Path) -> Any:
    """Return what loads a source as an agent of its own and tells the version of its memory."""
    count = 0

    def load(source: str) -> str:
        nonlocal count
        count += 1
        file = tmp_path / f"prices_{count}.py"
        file.write_text(source)
        (agent,) = load_agents(str(file))
        return agent.memory_version(agent.tasks["price"])

    return load


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return with_tax(net.net)", "return with_tax(net.net) + 1"),
        ("return net + TAX", "return net - TAX"),
        ("TAX = 20", "TAX = 19"),
        ("without tax", "before tax"),
        ("net: int\n", "net: int = 1\n"),
    ],
)
def test_an_edit_anywhere_in_the_module_is_another_version(
    version_of: Any, old: str, new: str
) -> None:
    assert old in SOURCE
    assert version_of(SOURCE) != version_of(SOURCE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TAX = 20", "TAX = (\n    20  # percent\n)"),
        ("return net + TAX", "return (net\n        + TAX)"),
        ('"shared"', "'shared'"),
        ("\n\ndef with_tax", "\n\n# a helper\ndef with_tax"),
    ],
)
def test_formatting_and_comments_are_no_edit(
    version_of: Any, old: str, new: str
) -> None:
    """An answer that took a minute is not dropped for a line break."""
    assert old in SOURCE
    assert version_of(SOURCE) == version_of(SOURCE.replace(old, new, 1))


async def test_an_edited_task_computes_anew_beside_the_old_one(tmp_path: Path) -> None:
    """Both may run side by side, with one contract and a memory each."""
    agents = []
    for number, source in enumerate((SOURCE, SOURCE.replace("TAX = 20", "TAX = 19"))):
        (tmp_path / f"side_{number}.py").write_text(source)
        agents += load_agents(str(tmp_path / f"side_{number}.py"))
    old, new = agents
    assert same_contract(card_of(old), card_of(new))
    assert card_of(old).tasks[0].code != card_of(new).tasks[0].code
    kits = AgentKit(old), AgentKit(new)
    # The memory of a kit is its own: what the new code finds is what the old one left in it.
    kits[1].services.long_term = kits[0].services.long_term
    reports = [await kit.run("price", {"net": 100}) for kit in (*kits, *kits)]
    assert [report.result for report in reports] == [120, 119, 120, 119]
    assert [report.memory.outcome for report in reports] == [
        "miss",
        "miss",
        "hit",
        "hit",
    ]


def test_the_version_is_a_part_of_a_key_and_of_the_card() -> None:
    """Programs that write entries themselves read it there."""
    task = budget.tasks["analyze_budget"]
    card = card_of(budget)
    version = budget.memory_version(task)
    assert version == card.memory_version(card.tasks[0]) == f"v2.1-{task.code}"
    parts = keys.parse_ltm(
        keys.ltm("BudgetTrackerAgent", version, "analyze_budget:1:2:no_history")
    )
    assert parts is not None
    assert f"v{parts.version}" == version


def typed(body: str) -> Any:
    """Return a function without a source."""
    names: dict[str, Any] = {}
    exec(compile(f"def typed(x):\n    {body}\n", "<typed>", "exec"), names)  # noqa: S102 - as an interpreter does
    return names["typed"]


def test_a_function_without_source_counts_by_its_own_code_in_every_process() -> None:
    digests = []
    for body in (
        "return x + 1",
        "return x + 2",
        "return  x + 1",
        "return x in {'a', 'b', 'c'}",
    ):
        with pytest.warns(
            UserWarning, match=r"A\.typed: its source cannot be read.*raise its version"
        ):
            digests.append(code_digest(typed(body), "A.typed"))
    assert digests[0] == digests[2]
    assert len(set(digests)) == 3
    code = textwrap.dedent("""
        import warnings; warnings.simplefilter("ignore")
        from tests.unit.workers.test_code_digest import budget, code_digest, typed
        print(code_digest(typed("return x in {'a', 'b', 'c'}"), ""))
        print(budget.memory_version(budget.tasks["analyze_budget"]))
    """)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PYTHONHASHSEED": "1"},
    )
    assert ran.stdout.split() == [
        digests[3],
        budget.memory_version(budget.tasks["analyze_budget"]),
    ]


BESIDE = SOURCE.replace("TAX = 20", "{imports}").replace("net + TAX", "net + {used}")


@pytest.fixture
def version_in(tmp_path: Path) -> Any:
    """Return what writes a project and tells the version of the memory of its agent, in an interpreter of its own."""

    def load(reference: str, files: dict[str, str]) -> str:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        code = (
            "import sys; sys.path.insert(0, ''); "
            "from tasklore.workers.loading import load_agents; "
            "(agent,) = load_agents(sys.argv[1]); "
            "print(agent.memory_version(agent.tasks['price']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, reference],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    return load


@pytest.mark.parametrize(
    ("reference", "agent", "edited", "imports", "used"),
    [
        ("./prices.py", "prices.py", "rates.py", "from rates import TAX", "TAX"),
        ("./prices.py", "prices.py", "rates.py", "import rates", "rates.TAX"),
        (
            "./prices.py",
            "prices.py",
            "data/rates.py",
            "from data import rates",
            "rates.TAX",
        ),
        (
            "shop.agents.prices",
            "shop/agents/prices.py",
            "shop/rates.py",
            "from shop.rates import TAX",
            "TAX",
        ),
        (
            "shop.agents.prices",
            "shop/agents/prices.py",
            "shop/rates.py",
            "from ..rates import TAX",
            "TAX",
        ),
        (
            "shop.agents.prices",
            "shop/agents/prices.py",
            "shop/deep.py",
            "from ..rates import TAX",
            "TAX",
        ),
    ],
)
def test_an_edit_of_a_module_of_its_own_that_it_imports_is_another_version(
    version_in: Any, reference: str, agent: str, edited: str, imports: str, used: str
) -> None:
    """Also of one that such a module imports; an edit of another one leaves memory alone."""
    packages = ("data", "shop", "shop/agents")
    files = {f"{one}/__init__.py": "" for one in packages}
    files[agent] = BESIDE.format(imports=imports, used=used)
    files["other.py"] = files["shop/other.py"] = "TAX = 1"
    files["shop/rates.py"] = "from .deep import TAX"
    files["shop/deep.py"] = "TAX = 20"
    files[edited] = "TAX = 20"
    before = version_in(reference, files)
    assert version_in(reference, {edited: "# percent\nTAX = 20\n"}) == before
    assert version_in(reference, {"other.py": "TAX = 2", "shop/other.py": ""}) == before
    assert version_in(reference, {edited: "TAX = 19"}) != before


@pytest.mark.parametrize(
    ("edited", "imports"),
    [
        ("shop/agents/rates.py", "from . import rates"),
        ("shop/one.py", "from .. import rates"),
        ("shop/rates.py", "import shop.rates as rates"),
        (
            "shop/rates.py",
            "import importlib\nrates = importlib.import_module('shop.rates')",
        ),
        ("shop/__init__.py", "import shop.other\nrates = shop"),
    ],
)
def test_every_way_to_import_a_module_of_its_own_is_seen(
    version_in: Any, edited: str, imports: str
) -> None:
    """By name, through a circle of modules, as the outermost of a dotted name; in packages without `__init__.py`."""
    files = {
        "shop/rates.py": "from .one import TAX\nfrom . import rates",
        "shop/one.py": "TAX = 1",
        "shop/other.py": "",
        "shop/agents/prices.py": BESIDE.format(imports=imports, used="rates.TAX"),
        edited: "TAX = 20",
    }
    before = version_in("shop.agents.prices", files)
    assert version_in("shop.agents.prices", {edited: "TAX = 19"}) != before
