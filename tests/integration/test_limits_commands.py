"""`tasklore limits` and `tasklore budget` on a real Valkey: output, changes and refusals of each command."""

import asyncio
import getpass
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.commands.exits import Aborted
from tasklore.commands.limits import budget
from tasklore.commands.limits.budget import print_budget
from tasklore.commands.limits.edits import (
    apply_limits,
    remove_limit,
    restore_version,
    set_limit,
)
from tasklore.commands.limits.views import print_check, print_history, print_limits
from tasklore.contracts.admission.limits import NANO_USD, Payer
from tasklore.contracts.errors import InvalidInput, Unreachable
from tasklore.memory import keys
from tasklore.memory.budgets.store import Budgets, book_field, book_of

pytestmark = pytest.mark.usefixtures("command_servers")

FILE = """
time_zone = "Europe/Berlin"
[[limits]]
name = "openai"
model = "gpt-*"
tokens = 200_000
every = "minute"
[[limits]]
name = "tenants"
tenant = "*"
usd = 20
every = "day"
at_limit = "refuse"
[fallbacks]
gpt-6 = ["gpt-6-mini", "local"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "limits.toml"
    path.write_text(FILE, "utf-8")
    return path


async def make(name: str, who: str | None = None, **fields: Any) -> None:
    sizes = {
        size: fields.pop(size, None)
        for size in ("requests", "tokens", "usd", "at_once", "at_most")
    }
    await set_limit(name, fields, sizes, who)


async def test_a_limit_is_set_changed_and_removed_and_each_change_is_a_version(
    printed: Callable[[], str],
) -> None:
    """Options that are not given stay; another size takes the place of the one before."""
    await print_limits(as_json=False)
    assert printed() == "There are no limits; `tasklore limits set` makes one.\n"
    await make("acme", tenant="acme", usd="20", every="day", at_limit="refuse")
    assert (
        printed()
        == "+ acme: $20.00 a day, tenant acme, refuse\nVersion 1 holds within a second.\n"
    )
    await make("acme", "bob", tokens=5_000)
    assert printed().startswith(
        "~ acme: $20.00 a day, tenant acme, refuse -> 5,000 tokens a day, tenant acme, refuse"
    )
    await make("acme", "bob", at_once=3, tenant="")
    assert printed().startswith(
        "~ acme: 5,000 tokens a day, tenant acme, refuse -> 3 at once, refuse"
    )
    await make("acme", "bob", at_once=3)
    assert printed() == "Nothing changes.\n"
    await make("runs", tenant="*", agent="Research", at_most=2)
    assert printed().startswith(
        "+ runs: 2 tasks at once, each tenant, agent Research, park"
    )
    await remove_limit("runs", None)
    printed()
    await print_limits(as_json=False)
    shown = printed()
    assert "version 5, set by" in shown
    assert ["acme", "3", "at", "once", "everything", "refuse"] in [
        line.split() for line in shown.splitlines()
    ]
    await remove_limit("acme", "eve")
    await print_history(as_json=True)
    versions = json.loads(printed().partition("\n[")[2].join(["[", ""]))
    assert [(one["version"], one["who"]) for one in versions][::5] == [
        (6, "eve"),
        (1, getpass.getuser()),
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"usd": "x", "every": "day"}, "limit 'a'.usd"),
        ({"usd": "1"}, "set every ="),
        ({"usd": "1", "every": "tree"}, "never refills: set at_limit"),
        (
            {"every": "day"},
            "name one of requests, tokens, usd, at_once and at_most, not none",
        ),
        ({"usd": "1", "tokens": 2, "every": "day"}, "not tokens and usd"),
        (
            {"at_most": 2, "model": "gpt-6"},
            "limit 'a': at_most counts runs of tasks: take model out",
        ),
    ],
)
async def test_a_faulty_option_changes_nothing(
    redis: Redis, fields: dict[str, Any], message: str
) -> None:
    """It is named with its cure."""
    with pytest.raises(InvalidInput, match=message):
        await make("a", **fields)
    assert (await Budgets(redis).read()).version == 0


async def test_a_file_is_applied_after_a_question_and_a_version_is_restored(
    file: Path, printed: Callable[[], str], redis: Redis
) -> None:
    """What changes is printed before; without a terminal `--yes` is needed."""
    await make("old", at_once=1)
    printed()
    with pytest.raises(Aborted, match="--yes"):
        await apply_limits(file, None, is_sure=False)
    assert (await Budgets(redis).read()).version == 1
    assert printed().splitlines() == [
        "- old: 1 at once, park",
        "+ openai: 200,000 tokens a minute, model gpt-*, park",
        "+ tenants: $20.00 a day, each tenant, refuse",
        "~ fallbacks: none -> gpt-6: gpt-6-mini, local",
        "~ time zone: UTC -> Europe/Berlin",
    ]
    await apply_limits(file, "ada", is_sure=True)
    await apply_limits(file, "ada", is_sure=True)
    assert printed().endswith("Version 2 holds within a second.\nNothing changes.\n")
    await restore_version(1, "ada", is_sure=True)
    assert "+ old: 1 at once, park\n" in printed()
    await print_history(as_json=False)
    rows = printed().splitlines()
    assert [row.split()[0] for row in rows] == ["VERSION", "3", "2", "1"]
    assert rows[3].endswith("+ old: 1 at once, park")
    with pytest.raises(
        InvalidInput, match="version 9 is not kept; those from 1 to 3 are"
    ):
        await restore_version(9, None, is_sure=True)
    with pytest.raises(InvalidInput, match="did you mean 'old'"):
        await remove_limit("odl", None)


def test_a_file_is_checked_without_a_server(
    file: Path, printed: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the file, the limit and the field."""
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    print_check(file)
    assert printed() == "limits.toml: 2 limits, nothing is wrong.\n"
    file.write_text(FILE.replace("tokens = 200_000", "tokens = -1"), "utf-8")
    with pytest.raises(
        InvalidInput, match=r"limits.toml': limit 'openai'.tokens: must be greater"
    ):
        print_check(file)
    with pytest.raises(InvalidInput, match="No such file"):
        print_check(file.with_name("none.toml"))
    with pytest.raises(Unreachable, match="TASKLORE_REDIS_URL"):
        asyncio.run(print_limits(as_json=True))


