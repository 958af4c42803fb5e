"""Memory files: which answers are imported, under the very keys that the agent uses."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest

from tasklore import Amount
from tasklore.commands.up.worker_setup import prepare
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.memory import keys
from tasklore.memory.long_term import result_files
from tasklore.memory.long_term.card_parameters import form_of, parameters_of
from tasklore.memory.long_term.memory_files import (
    Imported,
    ImportForm,
    export_entries,
    import_file,
)
from tasklore.memory.long_term.result_files import ResultEntry
from tasklore.workers.agents.budget import Budget, agent
from tasklore.workers.card import card_of
from tests.fakes.stores import FakeLongTermMemory

NOW_MS = 1_800_000_000_000
#: Under which the answers of the agent are kept, its settings at their defaults.
VERSION = agent.memory_version(agent.tasks["analyze_budget"])
FOUR = "analyze_budget:50000:42000:5000,7000,8000,6000"
FIVE = "analyze_budget:100000:30000:5000,6000,7000,5000,25000"


class Colour(Enum):
    """One of two."""

    RED = "red"
    BLUE = "blue"


class Everything(Parameters):
    """A field of every kind that a file can carry."""

    price: Amount
    fee: Amount = Field(Amount(0, "USD"), unit="USD")
    parts: tuple[Amount, ...] = ()
    count: int = 1
    counts: list[int] = Field([])
    share: Decimal = Decimal("0.5")
    ratio: float = 0.25
    name: str = "no name"
    names: tuple[str, ...] = ("a", "b")
    is_new: bool = False
    colour: Colour = Colour.RED
    size: Literal["s", "l"] = "s"
    note: str | None = None
    limit: Amount | None = None
    days: tuple[int, ...] | None = None
    on: date = date(2026, 1, 2)
    at: time = time(8, 30)
    since: datetime = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    within: timedelta = timedelta(minutes=5)


class Since(Parameters):
    """An instant."""

    since: datetime


def forms(**changes: Any) -> dict[str, ImportForm]:
    """Return what an import of the budget agent's memory knows from its card."""
    card = card_of(agent)
    tasks = [task.model_copy(update=changes) for task in card.tasks]
    return {
        task.name: ImportForm.of_card(card, task, timedelta(days=30)) for task in tasks
    }


async def imported(
    memory: FakeLongTermMemory, tasks: dict[str, Any], **changes: Any
) -> Imported:
    return await put(memory, agent.agent_id, {"tasks": tasks}, forms(**changes))


async def put(
    memory: FakeLongTermMemory,
    agent_id: str,
    document: dict[str, Any],
    of_tasks: dict[str, ImportForm],
) -> Imported:
    """Import the *document* of a file."""
    file = result_files.read_document(
        document, {name: one.form for name, one in of_tasks.items()}
    )
    return await import_file(memory, agent_id, file, of_tasks, now_ms=NOW_MS)


async def exported(memory: FakeLongTermMemory) -> list[ResultEntry]:
    """Return the entries of an export of the budget agent's memory."""
    found = await export_entries(
        lambda: memory.entries(agent_id=agent.agent_id), card_of(agent)
    )
    return [entry async for entry in found]


@pytest.mark.parametrize(
    "raw",
    [
        {"price": "50k"},
        {
            "price": 1,
            "fee": 3,
            "parts": ["1k", "2.50"],
            "count": "7",
            "counts": [1, 2],
            "share": "0.125",
            "ratio": 0.1,
        },
        {
            "price": 1,
            "name": "5",
            "names": [],
            "is_new": True,
            "colour": "blue",
            "size": "l",
            "note": "none",
        },
        {
            "price": 1,
            "limit": "5k",
            "days": [1, 2],
            "on": "2027-01-01",
            "at": "09:00",
            "within": "PT1H",
        },
        {"price": 1, "days": [], "since": "2026-05-01T00:00:00Z", "note": ""},
    ],
)
def test_a_card_gives_the_same_keys_as_the_class(raw: dict[str, Any]) -> None:
    made = parameters_of("task", Everything.schema_for_cards())
    assert made.read(raw).key("task") == Everything.read(raw).key("task")


def test_parameters_that_a_file_cannot_carry_are_refused() -> None:
    class Nested(Parameters):
        inner: Budget

    with pytest.raises(InvalidInput, match=r"examples\.migrate_results"):
        parameters_of("task", Nested.schema_for_cards())


async def test_a_cut_list_is_quarantined() -> None:
    memory = FakeLongTermMemory()
    assert await imported(memory, {FIVE: {"spending_rate": 9000.0}}) == Imported(
        0, 0, (FIVE,), {}
    )
    assert [one.file_key for one in await memory.quarantined(agent.agent_id)] == [FIVE]
    assert [entry async for entry in memory.entries()] == []


async def test_invalid_entries_are_refused_one_by_one() -> None:
    memory = FakeLongTermMemory()
    done = await imported(
        memory,
        {
            FOUR: {},
            "dance:1": {},
            "analyze_budget:much:1": {},
            "analyze_budget:1:2:3:4": {},
        },
    )
    assert done.stored == 1
    assert set(done.refused) == {
        "dance:1",
        "analyze_budget:much:1",
        "analyze_budget:1:2:3:4",
    }
    assert "budget_limit" in done.refused["analyze_budget:much:1"]


async def test_an_entry_without_a_key_is_refused() -> None:
    form = ImportForm(
        form=form_of(Since.schema_for_cards()),
        parameters=parameters_of("wait", Since.schema_for_cards()),
        version="v1.1",
        keep=None,
    )
    late = "wait:9999-12-31T23%3A00%3A00-05%3A00"
    sound = "wait:2026-05-01T10%3A00%3A00Z"
    tasks = {"tasks": {late: 1, sound: 2}}
    done = await put(FakeLongTermMemory(), "Waiter", tasks, {"wait": form})
    assert (done.stored, list(done.refused)) == (1, [late])
    assert "past the calendar" in done.refused[late]


