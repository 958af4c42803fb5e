"""Whose a message is, in which order a user is forgotten, and the erasure before the settling."""

import asyncio
import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import Unreachable
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.runtime.messaging.direct import Stored
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.workers.execution.acknowledger import Acknowledger, Erasing
from tasklore.workers.forgetting.erasure import PASSES, UserStore, forget_user
from tasklore.workers.forgetting.tasks import is_letter_of, names_user
from tasklore.workers.middleware import Hooks
from tests.unit.workers.execution.fake_worker import FakeEngine

NAMES = ("ann", 'a"n\\n', "Änne 😀", "a.*")


@pytest.mark.parametrize("user", NAMES)
@pytest.mark.parametrize("escapes", [True, False])
@pytest.mark.parametrize("kept", [1.0, 0.9])
def test_a_body_names_its_user_also_when_only_its_beginning_is_there(
    user: str, escapes: bool, kept: float
) -> None:
    """However JSON spells the name."""
    whole = json.dumps(
        {"user_id": user, "text": "x" * 100}, ensure_ascii=escapes
    ).encode()
    body = whole[: int(len(whole) * kept)]
    assert names_user(body, user)
    assert not names_user(body, f"{user}e")
    assert not names_user(body, user[:-1])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b'{"text": "user_id: ann"}',
        b'{"task": {"user_id": "ann"}}',
        b"\xff",
    ],
)
def test_a_body_that_only_speaks_of_somebody_is_not_theirs(body: bytes) -> None:
    """Nor is one without a name."""
    assert not names_user(body, "ann")


def letter(
    carried: bytes,
    *,
    subject: str = "dead.tasks.A.x",
    task_id: str = "t9",
    **headers: str,
) -> Stored:
    """Return a dead letter about *carried*."""
    fields = {
        "reason": "attempts",
        "error": {"type": "E", "message": "m"},
        "subject": "tasks.A.x",
        "sequence": 1,
        "attempts": 1,
        "body": base64.b64encode(carried).decode(),
        "body_bytes": len(carried),
        "body_digest": "d",
        "task_id": task_id,
        "died_at": "2026-11-21T12:00:00Z",
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Stored(
        1, subject, "2026-11-21T12:00:00Z", named, json.dumps(fields).encode()
    )


def test_a_dead_letter_is_known_by_its_header_its_subject_its_task_or_what_it_carries() -> (
    None
):
    theirs = [
        letter(b"cut off", Tasklore_User=user_token("ann")),
        letter(b"no turn", subject=subjects.dead(subjects.turns("ann"))),
        letter(b"no facts", subject=subjects.dead(subjects.facts("ann"))),
        letter(b"cut off", task_id="t1"),
        letter(b'{"user_id": "ann"}'),
        Stored(1, "dead.tasks.A.x", "", {}, b'{"user_id": "ann"}'),
    ]
    others = [
        letter(b'{"user_id": "bob"}', Tasklore_User=user_token("bob")),
        letter(b"{}", subject=subjects.dead(subjects.turns("bob"))),
        Stored(1, "dead.tasks.A.x", "", {}, b"unreadable"),
    ]
    assert [is_letter_of(one, "ann", {"t1"}) for one in theirs] == [True] * len(theirs)
    assert [is_letter_of(one, "ann", {"t1"}) for one in others] == [False] * len(others)


class FakeStore:
    """A store, or the files of one, that notes when it was emptied, and finds something *finds* times."""

    def __init__(self, name: str, order: list[str], finds: int = 0) -> None:
        self.name = name
        self.order = order
        self.finds = finds

    async def forget(self, _user_id: str) -> Mapping[str, int]:
        """Find one, or nothing any more."""
        self.order.append(self.name)
        self.finds -= 1
        return {self.name: 1 if self.finds >= 0 else 0}

    async def count(self, _user_id: str) -> Mapping[str, int]:
        """Nothing is."""
        return {}

    async def rewrite(self) -> Mapping[str, int]:
        """Tell that it was written anew."""
        self.order.append(self.name)
        return {}

    @property
    def store(self) -> UserStore:
        """Return it as a row of the table."""
        return UserStore(self.name, self.forget, self.count)


async def test_places_are_emptied_in_order_again_and_again_and_then_their_files() -> (
    None
):
    """And once more after that, since writing files anew takes a while."""
    order: list[str] = []
    stores = FakeStore("tasks", order, finds=2).store, FakeStore("words", order).store
    done = await forget_user("ann", stores, [FakeStore("files", order).rewrite])
    assert order == ["tasks", "words"] * 3 + ["files"] + ["tasks", "words"]
    assert (done.removed, done.left, done.beside) == ({"tasks": 2}, {}, {})


async def test_what_never_ends_is_given_up_and_its_files_are_written_anew_at_the_end() -> (
    None
):
    order: list[str] = []
    done = await forget_user(
        "ann",
        [FakeStore("words", order, finds=99).store],
        [FakeStore("files", order).rewrite],
    )
    assert order == ["words"] * PASSES + ["files"] + ["words"] * PASSES + ["files"]
    assert done.removed == {"words": 2 * PASSES}


class FakeEraser:
    """An eraser that notes what it was told, waits for a word, and may be unable."""

    def __init__(self, *, is_away: bool = False) -> None:
        self.erased: list[tuple[str, int]] = []
        self.may_go_on = asyncio.Event()
        self._is_away = is_away

    async def erase(self, stream: str, sequence: int) -> bool:
        """Erase it, or raise."""
        await self.may_go_on.wait()
        if self._is_away:
            raise Unreachable("away")
        self.erased.append((stream, sequence))
        return True


def a_delivery(sequence: int) -> Delivery:
    """Return a delivery of TASKS."""
    return Delivery(
        subject="tasks.A.x",
        body=b"{}",
        headers=None,
        reply=f"$JS.ACK.{sequence}",
        deliveries=1,
        sequence=sequence,
        arrived_at=0.0,
    )


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_task_that_names_a_user_is_erased_before_it_is_acknowledged(
    is_away: bool,
) -> None:
    """It is acknowledged all the same when that is not possible; one without a user needs no erasing."""
    fake = FakeEngine()
    eraser = FakeEraser(is_away=is_away)
    acknowledger = Acknowledger(Hooks([Erasing(cast("Any", eraser))]))
    engine = cast("PullEngine", cast("Any", fake))
    anns = a_delivery(7)
    nobodys = a_delivery(8)
    acknowledger.acknowledge(anns, an_assignment("ann"), engine)
    acknowledger.acknowledge(nobodys, an_assignment(None), engine)
    await asyncio.sleep(0)
    assert fake.settled == [nobodys]
    eraser.may_go_on.set()
    while anns not in fake.settled:  # noqa: ASYNC110 - only the loop has to turn
        await asyncio.sleep(0)
    assert eraser.erased == ([] if is_away else [("TASKS", 7)])


def an_assignment(user_id: str | None) -> TaskAssignment:
    """Return an assignment of *user_id*."""
    call = TaskCall(name="x")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return TaskAssignment(
        task_id="t",
        agent_id="A",
        supervisor_id="S",
        task=call,
        created_at=at,
        user_id=user_id,
    )
