"""Options of a task are said once: authors are typed by them, and the pages name the same ones."""

import ast
import re
from pathlib import Path

from tasklore import TaskOptions
from tests.architecture.page_code import PAGES, blocks_of
from tests.architecture.tree import ROOT
from tests.type_checks import check_types

_HEAD = """
from datetime import timedelta

from tasklore import Agent, Context, Parameters

agent = Agent("LedgerAgent")


class Booking(Parameters):
    account: str = ""


@agent.task
async def bare(booking: Booking) -> int:
    return 1
"""

_EVERY_OPTION = """
@agent.task(
    name="a",
    version=2,
    remember="shared",
    remember_for=timedelta(days=1),
    max_attempts=3,
    deadline=timedelta(minutes=1),
    retry_base=timedelta(seconds=1),
    retry_cap=timedelta(seconds=9),
    retry_on=(TypeError, KeyError),
    idempotent=False,
    uses=("llm", "clock", "edits"),
    keywords=["book"],
    examples=("Book it",),
    in_words=False,
    confirm="role:finance",
    every=timedelta(hours=1),
    cron=None,
    time_zone="Europe/Vienna",
    missed="skip",
    at_most=1,
    per="account",
)
"""

_SLIPS = (
    "at_mots=1",
    'at_most="1"',
    "per=1",
    'remember="everybody"',
    "remember=True",
    "deadline=60",
    'uses=("network",)',
    "retry_on=(1,)",
    'missed="other"',
    'in_words="no"',
)


def _task(decorator: str, number: int) -> str:
    return f'''
{decorator}
async def task_{number}(booking: Booking, context: Context) -> str:
    """Book."""
    return booking.account


async def test_{number}() -> str:
    return await task_{number}(Booking(account="a"), await _context())
'''


def _decorators(code: str) -> list[str]:
    """Return each `@agent.task(...)` of *code*, as written."""
    return [
        f"@{ast.unparse(one)}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for one in node.decorator_list
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "agent.task"
    ]


def test_each_option_that_pages_show_is_typed_for_an_author_outside(
    tmp_path: Path,
) -> None:
    """Every declaration of a page passes mypy, strictly; a wrong name or type does not."""
    shown = [
        decorator
        for page in PAGES
        for code in blocks_of(page, "python")
        for decorator in _decorators(code)
    ]
    assert any("at_most" in one and "per" in one for one in shown)
    context = "\n\nasync def _context() -> Context:\n    raise NotImplementedError\n"
    right = _HEAD + context
    for number, decorator in enumerate([_EVERY_OPTION.strip(), *shown]):
        right += _task(decorator, number)
    wrong = _HEAD + context
    for number, slip in enumerate(_SLIPS):
        wrong += _task(f"@agent.task({slip})", number)
    faults = check_types(tmp_path, {"right": right, "wrong": wrong})
    assert not [line for line in faults if line.startswith("right.py")], faults
    places = [
        number
        for number, line in enumerate(wrong.splitlines(), 1)
        if line.startswith("@agent.task(")
    ]
    refused = {int(line.split(":")[1]) for line in faults if ": error:" in line}
    assert len(places) == len(_SLIPS)
    assert refused >= set(places), faults


def test_the_page_names_every_option() -> None:
    """As the type has it, no more and no fewer."""
    page = (ROOT / "docs" / "reference" / "agents.md").read_text("utf-8")
    table = page.partition("## Options of a task")[2].partition("\n### ")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(
        TaskOptions.__annotations__
    )


def test_the_type_describes_every_option() -> None:
    """Its docstring is what an editor shows of them."""
    described = re.findall(r"^        (\w+): ", TaskOptions.__doc__ or "", re.MULTILINE)
    assert described == list(TaskOptions.__annotations__)
