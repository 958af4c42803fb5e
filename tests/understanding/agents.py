"""Eight agents of our own invention, with the cards a new user would write; the corpora here are said to them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Literal, NamedTuple

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Duration, Percent, Quantity
from tasklore.supervisor.catalogue import Catalogue

#: When every sentence is said: a Saturday, so "tomorrow" is Sunday 22 November 2026.
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


class Cast(NamedTuple):
    """Agents that sentences are said to, and the *parameters* of every task by agent and task."""

    catalogue: Catalogue
    parameters: Mapping[tuple[str, str], type[Parameters]]


class Cake(Parameters):
    """A cake to be baked."""

    flavour: Literal["chocolate", "lemon", "carrot", "red velvet"]
    servings: int = Field(
        ge=1,
        le=200,
        aliases=("people",),
        cues=("servings", "people", "guests", "feeds"),
    )
    pickup_day: date = Field(
        cues=("pick up", "ready"), description="The day on which the cake is picked up."
    )
    writing: str | None = Field(None, cues=("saying", "that says", "with the words"))
    gluten_free: bool = False


class Drive(Parameters):
    """A drive for work."""

    distance: Amount = Field(unit="km", cues=("drove", "distance", "driven"))
    purpose: str | None = Field(
        None, cues=("purpose", "to visit"), examples=("a client in Leeds",)
    )
    day: date | None = None
    passengers: int = Field(0, ge=0, cues=("passengers",))


class Refund(Parameters):
    """What a drive is worth."""

    distance: Amount = Field(unit="km", cues=("distance",))
    rate: Amount = Field("0.30", unit="EUR", cues=("rate", "per km", "a kilometre"))


class Room(Parameters):
    """A meeting room for some time."""

    room: Literal["Aurora", "Borealis", "Cedar"] | None = None
    day: date
    start: time = Field(cues=("at", "from", "starting"))
    duration: Duration = Field("1 hour", cues=("for",))
    attendees: int | None = Field(None, ge=1, cues=("people", "attendees"))


class Booking(Parameters):
    """A booking that was made."""

    number: str = Field(pattern="^B-[0-9]{4}$", cues=("booking",), examples=("B-1042",))


class Savings(Parameters):
    """How to save for something."""

    goal: Amount = Field(
        unit="EUR", cues=("goal", "target", "save up"), description="The sum to save."
    )
    monthly: Amount = Field(
        unit="EUR", cues=("a month", "per month", "monthly", "each month")
    )
    interest: Percent = Field("0%", cues=("interest",))


class Workout(Parameters):
    """One exercise of a workout."""

    exercise: str = Field(examples=("bench press", "squats", "deadlift"))
    repetitions: int = Field(
        ge=1, aliases=("reps",), cues=("reps", "repetitions", "times")
    )
    sets: int = Field(1, ge=1, cues=("sets",))
    weight: Quantity | None = Field(None, unit="kg", cues=("with", "weight"))


class Parcel(Parameters):
    """A parcel on its way."""

    tracking_number: str = Field(
        pattern="^[A-Z]{2}[0-9]{9}$",
        cues=("parcel", "tracking number"),
        examples=("RX123456789",),
    )


class Shipping(Parameters):
    """A parcel to be sent."""

    weight: Amount = Field(unit="kg", cues=("weighs", "weight", "parcel of"))
    destination: str = Field(cues=("to",), examples=("Portugal", "Oslo"))
    express: bool = False
    insured_for: Amount | None = Field(
        None, unit="EUR", cues=("insured for", "insurance", "worth")
    )


class Recipe(Parameters):
    """What is to be cooked."""

    ingredients: tuple[str, ...] = Field(
        cues=("with", "using", "from"), examples=(["rice", "leeks"],)
    )
    avoid: tuple[str, ...] = Field(
        (), cues=("without", "no", "avoiding"), examples=(["nuts"],)
    )
    max_time: Duration | None = Field(
        None, cues=("in under", "within", "at most", "in less than")
    )
    vegetarian: bool = False


class Ticket(Parameters):
    """A problem that somebody has to solve."""

    title: str = Field(
        cues=("ticket", "about", "titled"), examples=("printer on floor 2 is jammed",)
    )
    priority: Literal["low", "normal", "high"] = Field("normal", cues=("priority",))
    assignee: str | None = Field(
        None, cues=("assign to", "assigned to", "assign it to"), examples=("Priya",)
    )
    due: date | None = Field(None, cues=("due", "by"))


def task_of(
    name: str,
    parameters: type[Parameters],
    description: str,
    examples: Sequence[str] = (),
    keywords: Sequence[str] = (),
) -> TaskCard:
    """Return a task that says nothing of remembering."""
    return TaskCard(
        name=name,
        description=description,
        parameters=parameters.schema_for_cards(),
        examples=tuple(examples),
        keywords=tuple(keywords),
        # As of every task that says nothing of it.
        remember="never",
    )


def card_of_tasks(
    agent_id: str, description: str, keywords: Sequence[str], *tasks: TaskCard
) -> AgentCard:
    """Return the card of an agent with *tasks*."""
    return AgentCard(
        agent_id=agent_id,
        description=description,
        keywords=tuple(keywords),
        tasks=tasks,
        digest="0",
    )


#: The parameters of every task, by agent and task.
PARAMETERS: dict[tuple[str, str], type[Parameters]] = {
    ("BakeryAgent", "order_cake"): Cake,
    ("MileageAgent", "log_drive"): Drive,
    ("MileageAgent", "estimate_refund"): Refund,
    ("RoomAgent", "book_room"): Room,
    ("RoomAgent", "cancel_booking"): Booking,
    ("SavingsAgent", "plan_savings"): Savings,
    ("GymAgent", "log_exercise"): Workout,
    ("PostAgent", "track_parcel"): Parcel,
    ("PostAgent", "quote_shipping"): Shipping,
    ("RecipeAgent", "find_recipe"): Recipe,
    ("HelpdeskAgent", "open_ticket"): Ticket,
}

CARDS = (
    card_of_tasks(
        "BakeryAgent",
        "Takes orders for cakes.",
        ("cake",),
        task_of(
            "order_cake",
            Cake,
            "Order a cake.",
            (
                "Order a lemon cake for 12 people, ready on Friday",
                "I need a chocolate cake that says Happy Birthday for 8 guests, pick up on 3 December",
                "can you bake me a gluten free carrot cake, 20 servings, for tomorrow",
            ),
        ),
    ),
    card_of_tasks(
        "MileageAgent",
        "Keeps the log of business drives.",
        ("mileage",),
        task_of(
            "log_drive",
            Drive,
            "Log a drive for work.",
            (
                "I drove 45 km today",
                "log a drive of 120 km to visit a client in Leeds",
                "drove 30 km with 2 passengers",
            ),
        ),
        task_of(
            "estimate_refund",
            Refund,
            "Estimate the refund for a drive.",
            (
                "What is the refund for 200 km?",
                "how much do I get back for 85 km at a rate of 0.35 euros",
            ),
            ("refund",),
        ),
    ),
    card_of_tasks(
        "RoomAgent",
        "Books meeting rooms.",
        (),
        task_of(
            "book_room",
            Room,
            "Book a meeting room.",
            (
                "Book Aurora on Monday at 14:00 for 2 hours",
                "I need a meeting room tomorrow at 9:30",
                "reserve a room for 6 people on 1 December from 10 am",
            ),
        ),
        task_of(
            "cancel_booking",
            Booking,
            "Cancel a booking of a room.",
            ("cancel booking B-1042",),
        ),
    ),
    card_of_tasks(
        "SavingsAgent",
        "Tells how long saving takes.",
        ("savings", "save"),
        task_of(
            "plan_savings",
            Savings,
            "Plan how to save for a goal.",
            (
                "How long does it take to save 5,000 euros with 200 a month?",
                "savings goal 12k, 350 per month, 2% interest",
            ),
        ),
    ),
    card_of_tasks(
        "GymAgent",
        "Keeps a training log.",
        ("workout",),
        task_of(
            "log_exercise",
            Workout,
            "Log an exercise.",
            (
                "Log bench press, 3 sets, 10 reps with 60 kg",
                "I did 20 squats",
                "deadlift 5 reps with 100 kg",
            ),
        ),
    ),
    card_of_tasks(
        "PostAgent",
        "Answers questions about parcels.",
        (),
        task_of(
            "track_parcel",
            Parcel,
            "Track a parcel.",
            ("Where is my parcel RX123456789?", "track RX123456789"),
            ("track",),
        ),
        task_of(
            "quote_shipping",
            Shipping,
            "Tell what sending a parcel costs.",
            (
                "What does it cost to send 2 kg to Portugal?",
                "shipping for a parcel of 500 g to Oslo, express",
                "price of shipping 10 kg to Japan insured for 300 euros",
            ),
            ("shipping",),
        ),
    ),
    card_of_tasks(
        "RecipeAgent",
        "Finds something to cook.",
        ("recipe", "cook"),
        task_of(
            "find_recipe",
            Recipe,
            "Find a recipe.",
            (
                "Find a recipe with rice and leeks",
                "what can I cook with eggs, spinach and feta in under 30 minutes",
                "a vegetarian recipe with lentils, without nuts",
            ),
        ),
    ),
    card_of_tasks(
        "HelpdeskAgent",
        "Takes problems with office equipment and software.",
        ("ticket",),
        task_of(
            "open_ticket",
            Ticket,
            "Open a ticket for the help desk.",
            (
                "Open a ticket: printer on floor 2 is jammed",
                'open a high priority ticket "VPN drops every hour", assign to Priya',
                "create a ticket about the broken projector, due Friday",
            ),
        ),
    ),
)

#: The eight agents.
EVERYDAY = Cast(Catalogue(CARDS), PARAMETERS)
