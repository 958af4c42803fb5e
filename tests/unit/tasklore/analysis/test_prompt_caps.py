"""How many items of each kind a context shows."""

import json
from pathlib import Path
from typing import Any

from tasklore.contracts.analysis.document import read_document
from tasklore.memory.rendering.prompt_context import condense

EXAMPLE = (Path(__file__).parent / "example.json").read_text("utf-8")
MORE = range(1, 6)


def _crowded() -> dict[str, Any]:
    """Return the example with five of everything that is capped, none of the threads critical."""
    body: dict[str, Any] = json.loads(EXAMPLE)
    background = body["background"]
    immediate = body["immediate"]
    threads = [
        {"id": f"THREAD-{number}", "title": f"Title {number}", "status": "active"}
        for number in MORE
    ]
    background["plot_threads"] |= {"new": [], "mentioned": threads}
    background["knowledge"]["facts"] = [
        {"subj": f"Subject {number}", "fact": "It is so"} for number in MORE
    ]
    immediate["thread_extract"]["loaded"] = threads
    immediate["fact_extract"]["facts"] = {
        f"Name {number}": [
            f"fact {number}.{place}, whole and to its end" for place in MORE
        ]
        for number in MORE
    }
    immediate["memory_extract"]["memories"] = {
        f"Name {number}": [
            {"id": f"MEM-{number}{place}", "sig": place} for place in MORE
        ]
        for number in MORE
    }
    return body


def test_each_kind_is_shown_up_to_its_cap() -> None:
    lines = condense(read_document(_crowded())).split("\n")
    assert lines[-9:-1] == [
        "**Knowledge**: Knowledge Added: 5 facts (Subject 1, Subject 2...)",
        "",
        "**Context for N+1**:",
        "- Name 1: fact 1.1, whole and to its end, fact 1.2, whole and to its end, fact 1.3, whole and to its end",
        "- Name 2: fact 2.1, whole and to its end, fact 2.2, whole and to its end, fact 2.3, whole and to its end",
        "- Name 1 Memories: MEM-11, MEM-12",
        "- Name 2 Memories: MEM-21, MEM-22",
        "- Active Threads: THREAD-1, THREAD-2, THREAD-3",
    ]
    shown = [f"\U0001f4cd THREAD-{number}: Title {number}" for number in (1, 2, 3)]
    assert f"**Threads**: {', '.join(shown)}" in lines
