"""The interpreter that is always there: deterministic, in-process, and the same for every agent.

One flow: the utterance is cut into segments, each is routed to a task, its slots are filled, what it leaves to the
conversation is carried over, and what is lacking or in doubt becomes a question. An answer to such a question is read
first of all.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from contracts.messages import ChatTurn
from quantities.numerals import DecimalMark
from supervisor.catalogue import Catalogue
from supervisor.understanding.conclusion import conclude
from supervisor.understanding.outcome import Ambiguous, Interpretation, Unfitting
from supervisor.understanding.questions import ask_which_task
from supervisor.understanding.routing import Router
from supervisor.understanding.slots import fill
from supervisor.understanding.utterance import Utterance, evened

#: Characters past which a text is read in a thread: a sentence takes a millisecond, 20,000 characters 200 of them.
_LONG = 300
#: Threads that read long texts: they share one interpreter, so more would read nothing sooner.
_READERS = 2


class RuleInterpreter:
    """Reads utterances by names, cues, examples and values; keeps nothing but the index of the latest catalogue."""

    def __init__(self, *, decimal_mark: DecimalMark | None = None) -> None:
        """Make one for people who write *decimal_mark* before decimals; None asks what "1.500" means."""
        self.decimal_mark = decimal_mark
        self._indexed: tuple[Catalogue, Router] | None = None
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="read")

    def router(self, catalogue: Catalogue) -> Router:
        """Return the prepared tasks of *catalogue*, made once for each."""
        known = self._indexed
        if known is None or known[0] is not catalogue:
            known = self._indexed = (catalogue, Router(catalogue))
        return known[1]

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,  # noqa: ARG002 - rules do not guess who means what they remember
        now: datetime | None = None,
    ) -> Interpretation:
        """Return what *text* asks for; a long text is read in a thread."""
        if len(text) <= _LONG:
            return self.understand(text, catalogue=catalogue, previous=previous, now=now)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._readers, lambda: self.understand(text, catalogue=catalogue, previous=previous, now=now)
        )

    def understand(
        self, text: str, *, catalogue: Catalogue, previous: Sequence[ChatTurn] = (), now: datetime | None = None
    ) -> Interpretation:
        """Return what *text* asks for, in the conversation of *previous* turns, oldest first."""
        router = self.router(catalogue)
        utterance = Utterance(evened(text), decimal_mark=self.decimal_mark, now=now)
        choice = router.choose(utterance)
        if choice is None:
            return Unfitting(f"I cannot tell what to do with that. {router.catalogue.abilities()}")
        if choice.rivals:
            return Ambiguous(ask_which_task([task.offer for task in (choice.task, *choice.rivals)]))
        return conclude(choice.task, fill(utterance, choice.task), utterance)
