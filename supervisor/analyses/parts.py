"""What an analysis is worked on with: stores, the way to workers and back, a meter and a clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from contracts.analysis import AnalysisDocument
from contracts.messages import CompletionReport, TaskAssignment
from contracts.stories import StoryChange, StoryResponse, StorySettings
from memory.stories.view import StandingStory
from supervisor.cancellation import Cancelling
from supervisor.catalogue import Catalogue

if TYPE_CHECKING:
    from runtime.metrics import Metrics


class Stories(Protocol):
    """What is needed of `memory.stories.store.StoryStore`; raises UnknownStory and MemoryUnavailable."""

    async def settings(self, story_id: str) -> StorySettings:
        """Return how it is analysed."""

    async def base_digest(self, story_id: str) -> str:
        """Return the digest of where it begins."""

    async def response(self, story_id: str, number: int) -> StoryResponse | None:
        """Return one response, None when it is not there (any more)."""

    async def put_response(self, story_id: str, response: StoryResponse, *, keep: int, hold_ms: int = 0) -> bool:
        """Store a response, which stays for *hold_ms*; return whether it is another text than before."""

    async def standing(self, story_id: str, number: int) -> StandingStory:
        """Return the story as it stood before a response."""


class Analyses(Protocol):
    """What is needed of `memory.analysis.AnalysisStore`; raises UnknownStory and MemoryUnavailable."""

    async def read(self, story_id: str, number: int) -> AnalysisDocument | None:
        """Return the document, `stale` when the story went on since."""

    async def record(self, story_id: str, number: int) -> tuple[int, bytes | None, bytes | None]:
        """Return the story's revision, and document and record of a response."""

    async def fold(
        self,
        story_id: str,
        number: int,
        revision: int,
        document: bytes,
        record: bytes,
        changes: Mapping[str, StoryChange | None],
        keep: int,
        *,
        of: StoryResponse | None = None,
        is_under_way: bool = False,
        rests_on: int | None = None,
    ) -> bool:
        """Write all of it; False when the story has another revision, or the response is not the one *of* it."""

    async def begin(self, supervisor_id: str, story_id: str, number: int, lease_ms: int = 0) -> None:
        """Note that it is under way, and looked after for *lease_ms*."""

    async def due(self, supervisor_id: str, lease_ms: int, limit: int = 100) -> Sequence[tuple[str, int]]:
        """Return what nobody looks after, and lease it."""

    async def renew(self, supervisor_id: str, story_id: str, number: int, lease_ms: int) -> bool:
        """Lease it anew."""

    async def rest(self, supervisor_id: str, story_id: str, number: int, for_ms: int) -> None:
        """Let it be due in *for_ms*."""

    async def end(self, supervisor_id: str, story_id: str, number: int) -> None:
        """Note that it is not under way any more."""


class Dispatching(Protocol):
    """What is needed of `supervisor.dispatch.Dispatch`."""

    async def assign(self, assignment: TaskAssignment, *, patience_s: float = 10.0) -> None:
        """Send *assignment*; raises NotAccepted."""


class Reporting(Protocol):
    """What is needed of `supervisor.reports.ReportDesk`."""

    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        """Return the report of *assignment*, None when there is none in time."""


class Revoking(Protocol):
    """What is needed of `supervisor.cancellation.Canceller`."""

    async def cancel(self, task_id: str, reason: str, *, grace_s: float = 2.0) -> Cancelling:
        """Cancel a task for good; raises NotAccepted and MemoryUnavailable."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What analyses are worked on with; `keep` is how many of a story are kept."""

    supervisor_id: str
    stories: Stories
    analyses: Analyses
    dispatch: Dispatching
    reports: Reporting
    canceller: Revoking
    catalogue: Callable[[], Catalogue]
    meter: "Metrics"
    keep: int = 100
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def now_ms(self) -> int:
        """Return the time in ms since 1970."""
        return int(self.now().timestamp() * 1000)
