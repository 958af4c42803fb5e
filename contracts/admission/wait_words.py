"""Why a task waits, in a sentence: the same words from a message and from JSON."""

from datetime import datetime

from tasklore.contracts.moments import spell_moment

#: The meaning of `until` by the reason; of others it is "until".
_UNTIL = {
    "bound": "next check at",
    "retry": "runs again at",
    "model": "next check at",
}


def spell_wait(kind: str, text: str, said: str, until: datetime | None) -> str:
    """Return a sentence such as "waits for the budget of tenant acme (2 requests a day), until ...".

    *said* are the last words of the provider or of the error, "" for none.
    """
    words = text + (f" (it said: {said})" if said else "")
    if until is None:
        return f"waits for {words}"
    return f"waits for {words}, {_UNTIL.get(kind, 'until')} {spell_moment(until)}"
