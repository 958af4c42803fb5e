"""What is made from a call has the caller of that call, whole, however late and however far below it is made.

Callers are any that a key can be; what they make is heard at NATS as it is published, and read where it is kept.
"""

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st
from nats.aio.msg import Msg
from redis.asyncio import Redis

from tasklore.contracts.callers import ROLES, Caller
from tasklore.contracts.handed_requests import HandedRequest
from tasklore.contracts.messages import ChatTurn, TaskAssignment
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.schedules.store import ScheduleStore
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.webhooks.outbox import WebhookOutbox
from tasklore.runtime.messaging.connection import connected
from tasklore.supervisor.http.hand_over import HandOver
from tests.acceptance.system import AGENTS, BUDGET, System, running_system
from tests.receiver import SECRET
from tests.servers import PATIENCE_S

TREE = str(AGENTS / "tree.py")
SUPERVISOR = "SupervisorAgent"
#: What tasks and conversations of an example are called, with its number.
_LABEL = re.compile(r"work(\d+)-")
_NOBODY_LISTENS = "http://127.0.0.1:1/"
#: Makers whose work each example has to be heard of, and how many tasks of each at least.
MADE = Counter(
    {"task": 3, "tick": 1, "run": 1, "phase": 1, "item": 2, "inner": 1, "words": 1}
)

pytestmark = pytest.mark.timeout(400)

callers = st.builds(
    Caller,
    roles=st.sets(st.sampled_from(ROLES)).map(lambda some: frozenset({"ask", *some})),
    user=st.sampled_from((None, "ann", "bob")),
    tenant=st.sampled_from((None, "acme", "rival")),
    approves=st.frozensets(st.sampled_from(("finance", "law"))),
)


@dataclass
class CallersSystem:
    """A supervisor and a worker, and what is published beside them."""

    redis: Redis
    hand_over: HandOver
    heard: list[TaskAssignment] = field(default_factory=list, repr=False)

    async def hear(self, message: Msg) -> None:
        """Keep a message that is a task."""
        try:
            said = json.loads(message.data)
            if isinstance(said, dict) and isinstance(said.get("task"), dict):
                self.heard.append(TaskAssignment.model_validate(said))
        except ValueError:
            return

    async def call(
        self,
        caller: Caller,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        lines: bool = False,
    ) -> tuple[int, Any]:
        """Return status and body of the answer to *caller*, whom a process of an operator admitted."""
        headers = [("content-type", f"application/{'x-ndjson' if lines else 'json'}")]
        if key is not None:
            headers.append(("idempotency-key", key))
        answer = await self.hand_over.ask(
            HandedRequest(
                method=method,
                path=path,
                headers=tuple(headers) if body is not None else tuple(headers[1:]),
                caller=caller,
                within_s=PATIENCE_S,
                body=b"" if body is None else json.dumps(body).encode(),
            )
        )
        return answer.status, json.loads(answer.body) if answer.body else None

    async def demand(
        self, caller: Caller, method: str, path: str, body: Any = None, **more: Any
    ) -> Any:
        """Return the body of an answer that is no refusal."""
        status, told = await self.call(caller, method, path, body, **more)
        assert status < 300, f"{method} {path}: {status} {told}"
        return told

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return once what was heard *is_so*."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():  # noqa: ASYNC110 - messages come from another process
                await asyncio.sleep(0.02)

    async def ended(self, caller: Caller, session_id: str) -> Any:
        """Return a run once it has ended."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                run = await self.demand(caller, "GET", f"/v1/pipelines/{session_id}")
                if run["state"] != "running":
                    return run
                await asyncio.sleep(0.05)


@asynccontextmanager
async def _listening(processes: System) -> AsyncIterator[CallersSystem]:
    servers = processes.servers
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(servers.nats_url, "callers-of-work")
        )
        redis = await stack.enter_async_context(Redis.from_url(servers.redis_url))
        system = CallersSystem(redis, HandOver(client, SUPERVISOR))
        await client.subscribe(">", cb=system.hear)
        yield system


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """Run an event loop beside the examples, which come one after another."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def system(
    portal: BlockingPortal, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CallersSystem]:
    """Run the system once for all examples."""
    folder: Path = tmp_path_factory.mktemp("callers")
    with running_system(folder) as processes:
        model = {"llm_base_url": "", "llm_api_key": ""}
        worker = processes.worker(TREE, BUDGET, **model)
        supervisor = processes.supervisor(
            **model, webhook_secret=SECRET, webhook_networks="127.0.0.1/32"
        )
        worker.ready()
        supervisor.ready().await_agents(2)
        with portal.wrap_async_context_manager(_listening(processes)) as system:
            yield system


