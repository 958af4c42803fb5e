"""What ends a request of an agent in a real worker: the deadline of its task, and its cancellation."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.external_program import outside
from tests.acceptance.system import AGENTS, System
from tests.llm_double import ScriptedLlm, saying, stalled

CLERK = str(AGENTS / "clerk.py")


@pytest.mark.parametrize("ended_by", ["deadline", "cancellation"])
async def test_a_request_under_way_ends_with_its_task(
    own_system: System, ended_by: str
) -> None:
    """The model's server sees that the worker hung up, and the worker's only slot for requests is free again."""
    async with (
        ScriptedLlm(lambda _asked: stalled()) as model,
        outside(own_system.servers.nats_url) as program,
    ):
        own_system.worker(
            CLERK,
            llm_base_url=model.base_url,
            llm_model="scripted",
            llm_max_concurrency=1,
        ).ready()
        fields = {}
        if ended_by == "deadline":
            fields["deadline"] = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()
        task = await program.assign(
            "ClerkAgent", "work", {"label": "stalled"}, **fields
        )
        await model.wait_for_requests(1, in_flight=True)
        if ended_by == "cancellation":
            body = json.dumps({"task_id": task, "reason": "enough"}).encode()
            await program.client.publish(f"cancel.{task}", body)
        report = await program.report_of(task)
        assert (
            report["status"]
            == {"deadline": "expired", "cancellation": "cancelled"}[ended_by]
        )
        model.respond = lambda _asked: saying("hello")
        async with asyncio.timeout(60):
            other = await program.ask("ClerkAgent", "work", {"label": "other"})
        assert (other["result"], len(model.requests)) == ("hello", 2)
