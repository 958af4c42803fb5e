"""Near matches: what a tolerance may be, which questions are near, and what a desk serves and says."""

import json
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tasklore import Context
from tasklore.contracts.messages import CompletionReport, MemoryNote, TaskCall, TaskCard
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.contracts.quantities.amounts import (
    Amount,
    Duration,
    Moment,
    Percent,
    Quantity,
)
from tasklore.memory import keys
from tasklore.runtime.messaging.pull import Delivery
from tasklore.supervisor.replies.report_texts import describe_result
from tasklore.workers.execution.recall import parameters_at
from tests.unit.workers.execution.fake_worker import NOW, FakeWorker


class Plan(Parameters):
    """One tolerant amount among fields that must be equal."""

    limit: Amount = Field(unit="USD", tolerance="1%")
    town: str = "Kiel"
    months: tuple[int, ...] = ()


class Trip(Parameters):
    """Two tolerant fields, one of which may be left out."""

    distance: Decimal = Field(tolerance="0.5")
    people: int | None = Field(None, tolerance=1)


class Wide(Parameters):
    """One tolerant value of each kind that is written as text."""

    rate: Percent | None = Field(None, tolerance="0.5")
    distance: Quantity | None = Field(None, unit="km", tolerance="500 m")
    speed: Quantity | None = Field(None, tolerance="5 km/h")
    heat: Quantity | None = Field(None, unit="°C", tolerance=2)
    weight: Quantity | None = Field(None, tolerance="10%")
    stay: Duration | None = Field(None, tolerance="10 minutes")
    term: Duration | None = Field(None, tolerance="2 months")
    wait: Duration | None = Field(None, tolerance="10%")
    start: Moment | None = Field(None, tolerance="3 days")


def a_class(kind: Any, tolerance: Any, unit: str | None = None) -> type[Parameters]:
    """Return a class whose one field is of *kind* with *tolerance*."""
    field = Field(tolerance=tolerance, unit=unit)
    return type(
        "Odd", (Parameters,), {"__annotations__": {"limit": kind}, "limit": field}
    )


def near_to(parameters: Parameters) -> Neighbourhood:
    """Return the neighbourhood of asking *parameters*."""
    found = Parameters.neighbourhood(parameters, "plan")
    assert found is not None
    return found


def is_near(
    asked: dict[str, Any], other: dict[str, Any], kind: type[Parameters] = Plan
) -> bool:
    """Return whether the answer for *other* may serve *asked*."""
    here = near_to(kind.read(asked))
    there = near_to(kind.read(other))
    return here.frame == there.frame and here.nearest([there.place], 9) == [there.place]


@pytest.mark.parametrize(
    "tolerance",
    [
        "",
        "1 %%",
        "one",
        "-1",
        0,
        "0%",
        "100%",
        0.5,
        True,
        "NaN",
        "Infinity",
        "NaN%",
        "1e999",
        "\u0661%",
        "9" * 40,
        [1],
    ],
)
def test_a_tolerance_that_is_none_is_refused_where_it_is_declared(
    tolerance: Any,
) -> None:
    with pytest.raises(
        TypeError,
        match=r"^Odd: limit: a tolerance .*'?1%|a tolerance of 100% would take",
    ):
        a_class(Amount, tolerance)


@pytest.mark.parametrize(
    ("kind", "unit", "tolerance", "cure"),
    [
        (Percent, None, "5 km", "percent points, such as"),
        (Percent, None, "NaN", "finite"),
        (Percent, None, 0.5, "0.5 points"),
        (Quantity, None, 5, "names no unit"),
        (Quantity, "km", "5 kg", "length is expected"),
        (Quantity, "km", "0 m", "above zero"),
        (Quantity, "km", 0.5, "exact"),
        (Quantity, "°C", "1%", "depends on where its scale begins"),
        (Duration, None, 5, "without a unit"),
        (Duration, None, "1 month 3 days", "mixes months"),
        (Moment, None, "1%", "of a moment means nothing"),
        (Moment, None, "1 month", "no fixed length"),
    ],
)
def test_a_tolerance_in_other_terms_than_the_fields_is_refused(
    kind: type, unit: str | None, tolerance: Any, cure: str
) -> None:
    """Where the class is made, with its name, the field's, and what to write instead."""
    with pytest.raises(TypeError, match=r"^Odd: limit: ") as refused:
        a_class(kind, tolerance, unit)
    assert cure in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "unit", "tolerance", "told"),
    [
        (Percent, None, "0.5", "0.5 points"),
        (Percent, "%", "2 percentage points", "2 points"),
        (Percent, None, 3, "3 points"),
        (Quantity, "km", "500 m", "0.5 km"),
        (Quantity, "km", "1%", "1%"),
        (Quantity, "°C", "2 K", "2 K"),
        (Duration, None, "90 minutes", "PT1H30M"),
        (Duration, "month", 2, "P2M"),
        (Moment, None, Duration("1 hour"), "PT1H"),
        (Amount, "USD", Decimal("250.0"), "250"),
    ],
)
def test_a_card_tells_a_tolerance_in_its_one_spelling(
    kind: type, unit: str | None, tolerance: Any, told: str
) -> None:
    """And a class made of that class reads it back."""
    one = a_class(kind, tolerance, unit)
    for made in (one, type("Two", (one,), {})):
        assert made.schema_for_cards()["properties"]["limit"]["tolerance"] == told


