"""Any view, as a person reads it."""

import time
from typing import Any

import pytest

from tasklore.commands.render.views import draw_tree, print_view, spell


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the clocks of Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("at", "2026-07-01T10:00:00Z", "2026-07-01 12:00:00 CEST"),
        ("at", "2026-07-01T10:00:00.123456+00:00", "2026-07-01 12:00:00 CEST"),
        ("at", "9999-99-99T10:00:00Z", "9999-99-99T10:00:00Z"),
        ("run_ms", 5200, "5.2 s"),
        ("run_ms", -5200, "-5.2 s"),
        ("began_ms", 1_782_900_000_000, "2026-07-01 12:00:00 CEST"),
        ("began_ms", 10**30, str(10**30)),
        ("keep_s", 7200, "2 h 00 min"),
        ("cost_usd", 0.5, "$0.50"),
        ("size_bytes", 2048, "2.0 KiB"),
        ("sequence", 123456, "123456"),
        ("ratio", float("inf"), "inf"),
        ("paused", False, "no"),
        ("x", None, ""),
        ("x", [1, 2, 3, 4, 5], "1, 2, 3 and 2 more"),
        ("timing", {"cron": "0 9 * * *", "at": None}, "cron 0 9 * * *"),
    ],
)
def test_a_value_is_spelled_by_its_unit(name: str, value: Any, words: str) -> None:
    assert spell(name, value) == words


def test_rows_are_a_table_with_the_columns_that_say_something(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"id": "a", "timing": {"cron": "0 9 * * *"}, "runs": 5, "user": None},
        {"id": "nightly", "timing": {}, "runs": 12, "user": None},
    ]
    columns = ["id", "timing.cron", "runs", "user"]
    print_view({"schedules": rows, "after": None}, "schedules", columns)
    assert capsys.readouterr().out == (
        "ID       CRON       RUNS\na        0 9 * * *     5\nnightly               12\n"
    )


def test_a_column_may_hold_a_field_of_each_record_of_a_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The column of names is called after the things."""
    rows = [
        {"id": "a", "tasks": [{"name": "walk"}, {"name": "run"}, "odd"]},
        {"id": "b", "tasks": []},
    ]
    print_view({"agents": rows}, "agents", ["id", "tasks.name"])
    assert capsys.readouterr().out == "ID  TASKS\na   walk, run\nb\n"


def test_facts_are_nested(capsys: pytest.CaptureFixture[str]) -> None:
    view = {
        "id": "a",
        "run_ms": 3,
        "empty": [],
        "timing": {"cron": "x"},
        "parts": [{"n": 1}, {"n": 2}],
    }
    print_view(view)
    assert capsys.readouterr().out == (
        "id   a\nrun  3 ms\ntiming\n  cron  x\nparts\n  n  1\n\n  n  2\n"
    )


def test_what_is_true_or_not_is_named_in_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a fact and as a column."""
    print_view({"is_new": True, "has_own_deadline": False, "island": "x"})
    print_view({"rows": [{"is_on_card": True}]}, "rows", ["is_on_card"])
    assert capsys.readouterr().out == (
        "new           yes\nown deadline  no\nisland        x\nON CARD\nyes\n"
    )


def test_a_tree_is_drawn() -> None:
    leaf = {"id": "c", "state": "failed", "children": []}
    view = {
        "id": "a",
        "state": "ok",
        "children": [{"id": "b", "children": [leaf]}, {"id": "d"}],
    }
    assert list(draw_tree(view, ["id", "state"])) == [
        "a  ok",
        "├─ b",
        "│  └─ c  failed",
        "└─ d",
    ]


@pytest.mark.parametrize(
    "view",
    [
        {"x": "a\x1b[2Jb\x9b31m\u202ec"},
        {"a\x1b[2J": {"b\x1b]0;x\x07": "c\rd"}},
        {"rows": [{"id\x1b": "a\x1b[2J", "x\r": {"y\x1b": "\x1b"}}]},
        {"id": "\x1b", "children": [{"id": "\x1b[1m"}]},
        {"x": [{"y": ["\x1b", {"z": "\x1b"}]}]},
        "\x1b[2J",
        ["\x1b"],
    ],
)
def test_nothing_in_a_view_steers_a_terminal(
    view: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    print_view(view, "rows")
    told = capsys.readouterr().out
    assert told.strip()
    assert all(one.isprintable() or one == "\n" for one in told)


def test_a_deep_view_is_cut() -> None:
    view: dict[str, Any] = {"id": "leaf"}
    for _ in range(500):
        view = {"id": "x", "children": [view]}
    assert len(list(draw_tree(view))) < 30


def test_deep_facts_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    view: dict[str, Any] = {"id": "leaf"}
    for _ in range(500):
        view = {"inner": view}
    print_view(view)
    assert len(capsys.readouterr().out.splitlines()) < 30
