"""What memory learned of a person, as the next reply says it ("Noted: you love sushi.")."""

import asyncio
import re
from collections.abc import Callable, Sequence

import structlog

from contracts.errors import MemoryUnavailable
from memory.conversations.notices import Notices

log = structlog.get_logger(__name__)

#: The agent that learns from what is said and answers from it; without it no reply waits for that.
MEMORY_AGENT = "MemoryAgent"
#: Seconds that a reply waits for what its own turn teaches, when the words ask for no task.
WAIT_S = 4.0
#: Seconds between two looks.
_LOOK_S = 0.05
#: Lines of one reply; the rest is counted.
_MOST_LINES = 5
_THIRD_PERSON = re.compile(r"User(?:'s)? (?P<rest>.+)")
#: What a statement about the user becomes when it is said to them.
_VERBS = {"is": "are", "has": "have", "was": "were", "does": "do", "wants": "want"}


class Learned:
    """Says what was learned of a person.

    Args:
        notices: Where it waits.
        is_served: Whether a memory worker is there; without one no reply waits.
        wait_s: Seconds for which a reply waits at most.
    """

    def __init__(self, notices: Notices, is_served: Callable[[], bool], wait_s: float = WAIT_S) -> None:
        self._notices = notices
        self._is_served = is_served
        self._wait_s = wait_s

    async def lines(self, owner: str) -> tuple[str, ...]:
        """Return what was learned of *owner* and not said yet; nothing when the store does not answer in time."""
        if not self._is_served():
            return ()
        try:
            taken, _ = await self._notices.take_awaited(owner)
        except MemoryUnavailable as error:
            log.info("notices_not_taken", error=str(error))
            return ()
        return tuple(line for _, lines in taken for line in lines)

    async def of_turn(self, owner: str, turn_id: str) -> tuple[str, ...]:
        """Return what was learned of *owner* up to *turn_id*, waiting for a moment; nothing when it teaches nothing."""
        if not self._is_served():
            return ()
        found: list[str] = []
        try:
            await self._notices.hurry(owner, self._wait_s)
            async with asyncio.timeout(self._wait_s):
                while True:
                    taken, is_hurried = await self._notices.take_awaited(owner)
                    found += [line for _, lines in taken for line in lines]
                    if not is_hurried or any(known == turn_id for known, _ in taken):
                        break
                    await asyncio.sleep(_LOOK_S)
        except (MemoryUnavailable, TimeoutError) as error:
            log.info("turn_not_learned_in_time", error=type(error).__name__)
        return tuple(found)


def with_notes(text: str, lines: Sequence[str]) -> str:
    """Return *text* with what was learned behind it; that alone where *text* is empty."""
    if not lines:
        return text
    shown = [_to_the_person(line) for line in lines[:_MOST_LINES]]
    more = f"; and {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
    noted = f"Noted: {'; '.join(shown)}{more}."
    return f"{text}\n\n{noted}" if text else noted


def _to_the_person(line: str) -> str:
    """Return "User likes sushi" as "you like sushi"; what a model worded for the person stays as it is."""
    match = _THIRD_PERSON.fullmatch(line)
    if match is None:
        return line
    if line.startswith("User's"):
        return f"your {match['rest']}"
    verb, _, rest = match["rest"].partition(" ")
    plain = _VERBS.get(verb, verb.removesuffix("s") if not verb.endswith("ss") else verb)
    return f"you {plain} {rest}".rstrip()
