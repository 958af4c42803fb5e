"""The application of an operator has the whole table."""

import pkgutil
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from redis.asyncio import Redis

from tasklore.runtime.metrics import Metrics
from tasklore.runtime.settings import Settings
from tasklore.supervisor import operations
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.http.operations_app import may_hand_over
from tasklore.supervisor.operations.dependencies import OperatorDependencies
from tasklore.supervisor.operations.nouns import NOUNS
from tasklore.supervisor.operations.table import Operation
from tests.golden.document import unasked_parts


def unconnected() -> OperatorDependencies:
    """Return connections of which nothing is asked."""
    nobody: Any = None
    return OperatorDependencies(
        settings=Settings(),
        metrics=Metrics("0"),
        link=cast("Any", SimpleNamespace(client=nobody)),
        redis=Redis(),
        outbox=nobody,
        cards=CardIndex(),
        attendance=cast("Any", SimpleNamespace(absent=nobody)),
        letters=nobody,
        hands=nobody,
    )


def table() -> list[Operation[Any, ..., Any]]:
    """Return the operations of every module of the room."""
    modules = [
        import_module(f"{operations.__name__}.{one.name}")
        for one in pkgutil.iter_modules(operations.__path__)
    ]
    return [one for module in modules for one in getattr(module, "OPERATIONS", ())]


def test_each_operation_is_one_of_the_list_of_nouns() -> None:
    """A noun that is new has its line in the list."""
    listed = [one.id for noun in NOUNS for one in noun.operations]
    assert sorted(listed) == sorted(one.id for one in table()), (
        "a noun is missing in supervisor/operations/nouns.py"
    )


def test_supervisors_run_whatever_is_mounted_in_them() -> None:
    """What a noun says of a process, and what each of its operations says, are the same."""
    parts = unasked_parts()
    run = [one.operation.id for noun in NOUNS for one in noun.supervisor(parts)]
    mounted = [one.id for one in table() if one.mounted == "supervisor"]
    assert sorted(run) == sorted(mounted)


def test_only_what_supervisors_may_do_is_left_to_them() -> None:
    """What needs an operator's rights is run here, and so is what has to work without a supervisor."""
    parts = unconnected()
    own = {one.operation.id for noun in NOUNS for one in noun.operator(parts)}
    left = [one for one in table() if one.id not in own]
    assert all(may_hand_over(one) for one in left)
    assert "schedules_add" in {one.id for one in left}
    assert own >= {
        "dead_letters_list",
        "pipelines_evidence",
        "pipelines_list",
        "pipelines_status",
        "results_list",
        "schedules_list",
        "schedules_show",
        "tasks_list",
    }
