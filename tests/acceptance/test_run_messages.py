"""What models saw, through real processes on guarded servers: shown to a right of its own, masked, and forgotten."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.exceptions import NoPermissionError

from deploy.privileges.roles import Cast
from tasklore.contracts.callers import Role
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.as_role import valkey_as
from tests.acceptance.command import environment, tasklore
from tests.acceptance.guarded import Guarded, guarded
from tests.acceptance.system import AGENTS, Served, System
from tests.http_client import ask
from tests.integration.console.browsing import Tab
from tests.llm_double import Asked, Canned, ScriptedLlm, raw, saying
from tests.traces import files_with, until_away

WITNESS = str(AGENTS / "witness.py")
CAST = Cast(workers={"witness": ("WitnessAgent",), "probe": ("ProbeAgent",)})
SECRET = "correct-horse-battery"
#: By the name of a key: its roles, its user and its tenant.
KEYS: dict[str, tuple[tuple[Role, ...], str | None, str | None]] = {
    "author": (("ask", "messages"), None, None),
    "others": (("ask", "read", "approve", "operate"), None, None),
    "ann": (("ask", "messages"), "ann", None),
    "bob": (("ask", "messages"), "bob", None),
    "acme": (("ask", "messages"), None, "acme"),
    "admin": (("admin",), None, None),
}


def calling(name: str, arguments: dict[str, Any]) -> Canned:
    """Answer with a call of a tool."""
    said = json.loads(saying(None).body)
    function = {"name": name, "arguments": json.dumps(arguments)}
    said["choices"][0]["message"]["tool_calls"] = [
        {"id": "call-1", "type": "function", "function": function}
    ]
    said["choices"][0]["finish_reason"] = "tool_calls"
    return raw(json.dumps(said).encode())


def look_then_answer(request: Asked) -> Canned:
    """Call the tool first."""
    if any(one["role"] == "tool" for one in request.body["messages"]):
        return saying("It was the sea, 7 km away.")
    return calling("look", {"place": "the harbour"})


class Court:
    """A supervisor, an operator's process and a worker that keeps messages, each with the rights of its role."""

    def __init__(self, pair: Guarded, folder: Path, model: ScriptedLlm) -> None:
        self.pair = pair
        self.folder = folder
        self.system = System(pair, folder)  # type: ignore[arg-type]  # of its servers it asks the addresses alone
        file = folder / "keys"
        self.keys = {
            name: make_key(file, name, roles, user, tenant=tenant)
            for name, (roles, user, tenant) in KEYS.items()
        }
        self.supervisor = self.system.supervisor(
            **pair.settings("supervisor"), api_keys_file=file
        )
        self.operations = self.system.operations(
            **pair.settings("operator"),
            api_keys_file=file,
            approval_secret="0123456789abcdef0123456789abcdef",
        )
        self.worker = self.start_worker(model)

    def start_worker(self, model: ScriptedLlm) -> Served:
        return self.system.worker(
            WITNESS,
            **self.pair.settings("worker-witness"),
            llm_base_url=model.base_url,
            llm_model="scripted",
            llm_api_key=SECRET,
            run_messages_hours=24,
        )

    async def ask(
        self, where: Served, method: str, path: str, key: str, body: Any = None
    ) -> Any:
        headers = {"Authorization": f"Bearer {self.keys[key]}"}
        return await ask(where.api, method, path, body, headers)

    async def testify(
        self, label: str, *, key: str = "author", wait: int = 60, **parameters: Any
    ) -> dict[str, Any]:
        """Have a case testified, and return the task as it stands then."""
        body = {
            "agent_id": "WitnessAgent",
            "task": "testify",
            "parameters": {"label": label, **parameters},
            "wait_seconds": wait,
        }
        answer = await self.ask(self.supervisor, "POST", "/v1/tasks", key, body)
        assert answer.status in (200, 202), answer.body
        return dict(answer.body)

    async def show(self, task_id: str) -> dict[str, Any]:
        path = f"/v1/tasks/{task_id}"
        return dict((await self.ask(self.supervisor, "GET", path, "admin")).body)

    async def messages(self, task_id: str, key: str = "author") -> Any:
        path = f"/v1/tasks/{task_id}/messages"
        return await self.ask(self.operations, "GET", path, key)

    def command(self, *words: str, key: str) -> Any:
        env = environment(
            TASKLORE_API_URL=self.supervisor.api,
            TASKLORE_OPERATIONS_URL=self.operations.api,
            TASKLORE_API_KEY=self.keys[key],
        )
        return tasklore(*words, cwd=self.folder, env=env)


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    folder = tmp_path_factory.mktemp("court")
    with ScriptedLlm(look_then_answer) as model, guarded(folder, CAST) as pair:
        court = None
        try:
            done = tasklore(
                *("bootstrap", WITNESS),
                cwd=folder,
                env=environment(
                    **pair.environment("bootstrap"), PROBE_RUNS=str(folder)
                ),
            )
            assert done.returncode == 0, done.stderr
            court = Court(pair, folder, model)
            court.supervisor.ready()
            court.operations.ready()
            court.worker.ready()
            court.supervisor.await_agents(1)
            yield court
        finally:
            if court is not None:
                court.system.close()


