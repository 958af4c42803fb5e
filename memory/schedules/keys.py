"""The Redis keys of schedules."""

from tasklore.memory.key_parts import RecordKeys, check_name


def schedules(supervisor_id: str) -> RecordKeys:
    """Return the keys of the schedules of *supervisor_id*."""
    return RecordKeys.under(
        f"tl:schedules:{{{check_name(supervisor_id, 'supervisor id')}}}"
    )


def schedule_books() -> str:
    """Return the key of the supervisor ids that have schedules; no id reads like its tag."""
    return "tl:schedules:{~books}"
