"""Run the benchmarks: `python -m benchmarks [--short] [--only raw,ours] [--no-peers] [--write]`."""

import argparse
import os
import platform
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from rich.console import Console

from benchmarks import (
    admission_rows,
    analysis_rows,
    budget_rows,
    child_rows,
    console_rows,
    decision_rows,
    document_rows,
    episode_rows,
    front_door,
    http_rows,
    idle_rows,
    listening_rows,
    listing_rows,
    memory_rows,
    message_rows,
    nats_rows,
    output_rows,
    pause_rows,
    peer_rows,
    pipeline_rows,
    project_rows,
    prompt_rows,
    scrape_rows,
    session_rows,
    words_rows,
    world_rows,
)
from benchmarks.producer import Producer
from benchmarks.profiles import FULL, SHORT, Profile
from benchmarks.table import Row, markdown, ratio, show
from tasklore.runtime.servers.embedded import EmbeddedServers

RESULTS = Path(__file__).with_name("results.md")


def calibrate_ms() -> float:
    """Return the best of ten timings of a fixed sum in pure Python, in milliseconds: how fast this machine is now."""
    times = []
    for _ in range(10):
        started = time.perf_counter()
        sum(range(1_000_000))
        times.append((time.perf_counter() - started) * 1000)
    return min(times)


def describe_run(profile: Profile, load_before: float, calibration_ms: float) -> str:
    """Return the line below the table: machine, versions, and what makes this run comparable with another."""
    name = (
        "short profile: a quick look, no evidence"
        if profile is SHORT
        else "full profile"
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {name}; {os.cpu_count()} cores shared by servers, "
        f"producer and worker, load {load_before:.1f} at the start; Python {platform.python_version()}; "
        f"sum(range(10**6)) took {calibration_ms:.1f} ms. "
        "Absolute figures belong to this machine and hour; compare ratios."
    )


#: Families that need nothing but the servers, in the order of the table: what the log says, and what measures them.
SIMPLE: dict[
    str, tuple[str, Callable[[EmbeddedServers, Profile], Awaitable[list[Row]]]]
] = {
    "recall": (
        "recall and raw GET",
        lambda on, profile: memory_rows.measure(on.redis_url, profile),
    ),
    "command": (
        "the command",
        lambda on, profile: front_door.measure(on.nats_url, on.redis_url, profile),
    ),
    "documents": (
        "documents",
        lambda on, profile: document_rows.measure(on.redis_url, profile),
    ),
    "episodes": (
        "what was said word for word",
        lambda on, profile: episode_rows.measure(on.redis_url, profile),
    ),
    "listening": (
        "turns published, facts worked on",
        lambda on, profile: listening_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "words": (
        "words into parameters",
        lambda _on, profile: words_rows.measure(profile),
    ),
    "prompts": ("prompts", lambda _on, profile: prompt_rows.measure(profile)),
    "sessions": (
        "sessions",
        lambda on, profile: session_rows.measure(on.redis_url, profile),
    ),
    "pipelines": (
        "steps of pipelines",
        lambda on, profile: pipeline_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "children": (
        "tasks that tasks call",
        lambda on, profile: child_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "messages": (
        "messages of runs",
        lambda on, profile: message_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "admission": (
        "admission",
        lambda on, profile: admission_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "budgets": (
        "budgets",
        lambda on, profile: budget_rows.measure(on.redis_url, profile),
    ),
    "projects": (
        "project memory",
        lambda on, profile: project_rows.measure(on.redis_url, profile),
    ),
    "analysis": (
        "analyses",
        lambda on, profile: analysis_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "decisions": (
        "questions of agents",
        lambda _on, profile: decision_rows.measure(profile),
    ),
    "world": (
        "a world of agents",
        lambda on, profile: world_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "http": (
        "requests over HTTP",
        lambda on, profile: http_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "listing": (
        "the list of tasks",
        lambda on, profile: listing_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "console": (
        "pages of the console",
        lambda on, profile: console_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "output": (
        "output of tasks",
        lambda on, profile: output_rows.measure(on.nats_url, on.redis_url, profile),
    ),
    "pause": ("a store that stands still", pause_rows.measure),
    "idle": ("idle supervisors", idle_rows.measure),
    "scrape": (
        "scrapes",
        lambda on, profile: scrape_rows.measure(on.redis_url, profile),
    ),
    "peers": ("peers", lambda on, profile: peer_rows.measure(on.redis_url, profile)),
}
FAMILIES = (*nats_rows.TITLES, "gain", *SIMPLE)


async def measure(
    profile: Profile, only: frozenset[str], console: Console
) -> list[Row]:
    """Start the servers, measure every family named in *only*, return the rows."""
    rows: list[Row] = []
    async with EmbeddedServers() as servers:
        if only & {*nats_rows.TITLES, "gain"}:
            async with Producer(servers.nats_url, servers.redis_url) as producer:
                console.log("raw nats-py and ours, in turns")
                rows += await nats_rows.measure(producer, profile, only)
                if "gain" in only:
                    console.log("100 ms task, miss and hit")
                    rows += await nats_rows.measure_memory_gain(producer, profile)
        for family, (words, measured) in SIMPLE.items():
            if family in only:
                console.log(words)
                rows += await measured(servers, profile)
    return compared_with_peers(rows)


def compared_with_peers(rows: Sequence[Row]) -> list[Row]:
    """Return *rows*, ours completed by its ratio to the fastest peer when both were measured."""
    names = tuple(peer.name for peer in peer_rows.PEERS)
    best = max(
        (row.tasks_per_s or 0 for row in rows if row.what.startswith(names)), default=0
    )
    return [
        replace(
            row,
            compared=f"{row.compared}; tasks/s {ratio(row.tasks_per_s, best)} best peer".lstrip(
                "; "
            ),
        )
        if best and row.tasks_per_s and row.what == nats_rows.TITLES["ours"]
        else row
        for row in rows
    ]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options; an unknown family is refused with the list of known ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="a quick look in a fraction of the time"
    )
    parser.add_argument(
        "--only", help=f"comma-separated families out of {', '.join(FAMILIES)}"
    )
    parser.add_argument(
        "--no-peers",
        action="store_true",
        help="leave the other task queues out (nothing is installed)",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"also write the table to benchmarks/{RESULTS.name}",
    )
    options = parser.parse_args(arguments)
    options.families = frozenset(options.only.split(",") if options.only else FAMILIES)
    if unknown := options.families - set(FAMILIES):
        parser.error(
            f"unknown {', '.join(sorted(unknown))}; known are {', '.join(FAMILIES)}"
        )
    if options.no_peers:
        options.families -= {"peers"}
    return options


def main() -> None:
    """Measure, print the table, write it when asked."""
    options = parse()
    profile = SHORT if options.short else FULL
    load_before = os.getloadavg()[0]
    calibration_ms = calibrate_ms()
    rows = uvloop.run(measure(profile, options.families, Console(stderr=True)))
    caption = describe_run(profile, load_before, calibration_ms)
    # Piped output must not wrap cells to a terminal that is not there.
    console = Console(width=None if Console().is_terminal else 200)
    show(rows, caption, console)
    if options.write:
        RESULTS.write_text(markdown(rows, caption), encoding="utf-8")


if __name__ == "__main__":
    main()