async def test_an_author_sees_what_the_model_saw(court: Court) -> None:
    """Parameters, steps, prompts, tools, answers and the result, in order, with secrets masked."""
    task = await court.testify(f"the key is {SECRET}, use it")
    assert task["report"]["status"] == "completed", task
    found = (await court.messages(task["task_id"])).body
    assert [(one["kind"], one["name"]) for one in found["messages"]] == [
        ("parameters", "testify"),
        ("step", "measure"),
        ("prompt", "scripted"),
        ("answer", "scripted"),
        ("tool", "tool witness.look"),
        ("prompt", "scripted"),
        ("answer", "scripted"),
        ("result", ""),
    ]
    said = [one["text"] for one in found["messages"]]
    assert SECRET not in json.dumps(found)
    assert "the key is ***, use it" in said[2]
    assert "[instructions]\nLook, then answer." in said[2]
    assert "[tools]\nlook" in said[2]
    assert said[3] == '[calls look]\n{"place": "the harbour"}'
    assert json.loads(found["messages"][4]["given"]) == {"place": "the harbour"}
    assert said[5].startswith("[tool look]\nsaw the harbour")
    assert said[6] == "It was the sea, 7 km away."
    assert json.loads(said[7]) == said[6]
    assert found["messages"][6]["facts"]["input_tokens"] == 100
    assert [(one["kind"], one["message"]) for one in found["sources"]] == [
        ("step", 2),
        ("model", 4),
        ("tool", 5),
        ("model", 7),
    ]


async def test_a_terminal_is_not_steered_by_a_message(court: Court) -> None:
    """The command shows each line of a text behind a bar; a key without the right is told which it lacks."""
    task_id = (await court.testify("hostile"))["task_id"]
    shown = court.command("trace", task_id, "--messages", key="author")
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert "\x07" not in shown.stdout
    assert "   | It was the sea, 7 km away." in shown.stdout
    assert "The answer came from" in shown.stdout
    again = court.command("tasks", "messages", task_id, "--json", key="author")
    assert json.loads(again.stdout)["task_id"] == task_id
    plain = court.command("trace", task_id, key="author")
    assert "WitnessAgent.testify" in plain.stdout
    refused = court.command("trace", task_id, "--messages", key="others")
    assert refused.returncode == 2
    assert "'messages'" in refused.stderr


async def test_a_page_shows_messages_as_text(court: Court) -> None:
    """Markup of a tool is none there; who has not the right is not even offered the page."""
    task_id = (await court.testify("<img src=x onerror=alert(1)>"))["task_id"]
    for key, status in (("author", 200), ("others", 403)):
        link = await court.ask(court.operations, "POST", "/v1/console/links", key)
        async with httpx.AsyncClient(base_url=court.operations.api) as client:
            tab = Tab(client)
            await tab.sign_in(link.body["url"])
            run = await tab.open(f"/console/runs/{task_id}")
            assert (f"/console/runs/{task_id}/messages" in run) == (status == 200)
            text = await tab.open(f"/console/runs/{task_id}/messages", status)
        assert "<script>alert" not in text
        assert "<img" not in text
        is_shown = "&lt;script&gt;alert(1)" in text and "It was the sea" in text
        assert is_shown == (status == 200)


