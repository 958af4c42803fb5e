"""Tasks that wait for persons, signals and times: they hold nothing meanwhile, and go on once."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock
from uuid import uuid4

import httpx2
import pytest
from redis.asyncio import Redis

from tasklore.memory.ledger.waits import Waits
from tasklore.supervisor.approvals.answers import AnsweringPerson, Answers
from tasklore.supervisor.approvals.links import ApprovalLink
from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import AGENTS, Served, System, running_system

#: Seconds after which a link that was made for one second has expired.
_EXPIRED_S = 2.0
#: Seconds in which a delivery that a killed worker did not acknowledge is offered again.
_OFFERED_AGAIN_S = 4.0
PAYER = str(AGENTS / "payer.py")
SECRET = "0123456789abcdef0123456789abcdef"
YES = {"answer": {"approved": True, "note": "fine"}}


class Doors:
    """The HTTP API, with a key for each caller."""

    def __init__(self, url: str, keys: dict[str, str]) -> None:
        self._client = httpx2.AsyncClient(base_url=url, timeout=60)
        self._keys = keys

    async def call(
        self, caller: str, method: str, path: str, body: Any = None
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._keys[caller]}"}
        answer = await self._client.request(method, path, json=body, headers=headers)
        return answer.status_code, answer.json()

    async def send(
        self,
        caller: str,
        method: str,
        path: str,
        body: bytes = b"",
        kind: str = "application/json",
    ) -> tuple[int, str]:
        """Send *body* as it is, and return the status and the text; "" of a stream of events."""
        headers = {
            "Authorization": f"Bearer {self._keys[caller]}",
            "Content-Type": kind,
        }
        sent = self._client.stream(method, path, content=body, headers=headers)
        async with sent as answer:
            is_stream = "event-stream" in answer.headers.get("content-type", "")
            return answer.status_code, "" if is_stream else (
                await answer.aread()
            ).decode()

    async def page(
        self, url: str, form: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Look at a page, or send its form."""
        answer = await (
            self._client.get(url) if form is None else self._client.post(url, data=form)
        )
        return answer.status_code, answer.text

    async def find(self, caller: str, task_id: str) -> dict[str, Any]:
        """Return the open question of a task, once there is one."""
        async with asyncio.timeout(60):
            while True:
                path = f"/v1/approvals?task_id={task_id}"
                if found := (await self.call(caller, "GET", path))[1]["approvals"]:
                    return dict(found[0])
                await asyncio.sleep(0.05)


def keys_in(folder: Path) -> dict[str, str]:
    """Make a key for each caller in *folder*."""
    file = folder / "keys.json"
    return {
        "shop": make_key(file, "shop", ("ask",), None),
        "finance": make_key(file, "finance", ("approve",), "fay", ("finance",)),
        "ana": make_key(file, "ana", ("approve",), "ana"),
        "admin": make_key(file, "admin", ("admin",), None),
        "alice": make_key(file, "alice", ("admin",), "alice"),
    }


def serve(system: System) -> tuple[Served, dict[str, str]]:
    """Start a supervisor with the HTTP API; return it and the keys of its callers."""
    keys = keys_in(system.folder)
    supervisor = system.supervisor(
        api_keys_file=system.folder / "keys.json",
        approval_secret=SECRET,
        approval_url="https://ask.test/",
        api_rate=10_000,
        api_burst=10_000,
    ).ready()
    return supervisor, keys


