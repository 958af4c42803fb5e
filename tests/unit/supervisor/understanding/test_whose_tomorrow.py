"""The time zone in which a day is read."""

from datetime import UTC, date, datetime

import pytest

from tasklore.contracts.messages import ChatTurn, PersonReply, PersonRequest
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.requests.readings import RequestReadings
from tasklore.supervisor.requests.request import Incoming
from tasklore.supervisor.understanding import RuleInterpreter
from tests.fakes.stores import FakeConversations
from tests.understanding_cases import card_for

#: In Berlin the 22nd has begun, in Los Angeles it is the afternoon of the 21st.
LATE = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)


class Table(Parameters):
    """A day."""

    day: date = Field(cues=("table for", "table"))


TAVERN = card_for("tavern", "reserve", Table, "Reserve a table", keywords=("reserve",))
DINER = card_for("diner", "reserve", Table, "Reserve a table", keywords=("reserve",))


async def day_of(
    request: PersonRequest, catalogue: Catalogue, before: list[ChatTurn], time_zone: str
) -> object:
    """Return the day that *request* is read as, or what is asked back."""
    understanding = RequestReadings(
        interpreter=RuleInterpreter(),
        catalogue=lambda: catalogue,
        conversations=FakeConversations(),
        publish=lambda _turn: None,
        now=lambda: LATE,
        time_zone=time_zone,
    )
    asked = Incoming(
        request=request,
        request_id="r",
        conversation_id="c",
        task_id="t",
        routed=lambda _assignment: None,
    )
    reading = await understanding.of(asked, before)
    assert not isinstance(reading, PersonReply)
    part = reading.parts[0]
    return (
        part.task.parameters["day"]
        if part.kind == "task" and part.task is not None
        else part.text
    )


@pytest.mark.parametrize(
    ("of_all", "of_one", "day"),
    [
        ("UTC", "Europe/Berlin", "2026-11-23"),
        ("Asia/Tokyo", "UTC", "2026-11-22"),
    ],
)
async def test_tomorrow_is_read_in_the_requests_or_the_supervisors_time_zone(
    of_all: str, of_one: str | None, day: str
) -> None:
    request = PersonRequest(
        text="reserve a table for tomorrow", request_id="r", time_zone=of_one
    )
    assert await day_of(request, Catalogue([TAVERN]), [], of_all) == day


async def test_earlier_words_are_read_in_the_same_time_zone() -> None:
    both = Catalogue([TAVERN, DINER])
    text = "reserve a table for tomorrow"
    question = await day_of(PersonRequest(text=text), both, [], "Europe/Berlin")
    said = ChatTurn(
        turn_id="1", conversation_id="c", speaker="person", text=text, at=LATE
    )
    back = ChatTurn(
        turn_id="2",
        conversation_id="c",
        speaker="assistant",
        text=str(question),
        at=LATE,
    )
    assert (
        await day_of(
            PersonRequest(text="the tavern"), both, [said, back], "Europe/Berlin"
        )
        == "2026-11-23"
    )
