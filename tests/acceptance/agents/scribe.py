"""An agent for tests that gives texts back: remembered ones, those that it was given, and those of persons."""

from tasklore import Agent, Context, Parameters
from tests.answer_texts import TEXTS

agent = Agent("ScribeAgent")


class Number(Parameters):
    """Which of the texts."""

    number: int


class Words(Parameters):
    """A text."""

    text: str


@agent.task(remember="shared", in_words=False)
async def keep(number: Number) -> str:
    """Return a text, and remember it."""
    return TEXTS[number.number]


@agent.task(remember=False, in_words=False)
async def copy(words: Words) -> str:
    """Return what was given."""
    return words.text


@agent.task(remember=False, in_words=False)
async def wonder(number: Number, context: Context) -> str:
    """Ask a person with a text, and return their note."""
    question = TEXTS[number.number].replace("{", "{{").replace("}", "}}")
    return (await context.ask_person(question)).note


@agent.task(remember=False, in_words=False)
async def listen(number: Number, context: Context) -> str:
    """Wait for a signal, and return its text."""
    return await context.signal(f"letter-{number.number}", str)
