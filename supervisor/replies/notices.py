"""Notices: the next reply to a person says what memory learned of them ("Noted: you love sushi.")."""

import asyncio
import re
from collections.abc import Callable, Sequence

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import PersonReply
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.episodes.store import Episodes

log = structlog.get_logger(__name__)

#: The agent that learns from turns and answers from memory; without it no reply waits for a notice.
MEMORY_AGENT = "MemoryAgent"
#: Seconds that a reply waits for the notices of its own turn, when the words ask for no task.
WAIT_S = 4.0
#: Seconds between two looks.
_LOOK_S = 0.05
#: Lines of one reply; the rest is counted.
_MOST_LINES = 5
#: Last turns of a person among which the one that was just kept is looked for.
_NEAR = 20
_THIRD_PERSON = re.compile(r"User(?:'s)? (?P<rest>.+)")
#: Verbs of a statement about the user, as said to them.
_VERBS = {"is": "are", "has": "have", "was": "were", "does": "do", "wants": "want"}
_CANNOT_TELL = re.compile(
    r"I cannot tell what to do with (?:that|\".*?\")\.", re.DOTALL
)
#: What is said of words that memory keeps, and of those after them; and of a question that it cannot answer.
KEPT = "I have kept that, word for word: you can ask me about it later. Nothing was started."
_KEPT_TOO = "I have kept that, too."
_UNKNOWN = "I do not know: nothing that you told me answers that."


class Learned:
    """Reads the notices of a person.

    Args:
        notices: The waiting lines.
        is_served: Whether a memory worker is there; without one no reply waits.
        wait_s: Seconds for which a reply waits at most.
        episodes: The turns that memory keeps word for word; None where none are kept.
    """

    def __init__(
        self,
        notices: Notices,
        is_served: Callable[[], bool],
        wait_s: float = WAIT_S,
        episodes: Episodes | None = None,
    ) -> None:
        self._notices = notices
        self._is_served = is_served
        self._wait_s = wait_s
        self._episodes = episodes

    async def lines(self, owner: str) -> tuple[str, ...]:
        """Return the lines on *owner* that no reply has said yet; none when the store does not answer in time."""
        if not self._is_served():
            return ()
        try:
            taken, _ = await self._notices.take_awaited(owner)
        except MemoryUnavailable as error:
            log.info("notices_not_taken", error=str(error))
            return ()
        return tuple(line for _, lines in taken for line in lines)

    async def of_turn(self, owner: str, turn_id: str) -> tuple[str, ...]:
        """Return the lines on *owner* up to *turn_id*, waiting for a moment; none when it teaches nothing."""
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

    async def is_kept(self, owner: str, turn_id: str) -> bool:
        """Return whether memory keeps the turn *turn_id* of *owner*, one of the last, word for word."""
        if self._episodes is None or not self._is_served():
            return False
        try:
            return any(
                one.turn_id == turn_id
                for one in await self._episodes.recent(owner, _NEAR)
            )
        except MemoryUnavailable as error:
            log.info("turn_not_looked_for", error=str(error))
            return False


def say_kept(
    reply: PersonReply, *, is_question: bool = False, was_said: bool = False
) -> PersonReply:
    """Return *reply* to words that memory keeps, which says so in place of "I cannot tell what to do with that".

    What that means is said once: where it *was_said* before, the reply says no more than that. That a question
    *is_question* is kept is of no use: it says that nothing answers it.
    """

    def word(text: str) -> str:
        if is_question:
            return _CANNOT_TELL.sub(_UNKNOWN, text)
        if was_said and _CANNOT_TELL.match(text):
            return _KEPT_TOO
        return _CANNOT_TELL.sub(KEPT, text)

    parts = tuple(
        part.model_copy(update={"text": word(part.text)}) for part in reply.parts
    )
    return reply.model_copy(update={"text": word(reply.text), "parts": parts})


def with_notes(text: str, lines: Sequence[str]) -> str:
    """Return *text* followed by the learned *lines*; those alone where *text* is empty."""
    if not lines:
        return text
    shown = [_address_person(line) for line in lines[:_MOST_LINES]]
    more = f"; and {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
    noted = f"Noted: {'; '.join(shown)}{more}."
    return f"{text}\n\n{noted}" if text else noted


def _address_person(line: str) -> str:
    """Return "User likes sushi" as "you like sushi"; a line that a model worded for the person stays as it is."""
    match = _THIRD_PERSON.fullmatch(line)
    if match is None:
        return line
    if line.startswith("User's"):
        return f"your {match['rest']}"
    verb, _, rest = match["rest"].partition(" ")
    plain = _VERBS.get(
        verb, verb.removesuffix("s") if not verb.endswith("ss") else verb
    )
    return f"you {plain} {rest}".rstrip()
