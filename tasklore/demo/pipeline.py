"""The last part of `tasklore demo`: a pipeline that fails at its fourth phase, and goes on from there."""

import shutil
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from contracts.messages import PipelineReply, PipelineRequest
from memory.projects.project import ProjectMemory
from memory.sessions.pipeline_records import PhaseState
from memory.sessions.pipeline_runs import PipelineRuns
from memory.sessions.session import SessionCache
from runtime.servers.valkey import Valkey
from tasklore.pipeline.client import ask
from tasklore.pipeline.run import new_session_id
from tasklore.pipeline.sources import read_source
from tasklore.pipeline.steps import reason_of
from tasklore.pipeline.stores import Look, Stores
from tasklore.pipeline.watch import Watch
from tasklore.places import current_supervisor
from tasklore.render.screen import print_paragraph, printable, styled
from tasklore.render.words import duration

AGENT = "examples.repository_health"

PIPELINE = "repository-health"
#: What the fourth phase asks for, and does not find at first.
STANDARD, TAG = "No module over 300 lines, and no import cycles.", "code"
#: Of our own source code, so much that looking at it takes some tenths of a second.
_ROOMS = ("contracts", "memory")
#: Seconds for one look at Valkey.
_DEADLINE_S = 5.0

_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "reused": ("=", "cyan"), "skipped": ("-", "dim")}


async def run_pipeline(client: Client, valkey: Valkey, folder: Path) -> bool:
    """Play the run, its failure and its resumption, and print them; return whether everything went as it should.

    *folder* is where copies may lie; whoever made it removes it.
    """
    code = _copied_code(folder / "tasklore")
    stage = _Stage(client, valkey)
    print_paragraph(
        "A pipeline looks at how healthy our own source code is, each phase an agent's task\n\n", style="bold"
    )
    _print_command(f"tasklore pipeline run {PIPELINE} --input folder={code}")
    failed = await stage.run({"folder": str(code)})
    phases = failed.record.phases if failed.record is not None else {}
    waiting = ", ".join(name for name, state in phases.items() if not state.is_over)
    print_paragraph(f"{waiting} wait for it\n\n", "    ", style="dim")
    _print_command(f'tasklore project standard "{STANDARD}" --project {PIPELINE} --tag {TAG}')
    record = await ProjectMemory(valkey, deadline_s=_DEADLINE_S).append(PIPELINE, "standard", STANDARD, tags=(TAG,))
    print(f"  {record.record_id} is in force\n")
    _print_command(f"tasklore pipeline resume {stage.session_id}")
    reused, completed = await stage.resume()
    saved_ms = sum(note.saved_ms for note in reused.reused)
    saved = f"{len(reused.reused)} phases were not computed again, which saved {saved_ms:,} ms\n\n"
    print_paragraph(saved, "  ", style="green")
    _print_head(completed)
    return failed.state == "failed" and completed.state == "completed" and len(reused.reused) == 3 and saved_ms > 0


class _Stage:
    """One session, and what is shown of it."""

    def __init__(self, client: Client, valkey: Valkey) -> None:
        self.session_id = new_session_id(PIPELINE)
        self._client = client
        runs, cache = PipelineRuns(valkey, deadline_s=_DEADLINE_S), SessionCache(valkey, deadline_s=_DEADLINE_S)
        self._stores = Stores(runs, cache, ProjectMemory(valkey, deadline_s=_DEADLINE_S))
        self._pipeline = read_source(PIPELINE).pipeline
        self._width = max(len(phase.name) for phase in self._pipeline.phases)

    async def run(self, inputs: Mapping[str, str]) -> Look:
        """Start it, and return it once it is over."""
        declared = self._pipeline.model_dump(mode="json", exclude_unset=True)
        wish = PipelineRequest(action="run", session_id=self.session_id, pipeline=declared, inputs=dict(inputs))
        _, look = await self._until_over(wish)
        return look

    async def resume(self) -> tuple[PipelineReply, Look]:
        """Go on with it, and return what is reused of it, and the run once it is over."""
        return await self._until_over(PipelineRequest(action="resume", session_id=self.session_id))

    async def _until_over(self, wish: PipelineRequest) -> tuple[PipelineReply, Look]:
        supervisor_id = current_supervisor()
        watch = Watch(self._client, self._stores, self.session_id, supervisor_id)
        await watch.open()
        reply = await ask(self._client, wish, supervisor_id)
        shown = {note.phase for note in reply.reused}
        for note in reply.reused:
            self._print_phase(note.phase, "reused", f"{duration(note.saved_ms)} saved")

        def show(look: Look, _told: Mapping[str, str]) -> None:
            for name, state in _ended(look).items():
                if name not in shown:
                    shown.add(name)
                    self._print_phase(name, state.status, duration(state.took_ms), reason_of(state))

        return reply, await watch.until_over(show)

    def _print_phase(self, name: str, status: str, took: str, said: str = "") -> None:
        mark, style = _MARKS.get(status, ("?", "yellow"))
        print(f"  {styled(mark, style)} {name.ljust(self._width)}  {styled(took.rjust(12), 'dim')}", flush=True)
        if said:
            print_paragraph(printable(said), "      ")


def _ended(look: Look) -> dict[str, PhaseState]:
    """Return the phases that are over, those that ended first at first."""
    phases = look.record.phases if look.record is not None else _told_phases(look.outcome or {})
    over = {name: state for name, state in phases.items() if state.is_over}
    return dict(sorted(over.items(), key=lambda item: item[1].ended_ms or 0))


def _told_phases(outcome: Mapping[str, Any]) -> dict[str, PhaseState]:
    """Return the phases of a run whose session is gone, as it left them."""
    return {
        phase["phase"]: PhaseState(phase["status"], took_ms=phase["took_ms"]) for phase in outcome.get("phases", ())
    }


def _copied_code(folder: Path) -> Path:
    """Copy some of our own packages into *folder*, and return it: the one who looks must not see it change."""
    for room in _ROOMS:
        with resources.as_file(resources.files(room)) as source:
            shutil.copytree(source, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def _print_command(text: str) -> None:
    print(f"{styled('>', 'cyan')} {styled(text, 'bold')}", flush=True)


def _print_head(look: Look) -> None:
    """Print the report as far as its standards; what follows are places to begin with."""
    report = str((look.outcome or {}).get("result") or "")
    head, _, _ = printable(report).partition("\n## ")
    for line in head.splitlines():
        if line.startswith("|"):
            # A table that is folded is none.
            print(f"  {line}")
            continue
        print_paragraph(line or "\n", "  " if line else "", style="bold" if line.startswith("#") else "")
    print()
