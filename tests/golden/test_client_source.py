"""A program outside that uses the Python client is typed."""

from pathlib import Path

from tests.type_checks import check_types

PROGRAM = """
from tasklore.client import AsyncClient, Client, TaskFailed, models


def look(client: Client) -> list[str]:
    page = client.schedules.list(user="ann", limit=5)
    for schedule in client.schedules.each():
        page.schedules[0].missed_ticks + schedule.missed_ticks
    done: models.Sent = client.run("A", "b", {"c": 1})
    for event in client.tasks.follow(done.task_id):
        if isinstance(event, models.TextEvent):
            print(event.data)
    try:
        client.call("A.b", {})
    except TaskFailed as error:
        return [error.kind]
    return [one.question for one in client.approvals.list().approvals]


async def look_async(client: AsyncClient) -> str | None:
    async for event in client.tasks.follow("t"):
        print(event.event)
    return (await client.schedules.show("nightly")).user
"""


SLIPS = """

def slip(client: Client) -> int:
    client.schedules.list(limit="many")
    client.schedules.add(misssed="all")
    client.tasks.list(state="lost")
    return client.schedules.show("nightly").id
"""


def test_a_program_outside_is_typed(tmp_path: Path) -> None:
    """A right one passes, and each wrong use is told."""
    faults = check_types(tmp_path, {"right": PROGRAM, "wrong": PROGRAM + SLIPS})
    errors = [line for line in faults if "error:" in line]
    assert len(errors) == 4, faults
    assert all(line.startswith("wrong.py:") for line in faults)