@pytest.mark.parametrize(
    "kind",
    [
        str,
        bool,
        tuple[Amount, ...],
        list[int],
        int | str,
        Amount | list[Amount],
        Percent | Duration,
        timedelta,
        date,
    ],
)
def test_only_a_lone_number_has_a_tolerance(kind: Any) -> None:
    """The class cannot even be made."""
    with pytest.raises(TypeError, match="limit declares a tolerance"):
        a_class(kind, 1)


def test_without_a_tolerance_there_is_no_neighbourhood() -> None:
    class Plain(Parameters):
        limit: Amount

    class Open(Parameters):
        limit: Amount | None = Field(None, tolerance=1)

    class Whole(Parameters):
        count: int = Field(tolerance=1)

    assert Parameters.neighbourhood(Whole.read({"count": 10**5000}), "plan") is None
    assert Parameters.neighbourhood(Plain.read({"limit": 5}), "plan") is None
    assert Parameters.neighbourhood(Open.read({}), "plan") is None


@pytest.mark.parametrize(
    ("asked", "other", "expected"),
    [
        ("50,000", "50,500", True),
        ("50,000", "49500", True),
        ("50,000", "50,500.000000000000000000000000000001", False),
        ("50,000", "49499.999999999999999999999999999999", False),
        ("-50k", "-50.5k", True),
        ("0.001", "0", False),
        ("1e-30", "1.0100000000000001e-30", False),
        ("999999999999999999999999999999", "999999999999999999999999999998", True),
    ],
)
def test_the_border_is_within_and_nothing_beyond_it(
    asked: str, other: str, expected: bool
) -> None:
    assert is_near({"limit": asked}, {"limit": other}) is expected


@pytest.mark.parametrize(
    "other",
    [
        {"town": "kiel"},
        {"town": "Kiel "},
        {"months": [1]},
        {"town": "~near+USD"},
        {"town": "50100USD"},
    ],
)
def test_all_else_has_to_be_equal(other: dict[str, Any]) -> None:
    """A text or a list that differs is another question, however near the amount."""
    assert is_near({"limit": 50_000}, {"limit": 50_100})
    assert not is_near({"limit": 50_000}, {"limit": 50_100, **other})


def test_another_unit_is_never_near() -> None:
    class Euros(Parameters):
        limit: Amount = Field(unit="EUR", tolerance="1%")
        town: str = "Kiel"
        months: tuple[int, ...] = ()

    assert is_near({"limit": "$50"}, {"limit": "5010 cents"})
    assert (
        near_to(Euros.read({"limit": 50})).frame
        != near_to(Plan.read({"limit": 50})).frame
    )


def test_several_fields_all_have_to_be_near() -> None:
    """And a field that is left out is near to nothing but itself."""
    asked = {"distance": 10, "people": 4}
    assert is_near(asked, {"distance": "10.5", "people": 5}, Trip)
    assert not is_near(asked, {"distance": "10.51", "people": 4}, Trip)
    assert not is_near(asked, {"distance": 10, "people": 6}, Trip)
    assert not is_near(asked, {"distance": 10}, Trip)
    assert is_near({"distance": 10}, {"distance": "9.5"}, Trip)


def test_the_nearest_comes_first_and_of_equals_the_lesser() -> None:
    """Whatever their order was; the question itself is no neighbour of its own."""
    asked = near_to(Trip.read({"distance": 10, "people": 4}))
    places = [
        "10.3|4",
        "9.9|4",
        "10.1|4",
        "10|4",
        "10.1|5",
        "11|4",
        "10.1",
        "x|4",
        "10.10|4",
        "NaN|4",
        "-10|4",
    ]
    assert asked.nearest(places, 9) == ["9.9|4", "10.1|4", "10.3|4", "10.1|5"]
    assert asked.nearest(places, 1) == ["9.9|4"]
    assert asked.distances("10.1|5") == {
        "distance": (Decimal("0.1"), "0.1"),
        "people": (1, "1"),
    }


