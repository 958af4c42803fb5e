"""An agent for tests that keeps the day it was asked for."""

from datetime import date

from pydantic import BaseModel

from tasklore import Agent, Field, Parameters

agent = Agent("TavernAgent", keywords=("tavern",))


class Table(Parameters):
    """When to come."""

    day: date = Field(cues=("table for",))


class Reserved(BaseModel):
    """When somebody comes."""

    day: date


@agent.task
def reserve_table(table: Table) -> Reserved:
    """Reserve a table at the tavern."""
    return Reserved(day=table.day)
