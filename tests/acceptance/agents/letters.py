"""An agent for tests whose results are texts of every kind, told at once or as a model does, bit by bit."""

from collections.abc import AsyncIterator

from tasklore import Agent, Context, Parameters
from tests.answer_texts import TEXTS

agent = Agent("LetterAgent", keywords=("letter",))

#: Characters told at once: words, line breaks and joined emoji are torn apart.
PIECE = 3


class Letter(Parameters):
    """Which of the texts to return; with `told` it is emitted first."""

    number: int
    told: bool = False


async def _pieces(text: str) -> AsyncIterator[str]:
    step = max(PIECE, len(text) // 200)
    for start in range(0, len(text), step):
        yield text[start : start + step]


@agent.task(remember=False, examples=("write the letter number 7",))
async def write(letter: Letter, context: Context) -> str:
    """Write a letter."""
    text = TEXTS[letter.number]
    return await context.emit_all(_pieces(text)) if letter.told else text
