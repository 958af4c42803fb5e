"""An agent for tests that tells a text a word at a time, says how far it is, and asks a person in the middle."""

import asyncio
from datetime import timedelta

from tasklore import Agent, Context, Parameters
from tasklore.contracts.admission.waits import Approval

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
