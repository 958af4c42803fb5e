"""What a process counts, in a registry of its own: one asyncio process a pod, no multiprocess mode, no global registry.

Labels are agents, tasks, outcomes, reasons and models; never an id, a user or a text. Everything that counts a loss
stands at 0 from the start, so that the first loss is a rise and not a new series.
"""

from importlib import metadata

from prometheus_client import CollectorRegistry, Info, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

from tasklore.runtime.counting.exposition import exposition
from tasklore.runtime.counting.listening import ListeningCounts
from tasklore.runtime.counting.models import ModelCounts
from tasklore.runtime.counting.plans import PlanCounts
from tasklore.runtime.counting.series import Declared, Series
from tasklore.runtime.counting.system import SystemGauges
from tasklore.runtime.counting.tasks import TaskCounters
from tasklore.runtime.counting.transport import HttpCounts, TransportCounts
from tasklore.runtime.counting.words import MAX_TASKS

__all__ = ["CONTENT_TYPE", "MAX_TASKS", "Metrics"]


class Metrics(
    TaskCounters,
    TransportCounts,
    ListeningCounts,
    PlanCounts,
    ModelCounts,
    HttpCounts,
    SystemGauges,
):
    """Everything this process counts; it is the meter that the engines, the outbox, the leases and the LLM ask for.

    Counting is for any thread. *version* None is that of the installed distribution.
    """

    def __init__(self, version: str | None = None) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        Info("tasklore_build", "The running version.", registry=self.registry).info(
            {"version": version or _installed_version()}
        )
        self._families = Series(self.registry)
        TaskCounters.__init__(self, self._families)
        TransportCounts.__init__(self, self._families)
        ListeningCounts.__init__(self, self._families)
        PlanCounts.__init__(self, self._families)
        ModelCounts.__init__(self, self._families)
        HttpCounts.__init__(self, self._families)
        SystemGauges.__init__(self, self._families)

    @property
    def declared(self) -> tuple[Declared, ...]:
        """Every family of ours that this process exports by now, `tasklore_build_info` apart."""
        return tuple(self._families.declared)

    def render(self) -> bytes:
        """Return everything in Prometheus' text format, of the type `CONTENT_TYPE`."""
        return exposition(self.registry)


def _installed_version() -> str:
    try:
        return metadata.version("tasklore")
    except metadata.PackageNotFoundError:
        return "unknown"
