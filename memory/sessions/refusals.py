"""What a session refuses, in words that say the cure."""

from tasklore.contracts.errors import InvalidInput, PhaseReplaced, UnknownSession


def refuse_unknown(session_id: str) -> UnknownSession:
    """Return that there is no such session."""
    return UnknownSession(
        f"session {session_id!r} is unknown, or has expired; GET /v1/sessions lists "
        "sessions, else create it again"
    )


def refuse_replaced(
    session_id: str, phase: str, writer: str, task_id: str | None
) -> PhaseReplaced:
    """Return that task *task_id* may no longer write for *phase*, but *writer*, "" when no task may."""
    now = f"task {writer!r} writes for it" if writer else "nobody writes for it"
    return PhaseReplaced(
        f"phase {phase!r} of session {session_id!r} was invalidated or restarted: {now} "
        f"now, so the result of task {task_id!r} is refused"
    )


def refuse_taken(session_id: str) -> InvalidInput:
    """Return that a file cannot become a session whose id is taken."""
    return InvalidInput(
        f"session {session_id!r} exists already, and importing never mixes two; "
        "import under another id, or remove that session first"
    )


def refuse_running(session_id: str) -> InvalidInput:
    """Return that a session whose pipeline runs is not removed."""
    return InvalidInput(f"the pipeline of session {session_id!r} runs; cancel it first")
