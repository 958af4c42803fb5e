"""The Redis keys of conversations and of what waits for them."""

from tasklore.memory import key_parts
from tasklore.memory.key_parts import check_token, escape


def conversation(conversation_id: str) -> key_parts.ConversationKeys:
    """Return the keys of a conversation and of what waits for it; the id is free text."""
    tag = f"{{{escape(conversation_id, 'conversation id')}}}"
    said = f"tl:conversation:{tag}"
    inbox = f"tl:inbox:{tag}"
    observed = f"tl:observations:{tag}"
    own = (
        said,
        f"{said}:ids",
        inbox,
        f"{inbox}:state",
        f"{said}:digest",
        observed,
        f"{observed}:ids",
    )
    return key_parts.ConversationKeys(*own)


def notices(user_token: str) -> tuple[str, str]:
    """Return the keys of a user's notices, and of the reply that waits for them."""
    return (lines := f"tl:notices:{{{check_token(user_token)}}}"), f"{lines}:hurry"


def user_conversations(user_token: str) -> str:
    """Return the key that lists a user's conversations, so that forgetting finds them."""
    return f"tl:user-conversations:{{{check_token(user_token)}}}"
