"""Reading a delivery: a job that can be run, or why it cannot, and the sender of its report."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from tasklore import Agent, Amount, Field, Parameters
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.execution.job import Job, UnfitJob
from tasklore.workers.execution.job_reader import JobReader

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

agent = Agent("ShopAgent", version=3)


class Purchase(Parameters):
    """What is bought."""

    price: Amount = Field(aliases=("cost",))
    note: str = ""

    @field_validator("note")
    @classmethod
    def stumble(cls, note: str) -> str:
        """Fail as code of a user may, with an error that no validation library knows."""
        if note == "stumble":
            raise KeyError(note)
        return note


class Receipt(BaseModel):
    """What was paid."""

    paid: Amount


@agent.task(version=2, deadline=timedelta(minutes=1), remember="shared")
async def buy(purchase: Purchase) -> Receipt:
    """Buy something."""
    return Receipt(paid=purchase.price)


@agent.task(remember="user")
async def buy_for_me(purchase: Purchase) -> Receipt:
    """Buy something for one user."""
    return Receipt(paid=purchase.price)


@agent.task(remember=False)
async def look(purchase: Purchase) -> Receipt:
    """Look at something."""
    return Receipt(paid=purchase.price)


def body(task: str = "buy", parameters: Any = None, **fields: Any) -> bytes:
    """Return an assignment as JSON."""
    whole = {
        "task_id": "t1",
        "agent_id": "ShopAgent",
        "supervisor_id": "S",
        "task": {
            "name": task,
            "parameters": {"price": "5k"} if parameters is None else parameters,
        },
        "created_at": "2026-01-01T11:59:59.500Z",
    }
    return json.dumps(whole | fields).encode()


def read(
    content: bytes,
    *,
    headers: dict[str, str] | None = None,
    deliveries: int = 1,
    remembers: bool = True,
) -> Job | UnfitJob:
    """Read a delivery of *content*."""
    delivery = Delivery(
        subject="tasks.ShopAgent.buy",
        body=content,
        headers=headers,
        reply="$JS.ACK.x",
        deliveries=deliveries,
        sequence=1,
        arrived_at=0.0,
    )
    return JobReader(agent, remembers=remembers).read(delivery, NOW)


def job(content: bytes, **options: Any) -> Job:
    """Read *content*, which must be fit."""
    found = read(content, **options)
    assert isinstance(found, Job), found
    return found


def unfit(content: bytes, **options: Any) -> UnfitJob:
    """Read *content*, which must be unfit."""
    found = read(content, **options)
    assert isinstance(found, UnfitJob), found
    return found


def test_a_job_holds_what_its_run_and_its_report_need() -> None:
    """Question, memory key with both versions, time in the queue and the task's own deadline."""
    found = job(body())
    assert (found.memory, found.queued_ms) == ("miss", 500)
    assert found.question.startswith("buy:5000")
    assert found.memory_key is not None
    assert found.memory_key.startswith(
        f"tl:ltm:{{ShopAgent}}:v3.2-{agent.tasks['buy'].code}:buy:5000"
    )
    assert (found.generation, found.attempt) == (1, 1)
    assert found.deadline == datetime(2026, 1, 1, 12, 0, 59, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "deliveries", "attempt"),
    [
        (None, 1, 1),
        (None, 3, 3),
        ("4", 1, 4),
        ("4", 2, 5),
        ("x", 2, 2),
        ("-1", 1, 1),
        ("9" * 30, 1, 1),
        ("²", 1, 1),
    ],
)
def test_attempts_are_those_before_this_stream_and_its_deliveries(
    header: str | None, deliveries: int, attempt: int
) -> None:
    """A header that is no number counts as the first attempt."""
    headers = {} if header is None else {"Tasklore-Attempt": header}
    assert job(body(), headers=headers, deliveries=deliveries).attempt == attempt


@pytest.mark.parametrize(
    ("task", "word", "remembers", "outcome", "keyed"),
    [
        ("buy", "use", True, "miss", True),
        ("buy", "refresh", True, "refreshed", True),
        ("buy", "bypass", True, "bypassed", False),
        ("buy", "a word of a newer supervisor", True, "bypassed", False),
        ("buy", "use", False, "off", False),
        ("look", "use", True, "off", False),
    ],
)
def test_what_the_memory_has_to_do_with_it(
    task: str, word: str, remembers: bool, outcome: str, keyed: bool
) -> None:
    found = job(body(task, memory=word), remembers=remembers)
    assert (found.memory, found.memory_key is not None) == (outcome, keyed)


def test_what_is_remembered_for_all_has_one_key_whoever_asks() -> None:
    named = {job(body(user_id=name)).memory_key for name in ("ann", "bob")}
    assert named == {job(body()).memory_key}


def test_what_is_remembered_for_a_user_is_keyed_by_the_user() -> None:
    ann, bob = (
        job(body("buy_for_me", user_id=name)).memory_key for name in ("ann", "bob")
    )
    assert ann != bob
    nobody = unfit(body("buy_for_me"))
    assert "user_id" in str(nobody.problem)
    assert nobody.assignment is not None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (body("sell"), ["sell", "buy_for_me"]),
        (body(agent_id="Other"), ["Other", "ShopAgent"]),
        (body(parameters={}), ["price", "missing"]),
        (body(parameters={"price": 1, "colour": 2}), ["colour", "price", "cost"]),
        (body(parameters={"price": 1, "note": "stumble"}), ["stumble"]),
        (body(created_at="9999-12-31T23:59:59Z"), ["created_at"]),
        (body(max_attempts=0), ["max_attempts"]),
        (body(deadline="tomorrow"), ["deadline"]),
    ],
)
def test_what_no_run_can_mend_names_the_field_and_whom_to_tell(
    content: bytes, words: list[str]
) -> None:
    """The sender is known although something else is wrong."""
    found = unfit(content)
    assert not found.is_expired
    assert found.assignment is not None
    assert (found.assignment.task_id, found.assignment.supervisor_id) == ("t1", "S")
    for word in words:
        assert word in str(found.problem)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        body()[:20],
        body(task_id="a b"),
        body(supervisor_id="*"),
        body().decode().encode("utf-16"),
    ],
)
def test_what_has_no_legible_sender_has_nobody_to_tell(content: bytes) -> None:
    """It is unfit all the same, and never an exception."""
    assert unfit(content).assignment is None


def test_a_truncated_assignment_still_tells_its_sender() -> None:
    whole = body(note="x" * 100)
    found = unfit(whole[:-60])
    assert found.assignment is not None
    assert found.assignment.task_id == "t1"


def test_an_oversized_body_is_refused_to_its_sender() -> None:
    """It is not even validated."""
    found = unfit(body(padding="x" * 960 * 1024))
    assert found.assignment is not None
    assert str(960 * 1024) in str(found.problem)


@pytest.mark.parametrize(
    "deadline",
    ["2026-01-01T12:00:00Z", "2026-01-01T12:00:00", "0001-01-01T00:00:00+14:00"],
)
def test_what_is_past_its_deadline_is_expired(deadline: str) -> None:
    """Also at the very moment, and without a time zone, which means UTC."""
    found = unfit(body(deadline=deadline))
    assert found.is_expired


def test_the_generation_comes_from_its_header() -> None:
    assert job(body(), headers={"Tasklore-Generation": "7"}).generation == 7
