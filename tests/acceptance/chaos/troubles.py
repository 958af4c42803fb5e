"""What befell the workers and servers of a storm, as spans of time in which a run could be disturbed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.acceptance.chaos.history import Event

#: Seconds after a server or a wire is back in which a worker may still do without it: it leaves a ledger that failed
#: alone for 1 s and then waits for it for 1 s, and looks for NATS every quarter of a second.
RECOVERY_S = 3.0

#: Seconds from the moment at which a worker may run a task to the first line of the run, on a busy machine.
BEGINNING_S = 1.0

#: What begins a trouble, what ends it, and the seconds that it is felt afterwards.
_SPANS = {
    "kill": ("died", 0.0),
    "stop": ("continue", 0.0),
    "cut": ("healed", RECOVERY_S),
    "outage": ("restored", RECOVERY_S),
}

#: When a worker has to do without the ledger.
LEDGER_AWAY = ("cut valkey", "outage valkey")
#: What explains a run that is done again, the surest cause first. NATS away does not: a run keeps its lease in the
#: ledger, and its report waits.
RUN_AGAIN = ("kill", "stop", *LEDGER_AWAY)
#: When a worker that starts may find no server.
NO_SERVER = ("outage nats", "cut nats", *LEDGER_AWAY)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something done to process *pid*, or to a server when it is None, from *begin* to *end* in seconds since 1970."""

    cause: str
    begin: float
    end: float
    pid: int | None


class Troubles:
    """Every trouble of a history, by its beginning."""

    def __init__(self, events: Sequence[Event]) -> None:
        telling = [
            event for event in events if event.kind in _SPANS or event.kind in _ENDINGS
        ]
        self.all = tuple(
            _trouble(event, telling[index:])
            for index, event in enumerate(telling)
            if event.kind in _SPANS
        )

    def during(
        self,
        begin: float,
        end: float,
        pid: int | None,
        causes: Sequence[str] = RUN_AGAIN,
    ) -> str | None:
        """Return the first of *causes* that touched *pid* (None: anybody) between *begin* and *end*, or None."""
        touching = {
            trouble.cause
            for trouble in self.all
            if (pid is None or trouble.pid in (None, pid))
            and trouble.begin <= end
            and trouble.end >= begin
        }
        return next((cause for cause in causes if cause in touching), None)


_ENDINGS = {ending for ending, _ in _SPANS.values()}


def _trouble(begun: Event, later: Sequence[Event]) -> Trouble:
    ending, felt_s = _SPANS[begun.kind]
    pid = None if begun.kind == "outage" else begun.pid

    def ends(event: Event) -> bool:
        if pid is None:
            return event.kind == ending and event.about == begun.about
        return event.pid == pid and (
            event.kind == "died"
            or (event.kind == ending and event.about == begun.about)
        )

    ended_at = next((event.at for event in later if ends(event)), math.inf)
    return Trouble(
        f"{begun.kind} {begun.about}".rstrip(), begun.at, ended_at + felt_s, pid
    )
