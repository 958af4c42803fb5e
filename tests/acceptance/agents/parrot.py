"""An agent for tests that says what it is given, in every place that has room for words; its card is hostile, too."""

import asyncio
from typing import Literal

from pydantic import BaseModel

from tasklore import Agent, Context, Field, Parameters
from tasklore.contracts.errors import GiveUp

MARKUP = '"><img src=x onerror=window.ran=1><script>window.ran=1</script>{{ 7 * 7 }}'

agent = Agent("ParrotAgent", description=MARKUP, keywords=("parrot",))


class Answer(BaseModel):
    """What a person answers."""

    text: str = Field(description=MARKUP, examples=[MARKUP])


class Lines(Parameters):
    """What to say, and where it ends."""

    text: str = Field(MARKUP, description=MARKUP, examples=[MARKUP])
    lines: list[str] = Field(default_factory=list, description=MARKUP)
    choice: Literal["</select><img src=x onerror=window.ran=1>", "plain"] = Field(
        "plain", description="</textarea><svg onload=window.ran=1>"
    )
    who: str | None = None
    ends: Literal["return", "fail", "raise", "ask", "answer", "hold"] = "return"


async def look(text: str) -> str:
    """Return *text*, as a step whose result is kept."""
    return text


@agent.task(remember=False, max_attempts=1, examples=(f"parrot {MARKUP}",))
async def say(lines: Lines, context: Context) -> dict[str, object]:
    """Say it, and end as it was wished: "><svg onload=window.ran=1>."""
    if lines.ends == "hold":
        await asyncio.sleep(3)
    for one in (lines.text, *lines.lines):
        await context.emit(one)
        await context.emit({one: one, "list": [one]}, kind="tool_call")
        await context.progress(0.5, one)
    await context.step(lines.text[:60], look, lines.text)
    if lines.ends == "fail":
        raise GiveUp(lines.text)
    if lines.ends == "raise":
        raise type(lines.text[:60] or "Odd", (Exception,), {})(lines.text)
    if lines.ends == "ask":
        said = await context.ask_person(
            f"{{text}} {len(lines.text)}", who=lines.who, text=lines.text
        )
        return {"note": said.note}
    if lines.ends == "answer":
        given = await context.ask_person(
            "Say {text}", Answer, who=lines.who, text=lines.text
        )
        return {"answer": given.text}
    if lines.ends == "hold":
        await context.progress(0.9, lines.text)
        await asyncio.sleep(6)
    return {lines.text: lines.lines or lines.text}
