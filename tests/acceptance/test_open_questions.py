"""Several questions of one run are open at once, also over kills: none is lost, none asked or paid twice."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import pytest
from nats.aio.msg import Msg

from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System, running_system
from tests.acceptance.test_waits import PAYER, YES, Doors, Shop, holds_nothing, keys_in

#: Seconds in which a delivery that a killed worker did not acknowledge is offered again.
_OFFERED_AGAIN_S = 4.0


@pytest.fixture
def keys(own_system: System) -> dict[str, str]:
    return keys_in(own_system.folder)


def a_supervisor(system: System) -> Served:
    """Start a supervisor with the HTTP API."""
    return system.supervisor(
        api_keys_file=system.folder / "keys.json", api_rate=10_000, api_burst=10_000
    ).ready()


@pytest.fixture
def supervisor(own_system: System, keys: dict[str, str]) -> Served:
    assert keys
    return a_supervisor(own_system)


@pytest.fixture
def own_doors(supervisor: Served, keys: dict[str, str]) -> Doors:
    return Doors(supervisor.api, keys)


@pytest.fixture
async def own_program(own_system: System) -> AsyncIterator[Outside]:
    async with outside(own_system.servers.nats_url) as connected:
        yield connected


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Give one to all tests that kill nothing."""
    with running_system(tmp_path_factory.mktemp("office")) as system:
        worker = system.worker(PAYER)
        keys = keys_in(system.folder)
        supervisor = a_supervisor(system)
        worker.ready()
        yield Shop(system, supervisor, keys)


@pytest.fixture
async def doors(office: Shop) -> Doors:
    return Doors(office.supervisor.api, office.keys)


@pytest.fixture
async def program(office: Shop) -> AsyncIterator[Outside]:
    async with outside(office.system.servers.nats_url) as connected:
        yield connected


async def open_of(doors: Doors, task_id: str) -> list[dict[str, Any]]:
    path = f"/v1/approvals?task_id={task_id}"
    return list((await doors.call("finance", "GET", path))[1]["approvals"])


async def opened(doors: Doors, task_id: str, number: int) -> list[dict[str, Any]]:
    """Return the open questions of a task once there are as many."""
    async with asyncio.timeout(60):
        while len(found := await open_of(doors, task_id)) != number:  # noqa: ASYNC110 - a server is looked at
            await asyncio.sleep(0.05)
    return found


async def answer(doors: Doors, question: dict[str, Any], note: str = "fine") -> int:
    """Answer yes, and return the status."""
    said = {"answer": {"approved": True, "note": note}}
    path = f"/v1/approvals/{question['id']}"
    return (await doors.call("finance", "POST", path, said))[0]


def steps_of(system: System, label: str, names: str) -> list[int]:
    """Return how often each step was taken."""
    return [
        len(system.runs(f"{label}-{part}-{name}"))
        for part in ("before", "after")
        for name in names
    ]


async def test_questions_of_one_run_are_open_and_noticed_at_once_and_answered_in_any_order(
    office: Shop, doors: Doors, program: Outside
) -> None:
    """Nothing is held meanwhile; each answer begins a run, and no question is noticed again."""
    noticed = Counter[str]()

    async def hear(message: Msg) -> None:
        noticed[json.loads(message.data)["question"]] += 1

    await program.client.subscribe("questions.*", cb=hear)
    label = f"L{uuid4().hex}"
    task_id = await program.assign(
        "PayerAgent", "pay_many", {"label": label, "names": list("abc")}
    )
    asked = await opened(doors, task_id, 3)
    assert [one["question"] for one in asked] == ["Pay a?", "Pay b?", "Pay c?"]
    # None is noticed once it has its answer.
    await program.eventually(lambda: are_noticed(noticed, 3))
    await program.eventually(lambda: holds_nothing(program))
    listed = await asyncio.to_thread(
        office.system.command,
        *("--direct", "approvals", "list", "--task", task_id, "--json"),
    )
    assert [one["id"] for one in json.loads(listed.stdout)["approvals"]] == [
        one["id"] for one in asked
    ]
    traced = await asyncio.to_thread(
        office.system.command, "--direct", "trace", task_id
    )
    assert all(
        f"(question {one['id']})" in traced.stdout.replace("\n", " ") for one in asked
    )
    for left, question in ((2, asked[2]), (1, asked[0])):
        assert await answer(doors, question) == 200
        await program.eventually(lambda: has_run(office.system, label, 4 - left))  # noqa: B023 - awaited at once
        still = await opened(doors, task_id, left)
        assert question["id"] not in [one["id"] for one in still]
        assert [one["asked_at"] for one in still] == [
            one["asked_at"]
            for one in asked
            if one["id"] in [two["id"] for two in still]
        ]
        assert await answer(doors, question) == 409
        await program.eventually(lambda: holds_nothing(program))
    assert await answer(doors, asked[1]) == 200
    report = await program.report_of(task_id)
    assert report["result"] == [f"{name} True fine" for name in "abc"]
    assert steps_of(office.system, label, "abc") == [1] * 6
    assert len(office.system.runs(f"{label}-runs")) == 4
    assert set(noticed.values()) == {1}
    assert len(noticed) == 3


