"""The history: whole lines in the order of time, whoever is killed while writing; and the plan of a storm."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.history import Follower, History, read_history
from tests.acceptance.chaos.promises import rows_of
from tests.acceptance.chaos.weather import BREEZE, Climate, plan


def test_what_several_wrote_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    """Each has a file of its own; the time of an event may be given."""
    with History(tmp_path) as one, History(tmp_path) as other:
        one.note("submit", task="t", at=3.0)
        other.note("run-start", pid=7, task="t", run="r", at=2.0)
        one.note("accepted", task="t", at=4.0, sequence=5)

    events = read_history(tmp_path)

    assert [(event.kind, event.at) for event in events] == [("run-start", 2.0), ("submit", 3.0), ("accepted", 4.0)]
    assert (events[0].pid, events[0].run, events[2].sequence) == (7, "r", 5)


def test_a_line_that_a_kill_has_torn_did_not_happen(tmp_path: Path) -> None:
    """It is the last one of its file, and left out."""
    with History(tmp_path) as history:
        history.note("effect", task="t")
    (file,) = tmp_path.glob("*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:20])

    assert [event.task for event in read_history(tmp_path)] == ["t"]
    assert json.loads(whole)["task"] == "t"


def test_a_follower_reads_each_event_once(tmp_path: Path) -> None:
    """Also from files that begin later, and never half a line."""
    follower = Follower(tmp_path)
    with History(tmp_path) as history, History(tmp_path) as later:
        history.note("submit", task="t")
        first = follower.news()
        later.note("submit", task="u")
        history.note("accepted", task="t")

        assert [event.task for event in first] == ["t"]
        assert {(event.kind, event.task) for event in follower.news()} == {("submit", "u"), ("accepted", "t")}
        assert follower.news() == []


@pytest.mark.parametrize("climate", [Climate(), BREEZE])
def test_a_seed_is_a_plan_with_every_blow_within_the_span(climate: Climate) -> None:
    """The same seed plans the same, another one something else."""
    planned = plan(climate, 7)
    wanted = climate.nats_kills + climate.valkey_kills + climate.stops + climate.cuts + climate.deletions

    assert planned == plan(climate, 7) != plan(climate, 8)
    assert len(planned) == wanted
    assert [blow.at_s for blow in planned] == sorted(blow.at_s for blow in planned)
    assert all(0 < blow.at_s <= climate.span_s * 1.1 for blow in planned)


def test_rows_pass_when_nothing_is_broken_and_every_blow_fell() -> None:
    """One storm with a violation, or with too few kills, spoils the row of all of them."""
    climate = replace(BREEZE, cuts=0)
    good = Findings(accepted=400, hits=3)
    good.troubles.update({"kill": 4, "outage nats": 1, "outage valkey": 1})
    good.recomputed["kill"] = 2
    lost = replace(good, lost=["t"])
    idle = replace(good, hits=0)

    assert all(row.passed for row in rows_of([good, good], climate))
    assert [row.asked for row in rows_of([good, lost], climate) if not row.passed] == [
        "storm: tasks accepted and never reported: 0"
    ]
    assert [row.measured for row in rows_of([good, idle], climate) if not row.passed] == ["least 0, in all 3 of 8"]
    assert "0; explained 4 (kill 4)" in [row.measured for row in rows_of([good, good], climate)]
