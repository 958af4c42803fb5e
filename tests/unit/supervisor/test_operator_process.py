"""The application of an operator has the whole table."""

import pkgutil
from importlib import import_module
from typing import Any

from tasklore.supervisor import operations
from tasklore.supervisor.http.operations_app import is_handed
from tasklore.supervisor.operations.table import Operation
from tasklore.supervisor.operator_process import make_nouns


def table() -> list[Operation[Any, ..., Any]]:
    """Return the operations of every module of the room."""
    modules = [
        import_module(f"{operations.__name__}.{one.name}")
        for one in pkgutil.iter_modules(operations.__path__)
    ]
    return [one for module in modules for one in getattr(module, "OPERATIONS", ())]


def test_each_operation_of_the_table_is_one_of_an_operator() -> None:
    """A noun that is new has its line in the wiring."""
    opened: Any = None
    mounted = [one for noun in make_nouns(opened) for one in noun.operations]
    assert mounted
    assert sorted(one.id for one in mounted) == sorted(one.id for one in table())


def test_what_starts_or_answers_work_alone_is_handed_over() -> None:
    """Whoever may read, mend or administer is served by the operator's own rights, also without a supervisor."""
    for one in table():
        is_work = set(one.roles) <= {"ask", "approve"}
        assert is_handed(one) == (is_work and one.mounted == "supervisor"), one.id
