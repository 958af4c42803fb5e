"""What an analysis is worked on with: stores, the way to workers and back, a meter and a clock."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from memory.stories.analyses import AnalysisStore
from memory.stories.store import StoryStore
from runtime.metrics import Metrics
from supervisor.cancellation import Canceller
from supervisor.catalogue import Catalogue
from supervisor.dispatch import Dispatch
from supervisor.reports.reports import ReportDesk


@dataclass(frozen=True, slots=True)
class Parts:
    """What analyses are worked on with; `keep` is how many of a story are kept."""

    supervisor_id: str
    stories: StoryStore
    analyses: AnalysisStore
    dispatch: Dispatch
    reports: ReportDesk
    canceller: Canceller
    catalogue: Callable[[], Catalogue]
    meter: Metrics
    keep: int = 100
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def now_ms(self) -> int:
        """Return the time in ms since 1970."""
        return int(self.now().timestamp() * 1000)
