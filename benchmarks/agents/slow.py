"""Answer after a tenth of a second: stands for work worth remembering."""

import asyncio

from pydantic import BaseModel

from tasklore import Agent, Parameters

agent = Agent("SlowAgent", keywords=("slow",))


class Question(Parameters):
    """One number; every number is a question of its own."""

    number: int


class Answer(BaseModel):
    """The same number back."""

    number: int


@agent.task(remember="shared")
async def answer_slowly(question: Question) -> Answer:
    """Return the number after 100 ms."""
    await asyncio.sleep(0.1)
    return Answer(number=question.number)
