"""The audit: one line for whatever is done for a caller, or refused to them, and never a value.

A value is the words of people, or names them.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from tasklore.contracts.callers import Caller, Role
from tasklore.contracts.errors import NotPermitted
from tasklore.supervisor.operations.refusals import refusal_of

log = structlog.get_logger(__name__)

#: The status of what its client left before it was done, as HTTP counts it.
GONE = 499


@dataclass
class Ending:
    """How something ends: with *status*, unless it raises; what *goes_on* is noted where it ends."""

    status: int
    goes_on: bool = False


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One kind of thing that is done for callers: an operation, or what a door does by hand.

    Args:
        id: Its name, such as `schedules_add`.
        roles: The roles of which its caller needs one; `admin` holds every other.
        is_look: Whether it changes nothing.
        status: The HTTP status when it is done.
    """

    id: str
    roles: tuple[Role, ...]
    is_look: bool
    status: int = 200

    def demand_role(self, caller: Caller) -> None:
        """Return when *caller* may have it done; a refusal is noted as its end is.

        Raises:
            NotPermitted: the caller has none of its roles.
        """
        try:
            caller.demand_role(*self.roles)
        except NotPermitted as error:
            self._note(caller, refusal_of(error).problem.status, 0.0)
            raise

    @contextmanager
    def noting(self, caller: Caller, began: float | None = None) -> Iterator[Ending]:
        """Note how the block ends, with the time from *began* on, of the monotonic clock: now, when it is None."""
        since = time.monotonic() if began is None else began
        ending = Ending(self.status)
        try:
            yield ending
        except (asyncio.CancelledError, GeneratorExit):
            ending = Ending(GONE)
            raise
        except Exception as error:
            ending = Ending(refusal_of(error).problem.status)
            raise
        finally:
            if not ending.goes_on:
                self._note(caller, ending.status, time.monotonic() - since)

    def _note(self, caller: Caller, status: int, duration_s: float) -> None:
        note = log.debug if self._is_own_look(caller) else log.info
        note(
            "operation",
            operation=self.id,
            caller=caller.name,
            status=status,
            ms=round(duration_s * 1000),
        )

    def _is_own_look(self, caller: Caller) -> bool:
        """Return whether *caller* only looks at work of their own: such looks are many, and the audit needs none."""
        return self.is_look and "ask" in self.roles and "admin" not in caller.roles
