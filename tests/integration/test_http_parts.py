"""Requests that become several tasks: each answer is sent as soon as it is there, by any replica."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import openai
import pytest
from redis.asyncio import Redis

from contracts.messages import ChatTurn, PersonReply, PersonRequest, ReplyPart, TaskAssignment
from runtime.servers.embedded import EmbeddedServers
from supervisor.replies.combined import combine
from supervisor.requests.request import Alongside, Ended, ignore_part, part_task_id
from tests.http_client import PATIENCE_S, Connection, ask, until
from tests.integration.http_stand import Scripted, Stand, assigned, http_stand
from tests.integration.test_http_requests import report_on, shown

TWO = {"text": "echo one and echo two", "wait_seconds": 0}
WHOLE = "1. Said one\n\n2. Said two"


class InParts(Scripted):
    """A service that makes two tasks of every request: of the first it tells at once, of the second at the gate."""

    #: Which place is answered before the gate is opened.
    first = 1

    async def answer(
        self,
        request: PersonRequest,
        *,
        routed: Callable[[TaskAssignment], None] = lambda _assignment: None,
        before: Sequence[ChatTurn] | None = None,
        ended: Ended = ignore_part,
        is_new: bool = False,
        alongside: Alongside | None = None,
    ) -> PersonReply:
        """Answer one part, wait for the gate, answer the other."""
        self.asked.append(request)
        await self._keep(request, "person", request.text, alongside.words if alongside is not None else ())
        whole = self.task_id_of(request)
        parts = {}
        for place, word in ((1, "one"), (2, "two")):
            task_id = part_task_id(whole, place)
            assignment = assigned(task_id, word).model_copy(update={"parent_id": whole})
            await self.dispatch.assign(assignment)
            routed(assignment)
            about = {"task_id": task_id, "agent_id": "EchoAgent", "report": report_on(task_id)}
            parts[place] = ReplyPart.model_validate({"kind": "answer", "text": f"Said {word}", **about})
        ended(self.first, parts[self.first])
        await self.gate.wait()
        ended(3 - self.first, parts[3 - self.first])
        named = {"request_id": request.request_id or "none", "conversation_id": request.conversation_id or "none"}
        return combine(list(parts.values()), **named)


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    """Serve the API with such a service."""
    async with http_stand(servers, redis, heartbeat_s=0.05, scripted=InParts) as found:
        yield found


def client_of(stand: Stand, **options: Any) -> openai.AsyncOpenAI:
    """Return OpenAI's client; it tries nothing twice."""
    return openai.AsyncOpenAI(base_url=f"{stand.url}/v1", api_key="any", max_retries=0, **options)


async def test_each_answer_is_an_event_before_the_end(stand: Stand) -> None:
    """Once, with its reply; the request shows it too, and the end has it in the reply alone."""
    await ask(stand.url, "POST", "/v1/requests", TWO, {"Idempotency-Key": "both"})
    heard = []
    async with Connection(stand.url) as listener, asyncio.timeout(PATIENCE_S):
        listener.send("GET", "/v1/requests/both/events")
        await listener.head()
        async for number, name, body in listener.events():
            heard.append((number, name, body))
            if name == "partial" and body["task_id"] == "r-both-1":
                first, second = (await ask(stand.url, "GET", "/v1/requests/both")).body["parts"]
                assert (first["reply"], "reply" in second) == (body, False)
                stand.service.gate.set()
    told = [one for one in heard if one[1] == "partial"]
    assert [(number, body["text"]) for number, _, body in told][:1] == [("3", "Said one")]
    assert len({body["task_id"] for _, _, body in told}) == len(told)
    routed, done = (next(body for _, name, body in heard if name == stage) for stage in ("routed", "done"))
    assert all("reply" not in part for part in routed["parts"] + done["parts"])
    assert len(done["reply"]["parts"]) == 2


async def test_another_replica_sends_the_answers_from_the_ledger(
    stand: Stand, servers: EmbeddedServers, redis: Redis
) -> None:
    await ask(stand.url, "POST", "/v1/requests", TWO, {"Idempotency-Key": "far"})
    await shown(stand, "/v1/requests/far", "running")
    await stand.parts.ledger.finish("r-far-2", 1, "completed", report_on("r-far-2").model_dump_json().encode())
    async with http_stand(servers, redis) as other, asyncio.timeout(PATIENCE_S):
        for last in ("0", "3"):
            async with Connection(other.url) as listener:
                listener.send("GET", "/v1/requests/far/events", headers={"Last-Event-ID": last})
                await listener.head()
                told = await anext(body async for _, name, body in listener.events() if name == "partial")
            assert (told["task_id"], told["kind"], "Word: hi" in told["text"]) == ("r-far-2", "answer", True)
    stand.service.gate.set()


@pytest.mark.parametrize("first", [1, 2])
async def test_a_streamed_chat_has_the_answers_in_the_order_of_the_question(stand: Stand, first: int) -> None:
    assert isinstance(stand.service, InParts)
    stand.service.first = first
    said = ""
    async with client_of(stand) as client, asyncio.timeout(PATIENCE_S):
        stream = await client.chat.completions.create(
            model="tasklore", messages=[{"role": "user", "content": "echo one and echo two"}], stream=True
        )
        if first == 2:
            stand.service.gate.set()
        async for chunk in stream:
            said += chunk.choices[0].delta.content or ""
            if said == "1. Said one":
                stand.service.gate.set()
    assert said == WHOLE


async def test_the_time_zone_of_a_chat_comes_from_the_body_or_else_the_header(stand: Stand) -> None:
    stand.service.gate.set()
    zone, header = {"time_zone": "Asia/Tokyo"}, {"X-Time-Zone": "Europe/Berlin"}
    asked: dict[str, Any] = {"model": "tasklore", "messages": [{"role": "user", "content": "what is tomorrow?"}]}
    found = []
    async with client_of(stand) as plain, client_of(stand, default_headers=header) as zoned:
        for client, extra in ((plain, {}), (plain, zone), (zoned, {}), (zoned, zone)):
            await client.chat.completions.create(**asked, extra_body=extra)
            found.append(stand.service.asked[-1].time_zone)
        for extra_body, headers, param in (
            ({"time_zone": "Asia/Tokio"}, {}, "time_zone"),
            ({}, {"X-Time-Zone": "../x"}, "header.X-Time-Zone"),
        ):
            with pytest.raises(openai.BadRequestError, match="there is no time zone") as refusal:
                await plain.chat.completions.create(**asked, extra_body=extra_body, extra_headers=headers)
            assert refusal.value.param == param
    assert found == [None, "Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"]
    await until(lambda: stand.parts.life.inside == 0)
