"""Have a model summarise messages that no longer fit into a prompt, while the agent does its work.

A summary is made of the one before it and the messages after that, so it always speaks of the first messages up to a
number, and of each of them once: a run that dies keeps nothing, and a second one that was quicker is not taken back.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import structlog
from pydantic import BaseModel, ConfigDict

from tasklore.contracts.conversations import Digest, TakenMessages, Utterance
from tasklore.contracts.errors import LlmError, MemoryUnavailable
from tasklore.memory.rendering.narration import say_message, speech
from tasklore.memory.rendering.quoting import MAX_SHOWN, plain
from tasklore.workers.agent_files import AgentFiles, load_agent_files
from tasklore.workers.context.context import Context

log = structlog.get_logger(__name__)

#: Messages that are in no summary, from which on one is worth its question: a page, and less than half of a window.
SUMMARISE_EVERY = 20
#: Messages in one question, some ten thousand tokens at most; what is left comes next time.
AT_ONCE = 100
#: Characters of a summary: what a prompt shows of any text.
LONGEST = MAX_SHOWN
#: The summary of messages of which none is kept any more.
NOTHING_LEFT = "Nobody knows any more."


class Summary(BaseModel):
    """What a model is asked to answer with."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    reasoning: str
    summary: str


def role_files(override: Path | None = None) -> AgentFiles:
    """Return the role `summary` as its files describe it, with what lies in *override*`/summary` in their place.

    Raises:
        ConfigurationError: a file is missing or wrong; the message names it, the field and the cure.
    """
    return load_agent_files(Path(__file__).parent, override)


@asynccontextmanager
async def summarising(
    context: Context, taken: TakenMessages, *, wait_s: float = 0.0
) -> AsyncIterator[None]:
    """Have a model summarise messages beyond the window of *taken*, while the block does the task's own work.

    The task declares `uses=("llm",)` and took its messages from `context.history`. Nothing is asked as long as fewer
    than `SUMMARISE_EVERY` messages are in no summary, without a model, and while half of the worker's questions at once
    are under way. The block is not held up: a summary that is not there at its end is left to the next task, unless
    this one can spare it *wait_s* seconds. When no summary comes of it, the plain digest stays.

    Raises:
        ConfigurationError: the files of the role are wrong.
    """
    earlier = taken.history.earlier
    is_due = (
        earlier.count - earlier.summarised >= SUMMARISE_EVERY and not taken.is_settled
    )
    if not is_due or not context.llm.configured:
        yield
        return
    asking = asyncio.create_task(_summarise(context, earlier))
    try:
        yield
        await asyncio.wait([asking], timeout=wait_s)
    finally:
        asking.cancel()
        [outcome] = await asyncio.gather(asking, return_exceptions=True)
    if isinstance(outcome, Exception):
        raise outcome


async def _summarise(context: Context, earlier: Digest) -> None:
    """Keep a summary of `AT_ONCE` messages more than before."""
    history = context.history
    upto = min(earlier.count, earlier.summarised + AT_ONCE)
    try:
        page = await history.page(before=upto + 1, count=upto - earlier.summarised)
        if page.messages:
            text = await _ask(context, earlier.summary, page.messages)
        else:
            # All of them are gone: forgotten, or too old to be kept.
            upto = min(earlier.count, max(upto, page.gone))
            text = earlier.summary or NOTHING_LEFT
        if text:
            await history.summarise(upto, text)
    except (LlmError, MemoryUnavailable) as error:
        log.info("not_summarised", error=type(error).__name__)


async def _ask(
    context: Context, before: str | None, messages: Sequence[Utterance]
) -> str:
    """Return a model's summary of *messages* and the summary *before* them as one plain line; "" for none."""
    files = role_files(context.agent_files)
    system = files.render(longest=LONGEST)
    user = question(before, messages)
    if not context.llm.has_room:
        return ""
    answered = await context.llm.ask(files.role, Summary, system=system, user=user)
    return plain(answered.summary, LONGEST)


def question(before: str | None, messages: Sequence[Utterance]) -> str:
    """Return the prompt: each text on one line, in quotes that it cannot close; an agent's own as that."""
    lines = [
        "# Notes so far",
        speech(before) if before else "None.",
        "# What was said after them",
    ]
    return "\n".join([*lines, *(_line(one) for one in messages)])


def _line(one: Utterance) -> str:
    # No name has a colon and a blank in it.
    return f"- {'own: ' if one.own else ''}{say_message(one.speaker, one.message)}"