async def test_a_second_copy_of_a_task_that_waits_is_held_no_longer_than_the_first(
    office: Shop, doors: Doors, program: Outside
) -> None:
    """As when the streams are looked at first while a task comes, or its acknowledgement was lost."""
    label = f"L{uuid4().hex}"
    assignment = program.assignment(
        "PayerAgent", "pay_many", {"label": label, "names": list("ab")}
    )
    body = json.dumps(assignment).encode()
    await program.publish("tasks.PayerAgent.pay_many", body)
    asked = await opened(doors, assignment["task_id"], 2)
    await program.eventually(lambda: holds_nothing(program))
    for _ in range(3):
        await program.publish("tasks.PayerAgent.pay_many", body)
    await program.eventually(lambda: holds_nothing(program))
    for question in asked:
        assert await answer(doors, question) == 200
    report = await program.report_of(assignment["task_id"])
    assert report["result"] == [f"{name} True fine" for name in "ab"]
    assert steps_of(office.system, label, "ab") == [1] * 4
    await program.eventually(lambda: holds_nothing(program))
    assert list((await program.reports()).values()) == [1]


async def are_noticed(noticed: Counter[str], number: int) -> bool:
    return len(noticed) == number


async def has_run(system: System, label: str, times: int) -> bool:
    return len(system.runs(f"{label}-runs")) == times


