"""Calls of the operations of memories with files that are read here."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tasklore.commands.operations.exchange import Exchange
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.transport import Request
from tasklore.commands.operations.values import make_request
from tasklore.contracts.manifest import LINES


def pour_lines(
    verb: str, given: Mapping[str, Any], sink: Callable[[bytes], object]
) -> None:
    """Call the operation *verb* with the values *given* by name; *sink* gets pieces of the lines of its answer.

    Raises:
        ApiRefused, Unreachable, TaskloreError: as `Exchange.ask`.
    """
    exchange, request = _begin(verb, given)
    exchange.pour(request, sink)


def send_line(
    verb: str, given: Mapping[str, Any], line: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the view of the operation *verb* with one *line* as its body.

    Raises:
        ApiRefused, Unreachable, TaskloreError: as `Exchange.ask`.
    """
    exchange, request = _begin(verb, given)
    body = json.dumps(line, ensure_ascii=False).encode() + b"\n"
    sent = replace(request, body=body, media_type=LINES)
    view = exchange.read_view(exchange.ask(sent))
    return dict(view) if isinstance(view, dict) else {}


def _begin(verb: str, given: Mapping[str, Any]) -> tuple[Exchange, Request]:
    exchange = LocalApi("memory").open(verb)
    return exchange, make_request(exchange.entry, given)
