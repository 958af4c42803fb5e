"""What people say in the measurements of JSON memory: plain statements that the rules read, as messages and as rows."""

from collections.abc import Iterator
from datetime import UTC, datetime

from tasklore.contracts.messages import ChatTurn, ExtractedFacts, Fact

#: Plain statements with the tag that a switchboard gives them; each number makes one that was not said before.
_FORMS = (
    ("User likes brel {}", "food"),
    ("User dislikes drosk {}", "food"),
    ("User is interested in topic {}", "general"),
    ("User goes running at {} o'clock every day", "routine"),
)
#: Of these forms hours there are few, so that it is left to the others from the first day on.
_HOURS = 12


def fact(owner: str, number: int) -> Fact:
    """Return the *number*-th fact of *owner*, whose id begins with the owner's."""
    form, tag = (
        _FORMS[number % len(_FORMS)]
        if number < _HOURS
        else _FORMS[number % (len(_FORMS) - 1)]
    )
    text = form.format(number)
    return Fact(fact_id=f"{owner}-{number}", text=text, tags=(tag,), evidence=text)


def message(owner: str, number: int) -> bytes:
    """Return the message with the *number*-th fact of *owner*: also what lies in the table of facts."""
    told = fact(owner, number)
    return (
        _message(owner, f"turn-{told.fact_id}", (told,))
        .model_dump_json(exclude_none=True)
        .encode()
    )


def rows(owner: str, count: int) -> list[tuple[str, bytes]]:
    """Return the first *count* facts of *owner* as rows that wait."""
    return [(f"{owner}-{number}", message(owner, number)) for number in range(count)]


def turns(owner: str) -> Iterator[tuple[str, bytes]]:
    """Yield turns of *owner* without end, each its id and its body."""
    number = 0
    while True:
        turn_id = f"{owner}-{number}"
        turn = ChatTurn(
            turn_id=turn_id,
            conversation_id="bench",
            user_id=owner,
            speaker="person",
            text=f"I had a long day, and by the way: I like brel {number}.",
            at=datetime.now(UTC),
        )
        yield turn_id, turn.model_dump_json(exclude_none=True).encode()
        number += 1


def _message(owner: str, turn_id: str, facts: tuple[Fact, ...]) -> ExtractedFacts:
    return ExtractedFacts(
        turn_id=turn_id,
        conversation_id="bench",
        user_id=owner,
        facts=facts,
        at=datetime.now(UTC),
    )