async def test_fifty_answers_at_once_are_all_heard(
    office: Shop, doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    names = [f"n{number}" for number in range(50)]
    task_id = await program.assign(
        "PayerAgent", "pay_many", {"label": label, "names": names}
    )
    asked = await opened(doors, task_id, 50)
    statuses = await asyncio.gather(
        *(answer(doors, one, note) for one in asked for note in ("one", "two"))
    )
    assert Counter(statuses) == {200: 50, 409: 50}
    result = (await program.report_of(task_id))["result"]
    assert [line.partition(" ")[0] for line in result] == names
    assert {len(office.system.runs(f"{label}-after-{name}")) for name in names} == {1}
    await program.eventually(lambda: holds_nothing(program))
    assert list((await program.reports()).values()) == [1]


@pytest.mark.parametrize(
    "point",
    [
        "before b is asked",
        "after schedule",
        "before record",
        "after record",
        "before acknowledgement",
    ],
)
async def test_a_worker_that_is_killed_beside_several_questions_loses_and_doubles_nothing(
    own_system: System, own_doors: Doors, own_program: Outside, point: str
) -> None:
    (own_system.folder / "runs" / "die-at").write_text(point)
    doomed = own_system.worker(PAYER, ack_wait_s=2).ready()
    label = f"L{uuid4().hex}"
    task_id = await own_program.assign(
        "PayerAgent", "pay_many", {"label": label, "names": list("abc")}
    )
    await asyncio.to_thread(doomed.wait)
    own_system.worker(PAYER, ack_wait_s=2).ready()
    for question in reversed(await opened(own_doors, task_id, 3)):
        assert await answer(own_doors, question) == 200
    report = await own_program.report_of(task_id)
    assert report["result"] == [f"{name} True fine" for name in "abc"]
    await asyncio.sleep(_OFFERED_AGAIN_S)
    taken = steps_of(own_system, label, "abc")
    assert taken[3:] == [1] * 3
    # A step is taken again that was under way.
    assert set(taken[:3]) == {1} or point == "before b is asked"
    assert list((await own_program.reports()).values()) == [1]


@pytest.mark.parametrize("victim", ["worker", "supervisor", "valkey"])
async def test_a_kill_between_two_answers_loses_none_of_them(
    own_system: System,
    supervisor: Served,
    keys: dict[str, str],
    own_program: Outside,
    victim: str,
) -> None:
    """Of the worker, of the supervisor that took them, of the store; the other questions stay as they were."""
    doors = Doors(supervisor.api, keys)
    worker = own_system.worker(PAYER, ack_wait_s=2).ready()
    label = f"L{uuid4().hex}"
    task_id = await own_program.assign(
        "PayerAgent", "pay_many", {"label": label, "names": list("abc")}
    )
    asked = await opened(doors, task_id, 3)
    await own_program.eventually(lambda: holds_nothing(own_program))
    # What is written every second must survive the store.
    await asyncio.sleep(1.5)
    assert await answer(doors, asked[1]) == 200
    if victim == "worker":
        worker.kill()
        own_system.worker(PAYER, ack_wait_s=2).ready()
    elif victim == "supervisor":
        supervisor.kill()
        doors = Doors((await asyncio.to_thread(a_supervisor, own_system)).api, keys)
    else:
        await asyncio.sleep(1.5)
        own_system.servers.valkey.kill()
        await own_system.servers.valkey.start()
    still = await opened(doors, task_id, 2)
    assert [one["id"] for one in still] == [asked[0]["id"], asked[2]["id"]]
    assert [one["until"] for one in still] == [asked[0]["until"], asked[2]["until"]]
    for question in still:
        assert await answer(doors, question) == 200
    report = await own_program.report_of(task_id)
    assert report["result"] == [f"{name} True fine" for name in "abc"]
    assert steps_of(own_system, label, "abc") == [1] * 6
    assert list((await own_program.reports()).values()) == [1]


async def test_a_question_that_the_task_goes_on_without_is_withdrawn(
    doors: Doors, program: Outside
) -> None:
    """It is shown as ended, and an answer to it is refused."""
    label = f"L{uuid4().hex}"
    task_id = await program.assign(
        "PayerAgent", "pay_first", {"label": label, "names": list("ab")}
    )
    left, first = await opened(doors, task_id, 2)
    assert await answer(doors, first) == 200
    await program.eventually(lambda: is_asked(doors, task_id, "Pay last?"))
    [last] = await open_of(doors, task_id)
    assert last["id"] not in (left["id"], first["id"])
    shown = (await doors.call("finance", "GET", f"/v1/approvals/{left['id']}"))[1]
    assert shown["state"] == "ended"
    everything = (await doors.call("finance", "GET", "/v1/approvals"))[1]["approvals"]
    assert [one["id"] for one in everything] == [last["id"]]
    status, refused = await doors.call(
        "finance", "POST", f"/v1/approvals/{left['id']}", YES
    )
    assert (status, refused["type"].rpartition(":")[2]) == (409, "approval-ended")
    assert await answer(doors, last) == 200
    assert (await program.report_of(task_id))["result"] == [
        "b True fine",
        "last True fine",
    ]


async def is_asked(doors: Doors, task_id: str, question: str) -> bool:
    return question in [one["question"] for one in await open_of(doors, task_id)]


async def test_a_question_beside_work_is_asked_and_answered_while_the_run_goes_on(
    office: Shop, doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    task_id = await program.assign(
        "PayerAgent", "pay_beside", {"label": label, "names": list("ab")}
    )
    asked = await opened(doors, task_id, 2)
    assert await answer(doors, asked[1]) == 200
    await program.eventually(lambda: is_paid(office.system, label, "b"))
    assert await answer(doors, asked[0]) == 200
    await program.eventually(lambda: is_paid(office.system, label, "a"))
    (office.system.folder / "runs" / f"{label}-worked").touch()
    report = await program.report_of(task_id)
    assert report["result"] == ["a True fine", "b True fine", label]
    assert len(office.system.runs(f"{label}-runs")) == 1
    assert steps_of(office.system, label, "ab") == [1] * 4


async def is_paid(system: System, label: str, name: str) -> bool:
    return len(system.runs(f"{label}-after-{name}")) == 1


async def test_a_worker_that_is_killed_while_a_question_is_asked_beside_work_asks_it_once(
    own_system: System, own_doors: Doors, own_program: Outside
) -> None:
    (own_system.folder / "runs" / "die-at").write_text("after asking")
    doomed = own_system.worker(PAYER, ack_wait_s=2).ready()
    label = f"L{uuid4().hex}"
    task_id = await own_program.assign(
        "PayerAgent", "pay_beside", {"label": label, "names": ["a"]}
    )
    await asyncio.to_thread(doomed.wait)
    [first] = await opened(own_doors, task_id, 1)
    own_system.worker(PAYER, ack_wait_s=2).ready()
    assert await answer(own_doors, first) == 200
    await own_program.eventually(lambda: is_paid(own_system, label, "a"))
    (own_system.folder / "runs" / f"{label}-worked").touch()
    assert (await own_program.report_of(task_id))["result"] == ["a True fine", label]
    assert steps_of(own_system, label, "a") == [1, 1]


async def test_the_questions_of_a_cancelled_task_are_closed(
    doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    task_id = await program.assign(
        "PayerAgent", "pay_many", {"label": label, "names": list("ab")}
    )
    asked = await opened(doors, task_id, 2)
    status, _ = await doors.call("shop", "DELETE", f"/v1/tasks/{task_id}")
    assert status == 200
    assert await open_of(doors, task_id) == []
    assert (await doors.call("finance", "GET", "/v1/approvals"))[1]["approvals"] == []
    for question in asked:
        assert await answer(doors, question) == 409
    assert (await program.report_of(task_id))["status"] == "cancelled"