async def test_results_of_one_user_are_not_imported() -> None:
    done = await imported(FakeLongTermMemory(), {FOUR: {}}, remember="user")
    assert "not shared" in done.refused[FOUR]


async def test_an_export_is_imported_again_whole() -> None:
    source = FakeLongTermMemory()
    target = FakeLongTermMemory()
    for history in ([5000, 6000, 7000, 5000, 25000], [1, 2]):
        parameters = Budget.read({"budget_limit": 9, "spent": 1, "history": history})
        await source.remember(
            keys.ltm(agent.agent_id, VERSION, parameters.key("analyze_budget")),
            b'{"remaining":8}',
            computed_ms=1,
            ttl=None,
            now_ms=NOW_MS,
            parameters_json=parameters.model_dump_json().encode(),
        )
    entries = await exported(source)
    assert len(entries) == 2
    document = {
        "tasks": {one.key: one.result for one in entries},
        "complete": {one.key: one.complete for one in entries},
    }
    back = await put(target, agent.agent_id, document, forms())
    assert back == Imported(2, 0, (), {})
    assert {entry.key async for entry in target.entries()} == {
        entry.key async for entry in source.entries()
    }


async def test_the_last_used_of_two_versions_is_exported() -> None:
    memory = FakeLongTermMemory()
    question = Budget.read({"limit": 1, "spent": 1}).key("analyze_budget")
    for version, created in (("v1.1", NOW_MS), ("v1.1+3fa9", NOW_MS + 1)):
        await memory.remember(
            keys.ltm(agent.agent_id, version, question),
            json.dumps({"version": version}).encode(),
            computed_ms=1,
            ttl=None,
            now_ms=created,
            parameters_json=b'{"budget_limit":1,"spent":1,"history":[]}',
        )
    [entry] = await exported(memory)
    assert entry.result == {"version": "v1.1+3fa9"}


async def test_an_export_without_any_answer_or_field_is_refused_before_it_begins() -> (
    None
):
    memory = FakeLongTermMemory()
    with pytest.raises(InvalidInput, match="nothing that all may share"):
        await exported(memory)
    question = Budget.read({"limit": 1, "spent": 1}).key("analyze_budget")
    await memory.remember(
        keys.ltm(agent.agent_id, VERSION, question),
        b"{}",
        computed_ms=1,
        ttl=None,
        now_ms=NOW_MS,
        parameters_json=b'{"budget_limit":1}',
    )
    with pytest.raises(InvalidInput, match="spent, history missing"):
        await exported(memory)


def test_a_configuration_finds_its_agent(tmp_path: Any) -> None:
    path = tmp_path / "agent_config.json"
    path.write_text(
        '{"agent_id": "BudgetTrackerAgent", "supervisor_id": "SupervisorAgent",\n'
        ' "enable_ltm_cache": false, // Enable/disable LTM\n "anomaly_threshold_multiplier": 1.5}'
    )
    prepared = prepare([], path)
    assert [one.agent_id for one in prepared.agents] == ["BudgetTrackerAgent"]
    assert prepared.remembers is False
    assert prepared.supervisor_id == "SupervisorAgent"
    [configured] = prepared.agents
    version = configured.memory_version(configured.tasks["analyze_budget"])
    assert version.startswith(f"{VERSION}+")


@pytest.mark.parametrize(
    ("references", "text", "cure"),
    [
        (
            ["tasklore.workers.agents.budget"],
            '{"agent_id": "OtherAgent"}',
            "not served here",
        ),
        ([], '{"agent_id": "BudgetTrackerAgent", "colour": 1}', "no setting 'colour'"),
        ([], "[]", "must be one JSON object"),
    ],
)
def test_an_invalid_configuration_is_refused(
    references: list[str], text: str, cure: str, tmp_path: Any
) -> None:
    path = tmp_path / "agent_config.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=cure):
        prepare(references, path)


class Tolerant(Parameters):
    """Values that may be near, as a file carries them."""

    price: Amount = Field(unit="USD", tolerance="1%")
    count: int | None = Field(None, tolerance=2)
    counts: tuple[int, ...] = ()


def test_a_card_places_answers_in_the_agents_frame() -> None:
    schema = Tolerant.schema_for_cards()
    raw = {"price": "50k", "count": 4, "counts": [1]}
    there = parameters_of("plan", schema).read(raw)
    here = Tolerant.read(raw)
    near = Parameters.neighbourhood(there, "plan")
    assert near is not None
    assert near.frame == getattr(Parameters.neighbourhood(here, "plan"), "frame", None)
    schema["properties"]["price"]["tolerance"] = "a bit"
    schema["properties"]["counts"]["tolerance"] = "1"
    assert parameters_of("plan", schema).read(raw).key("plan") == here.key("plan")


async def test_an_imported_answer_is_found_by_a_near_question() -> None:
    office = FakeLongTermMemory()
    near = Tolerant.read({"price": 50_200})
    form = ImportForm(
        form=form_of(Tolerant.schema_for_cards()),
        parameters=Tolerant,
        version="v1.1",
        keep=timedelta(days=30),
    )
    tasks = {"tasks": {"plan:50000:~none:no_counts": "a plan"}}
    await put(office, "Planner", tasks, {"plan": form})
    standing = Parameters.neighbourhood(near, "plan")
    assert standing is not None
    [found] = await office.nearest(
        [(keys.ltm("Planner", "1.1", near.key("plan")), standing)]
    )
    assert found is not None
    assert found.answer.result_json == b'"a plan"'
