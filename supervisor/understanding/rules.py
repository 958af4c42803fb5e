"""The interpreter that is always there: deterministic, in-process, and the same for every agent."""

from collections.abc import Sequence
from datetime import datetime

from contracts.messages import ChatTurn
from quantities.numerals import DecimalMark
from supervisor.catalogue import Catalogue
from supervisor.understanding.outcome import Interpretation
from supervisor.understanding.routing import Router


class RuleInterpreter:
    """Reads utterances by names, cues, examples and values; keeps nothing but the index of the latest catalogue."""

    def __init__(self, *, decimal_mark: DecimalMark | None = None) -> None:
        """Make one for people who write *decimal_mark* before decimals; None asks what "1.500" means."""
        self.decimal_mark = decimal_mark

    def router(self, catalogue: Catalogue) -> Router:
        """Return the prepared tasks of *catalogue*, made once for each."""
        raise NotImplementedError

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Interpretation:
        """Return what *text* asks for; a long text is read in a thread."""
        raise NotImplementedError

    def understand(
        self, text: str, *, catalogue: Catalogue, previous: Sequence[ChatTurn] = (), now: datetime | None = None
    ) -> Interpretation:
        """Return what *text* asks for, in the conversation of *previous* turns, oldest first."""
        raise NotImplementedError
