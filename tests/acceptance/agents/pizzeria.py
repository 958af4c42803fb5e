"""An agent for tests as a newcomer writes one: it says nothing of remembering, and every run of it makes something."""

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from workers import Agent, Parameters

agent = Agent("PizzaAgent", keywords=("pizza", "pizzas"))

#: Where each order leaves a line.
RUNS = Path(os.environ["PROBE_RUNS"])


class Order(Parameters):
    """What is to be baked."""

    pizzas: int
    size: Literal["small", "large"]
    topping: Literal["salami", "funghi"]


class Receipt(BaseModel):
    """What was baked."""

    pizzas: int


@agent.task
async def order_pizza(order: Order) -> Receipt:
    """Order pizzas."""
    with (RUNS / "pizzas").open("a") as orders:
        orders.write(f"{order.pizzas}\n")
    return Receipt(pizzas=order.pizzas)
