"""The pictures of dead letters and of loaded sessions, by views as the API sends them."""

from typing import Any

from tasklore.commands.pictures import dead_letter, dead_letters_sent, session_loaded

LETTER: dict[str, Any] = {
    "sequence": 7,
    "stored_at": "2026-11-21T10:00:00Z",
    "agent_id": "TripAgent",
    "task": "share_trip",
    "task_id": "t1",
    "reason": "gave_up",
    "error": {"type": "GiveUp", "message": "there is no cure", "retryable": False},
    "attempts": 3,
    "generation": 1,
    "tenant": None,
    "user": "ann",
    "created_at": "2026-11-21T09:00:00Z",
    "died_at": "2026-11-21T10:00:00Z",
    "queued_ms": 5200,
    "run_ms": 412,
    "usage": {"cost_usd": None, "input_tokens": 1200, "output_tokens": 7},
    "supervisor_id": "S",
    "worker_id": None,
    "trace_id": None,
    "subject": "tasks.TripAgent.share_trip",
}
DETAILS = LETTER | {
    "frames": ["app.py, line 3, in live"],
    "place": "app.py, line 3, in live",
    "traceback": "Traceback (most recent call last):\n  ...\n",
    "headers": {},
    "body_bytes": 20,
    "is_whole": True,
    "why_kept": None,
    "payload": {"task_id": "t1"},
    "others": [2, 1],
}


def group(agent: str, error: str, count: int) -> dict[str, Any]:
    return {
        "agent_id": agent,
        "error_type": error,
        "count": count,
        "oldest": "2026-11-21T10:00:00Z",
        "newest": "2026-11-21T10:00:00Z",
        "example": LETTER,
    }


def work(**fields: Any) -> dict[str, Any]:
    whole = {"dry_run": False, "concerns": 0, "groups": [], "bound": "9", "after": None}
    return whole | fields


def test_a_letter_is_drawn_with_its_error_first_and_what_can_be_done() -> None:
    lines = dead_letter.draw(DETAILS).splitlines()
    assert lines[:2] == ["GiveUp: there is no cure", "  at app.py, line 3, in live"]
    facts = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in lines}
    assert facts["user"] == "ann"
    assert facts["queued"] == "5.2 s"
    assert facts["cost"] == "an unknown price for 1,200 tokens in and 7 out"
    assert "tenant" not in facts
    assert "To send it again: tasklore dead-letters redrive 7" in lines
    assert "To see its history: tasklore trace t1" in lines
    assert "Other dead letters of this task: 2, 1" in lines
    assert '  "task_id": "t1"' in lines


def test_a_letter_that_would_stay_says_why_and_a_long_one_is_cut() -> None:
    changed = DETAILS | {
        "why_kept": "its deadline passed",
        "payload": "x" * 5000,
        "body_bytes": 5000,
        "others": [],
    }
    drawn = dead_letter.draw(changed)
    assert "It would not be sent again: its deadline passed" in drawn
    assert "redrive" not in drawn
    assert drawn.endswith("... (5,000 bytes in total; --json shows what is kept)")
    assert len(drawn) < 4000


def test_a_dry_run_is_drawn_by_agent_and_error_also_of_several_calls() -> None:
    groups = [group("A", "E", 2), group("B", "F", 3), group("A", "E", 2)]
    head, first, second, end = dead_letters_sent.draw(
        work(dry_run=True, concerns=7, groups=groups, kept=[], kept_in_all=0)
    ).splitlines()
    assert head.split() == ["AGENT", "ERROR", "LETTERS", "EXAMPLE", "MESSAGE"]
    assert first.split()[:4] == ["A", "E", "4", "7"]
    assert second.split()[:4] == ["B", "F", "3", "7"]
    assert end == "Would send 7 dead letters again."


def test_what_was_done_is_one_line_and_what_stays_is_named() -> None:
    assert dead_letters_sent.draw(work(concerns=1)) == "Deleted 1 dead letter."
    nothing = work(kept=[], kept_in_all=0, stopped=None)
    assert dead_letters_sent.draw(nothing) == "Nothing fits; nothing was sent."
    assert dead_letters_sent.code_of(nothing) == 0
    kept = [{"sequence": number, "why": f"why {number}"} for number in range(12)]
    stays = work(concerns=2, kept=kept, kept_in_all=12, stopped="gone")
    lines = dead_letters_sent.draw(stays).splitlines()
    assert lines[0] == "Sent 2 dead letters again."
    assert lines[1:11] == [f"why {number}" for number in range(10)]
    assert lines[11:] == [
        "12 dead letters stayed where they are",
        "stopped there: the rest was not tried",
    ]
    assert dead_letters_sent.code_of(stays) == 1


def test_a_loaded_session_names_what_is_not_in_it() -> None:
    view: dict[str, Any] = {
        "session_id": "copy",
        "loaded": 2,
        "expired": ["plan:steps"],
        "refused": [{"key": "bad key", "why": "breaks the naming rule"}],
    }
    assert session_loaded.draw(view).splitlines() == [
        "2 entries in session copy.",
        "1 entry omitted, as they have expired:",
        "  plan:steps",
        "1 entry refused:",
        "  bad key: breaks the naming rule",
    ]
    assert session_loaded.code_of(view) == 2
    assert session_loaded.code_of(view | {"refused": []}) == 0
