"""Do nothing at all: what is left is what a task costs."""

from pydantic import BaseModel

from tasklore import Agent, Parameters

agent = Agent("NothingAgent", keywords=("nothing",))


class Question(Parameters):
    """One number."""

    number: int


class Answer(BaseModel):
    """The same number back."""

    number: int


@agent.task(remember=False)
async def do_nothing(question: Question) -> Answer:
    """Return the number."""
    return Answer(number=question.number)