async def show(printed: Callable[[], str], **options: Any) -> str:
    chosen = {
        "by": "agent",
        "days": None,
        "tree": None,
        "limit": 50,
        "is_watched": False,
        "as_json": False,
    } | options
    await print_budget(
        chosen.pop("by"), chosen.pop("days"), chosen.pop("tree"), **chosen
    )
    return printed()


async def fill(redis: Redis, file: Path, printed: Callable[[], str]) -> None:
    """Spend by two tenants in the present day."""
    await apply_limits(file, "ada", is_sure=True)
    now = datetime.now(UTC)
    for tenant, agent, usd in (("acme", "Research", 3), ("b\x1b[2J", "Writer", 1)):
        line = book_field(Payer(tenant=tenant, agent=agent), "gpt-6")
        fields = {
            "calls": 2,
            "input": 1_000,
            "output": 500,
            "usd": usd * NANO_USD,
            "saved": NANO_USD // 2,
        }
        await redis.hset(
            book_of(now),
            mapping={f"{line}|{name}": amount for name, amount in fields.items()},
        )
    limits = (await Budgets(redis).read()).limits
    [_, account] = limits.accounts_of("gpt-6", Payer(tenant="acme"), now)
    place = keys.budget("account", account.key)
    await redis.hset(
        place,
        mapping={
            "s": 15 * NANO_USD,
            "u": NANO_USD,
            "r": NANO_USD // 2,
            "win": account.window,
        },
    )
    await redis.zadd(keys.budget("accounts"), {place: 1})
    await redis.hset(
        keys.budget("tree", "root"), mapping={"calls": 3, "usd": NANO_USD // 2}
    )
    printed()


async def test_a_budget_shows_accounts_and_spending(
    redis: Redis, file: Path, printed: Callable[[], str]
) -> None:
    """In tables, by tenant, agent or model, and as JSON."""
    assert (await show(printed)).startswith(
        "there are no limits; `tasklore limits set` makes one\n"
    )
    await fill(redis, file, printed)
    shown = await show(printed, by="tenant")
    rows = [line.split() for line in shown.splitlines()]
    assert "\x1b" not in shown
    assert (
        rows[3][:10]
        == "tenants tenant=acme $20.00 a day $15.00 $0.50 $1.00 $3.50 82%".split()  # noqa: SIM905
    )
    assert ["acme", "2", "1,000", "500", "$3.00", "$0.50"] in rows
    assert ["in", "all", "4", "2,000", "1,000", "$4.00", "$1.00"] in rows
    document = json.loads(await show(printed, days=3, by="model", as_json=True))
    assert [(one["limit"], one["left"]) for one in document["accounts"]] == [
        ("openai", 200_000),
        ("tenants", 3.5),
    ]
    [period] = document["periods"]
    assert [(one["name"], one["spending"]["usd"]) for one in period["lines"]] == [
        ("gpt-6", 4.0)
    ]
    tree = await show(printed, tree="root")
    assert [line.split() for line in tree.splitlines()][2] == ["3", "0", "0", "$0.50"]
    assert await show(printed, tree="other") == "the tree has spent nothing\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "day"}, "not 'day'"),
        ({"days": 63}, "at most 62"),
        ({"tree": "a b"}, "--tree"),
    ],
)
async def test_an_unknown_option_of_a_budget_is_refused(
    options: dict[str, Any], message: str
) -> None:
    """With those there are."""
    with pytest.raises(InvalidInput, match=message):
        await show(lambda: "", **options)


async def test_a_watched_budget_is_shown_again_when_it_changes(
    redis: Redis,
    file: Path,
    printed: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not when only time passes."""
    monkeypatch.setattr(budget, "LOOK_S", 0.01)
    await fill(redis, file, printed)
    watching = asyncio.create_task(show(printed, is_watched=True))
    shown = ""
    async with asyncio.timeout(30):
        while "accounts of the limits, version 1" not in shown:
            await asyncio.sleep(0.01)
            shown += printed()
        await asyncio.sleep(0.1)
        assert printed() == ""
        await make("more", at_once=1)
        while "accounts of the limits, version 2" not in shown:
            await asyncio.sleep(0.01)
            shown += printed()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
