"""The Redis keys of schedules."""

from tasklore.memory import key_parts
from tasklore.memory.key_parts import check_name


def schedules(supervisor_id: str) -> key_parts.ScheduleKeys:
    """Return the keys of the schedules of *supervisor_id*."""
    root = f"tl:schedules:{{{check_name(supervisor_id, 'supervisor id')}}}"
    parts = ("state", "due", "owned", "made")
    return key_parts.ScheduleKeys(root, *(f"{root}:{part}" for part in parts))


def schedule_books() -> str:
    """Return the key of the supervisor ids that have schedules; no id reads like its tag."""
    return "tl:schedules:{~books}"
