"""Operations asked by commands that are written by hand, since something beside them is local."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasklore.commands.operations.entries import operations_of
from tasklore.commands.operations.exchange import Exchange, join_lines
from tasklore.commands.operations.run import VersionWatch
from tasklore.commands.operations.target import Target, find_target
from tasklore.commands.operations.transport import Json
from tasklore.commands.operations.values import encode, fill_request
from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.manifest import OperationEntry


class LocalApi:
    """The operations of *noun* at *given*, an address as `--api` has it or a target; None is where others are found."""

    def __init__(self, noun: str, given: str | Target | None = None) -> None:
        self.noun = noun
        self._given = given
        self._versions = VersionWatch()

    def ask(self, verb: str, **values: Any) -> Json:
        """Return the view of an operation with the *values* by the names of its fields; None is not given.

        Raises:
            InvalidInput: a value cannot be sent.
            ApiRefused, Unreachable, TaskloreError: as `Exchange.ask`.
        """
        exchange = self.open(verb)
        request = fill_request(exchange.entry, values)
        return self._demand_object(exchange, exchange.read_view(exchange.ask(request)))

    def send_lines(
        self, verb: str, lines: Sequence[Mapping[str, Any]], **values: Any
    ) -> list[Json]:
        """Send *lines* in as many requests as they need, and return the view of each.

        Raises:
            InvalidInput: a value cannot be sent.
            ApiRefused, Unreachable, TaskloreError: as `Exchange.ask`.
        """
        exchange = self.open(verb)
        request = fill_request(exchange.entry, values)
        parts = join_lines(encode(line) + b"\n" for line in lines)
        return [
            self._demand_object(exchange, exchange.send_part(request, part))
            for part in parts
        ]

    def target(self, verb: str) -> Target:
        """Return where an operation is served.

        Raises:
            Unreachable, ConfigurationError: as `find_target`.
        """
        return self._find_target(self._find(verb))

    def _demand_object(self, exchange: Exchange, view: object) -> Json:
        if not isinstance(view, dict):
            raise TaskloreError(
                f"{exchange.target.url} answers with an invalid view of {self.noun}; "
                "upgrade it or this command"
            )
        return view

    def open(self, verb: str) -> Exchange:
        """Return an exchange with the API that serves the operation *verb*.

        Raises:
            Unreachable, ConfigurationError: as `find_target`.
        """
        entry = self._find(verb)
        return Exchange(self._find_target(entry), entry, self._versions.hear)

    def _find_target(self, entry: OperationEntry) -> Target:
        if isinstance(self._given, Target):
            return self._given
        return find_target(entry["mounted"], self._given)

    def _find(self, verb: str) -> OperationEntry:
        return next(one for one in operations_of(self.noun) if one["verb"] == verb)
