"""Say what a trip costs each traveller."""

from pydantic import BaseModel

from tasklore import Agent, Amount, Field, Parameters

agent = Agent("TripAgent", keywords=("trip", "travellers", "hotel"))


class Trip(Parameters):
    """A hotel bill, who shares it, and the tickets they bought."""

    hotel: Amount
    travellers: int = Field(ge=1)
    tickets: tuple[Amount, ...] = ()


class Share(BaseModel):
    """What one traveller pays; `dearest_ticket` is None when there were no tickets."""

    each: Amount
    dearest_ticket: Amount | None


@agent.task(remember="shared")
async def share_trip(trip: Trip) -> Share:
    """Tell what each traveller pays for the hotel and all tickets together."""
    total = trip.hotel + sum(trip.tickets)
    return Share(
        each=total / trip.travellers, dearest_ticket=max(trip.tickets, default=None)
    )
