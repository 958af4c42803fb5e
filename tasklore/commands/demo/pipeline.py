"""The third part of `tasklore demo`: a pipeline that fails at its fourth phase, and is resumed."""

import asyncio
import shutil
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.target import Target
from tasklore.commands.pictures.run import phases_of, reason_of
from tasklore.commands.pipelines.follow import Run, RunFollower
from tasklore.commands.pipelines.run import new_session_id
from tasklore.commands.pipelines.sources import declare, read_source
from tasklore.commands.render.screen import print_paragraph, printable, styled
from tasklore.commands.render.words import duration
from tasklore.memory.projects.project import ProjectMemory
from tasklore.runtime.servers.valkey import Valkey

AGENT = "tasklore.commands.demo.code_report"

PIPELINE = "code-report"
#: The standard that the fourth phase demands, and does not find at first.
STANDARD = "No module over 300 lines."
TAG = "code"
#: Rooms of our own source code, so much that reading them takes some tenths of a second.
_ROOMS = ("contracts", "memory")
_ENDED = ("done", "failed", "skipped")
_MARKS = {
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "reused": ("=", "cyan"),
    "skipped": ("-", "dim"),
}


async def run_pipeline(target: Target, valkey: Valkey, folder: Path) -> bool:
    """Play the run, its failure and its resumption on a copy in *folder*; return whether all went well."""
    code = folder / "tasklore"
    for room in _ROOMS:
        # A copy: the code must not change while it is read.
        with resources.as_file(resources.files(f"tasklore.{room}")) as source:
            shutil.copytree(
                source, code / room, ignore=shutil.ignore_patterns("__pycache__")
            )
    api = LocalApi("pipelines", target)
    session_id = new_session_id(PIPELINE)
    print_paragraph(
        "A pipeline measures our own source code, each phase an agent's task\n\n",
        style="bold",
    )
    _print_command(f"tasklore pipelines run {PIPELINE} --input folder={code}")
    body = {
        "pipeline": declare(read_source(PIPELINE)),
        "inputs": {"folder": str(code)},
        "session_id": session_id,
    }
    taken = await asyncio.to_thread(api.ask, "run", **body)
    failed = await asyncio.to_thread(_play, api, session_id, taken)
    waiting = ", ".join(
        one["phase"] for one in phases_of(failed) if one["status"] not in _ENDED
    )
    print_paragraph(f"{waiting} wait for it\n\n", "    ", style="dim")
    _print_command(f'tasklore projects standard {PIPELINE} "{STANDARD}" --tag {TAG}')
    record = await ProjectMemory(valkey, deadline_s=5.0).append(
        PIPELINE, "standard", STANDARD, tags=(TAG,)
    )
    print(f"  {record.record_id} is in force\n")
    _print_command(f"tasklore pipelines resume {session_id}")
    resumed = await asyncio.to_thread(api.ask, "resume", session_id=session_id)
    completed = await asyncio.to_thread(_play, api, session_id, resumed)
    saved_ms = sum(note["saved_ms"] for note in resumed["reused"])
    saved = f"{len(resumed['reused'])} phases were not computed again, which saved {saved_ms:,} ms\n\n"
    print_paragraph(saved, "  ", style="green")
    _print_report(str((completed["outcome"] or {}).get("result") or ""))
    return (
        failed["state"] == "failed"
        and completed["state"] == "completed"
        and len(resumed["reused"]) == 3
        and saved_ms > 0
    )


def _play(api: LocalApi, session_id: str, taken: dict[str, Any]) -> Run:
    """Print each phase of a run that was *taken* up as it ends, and return the run once it is over."""
    printed = {note["phase"] for note in taken["reused"]}
    for note in taken["reused"]:
        _print_phase(note["phase"], "reused", f"{duration(note['saved_ms'])} saved")

    def print_ended(run: Run, _progress: Mapping[str, str]) -> None:
        for one in phases_of(run):
            if one["status"] in _ENDED and one["phase"] not in printed:
                printed.add(one["phase"])
                took = duration(int(one["took_ms"]))
                _print_phase(one["phase"], one["status"], took, reason_of(one))

    return RunFollower(api, session_id).until_over(print_ended)


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
