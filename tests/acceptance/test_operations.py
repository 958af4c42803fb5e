"""`tasklore supervisor --operations` on guarded servers: an operator's rights at one address, and none elsewhere."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from deploy.privileges.roles import SUPERVISOR, Cast
from tasklore.contracts import subjects
from tasklore.contracts.callers import ROLES, Caller
from tasklore.contracts.handed_requests import HandedRequest, HandedResponse
from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.as_role import spoken, subjects_of, trying
from tests.acceptance.command import environment, tasklore
from tests.acceptance.guarded import Guarded, guarded
from tests.acceptance.system import BUDGET, PATIENCE_S, Served, System
from tests.http_client import ask

QUESTION = {"text": "Check my budget: limit 50k, spent 42,000"}
FORGED = HandedRequest(
    method="GET",
    path="/v1/agents",
    caller=Caller(name="boss", roles=frozenset({"admin"})),
    within_s=10,
).encode()


class Office:
    """A supervisor, a worker and two processes that serve operations, each with the rights of its role."""

    def __init__(self, pair: Guarded, folder: Path) -> None:
        self.pair = pair
        self.system = System(pair, folder)  # type: ignore[arg-type]  # of its servers it asks the addresses alone
        self.folder = folder
        self.keys = {
            role: {
                "Authorization": f"Bearer {make_key(folder / 'operations.keys', role, (role,), None)}"
            }
            for role in ROLES
        }
        make_key(folder / "api.keys", "shop", ("ask",), None)

    def start_supervisor(self) -> Served:
        return self.system.supervisor(
            **self.pair.settings("supervisor"), api_keys_file=self.folder / "api.keys"
        )

    def start_operations(self) -> Served:
        return self.system.operations(
            **self.pair.settings("operator"),
            api_keys_file=self.folder / "operations.keys",
        )


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    with guarded(folder, Cast()) as pair:
        office = Office(pair, folder)
        try:
            done = tasklore(
                *("bootstrap", "budget", "memory", "switchboard"),
                cwd=folder,
                env=environment(**pair.environment("bootstrap")),
            )
            assert done.returncode == 0, done.stderr
            yield office
        finally:
            office.system.close()


async def test_an_operator_serves_the_api_and_a_supervisor_runs_what_starts_work(
    office: Office,
) -> None:
    """Two processes alike; a key of the API is none here; without a supervisor it is said at once how to get one."""
    first = office.start_operations()
    second = office.start_operations()
    first.ready()
    second.ready()
    assert first.api != second.api
    admin = office.keys["admin"]

    began = time.monotonic()
    nobody = await ask(first.api, "POST", "/v1/requests", QUESTION, admin)
    assert (nobody.status, "tasklore supervisor" in nobody.body["detail"]) == (
        503,
        True,
    )
    assert time.monotonic() - began < PATIENCE_S / 3

    supervisor = office.start_supervisor()
    worker = office.system.worker(BUDGET, **office.pair.settings("worker-budget"))
    supervisor.ready()
    worker.ready()
    supervisor.await_agents(1)
    for where in (first.api, second.api):
        answer = await ask(where, "POST", "/v1/requests", QUESTION, admin)
        assert (answer.status, answer.body["state"]) == (200, "done"), answer.body
    agents = await ask(second.api, "GET", "/v1/agents", headers=office.keys["read"])
    assert agents.status == 200
    refused = await ask(
        second.api, "POST", "/v1/requests", QUESTION, office.keys["read"]
    )
    assert (refused.status, "'ask'" in refused.body["detail"]) == (403, True)
    assert (await ask(second.api, "GET", "/v1/agents")).status == 401

    # One that is asked to leave answers first, and the other goes on.
    first.terminate()
    assert first.wait() == 0
    again = await ask(second.api, "POST", "/v1/requests", QUESTION, admin)
    assert again.status == 200

    # One that is frozen is given up in the time that was asked for; a killed one is missed at once.
    supervisor.kill()
    killed = await ask(second.api, "POST", "/v1/requests", QUESTION, admin)
    assert killed.status == 503
    # What is kept is read without one.
    listed = await ask(second.api, "GET", "/v1/schedules", headers=admin)
    assert (listed.status, listed.body["schedules"]) == (200, [])


PIPELINE = {
    "name": "check",
    "phases": [
        {"name": "one", "agent": "BudgetTrackerAgent", "task": "analyze_budget"}
    ],
}
#: What an operator reads and mends, the role that it takes, and a body where it has one.
OWN = (
    ("GET", "/v1/schedules", "ask", None),
    ("GET", "/v1/agents", "read", None),
    ("GET", "/v1/approvals", "ask", None),
    ("GET", "/v1/tasks", "read", None),
    ("GET", "/v1/conversations?user=ana", "read", None),
    ("GET", "/v1/pipelines", "read", None),
    ("POST", "/v1/pipelines/cost", "operate", {"pipeline": PIPELINE}),
    ("GET", "/v1/sessions", "operate", None),
    ("POST", "/v1/sessions/sweep", "operate", {}),
    ("GET", "/v1/dead-letters", "operate", None),
    ("GET", "/v1/dead-letters/groups", "operate", None),
    ("POST", "/v1/dead-letters/redrive", "operate", {"agent": "BudgetTrackerAgent"}),
    ("POST", "/v1/dead-letters/purge", "operate", {"agent": "BudgetTrackerAgent"}),
    ("GET", "/v1/results", "operate", None),
    ("GET", "/v1/results/stats", "operate", None),
    ("POST", "/v1/results/forget", "operate", {"agent": "BudgetTrackerAgent"}),
)


async def test_an_operators_rights_suffice_for_its_operations_without_a_supervisor(
    office: Office,
) -> None:
    """No server refuses one, and each needs its role: the key of a reader opens no door of an operator."""
    process = office.start_operations()
    process.ready()
    found = {}
    for method, path, role, body in OWN:
        answer = await ask(process.api, method, path, body, office.keys[role])
        found[f"{method} {path}"] = (answer.status, answer.body)
        if role == "operate":
            refused = await ask(process.api, method, path, body, office.keys["read"])
            assert refused.status == 403, path
    assert {where: said for where, said in found.items() if said[0] >= 300} == {}
    noted = [
        json.loads(line)
        for line in process.log().splitlines()
        if '"event": "operation"' in line
    ]
    assert [one for one in noted if one["status"] == 403]
    assert {one["caller"] for one in noted} <= {"read", "operate"}
    assert "NOPERM" not in process.log()
    assert "nats_refused" not in process.log()


@pytest.mark.parametrize("name", ["worker-budget", "memory", "program", "bootstrap"])
async def test_no_other_role_hands_a_request_over(name: str, office: Office) -> None:
    """A compromised worker names a caller with every role; the server does not pass it on."""
    heard: list[bytes] = []
    async with (
        trying(office.pair, "supervisor") as (supervisor, _),
        trying(office.pair, name) as (client, refused),
        trying(office.pair, "operator") as (operator, _),
    ):

        async def answer(message: Msg) -> None:
            heard.append(message.data)
            await message.respond(HandedResponse(status=204).encode())

        subject = subjects.operations(SUPERVISOR)
        await supervisor.subscribe(subject, queue=SUPERVISOR, cb=answer)
        await spoken(supervisor)
        await client.publish(subject, FORGED, reply="_INBOX_x.y")
        await spoken(client)
        assert subject.lower() in subjects_of(refused, "publish")
        assert heard == []
        reply = await operator.request(subject, FORGED, timeout=PATIENCE_S)
        assert HandedResponse.decode(reply.data).status == 204
        assert heard == [FORGED]


async def test_no_other_role_answers_handed_requests(office: Office) -> None:
    """Callers and bodies go by there: a worker, or a second operator, must not listen."""
    subject = subjects.operations(SUPERVISOR)
    for name in ("worker-budget", "memory", "program", "operator"):
        async with trying(office.pair, name) as (client, refused):
            await client.subscribe(subject)
            await spoken(client)
            assert subject.lower() in subjects_of(refused, "subscription"), name
