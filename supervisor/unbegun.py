"""What to say to a request of which nothing is begun: what it was read as is not known, cannot be kept, or was another.

Each names the request id and what to do next. Pure.
"""

from typing import Literal

from contracts.messages import PersonReply

#: Why nothing is begun.
Why = Literal["other words", "forgotten", "memory away", "another version", "not kept"]

_TEXTS: dict[Why, str] = {
    "other words": "came with other words before. Use a new one for another question.",
    "forgotten": "came before, and what was said under it has been forgotten since. Use a new one to ask again.",
    "memory away": (
        "came before, and the memory does not tell now what it became. Ask again in a moment with the same one."
    ),
    "another version": (
        "came before, and what it was read as is kept by another version of the supervisor, which this one cannot"
        " follow. Ask again with the same one when a supervisor of that version is there."
    ),
    "not kept": (
        "was read with the help of a language model, and the memory that would keep what it was read as does not"
        " answer. Ask again in a moment with the same one."
    ),
}


def unbegun(why: Why, *, request_id: str, conversation_id: str) -> PersonReply:
    """Return what to say when nothing is begun of *request_id*."""
    text = f"The request id {request_id} {_TEXTS[why]} Nothing was started now."
    return PersonReply(request_id=request_id, conversation_id=conversation_id, kind="failed", text=text)
