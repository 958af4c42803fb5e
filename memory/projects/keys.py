"""The Redis keys of project memories."""

from tasklore.memory.key_parts import check_name, escape


def project(project_id: str) -> str:
    """Return the key of a project's records."""
    return f"tl:project:{{{check_name(project_id, 'project id')}}}"


def project_part(project_id: str, *parts: str) -> str:
    """Return the key of something beside a project's records, such as `"tag", "naming"`; same tag, any text."""
    return ":".join(
        (
            project(project_id),
            *(escape(part, "part of a project key") for part in parts),
        )
    )
