"""Six agents of our own invention that nobody had in mind who wrote the reader; `strangers_*.json` is said to them."""

from datetime import date, time
from typing import Literal

from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.catalogue import Catalogue
from tests.understanding.agents import Cast, card_of_tasks, task_of


class Freight(Parameters):
    """What goes from where to where."""

    origin: str = Field(cues=("from",))
    destination: str = Field(cues=("to",))
    pallets: int = Field(ge=1)
    weight: Amount = Field(unit="kg")


class Table(Parameters):
    """A table at a restaurant."""

    people: int = Field(ge=1, cues=("people", "guests"))
    day: date
    start: time = Field(cues=("at",))
    name: str | None = Field(None, cues=("under the name", "name"))


class Conversion(Parameters):
    """An amount and the currency it is wanted in."""

    amount: Amount = Field(any_currency=True)
    target: Literal["EUR", "USD", "GBP", "JPY"] = Field(cues=("to", "into"))


class Permit(Parameters):
    """What is permitted, where, and for how long."""

    purpose: str = Field(cues=("for",))
    days: int = Field(ge=1)
    street: str | None = Field(None, cues=("in", "on"))


class Fault(Parameters):
    """What is wrong, and how bad it is."""

    problem: str = Field(cues=("ticket", "problem"))
    priority: Literal["low", "normal", "urgent"] = "normal"


class Kidney(Parameters):
    """What a kidney function follows from."""

    creatinine: float
    age: int = Field(ge=0)


class Iron(Parameters):
    """What a store of iron follows from."""

    ferritin: float
    age: int | None = Field(None, ge=0)


#: The six agents, and the parameters of each of their tasks.
STRANGERS = Cast(
    catalogue=Catalogue(
        [
            card_of_tasks(
                "FreightDesk",
                "Prices freight.",
                ("freight",),
                task_of(
                    "quote_freight",
                    Freight,
                    "Quote a price for pallets.",
                    ("quote for 2 pallets, 400 kg, from Hamburg to Lyon",),
                    ("quote",),
                ),
            ),
            card_of_tasks(
                "TableHost",
                "Takes reservations for a restaurant.",
                ("table",),
                task_of(
                    "reserve_table",
                    Table,
                    "Reserve a table.",
                    (
                        "a table for 4 people tomorrow at 19:00",
                        "book a table on Friday at 20:30 for 2, name Weber",
                    ),
                    ("reserve",),
                ),
            ),
            card_of_tasks(
                "ChangeDesk",
                "Changes money.",
                ("convert", "exchange"),
                task_of(
                    "convert_money",
                    Conversion,
                    "Convert an amount to another currency.",
                    ("convert 100 USD to EUR", "what is 20 GBP in EUR"),
                ),
            ),
            card_of_tasks(
                "PermitOffice",
                "Issues permits of the town.",
                ("permit",),
                task_of(
                    "issue_permit",
                    Permit,
                    "Issue a permit.",
                    ("a permit for a street party for 2 days",),
                ),
            ),
            card_of_tasks(
                "FaultDesk",
                "Takes faults of machines.",
                ("ticket", "fault"),
                task_of(
                    "open_ticket",
                    Fault,
                    "Open a ticket.",
                    (
                        "open an urgent ticket: the printer is on fire",
                        "ticket: my mouse is broken",
                    ),
                ),
            ),
            card_of_tasks(
                "LabAgent",
                "Explains values of blood.",
                ("lab",),
                task_of(
                    "kidney_function",
                    Kidney,
                    "Estimate the function of the kidneys.",
                    ("creatinine 1.1, age 50",),
                    ("kidney", "creatinine"),
                ),
                task_of(
                    "iron_store",
                    Iron,
                    "Judge the store of iron.",
                    ("ferritin 30, age 40",),
                    ("iron", "ferritin"),
                ),
            ),
        ]
    ),
    parameters={
        ("FreightDesk", "quote_freight"): Freight,
        ("TableHost", "reserve_table"): Table,
        ("ChangeDesk", "convert_money"): Conversion,
        ("PermitOffice", "issue_permit"): Permit,
        ("FaultDesk", "open_ticket"): Fault,
        ("LabAgent", "kidney_function"): Kidney,
        ("LabAgent", "iron_store"): Iron,
    },
)