def test_a_neighbours_key_is_the_one_it_was_remembered_at() -> None:
    asked = Plan.read({"limit": "50,200", "town": "x" * 200, "months": [1, 2]})
    other = Plan.read({"limit": "50k", "town": "x" * 200, "months": [1, 2]})
    near = near_to(asked)
    assert near.question_at(near_to(other).place) == Parameters.key(other, "plan")
    assert parameters_at(asked, near, near_to(other).place) == other.model_dump(
        mode="json"
    )
    [here] = near.windows
    [there] = near_to(other).windows
    assert here.low < there.score < here.high


@pytest.mark.parametrize(
    ("name", "asked", "other", "expected"),
    [
        ("rate", "20%", "20.5%", "0.5 points"),
        ("rate", "20%", "21%", None),
        ("rate", "0.4%", "-0.05%", None),
        ("distance", "5 km", "5500 m", "0.5 km"),
        ("distance", "5 km", "5500.0000000001 m", None),
        ("speed", "50 km/h", "55 km/h", "5 km/h"),
        ("speed", "50 km/h", "55.0000001 km/h", None),
        ("heat", "20 °C", "22 °C", "2 °C"),
        ("heat", "20 °C", "71 °F", "1.666666666666666666666666667 °C"),
        ("weight", "10 kg", "11 kg", "1 kg"),
        ("weight", "10 kg", "10 litres", None),
        ("stay", "2 hours", "PT2H10M", "PT10M"),
        ("stay", "2 hours", "PT2H10M1S", None),
        ("stay", "P1MT2H", "P1MT2H5M", "PT5M"),
        ("term", "1 year", "14 months", "P2M"),
        ("term", "1 year", "15 months", None),
        ("term", "P1Y1D", "P13M1D", "P1M"),
        ("wait", "100 minutes", "110 minutes", "PT10M"),
        ("wait", "P10MT100M", "P10MT101M", None),
        ("start", "2026-03-01", "2026-03-04", "P3D"),
        ("start", "2026-03-01", "2026-03-05", None),
        ("start", "2026-03-01", "2026-03-01T00:00", None),
        ("start", "2026-03-01T12:00Z", "2026-03-01T14:30+02:00", "PT30M"),
    ],
)
def test_each_kind_of_value_is_near_in_its_own_terms(
    name: str, asked: str, other: str, expected: str | None
) -> None:
    here = Wide.read({name: asked})
    there = Wide.read({name: other})
    near = Parameters.neighbourhood(here, "plan")
    far = Parameters.neighbourhood(there, "plan")
    assert (
        is_near({name: asked}, {name: other}, Wide)
        if expected
        else not (
            near and far and near.frame == far.frame and near.nearest([far.place], 1)
        )
    )
    if near and far and expected:
        assert near.question_at(far.place) == Parameters.key(there, "plan")
        assert near.distances(far.place)[name][1] == expected
        assert Wide.read(parameters_at(here, near, far.place)) == there


@pytest.mark.parametrize(
    "place", ["63903945600.5", "999999999999999", "63903945601", "-1", "0"]
)
def test_a_place_that_no_day_can_have_is_passed_over(place: str) -> None:
    here = near_to(Wide.read({"start": "2026-01-12"}))
    assert here.nearest([place], 1) == []


def test_nothing_on_the_other_side_of_zero_is_near() -> None:
    """However small both are: to gain is not to lose, and neither is nothing."""
    here = near_to(Trip.read({"distance": "0.2"}))
    assert here.nearest(["-0.1", "0", "0.1"], 9) == ["0.1"]


def a_worker(runs: list[Decimal], memory: Any = None) -> FakeWorker:
    """Return a worker whose agent plans, and notes for which limits it did."""

    async def plan(call: Plan, context: Context) -> str:
        """Plan."""
        runs.append(call.limit.value)
        return f"a plan for {call.limit}"

    return FakeWorker(
        memory=memory,
        declare=lambda agent: agent.task(name="plan", remember="shared")(plan),
    )