async def test_who_has_not_the_right_or_not_the_task_sees_nothing(
    court: Court,
) -> None:
    """Nor does a supervisor, at its door or at the server; workers of other agents do not either."""
    task_id = (await court.testify("ann's own", key="ann"))["task_id"]
    assert (await court.messages(task_id, "ann")).status == 200
    assert (await court.messages(task_id, "admin")).status == 200
    for key, status in (("others", 403), ("bob", 404), ("acme", 404)):
        assert (await court.messages(task_id, key)).status == status, key
    path = f"/v1/tasks/{task_id}/messages"
    at_supervisor = await court.ask(court.supervisor, "GET", path, "admin")
    assert at_supervisor.status == 404
    place = keys.run_messages(TaskName("WitnessAgent", task_id))
    for role in ("supervisor", "worker-probe", "memory"):
        async with valkey_as(court.pair, role) as redis:
            with pytest.raises(NoPermissionError):
                await redis.hgetall(place)


async def test_a_result_that_is_too_large_is_said_and_not_kept(court: Court) -> None:
    """The run fails by it, and its messages say at which step."""
    task_id = (await court.testify("large", wait=0, large=True))["task_id"]
    while (task := await court.show(task_id))["state"] != "done":
        pass
    assert task["status"] == "rejected"
    found = (await court.messages(task_id)).body
    kinds = [(one["kind"], one["name"]) for one in found["messages"]]
    assert kinds == [("parameters", "testify"), ("step", "read all"), ("error", "")]
    assert found["messages"][1]["facts"]["error"] == "InvalidInput"
    assert "20,000,002 bytes" in found["messages"][1]["text"]


async def test_nothing_is_kept_where_it_is_off(court: Court) -> None:
    """Who looks is told how to switch it on."""
    async with ScriptedLlm(look_then_answer) as model:
        court.worker.terminate()
        assert court.worker.wait() == 0
        off = court.system.worker(
            WITNESS,
            **court.pair.settings("worker-witness"),
            llm_base_url=model.base_url,
            llm_model="scripted",
        ).ready()
        task_id = (await court.testify("off"))["task_id"]
        off.terminate()
        assert off.wait() == 0
        court.worker = court.start_worker(model).ready()
        refused = await court.messages(task_id)
        assert refused.status == 404
        assert "TASKLORE_RUN_MESSAGES_HOURS=24" in refused.body["detail"]


async def test_a_user_is_forgotten_while_their_run_is_under_way(court: Court) -> None:
    """What it says afterwards is kept nowhere either: no key, and no byte on a disk of the store."""
    words = "quetzal-of-ann"
    async with ScriptedLlm(look_then_answer) as model:
        court.worker.terminate()
        assert court.worker.wait() == 0
        court.worker = court.start_worker(model).ready()
        task_id = (await court.testify(words, key="ann", wait=0, waits=True))["task_id"]
        runs = court.folder / "runs"
        while not (runs / "waits").exists():
            await court.messages(task_id)
        while (await court.messages(task_id)).status != 200:
            pass
        path = "/v1/memory/ann/everything"
        done = await court.ask(court.operations, "DELETE", path, "admin")
        assert done.status == 200, done.body
        assert done.body["removed"]["messages of runs"] >= 1
        assert done.body["left"] == {}
        (runs / "go").touch()
        court.worker.terminate()
        assert court.worker.wait() == 0
    async with valkey_as(court.pair, "operator") as redis:
        names = [one async for one in redis.scan_iter("tl:run-messages*")]
        left = [one for one in names if b"YW5u" in one or task_id.encode() in one]
        assert left == []
    folder = court.pair.valkey.data_dir
    await until_away([folder], words)
    assert not files_with(folder, words)
