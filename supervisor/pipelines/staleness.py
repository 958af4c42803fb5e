"""Which phases of a run that rests no longer hold: what was named, and what changed since each of them looked."""

import asyncio
from pathlib import Path

from contracts.messages import PipelineRequest
from contracts.pipelines import Phase
from memory.pipeline_records import RunRecord
from supervisor.pipelines.graph import Graph
from supervisor.pipelines.live import Parts, root_of
from supervisor.pipelines.planning import Changes, stale_phases
from supervisor.pipelines.watching import DESIGN, STANDARD, changes, file_marks, tag_marks, told


class Staleness:
    """Compares what phases noted of files, standards and design with what there is now."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def of(self, record: RunRecord, request: PipelineRequest) -> dict[str, str]:
        """Return each stale phase with the reason: those *request* names, those whose sources changed, and dependents.

        Raises:
            InvalidInput: it names a phase that is not there, or files lead out of the root.
            MemoryUnavailable: the store did not answer.
        """
        graph = Graph.of(record.pipeline)
        statuses = {name: state.status for name, state in record.phases.items()}
        seen = await self._changed(record)
        named = Changes(
            # Without a root no phase reads files.
            files=_below(root_of(record), request.changed) if record.pipeline.root is not None else request.changed,
            standards=request.standards,
            design=request.design,
            phases=(request.phase,) if request.phase is not None else (),
            keys=request.keys,
        )
        stale = stale_phases(record.pipeline, graph, named, statuses)
        everything = Changes(named.files, named.standards, named.design, (*named.phases, *seen), named.keys)
        # What was seen to change comes in its own words; what depends on it, in those of the graph.
        return {**stale_phases(record.pipeline, graph, everything, statuses), **stale, **seen}

    async def _changed(self, record: RunRecord) -> dict[str, str]:
        """Return the phases whose files, standards or design are other than when they looked, and what is."""
        noted = await self._parts.runs.seen(record.session_id)
        found = {}
        for phase in record.pipeline.phases:
            if phase.name not in noted or record.phases[phase.name].status not in ("done", "failed"):
                continue
            differing = changes(noted[phase.name], await self._look(record, phase, noted[phase.name]))
            if differing:
                found[phase.name] = told(differing)
        return found

    async def _look(self, record: RunRecord, phase: Phase, noted: dict[str, str]) -> dict[str, str]:
        marks: dict[str, str] = {}
        if phase.reads_files:
            async with self._parts.looking:
                marks = await asyncio.to_thread(file_marks, root_of(record), phase.reads_files, noted)
        projects, project = self._parts.projects, record.project
        if phase.standards:
            marks |= tag_marks(STANDARD, await projects.marks(project, "standard", phase.standards))
        if phase.design:
            marks |= tag_marks(DESIGN, await projects.marks(project, "decision", phase.design))
        return marks


def _below(root: Path, files: tuple[str, ...]) -> tuple[str, ...]:
    """Return *files* relative to *root*, as far as they lie below it; relative ones are taken as they are."""
    home = root.resolve()
    found = []
    for file in files:
        path = Path(file)
        if path.is_absolute() and path.is_relative_to(home):
            path = path.relative_to(home)
        found.append(path.as_posix())
    return tuple(found)
