"""One path a task: its parameters are the body, its result is the answer, its error is a problem."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import CompletionReport, ErrorNote, MemoryNote
from tasklore.memory.ledger.requests import place_of
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.task_paths import TaskNotCompleted, TaskProblem
from tasklore.supervisor.operations.sent_tasks import Sent
from tests.http_client import Answer, ask, until
from tests.integration.http_stand import SUPERVISOR, Stand, http_stand

PATH = "/v1/agents/EchoAgent/tasks/echo"


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis) as found:
        yield found


async def run_until(stand: Stand, key: str, **end: Any) -> Answer:
    """Return the answer to a task of this Idempotency-Key, which ends so."""
    task_id = f"t-{place_of('', 'task', key)}"
    waiting = asyncio.create_task(
        ask(stand.url, "POST", PATH, {"word": "hi"}, {"Idempotency-Key": key})
    )
    await until(lambda: stand.parts.life.inside == 1)
    report = CompletionReport(
        **{
            "task_id": task_id,
            "agent_id": "EchoAgent",
            "supervisor_id": SUPERVISOR,
            "task_name": "echo",
            "memory": MemoryNote(outcome="miss"),
            "worker_id": "w",
            "finished_at": "2026-01-01T00:00:00Z",
            **end,
        }
    )
    await stand.parts.ledger.finish(
        task_id, 1, report.status, report.model_dump_json().encode()
    )
    await stand.parts.client.publish(
        subjects.report(SUPERVISOR, task_id, 1), report.model_dump_json().encode()
    )
    return await waiting


@pytest.mark.parametrize("result", [{"word": "hi"}, "hi", None, [1.5], True])
async def test_the_answer_is_the_result(stand: Stand, result: Any) -> None:
    """As the task returned it, whatever it is; `Location` leads to the report."""
    answer = await run_until(stand, new_id(0), status="completed", result=result)
    assert (answer.status, answer.body) == (200, result)
    seen = await ask(stand.url, "GET", answer.headers["location"])
    assert seen.body["report"]["result"] == result


@pytest.mark.parametrize(
    ("status", "code"),
    [("failed", 502), ("expired", 504), ("cancelled", 409), ("rejected", 422)],
)
async def test_a_task_that_did_not_complete_is_a_problem_with_its_error(
    stand: Stand, status: str, code: int
) -> None:
    """A client that handles problems handles these too."""
    error = ErrorNote(type="NoSuchWord", message="there is no such word; say another")
    answer = await run_until(stand, new_id(0), status=status, error=error)
    assert (answer.status, answer.headers["content-type"]) == (
        code,
        "application/problem+json",
    )
    assert answer.body["status"] == code
    assert "there is no such word" in answer.body["detail"]
    if status != "rejected":
        assert answer.body["type"] == f"urn:tasklore:problem:task-{status}"
        assert answer.body["error"]["type"] == "NoSuchWord"
        assert answer.headers["location"] == f"/v1/tasks/{answer.body['task_id']}"


async def test_a_task_that_goes_on_is_asked_for_at_its_place(stand: Stand) -> None:
    """The same call with the same key gets the result later, and starts nothing twice."""
    path = f"{PATH}?wait_seconds=0"
    key = {"Idempotency-Key": "r-3"}
    sent = await ask(stand.url, "POST", path, {"word": "hi"}, key)
    assert (sent.status, sent.body["state"]) == (202, "accepted")
    assert sent.headers["location"] == f"/v1/tasks/{sent.body['task_id']}"
    assert (await run_until(stand, "r-3", status="completed", result=1)).body == 1
    # The same task by the general path.
    body = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}}
    again = await ask(stand.url, "POST", "/v1/tasks", body, key)
    assert again.body["task_id"] == sent.body["task_id"]


async def test_a_task_cancelled_before_it_began_is_a_problem(stand: Stand) -> None:
    """The same call again does not send it again."""
    path = f"{PATH}?after=60&wait_seconds="
    key = {"Idempotency-Key": "r-4"}
    sent = await ask(stand.url, "POST", f"{path}0", {"word": "hi"}, key)
    assert sent.status == 202, sent.body
    await ask(stand.url, "DELETE", sent.headers["location"])
    again = await ask(stand.url, "POST", f"{path}1", {"word": "hi"}, key)
    assert (again.status, again.body["type"]) == (
        409,
        "urn:tasklore:problem:task-cancelled",
    )


def test_a_task_that_is_being_cancelled_is_a_problem_without_an_error() -> None:
    """It has no report yet, and will not have a result."""
    sent = Sent(task_id="t-1", state="cancelled", status="cancelling")
    refused = TaskNotCompleted(sent)
    assert isinstance(refused.problem, TaskProblem)
    assert (refused.problem.status, refused.problem.error) == (409, None)
    assert refused.problem.task_id == "t-1"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (PATH, {"wrod": "hi"}, 422, "wrod: is not known"),
        (PATH, {}, 422, "word: is needed"),
        (PATH, None, 422, "word: is needed"),
        (PATH, ["hi"], 422, "must be"),
        (f"{PATH}?wait_seconds=-1", {"word": "hi"}, 422, "wait_seconds"),
        (f"{PATH}?wiat_seconds=1", {"word": "hi"}, 422, "wiat_seconds"),
        ("/v1/agents/EchoAgent/tasks/ecko", {"word": "hi"}, 404, "'echo'"),
        ("/v1/agents/EckoAgent/tasks/echo", {"word": "hi"}, 404, "'EchoAgent'"),
    ],
)
async def test_bad_calls_name_the_field_and_the_cure(
    stand: Stand, path: str, body: Any, status: int, words: str
) -> None:
    """The place of a parameter is its name: it is the body."""
    answer = await ask(stand.url, "POST", path, body)
    assert (answer.status, words in answer.body["detail"]) == (status, True), (
        answer.body
    )


async def test_a_key_acts_for_its_user_and_the_document_needs_one(
    servers: EmbeddedServers, redis: Redis, tmp_path: Any
) -> None:
    """As at the other paths below /v1/."""
    file = tmp_path / "keys.json"
    keys = {
        name: {"Authorization": f"Bearer {make_key(file, name, roles, user)}"}
        for name, roles, user in (
            ("ann", ("ask",), "ann"),
            ("reader", ("read",), None),
            ("judge", ("approve",), None),
        )
    }
    async with http_stand(servers, redis, keys=KeyRing(file)) as stand:
        path = f"{PATH}?wait_seconds=0"
        body = {"word": "hi"}
        assert (await ask(stand.url, "POST", path, body)).status == 401
        assert (await ask(stand.url, "POST", path, body, keys["reader"])).status == 403
        other = await ask(stand.url, "POST", f"{path}&user=bob", body, keys["ann"])
        assert other.status == 403
        assert (await ask(stand.url, "POST", path, body, keys["ann"])).status == 202

        described = {
            name: await ask(stand.url, "GET", "/v1/openapi.json", headers=key)
            for name, key in (keys | {"nobody": {}}).items()
        }
        assert {name: one.status for name, one in described.items()} == {
            "ann": 200,
            "reader": 200,
            "judge": 403,
            "nobody": 401,
        }
        assert PATH in described["ann"].body["paths"]
        again = await ask(
            stand.url,
            "GET",
            "/v1/openapi.json",
            headers=keys["ann"] | {"If-None-Match": described["ann"].headers["etag"]},
        )
        assert again.status == 304
