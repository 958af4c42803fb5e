"""An agent for tests whose parameters are of every exact type: alone, or None, in lists, and with a tolerance."""

from datetime import timedelta

from tasklore import (
    Agent,
    Amount,
    Duration,
    Field,
    Moment,
    Parameters,
    Percent,
    Quantity,
)

agent = Agent("ExactAgent")


class Parcel(Parameters):
    """A field of each exact type, and what may be taken for one of them."""

    price: Amount = Field(unit="USD")
    discount: Percent
    way: Quantity = Field(unit="km")
    # A description of its own stands in the place of the type's.
    within: Duration = Field(description="How long it may take.")
    since: Moment
    least: Amount | None = Field(None, any_currency=True)
    rebate: Percent | None = None
    weight: Quantity | None = None
    pause: Duration | None = Field(None, unit="minute")
    until: Moment | None = None
    prices: tuple[Amount, ...] = Field((), any_currency=True)
    shares: tuple[Percent | None, ...] = ()
    ways: list[Quantity] | None = None
    pauses: list[Duration] = Field([])
    days: set[Moment] = Field(set())
    tax: Percent = Field("19%")
    fixed: timedelta = timedelta(days=400)


class Trip(Parameters):
    """A field of each exact type, each with a tolerance."""

    price: Amount = Field(unit="USD", tolerance="1%")
    discount: Percent = Field(tolerance="0.5")
    way: Quantity = Field(unit="km", tolerance="500 m")
    warmth: Quantity | None = Field(None, unit="°C", tolerance=2)
    within: Duration = Field(unit="minute", tolerance=10)
    lease: Duration | None = Field(None, tolerance="2 months")
    since: Moment = Field(tolerance="1 hour")


@agent.task(remember="shared")
async def send(parcel: Parcel) -> str:
    """Send a parcel."""
    return f"{parcel.way} within {parcel.within}"


@agent.task(remember="shared")
async def travel(trip: Trip) -> str:
    """Plan a trip."""
    return f"{trip.way} within {trip.within}"
