"""A turn of a conversation as it is kept among the episodes of its user."""

from datetime import UTC, datetime

from tasklore.contracts.messages import ChatTurn
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.rendering.recalled import without_rendered

#: Whose answers only quote what was said.
_MEMORY_AGENT = "MemoryAgent"


def episode_of(turn: ChatTurn) -> Episode | None:
    """Return *turn* as an episode; None for an empty one and for an echo of memory.

    Answers of memory quote other turns, and a reply that no task fits says nothing: a search would find both in place
    of the turns that they are about.
    """
    text = without_rendered(turn.text)
    is_echo = turn.speaker == "assistant" and (
        turn.kind == "unable" or turn.agent_id == _MEMORY_AGENT
    )
    if is_echo or not text.strip():
        return None
    speaker = turn.speaker if turn.speaker != "other" else "agent"
    return Episode(
        turn_id=turn.turn_id,
        conversation_id=turn.conversation_id,
        speaker=speaker,
        at=in_zone(turn.at),
        text=text,
        agent_id=turn.agent_id,
    )


def in_zone(at: datetime) -> datetime:
    """Return *at* in UTC where it names no zone."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
