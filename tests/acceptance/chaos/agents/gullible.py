"""An agent for poison: it takes every kind of parameter, does nothing with them, and says them again."""

import gc
import sys
from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, JsonValue

from tasklore import Agent, Amount, Field, Parameters

agent = Agent("GullibleAgent", keywords=("swallow",))


class Part(BaseModel):
    """A nested piece."""

    name: str = ""
    weight: float = 0.0


class Morsel(Parameters):
    """One of everything."""

    amount: Amount = Field(cues=("swallow", "amount"))
    amounts: tuple[Amount, ...] = ()
    price: Amount | None = Field(None, unit="USD")
    text: str = ""
    number: int = 0
    ratio: float = 0.0
    exact: Decimal = Decimal(0)
    flag: bool = False
    when: datetime | None = None
    taste: Literal["sweet", "sour"] = "sweet"
    parts: tuple[Part, ...] = ()


class Pair(Parameters):
    """Two numbers, of which one has a name that is also a word of every sentence."""

    a: int
    b: int = 0


class Roll(Parameters):
    """Nothing to say."""


class Kept(BaseModel):
    """What was swallowed, as JSON."""

    said: JsonValue


class Weight(BaseModel):
    """How much a process keeps alive: blocks that the interpreter has allocated."""

    blocks: int


@agent.task(max_attempts=1, remember="shared")
async def swallow(morsel: Morsel) -> Kept:
    """Swallow an amount and everything else, and remember it."""
    return Kept(said=morsel.model_dump(mode="json"))


@agent.task(remember=False, max_attempts=1)
async def taste(morsel: Morsel) -> Kept:
    """Taste everything and remember nothing."""
    return Kept(said=morsel.model_dump(mode="json"))


@agent.task(remember=False)
async def pair(pair: Pair) -> Kept:
    """Pair two numbers."""
    return Kept(said=[pair.a, pair.b])


@agent.task(remember=False)
async def weigh(_roll: Roll) -> Weight:
    """Count what is alive after a full collection."""
    gc.collect()
    return Weight(blocks=sys.getallocatedblocks())
