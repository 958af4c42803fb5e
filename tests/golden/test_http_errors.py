"""How the HTTP API answers each case of its document is as it is frozen, and other doors answer alike.

Each case is sent over HTTP, to the application in this process as `--direct` calls it, and as a command where words can
say it; then each operation once more while the store is away.

After a change: `python -m tests.golden.write http`; docs/reference/changes-0.3.md
explains each difference.
"""

import pytest

from tests.golden.calling import Called, call_everything
from tests.golden.doors import (
    AT_AN_ADDRESS,
    BY_HAND,
    DECLARED,
    entries_by_operation,
    name_of,
)
from tests.golden.frozen import demand_frozen, read

FROZEN = read("http_errors.json")

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Called:
    """Call every operation in every way once."""
    return call_everything(tmp_path_factory.mktemp("doors"))


@pytest.mark.parametrize("operation", sorted(FROZEN))
def test_an_operation_answers_as_it_is_frozen(operation: str, called: Called) -> None:
    """Status, type and places of faults, and the sentence for a person, by case."""
    demand_frozen(called.shown[operation], FROZEN[operation])


def test_every_operation_is_frozen(called: Called) -> None:
    assert sorted(called.shown) == sorted(FROZEN)


@pytest.mark.parametrize("operation", sorted(entries_by_operation()))
def test_every_door_answers_alike(operation: str, called: Called) -> None:
    """The problem is the same in this process; a command's exit code and first line say what it means."""
    assert called.differing.get(operation, []) == []


def test_every_kind_of_case_is_tried_at_every_door(called: Called) -> None:
    """By each caller for all operations, but at the command line for those that are written by hand."""
    entries = entries_by_operation()
    operations = len(entries)
    of_hands = sum(
        name_of(one) in BY_HAND or operation in DECLARED
        for operation, one in entries.items()
    )
    for kind in ("no key", "asker", "reader", "approver"):
        tried = [called.tried[door, kind] for door in ("this process", "command")]
        assert tried == [operations - len(AT_AN_ADDRESS), operations - of_hands], kind
    for kind in ("other user", "other tenant", "not found"):
        of_this_process = called.tried["this process", kind]
        assert of_this_process > operations / 2
        assert called.tried["command", kind] >= of_this_process - of_hands * 2


def test_without_the_store_nothing_is_the_fault_of_who_serves(called: Called) -> None:
    """What needs it says that it may be asked again; none breaks."""
    assert len(called.away) == len(entries_by_operation())
    statuses = {
        operation: None if verdict is None else verdict["status"]
        for operation, verdict in called.away.items()
    }
    assert {one for one, status in statuses.items() if status == 500} == set()
    away = [one for one, status in statuses.items() if status in (503, None)]
    assert len(away) > len(statuses) / 2