def a_plan(
    task_id: str, limit: str, memory: str = "use", **parameters: Any
) -> Delivery:
    """Return a delivery that asks for a plan."""
    whole = {
        "task_id": task_id,
        "agent_id": "DeskAgent",
        "supervisor_id": "S",
        "task": {"name": "plan", "parameters": {"limit": limit, **parameters}},
        "created_at": "2026-01-01T12:00:00Z",
        "memory": memory,
    }
    return Delivery(
        subject="tasks.DeskAgent.plan",
        body=json.dumps(whole).encode(),
        headers=None,
        reply=f"$JS.ACK.{task_id}",
        deliveries=1,
        sequence=7,
        arrived_at=0.0,
    )


async def test_a_neighbours_answer_is_served_and_labelled() -> None:
    runs: list[Decimal] = []
    worker = a_worker(runs)
    await worker.work(a_plan("t1", "50,000"))
    await worker.work(a_plan("t2", "50,200"))
    first, second = worker.outbox.reports()
    assert (first.memory.outcome, second.memory.outcome, runs) == (
        "miss",
        "near",
        [50_000],
    )
    assert (second.result, second.run_ms) == ("a plan for 50000 USD", 0)
    assert second.memory.key == "plan:50200USD:Kiel:no_months"
    assert second.memory.distances == {"limit": "200"}
    assert second.memory.distance == 200.0
    assert second.memory.computed_for == Plan.read({"limit": 50_000}).model_dump(
        mode="json"
    )
    assert second.memory.age_ms == 0
    version = worker.agent.memory_version(worker.agent.tasks["plan"])
    entry = keys.ltm("DeskAgent", version, "plan:50000USD:Kiel:no_months")
    assert dict(worker.hits) == {entry: 1}
    assert [one.key async for one in worker.memory.entries()] == [entry]
    assert worker.counts.seen["near"] == 1


async def test_an_exact_answer_wins_and_a_far_question_is_computed() -> None:
    """Once computed it is its own answer, whatever lies nearby."""
    runs: list[Decimal] = []
    worker = a_worker(runs)
    await worker.work(
        a_plan("t1", "50,000"),
        a_plan("t2", "50,600"),
        a_plan("t3", "50,100", town="Ulm"),
    )
    assert sorted(runs) == [50_000, 50_100, 50_600]
    await worker.work(
        a_plan("t4", "50,600"),
        a_plan("t5", "50,290"),
        a_plan("t6", "50,310"),
        a_plan("t7", "50,300"),
    )
    told = {report.task_id: report for report in worker.outbox.reports()}
    assert [told[name].memory.outcome for name in ("t4", "t5", "t6", "t7")] == [
        "hit",
        "near",
        "near",
        "near",
    ]
    assert [told[name].result for name in ("t5", "t6", "t7")] == [
        f"a plan for {n} USD" for n in (50000, 50600, 50000)
    ]


async def test_neighbours_that_are_asked_at_once_are_both_computed() -> None:
    runs: list[Decimal] = []
    worker = a_worker(runs)
    await worker.work(a_plan("t1", "50,000"), a_plan("t2", "50,200"))
    await worker.work(a_plan("t3", "50,150"))
    told = {report.task_id: report for report in worker.outbox.reports()}
    assert sorted(runs) == [50_000, 50_200]
    assert [told[name].memory.outcome for name in ("t1", "t2", "t3")] == [
        "miss",
        "miss",
        "near",
    ]
    assert told["t3"].result == "a plan for 50200 USD"


@pytest.mark.parametrize(
    ("mode", "outcome"), [("refresh", "refreshed"), ("bypass", "bypassed")]
)
async def test_who_wants_it_computed_gets_it_computed(mode: str, outcome: str) -> None:
    """A neighbour is no way round what the assignment says."""
    runs: list[Decimal] = []
    worker = a_worker(runs)
    await worker.work(a_plan("t1", "50,000"))
    await worker.work(a_plan("t2", "50,200", mode))
    assert runs == [50_000, 50_200]
    assert worker.outbox.reports()[1].memory.outcome == outcome


def test_a_person_hears_whose_answer_it_is() -> None:
    note = MemoryNote(
        outcome="near",
        age_ms=1000,
        distance=200.0,
        computed_for={"limit": 50_000},
        distances={"limit": "200"},
    )
    report = CompletionReport(
        task_id="t", agent_id="A", supervisor_id="S", task_name="plan", status="completed", result=1, memory=note,
        worker_id="w", finished_at=NOW,
    )  # fmt: skip
    card = TaskCard(name="plan", parameters=Plan.schema_for_cards())
    call = TaskCall(name="plan", parameters={"limit": 50_200})
    said = describe_result(report, card, call)
    assert "for limit 50,000, which is within 1 % of the 50,200 you asked" in said
    assert "limit 50,000, which is 200 away from what you asked" in describe_result(
        report, None, None
    )
