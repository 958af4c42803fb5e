"""The Redis keys of turns that are kept."""

from tasklore.memory import key_parts
from tasklore.memory.key_parts import check_token


def episodes(owner_token: str) -> key_parts.EpisodeKeys:
    """Return the keys of the turns of *owner_token*."""
    return key_parts.EpisodeKeys.under(f"tl:episodes:{{{check_token(owner_token)}}}")
