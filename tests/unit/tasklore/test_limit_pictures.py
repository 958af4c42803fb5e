"""The pictures of limits, of their changes and of the budget, by views as the API sends them."""

import time
from datetime import UTC, datetime
from typing import Any

from tasklore.commands.pictures import budget, limits, limits_change, limits_history


def two_hours_ago() -> str:
    """Return the time two hours before the test, however long ago this file was read."""
    return datetime.fromtimestamp(int(time.time()) - 7_200, UTC).isoformat()


NOW = two_hours_ago()
ACME = {"name": "acme", "tenant": "acme", "usd": "20", "every": "day", "at_limit": "refuse"}  # fmt: skip
OPENAI = {"name": "openai", "model": "gpt-*", "tokens": 200_000, "every": "minute"}
RUNS = {"name": "runs", "tenant": "*", "agent": "Research", "at_most": 2}
ONCE = {"name": "acme", "at_once": 3, "at_limit": "refuse"}
BASE: dict[str, Any] = {"version": 5, "who": "key:boss", "when": NOW}
NOTHING: dict[str, Any] = {"limits": [], "settings": []}


def change(before: Any, after: Any) -> dict[str, Any]:
    return {"name": (before or after)["name"], "before": before, "after": after}


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_limits_are_a_table_with_their_settings() -> None:
    view = BASE | {
        "when": two_hours_ago(),
        "limits": {
            "limits": [ONCE, OPENAI],
            "fallbacks": {"gpt-6": ["gpt-6-mini", "local"]},
        },
    }
    shown = limits.draw(view)
    assert shown.startswith("version 5, set by key:boss 2 h ago")
    lines = words(shown)
    assert ["acme", "3", "at", "once", "everything", "refuse"] in lines
    assert "openai 200,000 tokens a minute model gpt-* park".split() in lines  # noqa: SIM905
    assert ["fallbacks", "gpt-6:", "gpt-6-mini,", "local"] in lines
    assert ["time", "zone", "UTC"] in lines
    none = {"version": 0, "who": "", "when": "", "limits": {}}
    assert limits.draw(none).startswith("There are no limits;")


def test_a_change_has_a_line_for_each_thing_that_differs() -> None:
    """Without any nothing changes; of a dry run no version holds."""
    difference = {
        "limits": [change(RUNS, None), change(None, OPENAI), change(ACME, ONCE)],
        "settings": [
            {"name": "fallbacks", "before": {}, "after": {"gpt-6": ["a", "b"]}},
            {"name": "time_zone", "before": "UTC", "after": "Europe/Berlin"},
            {"name": "shares", "before": {}, "after": {"weights": {"acme": 2.0}}},
        ],
    }
    lines = [
        "- runs: 2 tasks at once, each tenant, agent Research, park",
        "+ openai: 200,000 tokens a minute, model gpt-*, park",
        "~ acme: $20.00 a day, tenant acme, refuse -> 3 at once, refuse",
        "~ fallbacks: none -> gpt-6: a, b",
        "~ time zone: UTC -> Europe/Berlin",
        "~ shares: none -> weights: acme: 2.0",
    ]
    view = BASE | {"difference": difference, "dry_run": True}
    assert limits_change.draw(view).splitlines() == lines
    done = limits_change.draw(view | {"dry_run": False}).splitlines()
    assert done == [*lines, "Version 5 takes effect within a second."]
    same = BASE | {"difference": NOTHING, "dry_run": False}
    assert limits_change.draw(same) == "Nothing changes."


def test_a_history_says_what_each_version_changed() -> None:
    """How many limits it has where the one before is not kept."""
    versions = [
        BASE
        | {"limits": {}, "difference": {**NOTHING, "limits": [change(ONCE, None)]}},
        BASE | {"version": 4, "limits": {"limits": [ONCE]}, "difference": None},
    ]
    head, newest, oldest = limits_history.draw({"versions": versions}).splitlines()
    assert head.split() == ["VERSION", "WHEN", "WHO", "CHANGE"]
    assert newest.split()[0] == "5"
    assert newest.endswith("key:boss  - acme: 3 at once, refuse")
    assert oldest.endswith("1 limit")
    assert limits_history.draw({"versions": []}) == "The limits were never set."


def account(name: str, measure: str, amount: float, **fields: Any) -> dict[str, Any]:
    return {
        "limit": name,
        "whose": {},
        "measure": measure,
        "every": "day",
        "at_limit": "park",
        "amount": amount,
        "spent": 0.0,
        "reserved": 0.0,
        "unconfirmed": 0.0,
        "left": amount,
        "waiting": 0,
        "refills_in_s": None,
        **fields,
    }


def spending(**fields: float) -> dict[str, float]:
    names = ("calls", "input", "output", "cached", "usd", "unconfirmed", "saved")
    return dict.fromkeys(names, 0) | fields


OVERVIEW: dict[str, Any] = {
    "version": 1,
    "at": NOW,
    "by": "tenant",
    "accounts": [],
    "periods": [],
    "tree": None,
}


def test_a_budget_is_tables_of_accounts_and_of_spending() -> None:
    """A column that nobody fills is left out, and so is the sum of one line."""
    mine = {"spent": 15.0, "reserved": 0.5, "unconfirmed": 1.0, "left": 3.5}
    lines = [
        {"name": name, "spending": spending(calls=2, input=1_000, usd=usd)}
        for name, usd in (("acme", 3.0), ("", 1.0))
    ]
    period = {
        "first": "2026-11-01",
        "last": "2026-11-29",
        "lines": lines,
        "total": spending(calls=4, input=2_000, usd=4.0),
    }
    today = {**period, "first": "2026-11-29", "lines": lines[:1]}
    shown = budget.draw(
        OVERVIEW
        | {
            "accounts": [
                account("tenants", "usd", 20, whose={"tenant": "acme"}, **mine),
                account("calls", "at_once", 4, every=None, waiting=2),
            ],
            "periods": [today, period, {**today, "lines": []}],
        }
    )
    rows = words(shown)
    assert rows[0] == ["accounts", "of", "the", "limits,", "version", "1"]
    assert "REFILLS" not in shown
    assert (
        rows[2]
        == "tenants tenant=acme $20.00 a day $15.00 $0.50 $1.00 $3.50 82%".split()  # noqa: SIM905
    )
    assert rows[3] == "calls 4 at once 0 4 0% 2".split()  # noqa: SIM905
    assert "spent on 2026-11-29, UTC" in shown
    assert "spent from 2026-11-01 to 2026-11-29, UTC" in shown
    assert "nothing was spent on 2026-11-29, UTC" in shown
    assert rows.count(["acme", "2", "1,000", "0", "$3.00"]) == 2
    assert ["-", "2", "1,000", "0", "$1.00"] in rows
    assert rows.count(["in", "all", "4", "2,000", "0", "$4.00"]) == 1
    assert "SAVED" not in shown


def test_a_tree_shows_what_it_spent() -> None:
    told = budget.draw(OVERVIEW | {"tree": spending(calls=3, usd=0.5)})
    assert words(told)[2] == ["3", "0", "0", "$0.50"]
    none = budget.draw(OVERVIEW | {"tree": spending()})
    assert none == "the tree has spent nothing"
    assert "no limit has an account yet" in budget.draw(OVERVIEW)
