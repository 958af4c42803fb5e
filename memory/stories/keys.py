"""The Redis keys of stories and their analyses."""

from tasklore.memory import key_parts
from tasklore.memory.key_parts import check_name


def story(story_id: str) -> key_parts.StoryKeys:
    """Return the keys of the story *story_id*."""
    tag = f"{{{check_name(story_id, 'story id')}}}"
    own = (
        f"tl:story:{tag}{part}" for part in ("", ":entities", ":responses", ":written")
    )
    return key_parts.StoryKeys(
        *own, *(f"tl:analysis:{tag}{part}" for part in ("", ":records", ":written"))
    )


def story_changes(story_id: str, section: str) -> str:
    """Return the key of what responses changed as the agent of *section* found it; same tag."""
    return f"{story(story_id).base}:changes:{check_name(section, 'section')}"


def analysing(supervisor_id: str) -> str:
    """Return the key that lists the analyses under way for *supervisor_id*."""
    return f"tl:analysing:{{{check_name(supervisor_id, 'supervisor id')}}}"
