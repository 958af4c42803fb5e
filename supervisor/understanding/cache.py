"""The cache of interpretations: the same words, outside a conversation, are read once for one catalogue."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.quantities.times import find_moments
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.outcome import (
    Interpretation,
    Interpreter,
    Several,
    Understood,
)
from tasklore.supervisor.understanding.utterance import (
    collapse_space,
    without_list_numbers,
)

#: Sentences whose interpretation is kept, the latest; each takes some 2 KB.
MOST = 1_000
#: Characters of the longest sentence: those that programs and buttons repeat are short.
_LONGEST = 500

_NOTHING = Catalogue()


class CachedInterpreter:
    """Interprets by *interpreter*, and from the cache the words that have one meaning and were read before.

    No model was asked about these words, they begin a conversation, they became tasks alone, and they name no day or
    time, as "tomorrow" changes. Keys are digests of them and of the part of the catalogue; another catalogue clears
    the cache.
    """

    def __init__(self, interpreter: Interpreter, most: int = MOST) -> None:
        self._interpreter = interpreter
        self._most = most
        self._catalogue = _NOTHING
        #: By digest, the latest last; whether the words are timeless is found out when they come again, None before.
        self._known: dict[bytes, tuple[Interpretation, bool | None]] = {}

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Interpretation:
        """Return the interpretation of *text*."""
        if previous or len(text) > _LONGEST:
            return await self._interpreter.interpret(
                text, catalogue=catalogue, previous=previous, user_id=user_id, now=now
            )
        if catalogue.whole is not self._catalogue:
            self._catalogue = catalogue.whole
            self._known.clear()
        digest = hashlib.blake2b(
            f"{catalogue.part}\n{text}".encode(errors="surrogatepass"), digest_size=16
        ).digest()
        found, is_timeless = self._known.pop(digest, (None, None))
        if found is not None and is_timeless is None:
            is_timeless = not find_moments(
                without_list_numbers(collapse_space(text)), now or datetime.now(UTC)
            )
        if found is None or not is_timeless:
            found = await self._interpreter.interpret(
                text, catalogue=catalogue, previous=previous, user_id=user_id, now=now
            )
        if (
            is_timeless is not False
            and catalogue.whole is self._catalogue
            and _are_tasks(found)
        ):
            self._known[digest] = found, is_timeless
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return found


def _are_tasks(found: Interpretation) -> bool:
    """Return whether *found* consists of tasks alone, none of them read by a model."""
    parts = found.parts if isinstance(found, Several) else (found,)
    return all(isinstance(part, Understood) and not part.by_model for part in parts)
