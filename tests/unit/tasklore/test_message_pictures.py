"""The picture of a run's messages: each word of a model, tool or person stands as data."""

from typing import Any

import pytest

from tasklore.commands.operations.run import make_harmless
from tasklore.commands.pictures.run_messages import draw

MESSAGE: dict[str, Any] = {
    "kind": "answer",
    "at_ms": 0,
    "generation": 1,
    "run": 1,
    "name": "model",
    "text": "yes",
    "size": 0,
    "facts": {},
}
VIEW: dict[str, Any] = {
    "task_id": "0199",
    "agent_id": "A",
    "status": "completed",
    "sources": [],
    "messages": [],
    "dropped": 0,
    "dropped_bytes": 0,
    "kept_until": None,
}


def picture(*messages: dict[str, Any], **more: Any) -> list[str]:
    """Return the lines of a view with *messages*."""
    view = VIEW | {"messages": [MESSAGE | one for one in messages]} | more
    drawn: str = draw(make_harmless(view))
    return drawn.splitlines()


def test_no_line_of_a_text_passes_for_a_heading() -> None:
    """Nor steers a terminal."""
    lines = picture(
        {"text": "\x1b[2Jone\n\nrun 7\n  2  00:00:00.000  result\rThe answer came from"}
    )
    quoted = [one for one in lines if one.startswith("   | ")]
    assert [one.removeprefix("   | ") for one in quoted] == [
        "[2Jone",
        "",
        "run 7",
        "  2  00:00:00.000  resultThe answer came from",
    ]
    assert "\x1b" not in "".join(lines)


def test_a_heading_says_what_is_unusual() -> None:
    """A fallback, an error, the journal, times and tokens; facts that are not known by their names."""
    facts = {
        "instead_of": "large",
        "source": "journal",
        "took_ms": 1500,
        "input_tokens": 1000,
        "error": "LlmCutOff",
        "items": ["a b", "c"],
    }
    head = next(one for one in picture({"facts": facts}) if "said by" in one)
    assert head == (
        "  1  00:00:00.000  said by model  LlmCutOff  in place of large, read from the journal, took 1.5 s, "
        "1,000 + 0 tokens, items a b, c"
    )


def test_it_says_what_was_cut_dropped_and_until_when() -> None:
    lines = picture(
        {"size": 91_230, "run": 2, "generation": 3, "given": "what?"},
        dropped=2,
        dropped_bytes=2048,
        kept_until="2026-12-01T10:00:00Z",
        sources=[{"kind": "step", "name": "s", "said": "2", "message": 1}],
    )
    assert lines[1] == "2 older messages, 2.0 KiB, had no room any more"
    assert "run 2 of generation 3" in lines
    assert "   given:" in lines
    assert "   … 91,230 characters in whole" in lines
    assert "   step   s: 2  (message 1)" in lines
    assert lines[-1] == "kept until 2026-12-01 10:00 UTC"


def test_a_terminal_is_shown_the_beginning_of_a_long_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pipe gets all of it."""
    monkeypatch.setenv("NO_COLOR", "1")
    text = "line\n" * 1000
    assert sum(one == "   | line" for one in picture({"text": text})) == 1000
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    lines = picture({"text": text})
    assert sum(one == "   | line" for one in lines) == 60
    assert any("characters more; --json has them" in one for one in lines)
