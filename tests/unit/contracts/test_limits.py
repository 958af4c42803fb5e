"""Limits: every faulty field is named with its cure; whose account a call is held against, and until when."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tasklore.contracts.admission.limits import (
    NANO_USD,
    Limits,
    Payer,
    parse_limits,
    read_limits,
)
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_token

_NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
_DAY = {"name": "a", "usd": 1, "every": "day"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a b"}, "limit 'a b'.name: must be 1 to 64 letters"),
        ({"model": "m" * 201}, "limit 'a'.model: must have at most 200 characters"),
        ({"usd": 0}, "limit 'a'.usd: must be greater than or equal to 1E-9"),
        ({"usd": "1e-10"}, "limit 'a'.usd: must be greater than or equal to 1E-9"),
        ({"usd": "NaN"}, "limit 'a'.usd: must be a finite number"),
        ({"usd": 4_000_001}, "limit 'a'.usd: must be less than or equal to 4000000"),
        (
            {"usd": None, "tokens": 0},
            "limit 'a'.tokens: must be greater than or equal to 1",
        ),
        ({"usd": None, "requests": 1.5}, "limit 'a'.requests: must be a whole number"),
        (
            {"usd": None},
            "limit 'a': name one of requests, tokens, usd, at_once and at_most, not none",
        ),
        ({"tokens": 3}, "not tokens and usd"),
        ({"usd": None, "at_once": 3}, "at_once and at_most have none"),
        ({"usd": None, "at_most": 3}, "limit 'a': set every = "),
        (
            {"usd": None, "every": None, "at_most": 0},
            "limit 'a'.at_most: must be greater than or equal to 1",
        ),
        (
            {"usd": None, "every": None, "at_most": "3"},
            "limit 'a'.at_most: must be a whole number",
        ),
        (
            {"usd": None, "every": None, "at_most": 3, "model": "m"},
            "remove model, or set at_once",
        ),
        (
            {"usd": None, "every": None, "at_most": 3, "at_limit": "refuse"},
            'remove at_limit, or set it to "park"',
        ),
        ({"every": None}, 'set every = "minute", "day", "month", "task" or "tree"'),
        (
            {"every": "week"},
            "limit 'a'.every: must be 'minute', 'day', 'month', 'task' or 'tree'",
        ),
        ({"every": "tree"}, 'never refills: set at_limit = "refuse" or "next"'),
        (
            {"at_limit": "stop"},
            "limit 'a'.at_limit: must be 'park', 'next' or 'refuse'",
        ),
        (
            {"tennant": "acme"},
            "limit 'a'.tennant: is not known; remove it, or correct its name",
        ),
    ],
)
def test_a_faulty_field_of_a_limit_is_named_with_its_cure(
    fields: dict[str, Any], message: str
) -> None:
    """By the name of its limit."""
    limit = {
        field: value for field, value in (_DAY | fields).items() if value is not None
    }
    with pytest.raises(InvalidInput) as error:
        read_limits({"limits": [limit]})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limits", "the limits are not valid TOML"),
        ("[[limits]]\nusd = 1\nevery = 'day'", "limit 1.name: is needed"),
        ("time_zone = 'Mars'", "time_zone: there is no time zone 'Mars'"),
        (
            "[without_store]\nmoney = 'maybe'",
            "without_store.money: must be 'refuse' or 'pass'",
        ),
        ("[fallbacks]\nm = 'n'", "fallbacks.m"),
        ("limit = 3", "limit: is not known"),
        (
            "[[limits]]\nname='a'\nat_once=1\n[[limits]]\nname='a'\nat_once=2",
            "two limits are called 'a'",
        ),
    ],
)
def test_a_faulty_file_is_refused(text: str, message: str) -> None:
    """With the field and the cure."""
    with pytest.raises(InvalidInput) as error:
        parse_limits(text)
    assert message in str(error.value)


def _accounts(
    limit: dict[str, Any],
    payer: Payer,
    model: str = "gpt-6",
    now: datetime = _NOW,
    **more: Any,
) -> list[str]:
    limits = read_limits({"limits": [{"name": "a", **limit}], **more})
    return [one.key for one in limits.accounts_of(model, payer, now)]


def test_a_limit_covers_what_it_names_and_a_star_counts_each_value_apart() -> None:
    """A pattern of models shares one account; a user is known by a token alone."""
    ada = Payer(
        tenant="acme",
        user=user_token("ada"),
        agent="Research",
        task="read",
        task_id="t",
        root_id="r",
    )
    once = {"at_once": 1}
    assert _accounts(
        {**once, "tenant": "acme", "user": "ada", "model": "gpt-*"}, ada
    ) == ["a"]
    for other in (
        {"tenant": "other"},
        {"user": "bob"},
        {"agent": "B"},
        {"task": "t"},
        {"model": "claude*"},
    ):
        assert _accounts(once | other, ada) == []
    assert _accounts({**once, "tenant": "*", "user": "*"}, ada) == [
        f"a;tenant=acme;user={user_token('ada')}"
    ]
    assert _accounts({**once, "tenant": "*"}, Payer()) == ["a;tenant="]
    tree = {"usd": "0.5", "at_limit": "refuse"}
    assert _accounts({**tree, "every": "tree"}, ada) == ["a;tree=r"]
    assert _accounts({**tree, "every": "tree"}, Payer(task_id="t")) == ["a;tree=t"]
    assert _accounts({**tree, "every": "task"}, ada) == ["a;task=t"]
    assert _accounts({**tree, "every": "task"}, Payer()) == []


def test_a_run_falls_under_the_bounds_of_its_tenant_before_those_of_its_agent() -> None:
    """Two limits of one scope are one bound, the lower; no call of a model is held against them."""
    limits = [
        {"name": "all", "at_most": 9},
        {"name": "agent", "agent": "Research", "at_most": 5},
        {"name": "each", "tenant": "*", "at_most": 2},
        {"name": "acme", "tenant": "acme", "at_most": 3},
        {"name": "there", "tenant": "*", "agent": "Research", "at_most": 1},
        {"name": "task", "task": "write", "at_most": 1},
    ]
    made = read_limits({"limits": limits})
    bounds = made.bounds_of(
        Payer(tenant="acme", user="u", agent="Research", task="read")
    )
    assert list(bounds.values()) == [1, 2, 5, 9]
    assert made.limits[1].own_bound == list(bounds)[2]
    assert made.limits[2].own_bound is None
    assert (
        list(made.bounds_of(Payer(tenant="b", agent="Research")))[2:]
        == list(bounds)[2:]
    )
    assert made.accounts_of("m", Payer(), _NOW) == ()


@pytest.mark.parametrize(
    ("every", "now", "window", "hours"),
    [
        ("day", "2026-03-29T00:30+01:00", "2026-03-29", 22.5),
        ("day", "2026-10-25T00:30+02:00", "2026-10-25", 24.5),
        ("day", "2026-10-25T02:30+01:00", "2026-10-25", 21.5),
        ("day", "2026-12-31T23:00+01:00", "2026-12-31", 1),
        ("month", "2026-03-01T00:00+01:00", "2026-03", 31 * 24 - 1),
        ("month", "2026-10-31T23:00+01:00", "2026-10", 1),
        ("month", "2026-01-31T12:00+01:00", "2026-01", 12),
    ],
)
def test_days_and_months_end_by_the_clock_on_the_wall(
    every: str, now: str, window: str, hours: float
) -> None:
    """Also over the two changes of the clock, where a day has 23 or 25 hours."""
    limits = read_limits(
        {"limits": [_DAY | {"every": every}], "time_zone": "Europe/Berlin"}
    )
    [account] = limits.accounts_of("m", Payer(), datetime.fromisoformat(now))
    assert (account.window, account.refills_in_s) == (window, hours * 3600)
    assert account.limit == NANO_USD


def test_calls_without_a_store_pass_by_the_kind_of_their_limits() -> None:
    """Money refuses by default, rates pass; each may be declared otherwise."""
    rate = {"name": "r", "tokens": 9, "every": "minute"}

    def passes(*limits: dict[str, Any], **without: str) -> bool:
        made = read_limits({"limits": limits, "without_store": without})
        return made.passes_without_store(made.accounts_of("m", Payer(), _NOW))

    assert (passes(rate), passes(_DAY), passes(rate, _DAY)) == (True, False, False)
    assert (passes(rate, rates="refuse"), passes(rate, _DAY, money="pass")) == (
        False,
        True,
    )
    assert Limits().passes_without_store(())
