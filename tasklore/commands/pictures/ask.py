"""The answer to a request in plain words, or how far it is."""

from collections.abc import Iterator
from typing import Any

from tasklore.commands.exits import FAILED, OK, QUESTION, UNABLE


def draw(view: dict[str, Any]) -> str:
    """Return the words of the answer, else how the request stands."""
    reply = view.get("reply")
    if reply is not None:
        return str(reply["text"])
    approvals = view.get("approvals") or ()
    if approvals:
        who = ", ".join(str(one["who"]) for one in approvals)
        return f"It needs the approval of {who} before it starts."
    return f"It is not finished yet: {view['state']}."


def code_of(view: dict[str, Any]) -> int:
    """Return 1 for a failed or unfinished task, 4 for a question back, 5 where no agent does that, else 0."""
    kinds = set(_kinds_of(view))
    if "failed" in kinds or "pending" in kinds:
        return FAILED
    return QUESTION if "question" in kinds else UNABLE if "unable" in kinds else OK


def _kinds_of(view: dict[str, Any]) -> Iterator[str]:
    """Yield the kind of each part; an approval of another person is as it should be."""
    reply = view.get("reply")
    if reply is None:
        yield "answer" if view.get("approvals") else "pending"
        return
    for one in reply.get("parts") or (reply,):
        waits = one["kind"] == "pending" and one.get("approval_id")
        yield "answer" if waits else one["kind"]
