"""Ten invented agents for the recorded cases of `recorded_cases.json`; none of them is shipped, or read by any rule."""

from collections.abc import Mapping
from datetime import date, time
from typing import Any, Literal

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Duration, Percent, Quantity


class ReserveBook(Parameters):
    """A book that is put aside."""

    title: str = Field(description="title of the book", examples=("The Leopard",))
    author: str | None = Field(None, description="who wrote it")
    copies: int = Field(1, ge=1, le=40, description="how many copies")
    pickup: date | None = Field(None, description="day on which it is fetched")


class RenewLoan(Parameters):
    """A loan that goes on."""

    loan_number: str = Field(description="number on the slip", examples=("L-2041",))
    until: date = Field(description="new last day")


class WaterZone(Parameters):
    """Water for one zone."""

    zone: Literal["orchard", "greenhouse", "lawn", "vineyard"] = Field(
        description="which part of the garden"
    )
    litres: Amount = Field(
        unit="l", description="how much water", cues=("litres", "water")
    )
    start: time | None = Field(None, description="time of day at which it begins")


class SoilReport(Parameters):
    """One zone."""

    zone: Literal["orchard", "greenhouse", "lawn", "vineyard"] = Field(
        description="which part of the garden"
    )


class OrderPrint(Parameters):
    """A job of the print shop."""

    copies: int = Field(ge=1, description="number of copies")
    paper: Literal["matte", "glossy", "recycled"] = Field(
        "matte", description="kind of paper"
    )
    size: Literal["A3", "A4", "A5", "A6"] = Field(description="size of a sheet")
    ready_by: date | None = Field(None, description="day by which it is needed")


class QuoteFreight(Parameters):
    """What is sent, and between which towns."""

    origin: str = Field(description="town it leaves from", examples=("Rotterdam",))
    destination: str = Field(description="town it goes to", examples=("Lyon",))
    weight: Quantity = Field(unit="kg", description="gross weight")
    pallets: int | None = Field(None, ge=1, description="number of pallets")
    insured_value: Amount | None = Field(
        None, unit="EUR", description="value to insure"
    )


class BookFreight(Parameters):
    """An offer that is taken."""

    quote_number: str = Field(description="number of the quote", examples=("Q-771",))
    pickup: date = Field(description="day of collection")


class SwapShift(Parameters):
    """Two nurses and a shift."""

    nurse: str = Field(description="who gives the shift away")
    colleague: str = Field(description="who takes it over")
    day: date
    shift: Literal["early", "late", "night"]


class RepayLoan(Parameters):
    """A loan and its terms."""

    principal: Amount = Field(unit="USD", description="sum that is borrowed")
    rate: Percent = Field(description="interest a year")
    term: Duration = Field(description="how long it runs")
    extra: Amount | None = Field(None, unit="USD", description="paid on top each month")


class AdjustTank(Parameters):
    """One aquarium."""

    tank: str = Field(description="name of the tank", examples=("Reef One",))
    temperature: Quantity | None = Field(
        None, unit="°C", description="water temperature to hold"
    )
    ph: Amount | None = Field(None, description="acidity to hold")
    feedings: int | None = Field(None, ge=0, description="meals a day")


class PlanHike(Parameters):
    """A hike."""

    region: str = Field(description="where to walk", examples=("Dolomites",))
    distance: Amount = Field(unit="km", description="length of the walk")
    hikers: int = Field(1, ge=1, description="how many people walk")
    day: date | None = None
    difficulty: Literal["easy", "moderate", "hard"] | None = None


class BookStudio(Parameters):
    """A room for music."""

    room: Literal["red room", "blue room", "attic"] = Field(
        description="which rehearsal room"
    )
    day: date
    start: time = Field(description="when it begins")
    length: Duration = Field(description="how long it is needed")
    musicians: int | None = Field(None, ge=1)


class ProjectSavings(Parameters):
    """A plan of saving."""

    monthly: Amount = Field(unit="EUR", description="put aside each month")
    years: int = Field(ge=1, description="for how many years")
    rate: Percent | None = Field(None, description="interest a year")
    history: tuple[Amount, ...] = Field(
        (), unit="EUR", description="what was saved in past months, oldest first"
    )


#: By "Agent.task": the parameters, what the task does, its examples, and whether it is shown for a yes first.
TASKS: Mapping[str, tuple[type[Parameters], str, tuple[str, ...], bool]] = {
    "LibraryDesk.reserve_book": (ReserveBook, "Put a book aside for a reader.", ("keep Dune for me",), False),
    "LibraryDesk.renew_loan": (RenewLoan, "Renew a loan until a later day.", ("extend loan L-88 to 3 May",), False),
    "GardenAgent.water_zone": (
        WaterZone, "Water one zone of the garden.", ("200 l for the lawn at 6 am",), False,
    ),
    "GardenAgent.soil_report": (SoilReport, "Tell how moist the soil of a zone is.", ("how dry is the lawn",), False),
    "PrintShop.order_print": (
        OrderPrint, "Print a document.", ("40 copies on glossy A4", "print 12 A5, recycled"), False,
    ),
    "FreightDesk.quote_freight": (
        QuoteFreight, "Quote what it costs to send goods by lorry.", ("800 kg from Rotterdam to Lyon",), False,
    ),
    "FreightDesk.book_freight": (BookFreight, "Book a quoted transport.", ("book Q-771 for 3 May",), True),
    "ClinicRota.swap_shift": (SwapShift, "Hand a nurse's shift to a colleague.", ("Ida takes Jon's night",), True),
    "LoanDesk.repay_loan": (RepayLoan, "Work out the repayment of a loan.", ("$20,000 over 5 years at 4%",), False),
    "AquariumAgent.adjust_tank": (AdjustTank, "Set what a tank is held at.", ("Reef One to 25 °C",), False),
    "TrailGuide.plan_hike": (PlanHike, "Plan a hike.", ("12 km in the Dolomites for 3",), False),
    "StudioDesk.book_studio": (
        BookStudio, "Book a rehearsal room.", ("the attic on Friday at 7 pm for 2 hours",), False,
    ),
    "SavingsAgent.project_savings": (
        ProjectSavings, "Project what monthly saving comes to.", ("200 a month for 10 years",), False,
    ),
}  # fmt: skip


def cards(extra: Mapping[str, Any] | None = None) -> list[AgentCard]:
    """Return the card of each agent, its tasks with *extra* fields."""
    tasks: dict[str, list[TaskCard]] = {}
    for name, (parameters, description, examples, confirm) in TASKS.items():
        agent_id, task_name = name.split(".")
        card = {
            "name": task_name,
            "description": description,
            "parameters": parameters.schema_for_cards(),
            "examples": examples,
            "confirm": confirm,
        }
        tasks.setdefault(agent_id, []).append(
            TaskCard.model_validate({**card, **(extra or {})})
        )
    return [
        AgentCard(agent_id=agent_id, tasks=tuple(own), digest="0")
        for agent_id, own in tasks.items()
    ]