numbers = iter(range(1_000_000))


@settings(max_examples=8)
@given(made=callers, tenant=st.sampled_from((None, "globex")))
def test_what_is_made_from_a_call_is_of_its_caller_whole(
    system: CallersSystem, portal: BlockingPortal, made: Caller, tenant: str | None
) -> None:
    """Tasks, children, ticks, phases, items, runs inside, words and webhooks: user, tenant, key and roles."""
    number = next(numbers)
    caller = made.model_copy(update={"name": f"key{number}"})
    portal.call(_make_everything, system, caller, tenant, number)


async def _make_everything(
    system: CallersSystem, caller: Caller, tenant: str | None, number: int
) -> None:
    may_name = caller.user is None and caller.tenant is None
    named = caller.for_tenant(tenant) if may_name else caller
    user = caller.user or "carl"
    label = f"work{number}-"
    before = len(system.heard)
    await asyncio.gather(
        _send_task(system, caller, named, user, label),
        _schedule(system, caller, user, label),
        _run_pipeline(system, caller, user, label),
        _ask(system, caller, user, label),
    )
    heard = [one for one in system.heard[before:] if number_of(one) in (None, number)]
    by_maker: dict[str, set[str]] = defaultdict(set)
    for one in heard:
        of_named = "task" in one.task.parameters.get("label", "")
        expected = named if of_named else caller
        assert one.caller == expected, one
        assert (one.tenant, one.user_id) == (expected.tenant, user), one
        by_maker[maker_of(one)].add(one.task_id)
    counted = Counter({maker: len(ids) for maker, ids in by_maker.items()})
    assert not MADE - counted, counted


def number_of(assignment: TaskAssignment) -> int | None:
    """Return the number of the example that an assignment is of, None where it does not say one."""
    said = f"{assignment.conversation_id} {assignment.task.model_dump_json()}"
    found = _LABEL.search(said)
    return None if found is None else int(found[1])


def maker_of(assignment: TaskAssignment) -> str:
    """Return the word behind the label of an example, by which each maker calls its work."""
    label = assignment.task.parameters.get("label")
    return "words" if label is None else str(label).partition("-")[2]


