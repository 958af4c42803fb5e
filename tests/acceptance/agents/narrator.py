"""An agent for tests that tells a text a word at a time, says how far it is, and asks a person in the middle."""

import asyncio
from datetime import timedelta

from tasklore import Agent, Context, Parameters
from tasklore.contracts.admission.waits import Approval
from tasklore.contracts.errors import LlmThrottled

agent = Agent("NarratorAgent", keywords=("narrate",))


class Story(Parameters):
    """How many words to tell, and for how many seconds a person may be silent."""

    words: int = 20
    seconds: int = 3


@agent.task(remember=False, examples=("narrate a story",))
async def narrate(story: Story, context: Context) -> str:
    """Narrate a story."""
    text = ""
    for number in range(story.words):
        await context.progress(number / story.words)
        await context.emit(word := f"{context.attempt}:{number}é ")
        text += word
        await asyncio.sleep(0.03)
    await context.emit({"words": story.words}, kind="told")
    await context.ask_person(
        "Is that all?",
        within=timedelta(seconds=story.seconds),
        otherwise=Approval(approved=True),
    )
    return text


_poor: set[str] = set()


@agent.task(remember=False, in_words=False)
async def narrate_poorly(story: Story, context: Context) -> str:
    """Narrate a story for which there is no room under a limit at first."""
    is_first = context.assignment.task_id not in _poor
    for number in range(story.words):
        await context.emit(f"{'first' if is_first else 'then'} {number}, ")
    if is_first:
        _poor.add(context.assignment.task_id)
        error = LlmThrottled("there is no room")
        error.limit = "day"
        error.words = "the budget of the day"
        error.away_s = 6.0
        error.room_in_s = 6.0
        raise error
    return "told"
