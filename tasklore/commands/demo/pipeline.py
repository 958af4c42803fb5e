"""The third part of `tasklore demo`: a pipeline that fails at its fourth phase, and is resumed."""

import shutil
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from nats.aio.client import Client

from tasklore.commands.pipeline.client import ask
from tasklore.commands.pipeline.run import new_session_id
from tasklore.commands.pipeline.sources import read_source
from tasklore.commands.pipeline.steps import phases_of, reason_of
from tasklore.commands.pipeline.stores import Look, stores_on
from tasklore.commands.pipeline.watch import Watch
from tasklore.commands.places import current_supervisor
from tasklore.commands.render.screen import print_paragraph, printable, styled
from tasklore.commands.render.words import duration
from tasklore.contracts.messages import PipelineReply, PipelineRequest
from tasklore.memory.projects.project import ProjectMemory
from tasklore.runtime.servers.valkey import Valkey

AGENT = "tasklore.commands.demo.repository_health"

PIPELINE = "repository-health"
#: The standard that the fourth phase demands, and does not find at first.
STANDARD = "No module over 300 lines, and no import cycles."
TAG = "code"
#: Rooms of our own source code, so much that reading them takes some tenths of a second.
_ROOMS = ("contracts", "memory")
_MARKS = {
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "reused": ("=", "cyan"),
    "skipped": ("-", "dim"),
}


async def run_pipeline(client: Client, valkey: Valkey, folder: Path) -> bool:
    """Play the run, its failure and its resumption on a copy in *folder*; return whether all went well."""
    code = folder / "tasklore"
    for room in _ROOMS:
        # A copy: the code must not change while it is read.
        with resources.as_file(resources.files(f"tasklore.{room}")) as source:
            shutil.copytree(
                source, code / room, ignore=shutil.ignore_patterns("__pycache__")
            )
    session_id = new_session_id(PIPELINE)
    pipeline = read_source(PIPELINE).pipeline
    print_paragraph(
        "A pipeline looks at how healthy our own source code is, each phase an agent's task\n\n",
        style="bold",
    )
    _print_command(f"tasklore pipeline run {PIPELINE} --input folder={code}")
    declared = pipeline.model_dump(mode="json", exclude_unset=True)
    request = PipelineRequest(
        action="run",
        session_id=session_id,
        pipeline=declared,
        inputs={"folder": str(code)},
    )
    _, failed = await _play(client, valkey, request)
    waiting = ", ".join(
        name for name, state in phases_of(failed).items() if not state.is_over
    )
    print_paragraph(f"{waiting} wait for it\n\n", "    ", style="dim")
    _print_command(f'tasklore projects standard {PIPELINE} "{STANDARD}" --tag {TAG}')
    record = await ProjectMemory(valkey, deadline_s=5.0).append(
        PIPELINE, "standard", STANDARD, tags=(TAG,)
    )
    print(f"  {record.record_id} is in force\n")
    _print_command(f"tasklore pipeline resume {session_id}")
    resumed, completed = await _play(
        client, valkey, PipelineRequest(action="resume", session_id=session_id)
    )
    saved_ms = sum(note.saved_ms for note in resumed.reused)
    saved = f"{len(resumed.reused)} phases were not computed again, which saved {saved_ms:,} ms\n\n"
    print_paragraph(saved, "  ", style="green")
    _print_report(str((completed.outcome or {}).get("result") or ""))
    return (
        failed.state == "failed"
        and completed.state == "completed"
        and len(resumed.reused) == 3
        and saved_ms > 0
    )


async def _play(
    client: Client, valkey: Valkey, request: PipelineRequest
) -> tuple[PipelineReply, Look]:
    """Ask for *request*, print each phase as it ends, and return the reply and the run once it is over."""
    supervisor_id = current_supervisor()
    watch = Watch(client, stores_on(valkey), request.session_id or "", supervisor_id)
    await watch.open()
    reply = await ask(client, request, supervisor_id)
    printed = {note.phase for note in reply.reused}
    for note in reply.reused:
        _print_phase(note.phase, "reused", f"{duration(note.saved_ms)} saved")

    def print_ended(look: Look, _progress: Mapping[str, str]) -> None:
        ended = [
            (name, state)
            for name, state in phases_of(look).items()
            if state.is_over and name not in printed
        ]
        for name, state in sorted(ended, key=lambda item: item[1].ended_ms or 0):
            printed.add(name)
            _print_phase(name, state.status, duration(state.took_ms), reason_of(state))

    return reply, await watch.until_over(print_ended)


def _print_phase(name: str, status: str, took: str, note: str = "") -> None:
    mark, style = _MARKS.get(status, ("?", "yellow"))
    print(
        f"  {styled(mark, style)} {name.ljust(16)}  {styled(took.rjust(12), 'dim')}",
        flush=True,
    )
    if note:
        print_paragraph(printable(note), "      ")


def _print_command(text: str) -> None:
    print(f"{styled('>', 'cyan')} {styled(text, 'bold')}", flush=True)


def _print_report(report: str) -> None:
    """Print the report as far as its standards; places to begin with follow."""
    for line in printable(report).partition("\n## ")[0].splitlines():
        if line.startswith("|"):
            # A folded table cannot be read.
            print(f"  {line}")
            continue
        print_paragraph(
            line or "\n",
            "  " if line else "",
            style="bold" if line.startswith("#") else "",
        )
    print()