async def _send_task(
    system: CallersSystem, caller: Caller, named: Caller, user: str, label: str
) -> None:
    """Send a task with a child that has a child, which calls back."""
    url = f"{_NOBODY_LISTENS}{label}"
    body = {
        "agent_id": "TreeAgent",
        "task": "descend",
        "parameters": {"label": f"{label}task", "depth": 2},
        "user": user,
        "callback_url": url,
        **({"tenant": named.tenant} if named != caller else {}),
    }
    sent = await system.demand(caller, "POST", "/v1/tasks", body)
    assert sent["status"] == "completed", sent
    outbox = WebhookOutbox(system.redis, deadline_s=PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            waiting = await outbox.find("waiting", 1000)
            ours = [one.webhook for one in waiting if one.webhook.url == url]
            if ours:
                break
            await asyncio.sleep(0.05)
    assert {one.caller for one in ours} == {named}


def _leaf(label: str, maker: str) -> dict[str, Any]:
    return {
        "agent_id": "TreeAgent",
        "task": "leaf",
        "parameters": {"label": f"{label}{maker}"},
    }


async def _schedule(
    system: CallersSystem, caller: Caller, user: str, label: str
) -> None:
    """Keep a schedule until its second tick, and run it once beside these."""
    schedule_id = f"{label}s"
    body = {**_leaf(label, "tick"), "id": schedule_id, "user": user, "every": 1}
    await system.demand(caller, "POST", "/v1/schedules", body)
    kept = (await ScheduleStore(system.redis, SUPERVISOR).read(schedule_id))[0]
    assert kept is not None
    assert (kept.schedule.caller, kept.schedule.user_id) == (caller, user)

    def ticks() -> int:
        ours = (one for one in system.heard if one.task_id.startswith(schedule_id))
        return len({one.task_id for one in ours})

    await system.until(lambda: ticks() >= 2)
    path = f"/v1/schedules/{schedule_id}"
    await system.demand(caller, "DELETE", path)
    once = {**_leaf(label, "run"), "id": f"{label}r", "user": user, "every": 86_400}
    await system.demand(caller, "POST", "/v1/schedules", once)
    await system.demand(caller, "POST", f"/v1/schedules/{label}r/run")
    await system.demand(caller, "DELETE", f"/v1/schedules/{label}r")


def _phase(name: str, label: str, **more: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {"label": f"{label}{name}"}
    if "for_each" in more:
        parameters["number"] = "${item}"
    leaf = {"agent": "TreeAgent", "task": "leaf", "parameters": parameters}
    return {"name": name, **leaf, **more}


async def _run_pipeline(
    system: CallersSystem, caller: Caller, user: str, label: str
) -> None:
    """Run a pipeline with a phase, one of two items, and a pipeline inside; then begin it again at its phase."""
    session_id = f"{label}p"
    inner = {"name": "inside", "phases": [_phase("inner", label)]}
    pipeline = {
        "name": "outside",
        "inputs": {"parts": {"type": "list"}},
        "phases": [
            _phase("phase", label),
            _phase("item", label, for_each="${input.parts}"),
            {"name": "nested", "pipeline": inner, "after": ["phase"]},
        ],
    }
    body = {
        "pipeline": pipeline,
        "inputs": {"parts": [1, 2]},
        "session_id": session_id,
        "user": user,
        "keep": True,
    }
    await system.demand(caller, "POST", "/v1/pipelines", body)
    run = await system.ended(caller, session_id)
    assert run["state"] == "completed", run
    record = await PipelineRuns(system.redis).read(session_id)
    assert record is not None
    assert (record.caller, record.user_id) == (caller, user)
    path = f"/v1/pipelines/{session_id}/rerun"
    await system.demand(caller, "POST", path, {"phase": "phase"})
    assert (await system.ended(caller, session_id))["state"] == "completed"


async def _ask(system: CallersSystem, caller: Caller, user: str, label: str) -> None:
    """Ask in words, in a conversation whose turns are of the caller's user and tenant."""
    conversation = f"{label}c"
    words = "limit 50k, spent 42000: how is my budget?"
    body = {"text": words, "user": user, "conversation": conversation}
    asked = await system.demand(caller, "POST", "/v1/requests", body)
    assert asked["state"] == "done", asked
    turns = await Conversations(system.redis).recent(conversation, 10)
    said = [ChatTurn.model_validate_json(one) for one in turns]
    assert {(one.user_id, one.tenant) for one in said} == {(user, caller.tenant)}


#: Who made things, a key of the same user in another tenant, and one of that tenant for any user.
_EVERY = frozenset(ROLES)
ACME = Caller(name="acme-key", roles=_EVERY, tenant="acme")
ANN = Caller(name="ann-key", roles=_EVERY, user="ann", tenant="acme")
RIVAL = Caller(name="rival-key", roles=_EVERY, tenant="rival")
RIVALS_ANN = Caller(name="rival-ann", roles=_EVERY, user="ann", tenant="rival")
BOB = Caller(name="bob-key", roles=_EVERY, user="bob")
_TAKEN = (403, 404, 409, 422)


def test_the_same_run_by_a_key_of_another_tenant_is_not_its_own(
    system: CallersSystem, portal: BlockingPortal
) -> None:
    """It says session, declaration, inputs and user as they are; neither the run nor its result is shown."""
    portal.call(_run_the_same, system)


async def _run_the_same(system: CallersSystem) -> None:
    for kept in (False, True):
        label = f"work{next(numbers)}-"
        body = {
            "pipeline": {
                "name": "one",
                "result": "phase:results",
                "phases": [_phase("phase", label)],
            },
            "session_id": f"{label}same",
            "user": "ann",
            "keep": kept,
        }
        place = f"/v1/pipelines/{label}same"
        await system.demand(ANN, "POST", "/v1/pipelines", body)
        assert (await system.ended(ANN, f"{label}same"))["state"] == "completed"
        for other in (RIVAL, RIVALS_ANN):
            status, told = await system.call(other, "POST", "/v1/pipelines", body)
            look, shown = await system.call(other, "GET", place)
            assert (status, look) == (409, 404), (told, shown)
            assert "completed" not in str(told)
        for own in (ANN, ACME):
            # The same again, by a key of its tenant, is the same run.
            await system.demand(own, "POST", "/v1/pipelines", body)
            assert (await system.call(own, "GET", place))[0] == 200


def test_no_name_in_a_body_a_header_or_evidence_makes_work_of_somebody_else(
    system: CallersSystem, portal: BlockingPortal
) -> None:
    """User, tenant, caller, conversation, schedule, idempotency key: each as it is another's."""
    portal.call(_name_others, system)


async def _name_others(system: CallersSystem) -> None:
    label = f"work{next(numbers)}-"
    task = {**_leaf(label, "task"), "user": "ann"}
    schedule = {**_leaf(label, "tick"), "id": f"{label}s", "every": 86_400}
    words = {"text": "limit 50k, spent 42000: how is my budget?", "user": "ann"}
    asked = {**words, "conversation": f"{label}c"}
    sent = await system.demand(ANN, "POST", "/v1/tasks", task, key=f"{label}k")
    mine = await system.demand(ACME, "POST", "/v1/tasks", task, key=f"{label}k")
    await system.demand(ACME, "POST", "/v1/schedules", schedule)
    await system.demand(ACME, "POST", "/v1/requests", asked, key=f"{label}q")
    forged = {"name": "boss", "roles": ["admin"], "tenant": "acme"}
    refused: list[tuple[Caller, str, Any, str | None]] = [
        (BOB, "/v1/tasks", task, None),
        (RIVAL, "/v1/tasks", {**task, "tenant": "acme"}, None),
        (RIVAL, "/v1/tasks", {**task, "caller": forged}, None),
        (RIVAL, "/v1/tasks", {**task, "parent_id": sent["task_id"]}, None),
        (BOB, "/v1/schedules", {**schedule, "id": f"{label}b", "user": "ann"}, None),
        (RIVAL, "/v1/schedules", schedule, None),
        (RIVAL, "/v1/schedules", {**schedule, "caller": forged}, None),
        (RIVAL, f"/v1/schedules/{label}s/run", None, None),
        (RIVAL, "/v1/requests", asked, None),
        (RIVAL, "/v1/requests", {**words, "caller": forged}, None),
        (BOB, "/v1/requests", words, None),
        (RIVAL, "/v1/requests", asked, f"{label}q"),
        (RIVAL, "/v1/tasks", task, f"{label}k"),
    ]
    before = len(system.heard)
    for caller, path, body, key in refused:
        status, told = await system.call(caller, "POST", path, body, key=key)
        said = f"{caller.name} {path} {body} {key}: {status} {told}"
        assert status in _TAKEN, said
        assert sent["task_id"] not in str(told), said
        assert mine["task_id"] not in str(told), said
    # A user's own ids are nobody else's: the same one makes a task of theirs.
    own = {**_leaf(label, "task"), "user": "ann"}
    theirs = await system.demand(RIVALS_ANN, "POST", "/v1/tasks", own)
    assert theirs["task_id"] not in (sent["task_id"], mine["task_id"])
    heard = [one for one in system.heard[before:] if label in one.model_dump_json()]
    assert {one.caller for one in heard} <= {ANN, ACME, RIVALS_ANN}


def test_a_run_restored_from_evidence_is_of_who_restores_it(
    system: CallersSystem, portal: BlockingPortal
) -> None:
    """Evidence is a file: who holds it may write another caller into it."""
    portal.call(_restore, system)


async def _restore(system: CallersSystem) -> None:
    label = f"work{next(numbers)}-"
    phase = _phase("phase", label)
    phase["parameters"] |= {"bad": [0]}
    body = {
        "pipeline": {"name": "one", "phases": [phase]},
        "session_id": f"{label}e",
        "user": "ann",
    }
    await system.demand(ACME, "POST", "/v1/pipelines", body)
    assert (await system.ended(ACME, f"{label}e"))["state"] == "failed"
    place = f"/v1/pipelines/{label}e/evidence"
    evidence = await system.demand(ACME, "GET", place)
    assert evidence["caller"]["tenant"] == "acme"
    for number, (holder, user) in enumerate(((RIVAL, "ann"), (BOB, "bob"))):
        session_id = f"{label}f{number}"
        bundle = {**evidence, "session_id": session_id, "user_id": user}
        path = f"/v1/pipelines/{session_id}/restore"
        line = {"evidence": bundle}
        await system.demand(holder, "POST", path, line, lines=True)
        record = await PipelineRuns(system.redis).read(session_id)
        assert record is not None
        assert (record.caller, record.user_id) == (holder, user)
        before = len(system.heard)
        await system.demand(holder, "POST", f"/v1/pipelines/{session_id}/resume", {})
        await system.ended(holder, session_id)
        heard = [one for one in system.heard[before:] if one.session_id == session_id]
        assert {(one.caller, one.user_id) for one in heard} == {(holder, user)}
