"""What became of the cancellation of a run, in a sentence."""

from typing import Any

from tasklore.commands.exits import FAILED, OK


def draw(view: dict[str, Any]) -> str:
    """Return a sentence about the run *view*, or about the accepted request that it is while nobody has looked."""
    session_id = view["session_id"]
    state = view.get("state", "running")
    if state == "running":
        return (
            f"cancellation of {session_id} requested; it takes effect when the "
            "supervisor and the workers process it; `tasklore pipelines status "
            f"{session_id}` shows its status"
        )
    return (
        f"{session_id} is cancelled."
        if state == "cancelled"
        else f"{session_id} had already ended: {state}."
    )


def code_of(view: dict[str, Any]) -> int:
    """Return 1 for a run that had ended otherwise."""
    return OK if view.get("state", "running") in ("running", "cancelled") else FAILED