@dataclass(frozen=True)
class Shop:
    """A system with a worker and a supervisor that stay, and the keys of callers."""

    system: System
    supervisor: Served
    keys: dict[str, str]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Give one to all tests that kill nothing."""
    with running_system(tmp_path_factory.mktemp("shop")) as system:
        worker = system.worker(PAYER)
        supervisor, keys = serve(system)
        worker.ready()
        yield Shop(system, supervisor, keys)


@pytest.fixture
async def doors(shop: Shop) -> Doors:
    return Doors(shop.supervisor.api, shop.keys)


@pytest.fixture
async def program(shop: Shop) -> AsyncIterator[Outside]:
    async with outside(shop.system.servers.nats_url) as connected:
        yield connected


@pytest.fixture
async def own_doors(own_system: System) -> Doors:
    supervisor, keys = await asyncio.to_thread(serve, own_system)
    return Doors(supervisor.api, keys)


@pytest.fixture
async def own_program(own_system: System) -> AsyncIterator[Outside]:
    async with outside(own_system.servers.nats_url) as connected:
        yield connected


async def holds_nothing(program: Outside) -> bool:
    """Return whether no task is unacknowledged, and none lies in TASKS."""
    consumer = await program.api("CONSUMER.INFO.TASKS.PayerAgent")
    stream = await program.api("STREAM.INFO.TASKS")
    return (consumer["num_ack_pending"], stream["state"]["messages"]) == (0, 0)


async def test_a_task_waits_for_a_person_holds_nothing_and_goes_on_once(
    shop: Shop, doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    task_id = await program.assign("PayerAgent", "pay", {"label": label})
    question = await doors.find("finance", task_id)
    assert (question["question"], question["who"], question["state"]) == (
        "Pay 12?",
        ["role:finance"],
        "open",
    )
    await program.eventually(lambda: holds_nothing(program))
    status, refused = await doors.call(
        "ana", "POST", f"/v1/approvals/{question['id']}", YES
    )
    assert (status, refused["type"].rpartition(":")[2]) == (403, "approval-person")
    status, answered = await doors.call(
        "finance", "POST", f"/v1/approvals/{question['id']}", YES
    )
    assert (status, answered["answer"]["by"]) == (200, "user:fay")
    report = await program.report_of(task_id)
    assert report["result"] == {"approved": True, "by": "user:fay", "note": "fine"}
    assert [
        len(shop.system.runs(f"{label}-{part}")) for part in ("runs", "before", "after")
    ] == [2, 1, 1]
    status, late = await doors.call(
        "finance", "POST", f"/v1/approvals/{question['id']}", YES
    )
    assert status == 409
    assert "user:fay answered at" in late["detail"]
    audit = (await doors.call("finance", "GET", f"/v1/approvals/{question['id']}"))[1]
    assert [one["why"] for one in audit["refused"]] == ["person", "answered"]


async def test_a_question_without_an_answer_ends_at_its_time(
    doors: Doors, program: Outside
) -> None:
    report = await program.ask(
        "PayerAgent", "pay", {"label": f"L{uuid4().hex}", "seconds": 3}
    )
    assert report["result"]["approved"] is False
    assert report["attempt"] == 2


async def test_three_waits_of_one_task_follow_one_another(
    shop: Shop, doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    task_id = await program.assign("PayerAgent", "order", {"label": label})
    await program.eventually(lambda: is_waiting(doors, task_id))
    status, sent = await doors.call(
        "shop", "POST", f"/v1/tasks/{task_id}/signals/paid", {"value": 7}
    )
    assert (status, sent["value"]) == (200, 7)
    assert (
        await doors.call(
            "shop", "POST", f"/v1/tasks/{task_id}/signals/paid", {"value": 8}
        )
    )[0] == 409
    question = await doors.find("ana", task_id)
    await doors.call("ana", "POST", f"/v1/approvals/{question['id']}", YES)
    assert (await program.report_of(task_id))["result"] == [7, True]
    assert [len(shop.system.runs(f"{label}-{part}")) for part in ("runs", "after")] == [
        3,
        1,
    ]


async def test_of_many_answers_at_once_one_counts_and_the_others_are_told(
    shop: Shop, doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    task_id = await program.assign("PayerAgent", "pay", {"label": label})
    path = f"/v1/approvals/{(await doors.find('finance', task_id))['id']}"
    said = [
        {"answer": {"approved": number % 2 == 0, "note": str(number)}}
        for number in range(64)
    ]
    answers = await asyncio.gather(
        *(doors.call("finance", "POST", path, one) for one in said)
    )
    assert sorted(status for status, _ in answers) == [200] + [409] * 63
    assert all(
        "user:fay answered at" in body["detail"]
        for status, body in answers
        if status == 409
    )
    won = next(number for number, (status, _) in enumerate(answers) if status == 200)
    report = await program.report_of(task_id)
    assert report["result"] == {
        "approved": won % 2 == 0,
        "by": "user:fay",
        "note": str(won),
    }
    assert len(shop.system.runs(f"{label}-after")) == 1


async def test_what_was_approved_does_not_run_with_other_arguments(
    shop: Shop, doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    task_id = await program.assign("PayerAgent", "pay", {"label": label})
    question = await doors.find("finance", task_id)
    (shop.system.folder / "runs" / f"{label}-changed").touch()
    await doors.call("finance", "POST", f"/v1/approvals/{question['id']}", YES)
    report = await program.report_of(task_id)
    assert (report["status"], report["error"]["type"]) == ("failed", "ApprovalChanged")
    assert "'Pay 13?'" in report["error"]["message"]
    assert shop.system.runs(f"{label}-after") == []


async def test_a_link_answers_once_in_the_name_of_one_person(
    doors: Doors, program: Outside
) -> None:
    task_id = await program.assign("PayerAgent", "pay", {"label": f"L{uuid4().hex}"})
    approval_id = (await doors.find("finance", task_id))["id"]

    async def link(who: str, seconds: int = 3600) -> str:
        wish = {"who": who, "within_seconds": seconds}
        status, made = await doors.call(
            "admin", "POST", f"/v1/approvals/{approval_id}/links", wish
        )
        assert status == 200
        address, path, token = str(made["url"]).partition("/approve/")
        assert address == "https://ask.test"
        return f"{path}{token}"

    assert (
        await doors.call(
            "finance", "POST", f"/v1/approvals/{approval_id}/links", {"who": "user:fay"}
        )
    )[0] == 403
    good = await link("role:finance")
    short = await link("role:finance", 1)
    wrong = await link("user:eve")
    yes = {"decision": "approve", "note": "by link"}
    body, _, signature = good.rpartition(".")
    altered = f"{body}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
    await asyncio.sleep(_EXPIRED_S)
    assert (await doors.page(altered, yes))[0] == 403
    # A look at it answers nothing, and the audit does not say so.
    assert (await doors.page(short))[0] == 403
    assert (await doors.page(short, yes))[0] == 403
    assert (await doors.page(wrong, yes))[0] == 409
    for written in ("[" * 100_000, '{"a": 1e999}', "9" * 5_000):
        status, page = await doors.page(good, {"answer": written})
        assert (status, "was not accepted" in page) == (403, True)
    status, page = await doors.page(good)
    assert (status, "Pay 12?" in page, "role:finance" in page) == (200, True, True)
    # Looking has decided nothing.
    assert (await doors.call("finance", "GET", f"/v1/approvals/{approval_id}"))[1][
        "state"
    ] == "open"
    assert (await doors.page(good, yes))[0] == 200
    status, page = await doors.page(good, yes)
    assert status == 409
    assert "role:finance answered at" in page
    report = await program.report_of(task_id)
    assert report["result"] == {
        "approved": True,
        "by": "role:finance",
        "note": "by link",
    }
    audit = (await doors.call("finance", "GET", f"/v1/approvals/{approval_id}"))[1]
    assert [(one["by"], one["door"], one["why"]) for one in audit["refused"]] == [
        ("role:finance", "link", "link expired"),
        ("user:eve", "link", "person"),
        ("role:finance", "link", "answered"),
    ]
    assert (audit["answer"]["by"], audit["answer"]["door"]) == ("role:finance", "link")
    assert audit["answer"]["made_by"] == "key:admin"
    assert {one["made_by"] for one in audit["refused"]} == {"key:admin"}
    # Each holder of a link of a role is an author of their own.
    assert len({one["link"] for one in audit["refused"]}) == 3


async def test_a_page_is_a_page_while_the_store_is_away(
    own_system: System, own_doors: Doors, own_program: Outside
) -> None:
    """A person sees words, not the JSON of a own_program; the same link answers once the store is there."""
    own_system.worker(PAYER).ready()
    task_id = await own_program.assign(
        "PayerAgent", "pay", {"label": f"L{uuid4().hex}"}
    )
    approval_id = (await own_doors.find("finance", task_id))["id"]
    made = await own_doors.call(
        "admin",
        "POST",
        f"/v1/approvals/{approval_id}/links",
        {"who": "role:finance"},
    )
    path = str(made[1]["url"]).removeprefix("https://ask.test")
    yes = {"decision": "approve"}
    own_system.servers.valkey.kill()
    for form in (None, yes):
        status, page = await own_doors.page(path, form)
        assert (status, "<h1>The question cannot be read now" in page) == (503, True)
    await own_system.servers.valkey.start()

    async def is_answered() -> bool:
        return (await own_doors.page(path, yes))[0] == 200

    await own_program.eventually(is_answered)
    assert (await own_program.report_of(task_id))["result"]["by"] == "role:finance"


async def test_nobody_writes_into_an_audit_in_names_that_are_not_theirs(
    doors: Doors, program: Outside
) -> None:
    """A link that somebody wrote is kept nowhere; one author, however often refused, leaves room to the others."""
    task_id = await program.assign("PayerAgent", "pay", {"label": f"L{uuid4().hex}"})
    question = await doors.find("finance", task_id)
    for number in range(12):
        forged = ApprovalLink(
            approval_id=question["id"],
            digest="",
            who=f"user:boss{number}",
            expires=9_999_999_999,
        )
        body = base64.urlsafe_b64encode(forged.model_dump_json().encode()).decode()
        status, _ = await doors.page(
            f"/approve/{body.rstrip('=')}.AAAA", {"decision": "approve"}
        )
        assert status == 403
        path = f"/v1/approvals/{question['id']}"
        assert (await doors.call("ana", "POST", path, YES))[0] == 403
    await doors.call("alice", "POST", path, YES)
    audit = (await doors.call("finance", "GET", path))[1]
    assert [one["by"] for one in audit["refused"]] == ["user:ana"] * 8 + ["user:alice"]


async def test_a_key_for_one_user_is_one_users_as_an_administrator_too(
    doors: Doors, program: Outside
) -> None:
    """It sees what its user is asked, and makes links in no other name."""
    task_id = await program.assign("PayerAgent", "pay", {"label": f"L{uuid4().hex}"})
    path = f"/v1/approvals/{(await doors.find('finance', task_id))['id']}"
    assert (await doors.call("alice", "GET", "/v1/approvals"))[1]["approvals"] == []
    assert (await doors.call("alice", "GET", path))[0] == 404
    for who in ("role:finance", "user:alice"):
        wish = {"who": who}
        assert (await doors.call("alice", "POST", f"{path}/links", wish))[0] == 404
    assert (await doors.call("alice", "POST", path, YES))[0] == 403

    payment = {"label": f"L{uuid4().hex}", "who": "user:alice"}
    own = await doors.find("alice", await program.assign("PayerAgent", "pay", payment))
    listed = (await doors.call("alice", "GET", "/v1/approvals"))[1]["approvals"]
    assert [one["id"] for one in listed] == [own["id"]]
    links = f"/v1/approvals/{own['id']}/links"
    for who, status in (
        ("role:finance", 403),
        ("user:fay", 403),
        ("user:alice", 200),
    ):
        assert (await doors.call("alice", "POST", links, {"who": who}))[0] == status


async def test_a_person_answers_on_the_command_line(
    shop: Shop, doors: Doors, program: Outside
) -> None:
    task_id = await program.assign("PayerAgent", "pay", {"label": f"L{uuid4().hex}"})
    approval_id = (await doors.find("finance", task_id))["id"]
    direct = partial(asyncio.to_thread, shop.system.command, "--direct", "approvals")
    listed = await direct("list")
    assert (
        approval_id in listed.stdout,
        "role:finance" in listed.stdout,
        "Pay 12?" in listed.stdout,
    ) == (True,) * 3
    unasked = await direct("approve", approval_id)
    assert ("Pay 12?" in unasked.stdout, "--yes" in unasked.stderr) == (True, True)
    assert (await direct("show", approval_id, "--json")).returncode == 0
    rejected = await direct("reject", approval_id, "--note", "too much", "--yes")
    assert rejected.returncode == 0, rejected.stderr
    report = await program.report_of(task_id)
    result = report["result"]
    assert (result["approved"], result["note"]) == (False, "too much")
    assert result["by"].startswith("key:operator:")
    late = await direct("approve", approval_id, "--yes")
    assert (late.returncode, "first answer counts" in late.stderr) == (2, True)
    shown = json.loads((await direct("show", approval_id, "--json")).stdout)
    assert (shown["answer"]["door"], shown["refused"][0]["why"]) == ("http", "answered")


@pytest.mark.parametrize(
    "point",
    ["after schedule", "before record", "after record", "before acknowledgement"],
)
async def test_a_worker_that_is_killed_within_a_wait_loses_and_doubles_nothing(
    own_system: System, own_doors: Doors, own_program: Outside, point: str
) -> None:
    (own_system.folder / "runs" / "die-at").write_text(point)
    doomed = own_system.worker(PAYER, ack_wait_s=2).ready()
    label = f"L{uuid4().hex}"
    task_id = await own_program.assign("PayerAgent", "pay", {"label": label})
    await asyncio.to_thread(doomed.wait)
    own_system.worker(PAYER, ack_wait_s=2).ready()
    question = await own_doors.find("finance", task_id)
    assert (
        await own_doors.call("finance", "POST", f"/v1/approvals/{question['id']}", YES)
    )[0] == 200
    report = await own_program.report_of(task_id)
    assert report["result"]["approved"] is True
    # Beyond the time after which an unacknowledged delivery is offered again.
    await asyncio.sleep(_OFFERED_AGAIN_S)
    assert [
        len(own_system.runs(f"{label}-{part}")) for part in ("before", "after")
    ] == [
        1,
        1,
    ]
    assert list((await own_program.reports()).values()) == [1]


async def test_a_task_whose_answerer_died_before_waking_it_goes_on_all_the_same(
    shop: Shop, doors: Doors, program: Outside
) -> None:
    label = f"L{uuid4().hex}"
    task_id = await program.assign("PayerAgent", "pay", {"label": label})
    question = await doors.find("finance", task_id)
    async with Redis.from_url(shop.system.servers.redis_url) as redis:
        # All that a process does which dies after the answer was stored.
        answers = Answers(Waits(redis), cast("Any", None), cast("Any", None))
        answers.wake = AsyncMock()  # type: ignore[method-assign]  # what it did not come to
        person = AnsweringPerson("user:fay", "http", frozenset(["role:finance"]))
        await answers.answer(
            task_id, question["id"].partition(".")[2], YES["answer"], person
        )
    # By itself it would go on at the end of its wait, which is a week away.
    report = await program.report_of(task_id)
    assert (report["result"]["by"], len(shop.system.runs(f"{label}-after"))) == (
        "user:fay",
        1,
    )


async def test_a_task_of_a_worker_without_access_to_schedules_waits_and_is_woken(
    own_system: System, own_doors: Doors, own_program: Outside
) -> None:
    """By an answer at once, and at its end by the desk of a supervisor."""
    (own_system.folder / "runs" / "no-schedules").touch()
    own_system.worker(PAYER).ready()
    unanswered = await own_program.assign(
        "PayerAgent", "pay", {"label": f"L{uuid4().hex}", "seconds": 3}
    )
    asked = await own_program.assign("PayerAgent", "pay", {"label": f"L{uuid4().hex}"})
    question = await own_doors.find("finance", asked)
    await own_program.eventually(lambda: holds_nothing(own_program))
    assert (
        await own_doors.call("finance", "POST", f"/v1/approvals/{question['id']}", YES)
    )[0] == 200
    assert (await own_program.report_of(asked))["result"]["approved"] is True
    assert (await own_program.report_of(unanswered))["result"]["approved"] is False


async def is_waiting(doors: Doors, task_id: str) -> bool:
    return (await doors.call("shop", "GET", f"/v1/tasks/{task_id}"))[0] == 200
