"""Calls of operations by commands that are written by hand, as they read files of this machine."""

from collections.abc import Mapping
from typing import Any

from tasklore.commands.operations.entries import operations_of
from tasklore.commands.operations.exchange import Exchange
from tasklore.commands.operations.run import VersionWatch
from tasklore.commands.operations.target import find_target
from tasklore.commands.operations.values import fill_request


def begin_exchange(noun: str, verb: str) -> Exchange:
    """Return an exchange with the API that serves the operation *verb* of *noun*.

    Raises:
        Unreachable: nothing says where that is.
        ConfigurationError: what says it is no address.
    """
    entry = next(one for one in operations_of(noun) if one["verb"] == verb)
    return Exchange(find_target(entry["mounted"]), entry, VersionWatch().hear)


def call_operation(noun: str, verb: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the view of the operation *verb* of *noun* with *values*, by the names of its fields.

    Raises:
        ApiRefused, Unreachable, TaskloreError: as `Exchange.ask`.
    """
    exchange = begin_exchange(noun, verb)
    request = fill_request(exchange.entry, values)
    view = exchange.read_view(exchange.ask(request))
    return dict(view) if isinstance(view, dict) else {}
