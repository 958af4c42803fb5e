"""The stale phases of a run that rests: those a request names, and those whose sources changed."""

from collections.abc import Sequence
from dataclasses import replace

from contracts.messages import PipelineRequest
from memory.sessions.pipeline_records import RunRecord
from supervisor.pipelines.declaration.fingerprints import Fingerprint
from supervisor.pipelines.declaration.graph import Graph
from supervisor.pipelines.declaration.marks import DESIGN, STANDARD, changes, summarise, tag_marks
from supervisor.pipelines.live import Parts, root_of
from supervisor.pipelines.planning import Changes, stale_phases


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
        seen, fitting = await self._find_changes(record, request.changed)
        named = Changes(
            files=tuple(dict.fromkeys(fitting.values())),
            standards=request.standards,
            design=request.design,
            phases=(request.phase,) if request.phase is not None else (),
            keys=request.keys,
            fits=lambda glob, path: fitting.get(glob) == path,
        )
        stale = stale_phases(record.pipeline, graph, named, statuses)
        everything = replace(named, phases=(*named.phases, *seen))
        # What was seen to change comes in its own words; what depends on it, in those of the graph.
        return {**stale_phases(record.pipeline, graph, everything, statuses), **stale, **seen}

    async def _find_changes(self, record: RunRecord, files: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the phases whose sources differ from their marks, each with the difference.

        Also return the globs that fit one of *files*, each with the first that it fits.
        """
        noted = await self._parts.runs.seen(record.session_id)
        begun = [
            phase
            for phase in record.pipeline.phases
            if phase.name in noted and record.phases[phase.name].status in ("done", "failed")
        ]
        readers = [phase for phase in begun if phase.reads_files]
        fingerprint, globs = Fingerprint(), [glob for phase in record.pipeline.phases for glob in phase.reads_files]
        if readers or (files and globs):
            looks = [(phase.reads_files, noted[phase.name]) for phase in readers]
            fingerprint = await self._parts.fingerprints.take(
                root_of(record.pipeline, record.inputs),
                looks,
                user_id=record.user_id,
                changed=files,
                globs=list(dict.fromkeys(globs)),
            )
        projects = self._parts.projects
        marks = {phase.name: found for phase, found in zip(readers, fingerprint.marks, strict=True)}
        found = {}
        for phase in begun:
            now = marks.get(phase.name, {})
            if phase.standards:
                now |= tag_marks(STANDARD, await projects.marks(record.project, "standard", phase.standards))
            if phase.design:
                now |= tag_marks(DESIGN, await projects.marks(record.project, "decision", phase.design))
            if differing := changes(noted[phase.name], now):
                found[phase.name] = summarise(differing)
        return found, fingerprint.changed
