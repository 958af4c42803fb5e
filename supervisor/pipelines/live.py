"""A run in hand: the knowledge of its driver between two looks at the store, and the parts of a driver."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import JsonValue

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import PipelineEvent, PipelineEventKind
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory.masker import Masker
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.claim_loop import LeaseLost
from tasklore.runtime.messaging.link import Link
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.pipelines.declaration.fingerprints import Fingerprints
from tasklore.supervisor.pipelines.declaration.graph import Graph
from tasklore.supervisor.pipelines.declaration.references import Reference, resolve
from tasklore.supervisor.pipelines.phase_task import PhaseTaskDependencies

#: The role of those whose pipelines run.
RUN_ROLE: Final = "ask"
#: Characters of an event's text: an error may quote what it was given.
_MOST_TEXT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverDependencies(PhaseTaskDependencies):
    """The parts of a driver; `tell` publishes an event and never fails.

    `makers` says whether the keys are there that runs were made with.
    """

    runs: PipelineRuns
    cache: SessionCache
    projects: ProjectMemory
    tell: Callable[[PipelineEvent], None]
    evidence_dir: Path
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    makers: Makers = field(default_factory=Makers)
    #: Deletes dead letters of agents, of tasks with these ids, since then.
    drop_letters: (
        Callable[[Collection[str], Collection[str], datetime], Awaitable[int]] | None
    ) = None


class InnerRunDriver(Protocol):
    """The driver of this process, as far as the runs of phases that are pipelines are concerned."""

    async def drive_inner(self, session_id: str) -> None:
        """Drive the run of *session_id*, or wait a while where it is driven elsewhere."""

    def cancel(self, session_id: str, reason: str) -> bool:
        """Cancel the run of *session_id*; False when it is not driven here."""


def _refuse(work: Coroutine[Any, Any, None]) -> object:
    work.close()
    raise RuntimeError("this run is only looked at here, and not driven")


@dataclass(slots=True, kw_only=True)
class LiveRun:
    """A run under the lease *fence*; `phases` and `corrected` change as the driver goes on.

    An error may quote the parameters of a phase: `masker` takes secrets out before it is stored or published.
    """

    record: RunRecord
    fence: int
    graph: Graph
    phases: dict[str, PhaseState]
    corrected: dict[str, str]
    by_name: Mapping[str, Phase]
    masker: Masker
    #: How far the clock here is ahead of the store's, which says when a phase began.
    ahead: timedelta = timedelta(0)
    #: When each phase that runs was begun or taken over here, and those that are late.
    began: dict[str, datetime] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    #: Does something beside the phases, before the run ends; its failure is that of driving.
    meanwhile: Callable[[Coroutine[Any, Any, None]], object] = _refuse
    #: Drives the runs of phases that are pipelines.
    driver: InnerRunDriver | None = None
    #: Held by the one phase whose files are looked at; why files of the run are looked at no more, "" while they are.
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    blind: str = ""
    #: Marks of files by name, as last seen for any phase: phases that watch the same files read them once.
    marks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, record: RunRecord, fence: int) -> "LiveRun":
        """Return *record* in hand."""
        by_name = {phase.name: phase for phase in record.pipeline.phases}
        secret = frozenset(
            name for name, one in record.pipeline.inputs.items() if one.secret
        )
        masker = Masker.of(record.inputs, secret)
        graph = Graph.of(record.pipeline)
        return cls(
            record=record,
            fence=fence,
            graph=graph,
            phases=dict(record.phases),
            corrected=dict(record.corrected),
            by_name=by_name,
            masker=masker,
        )

    @property
    def session_id(self) -> str:
        """The session of the run."""
        return self.record.session_id

    @property
    def statuses(self) -> dict[str, str]:
        """How far each phase is, as planning reads it."""
        return {
            name: self._standing(name, state.status)
            for name, state in self.phases.items()
        }

    def is_absent(self, phase: str) -> bool:
        """Return whether the phases after *phase* go on without its entries: left out, failed or late."""
        return self._standing(phase, self.phases[phase].status) in (
            "skipped",
            "excused",
            "late",
        )

    def _standing(self, phase: str, status: str) -> str:
        if status == "failed" and self.by_name[phase].optional:
            return "excused"
        return "late" if status == "running" and phase in self.late else status

    def lost(self) -> LeaseLost:
        """Return the error that says that nothing of this driver is accepted any more."""
        return LeaseLost(
            f"run {self.session_id!r} is gone, or driven by another process"
        )

    def owner(self, phase: str) -> str:
        """Return the phase whose entries stand for those of *phase*: itself, or the last that corrected it."""
        seen = {phase}
        while (
            replaced_by := self.corrected.get(phase)
        ) is not None and replaced_by not in seen:
            seen.add(phase := replaced_by)
        return phase

    def task_id(self, phase: str, run: int) -> str:
        """Return the id of the task that is run number *run* of *phase*: the same for every driver."""
        # A session id may be used again, once its session is gone.
        words = [self.session_id, self.record.created_ms, phase, run]
        return f"p-{hashlib.blake2b(json.dumps(words).encode(), digest_size=16).hexdigest()}"

    def event(
        self,
        kind: PipelineEventKind,
        at: datetime,
        phase: str | None = None,
        *,
        text: str = "",
        task_id: str | None = None,
        run_ms: int | None = None,
    ) -> PipelineEvent:
        """Return an event of this *kind*, of *phase* when given; a long *text* is cut."""
        agent = self.by_name[phase].agent if phase is not None else None
        through = sum(
            1 for state in self.phases.values() if state.status in ("done", "skipped")
        )
        return PipelineEvent(
            session_id=self.session_id,
            pipeline=self.record.pipeline.name,
            kind=kind,
            phase=phase,
            agent_id=agent,
            task_id=task_id,
            text=text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}...",
            run_ms=run_ms,
            through=through,
            total=len(self.phases),
            at=at,
        )


def event_publisher(link: Link) -> Callable[[PipelineEvent], None]:
    """Return a function that publishes events on *link*; while it is not connected they are lost."""

    def tell(event: PipelineEvent) -> None:
        if link.is_connected:
            link.send(
                subjects.run_events(event.session_id),
                event.model_dump_json(exclude_none=True).encode(),
            )

    return tell


def root_of(pipeline: Pipeline, inputs: Mapping[str, JsonValue]) -> str:
    """Return the folder below which the files of *pipeline* are looked for, in a run with these *inputs*.

    Raises:
        InvalidInput: there is none, or the reference in it leads to no text.
    """

    def lookup(reference: Reference) -> object:
        if reference.kind != "input":
            raise InvalidInput(
                f"the root of a pipeline can refer to inputs only, not to {reference.text!r}"
            )
        return inputs.get(reference.name)

    if pipeline.root is None:
        raise InvalidInput(
            "the pipeline has no `root` below which its files could be; declare one"
        )
    found = resolve(pipeline.root, lookup)  # type: ignore[arg-type] # inputs are JSON
    if not isinstance(found, str) or not found:
        raise InvalidInput(
            f"the root {pipeline.root!r} of the pipeline is not a folder: it became "
            f"{found!r}"
        )
    return found


async def demand_root(
    parts: DriverDependencies,
    pipeline: Pipeline,
    inputs: Mapping[str, JsonValue],
    user_id: str | None,
) -> None:
    """Check that the files of *pipeline* may be looked at, if it reads any.

    Raises:
        InvalidInput: they may not; the message names field and cure.
    """
    if any(phase.reads_files for phase in pipeline.phases):
        await parts.fingerprints.take(root_of(pipeline, inputs), user_id=user_id)
