"""The list of tasks of real processes: by command and over HTTP, of supervisors and of programs."""

import json
from typing import Any

import httpx2

from tests.acceptance.external_program import outside
from tests.acceptance.system import AGENTS, System

TREE = str(AGENTS / "tree.py")


async def test_tasks_of_programs_children_and_requests_are_listed_as_they_are(
    own_system: System,
) -> None:
    """Running, waiting for others, completed and failed, with their parents; the same by command and over HTTP."""
    own_system.worker(TREE).ready()
    supervisor = own_system.supervisor().ready()

    def listed(*options: str) -> list[Any]:
        done = own_system.command("tasks", "list", "--json", *options)
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)["tasks"]
        return found

    async with (
        outside(own_system.servers.nats_url) as program,
        httpx2.AsyncClient(base_url=supervisor.api) as http,
    ):
        grown = await program.ask(
            "TreeAgent", "grow", {"label": "a", "depth": 1, "width": 3}
        )
        bad = await program.ask(
            "TreeAgent", "collect", {"label": "b", "width": 3, "bad": [1]}
        )
        waiting = await program.assign(
            "TreeAgent", "step_and_wait", {"label": "c", "ms": 60_000}
        )

        async def is_running() -> bool:
            return waiting in [one["task_id"] for one in listed("--state", "running")]

        await program.eventually(is_running)
        children = listed("--parent", grown["task_id"])
        assert {one["state"] for one in children} == {"completed"}
        assert len(children) == 3
        [failed] = listed("--parent", bad["task_id"], "--state", "failed")
        assert failed["error"] == "GiveUp"
        whole = listed()
        assert {grown["task_id"], bad["task_id"], waiting} <= {
            one["task_id"] for one in whole
        }
        body = (await http.get("/v1/tasks", params={"state": "failed"})).json()
        assert body["tasks"] == listed("--state", "failed")
        named = {"agent_id": "TreeAgent", "task": "leaf", "after": 600}
        parameters = {"parameters": {"label": "d"}}
        sent = await http.post("/v1/tasks", json=named | parameters)
        assert sent.status_code == 202, sent.text
        assert listed("--state", "accepted")[0]["task_id"] == sent.json()["task_id"]
        drawn = own_system.command("tasks", "list", "--error", "GiveUp").stdout
        assert "TreeAgent.leaf" in drawn
        assert "GiveUp" in drawn
        none = own_system.command("tasks", "list", "--tenant", "nobody")
        assert none.stdout == "There are no such tasks.\n"
        wrong = own_system.command("tasks", "list", "--state", "queued")
        assert wrong.returncode == 2
        assert "'accepted', 'running'" in wrong.stderr
