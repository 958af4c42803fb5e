"""Agents for tests that clients ask by name: one with two tasks, and one whose words the first would take too."""

from tasklore import Agent, Context, Parameters

desk = Agent("DeskAgent", keywords=("room",))
rival = Agent("RivalAgent", keywords=("room",))


class Room(Parameters):
    """Which room, and for how many."""

    number: int
    guests: int


@desk.task(remember=False, examples=("book the room number 7 for 2 guests",))
async def book_room(room: Room, context: Context) -> str:
    """Book a room."""
    await context.emit("Booking ")
    return f"Booked room {room.number} for {room.guests}"


class Nothing(Parameters):
    """No values."""


@desk.task(remember=False, examples=("close the desk",))
async def close_desk(_nothing: Nothing) -> str:
    """Close the desk."""
    return "Closed"


@rival.task(remember=False, examples=("book the room number 7 for 2 guests",))
async def book_room_elsewhere(room: Room) -> str:
    """Book a room elsewhere."""
    return f"Elsewhere room {room.number} for {room.guests}"
