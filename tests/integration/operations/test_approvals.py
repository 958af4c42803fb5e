"""Operations on approvals, on real servers: who sees a question, who answers it, and links."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from tasklore.commands.operations import run
from tasklore.commands.operations.entries import operations_of
from tasklore.commands.operations.problems import ApiRefused
from tasklore.contracts.admission.waits import Wait
from tasklore.contracts.callers import ALL, Caller
from tasklore.contracts.errors import InvalidInput, NotPermitted
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import Ended, RunPermission
from tasklore.memory.ledger.waits import WaitName, Waits
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link as NatsLink
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.approvals import questions
from tasklore.supervisor.approvals.answers import AnswerRefused, Answers
from tasklore.supervisor.approvals.links import PATH, Links
from tasklore.supervisor.json_schemas import JsonSchemas
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.operations.approvals import (
    OPERATIONS,
    OPERATOR_OPERATIONS,
    ApprovalReply,
    ApprovalServices,
    ApprovalStore,
    Decision,
    LinkWish,
    answer_approval,
    approve,
    link_approval,
    list_approvals,
    reject,
    show_approval,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.watches import QuestionWatch
from tests.integration.http_stand import http_stand
from tests.integration.kept_keys import KeyFile
from tests.servers import PATIENCE_S

BOSS = Caller(name="boss", roles=frozenset({"admin"}), approves=frozenset({ALL}))
FAY = Caller(
    name="fay",
    roles=frozenset({"approve"}),
    user="fay",
    approves=frozenset({"finance"}),
)
ANA = Caller(name="ana", roles=frozenset({"ask", "approve"}), user="ana")
#: One that administers all and answers in no role.
CLERK = Caller(name="clerk", roles=frozenset({"admin"}))
SCHEMA = {
    "type": "object",
    "properties": {"account": {"type": "string"}},
    "required": ["account"],
}


@pytest.fixture
async def services(
    own_servers: EmbeddedServers, redis: Redis
) -> AsyncIterator[ApprovalServices]:
    """Have four questions of two tasks: `pay.0` and `pay.1` of finance, `pay.2` of Ana, `any.0` of anybody."""
    waits = Waits(redis, deadline_s=PATIENCE_S)
    schemas = JsonSchemas()
    async with (
        connected(own_servers.nats_url, "approving") as client,
        open_outbox(NatsLink(client)) as outbox,
    ):
        await declare_streams(client, StreamSizes())
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        await park(
            ledger,
            waits,
            "pay",
            a_question("0", "role:finance", hours=3),
            a_question("1", "role:finance", hours=1, answer_schema=SCHEMA),
            a_question("2", "user:ana", hours=2),
        )
        await park(ledger, waits, "any", a_question("0", None, hours=4))
        answers = Answers(waits, outbox, schemas)
        links = Links("0123456789abcdef0123456789abcdef", answers)
        yield ApprovalServices(answers=answers, ledger=ledger, links=links)
    await schemas.close()


def a_question(slot: str, who: str | None, *, hours: int, **fields: Any) -> Wait:
    now = datetime.now(UTC)
    return Wait(
        kind="ask",
        slot=slot,
        digest=slot * 32,
        agent_id="PayerAgent",
        task_name="pay",
        generation=1,
        text=f"Pay {slot} to account 4711?",
        who=who,
        asked_at=now,
        until=now + timedelta(hours=hours),
        **fields,
    )


async def park(ledger: Ledger, waits: Waits, task_id: str, *asked: Wait) -> None:
    """Let a run of the task begin, and end in the questions *asked*."""
    begun = await ledger.begin(task_id, 1, "w", 1, 30_000, token="run")
    assert isinstance(begun, RunPermission)
    assert await waits.begin(
        Ended(task_id, 1, "run"), asked, wait_s=86_400, due_s=86_400, assignment=b"{}"
    )
    now = datetime.now(UTC)
    await waits.look_at_many({WaitName("ask", task_id, one.slot): now for one in asked})


async def ids_for(
    services: ApprovalServices, caller: Caller, **asked: Any
) -> list[str]:
    found = await list_approvals(services, caller, **asked)
    return [one.id for one in found.approvals]


async def test_a_short_list_has_the_questions_that_end_first_of_all(
    services: ApprovalServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, and whichever of them are read first."""
    monkeypatch.setattr(questions, "_PAGE", 1)
    assert await ids_for(services, BOSS, limit=1) == ["pay.1"]
    assert await ids_for(services, BOSS, limit=3) == ["pay.1", "pay.2", "pay.0"]


async def test_each_sees_the_questions_that_they_may_answer_the_most_urgent_first(
    services: ApprovalServices,
) -> None:
    """An administrator of everybody sees all of them."""
    assert await ids_for(services, BOSS) == ["pay.1", "pay.2", "pay.0", "any.0"]
    assert await ids_for(services, CLERK) == ["pay.1", "pay.2", "pay.0", "any.0"]
    assert await ids_for(services, FAY) == ["pay.1", "pay.0", "any.0"]
    assert await ids_for(services, ANA) == ["pay.2", "any.0"]
    alice = CLERK.model_copy(update={"user": "alice"})
    assert await ids_for(services, alice) == ["any.0"]
    assert await ids_for(services, FAY, task_id="pay") == ["pay.0", "pay.1"]
    assert len(await ids_for(services, BOSS, limit=1)) == 1


async def test_a_question_is_shown_to_those_who_may_see_it(
    services: ApprovalServices,
) -> None:
    """With less than answering takes."""
    store = ApprovalStore(waits=services.waits, ledger=services.ledger)
    shown = await show_approval(store, FAY, "pay.0")
    assert (shown.question, shown.state, shown.digest) == (
        "Pay 0 to account 4711?",
        "open",
        "0" * 32,
    )
    for caller, approval_id in ((ANA, "pay.0"), (FAY, "pay.2"), (BOSS, "pay.9")):
        with pytest.raises(Refused, match="no question") as refused:
            await show_approval(store, caller, approval_id)
        assert refused.value.problem.status == 404
    with pytest.raises(InvalidInput, match="not an approval id"):
        await show_approval(store, BOSS, "pay")


async def test_a_yes_and_a_no_answer_the_question_once_in_the_name_of_the_key(
    services: ApprovalServices,
) -> None:
    answered = await approve(services, FAY, "pay.0", Decision(note="as ordered"))
    assert answered.answer is not None
    assert (answered.state, answered.answer.value) == (
        "answered",
        {"approved": True, "note": "as ordered"},
    )
    assert (answered.answer.by, answered.answer.door) == ("user:fay", "http")
    with pytest.raises(Refused, match="first answer counts") as second:
        await reject(services, BOSS, "pay.0", Decision())
    assert second.value.problem.status == 409
    refused = (await show_approval(services, FAY, "pay.0")).refused
    assert [(one.by, one.why) for one in refused] == [("key:boss", "answered")]
    no = await reject(services, ANA, "any.0", Decision(note="twice"))
    assert no.answer is not None
    assert no.answer.value == {"approved": False, "note": "twice"}


async def test_who_is_not_asked_is_refused_and_that_is_kept(
    services: ApprovalServices,
) -> None:
    """Also an administrator whose key answers in no role."""
    for caller in (ANA, CLERK):
        for operation in (approve, reject):
            with pytest.raises(
                Refused, match="only role:finance may answer"
            ) as refused:
                await operation(services, caller, "pay.0", Decision())
            assert refused.value.problem.status == 403
    shown = await show_approval(services, BOSS, "pay.0")
    assert (shown.state, [one.by for one in shown.refused]) == (
        "open",
        ["user:ana"] * 2 + ["key:clerk"] * 2,
    )


async def test_a_trial_shows_the_question_and_binds_the_answer_to_it(
    services: ApprovalServices,
) -> None:
    tried = await approve(services, FAY, "pay.0", Decision(dry_run=True))
    assert (tried.state, tried.question) == ("open", "Pay 0 to account 4711?")
    with pytest.raises(Refused, match="no question"):
        await approve(services, ANA, "pay.0", Decision(dry_run=True))
    assert (await show_approval(services, FAY, "pay.0")).refused == ()
    with pytest.raises(Refused, match="has changed since it was shown") as changed:
        await approve(services, FAY, "pay.0", Decision(digest="f" * 32))
    assert changed.value.problem.status == 409
    await approve(services, FAY, "pay.0", Decision(digest=tried.digest))


async def test_an_answer_fits_the_schema_of_its_question(
    services: ApprovalServices,
) -> None:
    with pytest.raises(InvalidInput, match="account"):
        await approve(services, FAY, "pay.1", Decision())
    reply = ApprovalReply(answer={"account": "savings"}, digest="1" * 32)
    answered = await answer_approval(services, FAY, "pay.1", reply)
    assert answered.answer is not None
    assert answered.answer.value == {"account": "savings"}
    with pytest.raises(InvalidInput, match="the answer"):
        await answer_approval(services, FAY, "pay.0", ApprovalReply(answer="yes"))
    with pytest.raises(Refused, match="no question"):
        await answer_approval(services, FAY, "pay.7", ApprovalReply(answer="yes"))


async def test_a_link_is_made_in_a_name_that_the_key_may_answer_in(
    services: ApprovalServices,
) -> None:
    wish = LinkWish(who="role:finance", within_seconds=60)
    made = await link_approval(services, BOSS, "pay.0", wish, base_url="http://here/")
    assert services.links is not None
    token = made.url.removeprefix(f"http://here{PATH}")
    read = await services.links.read(token, is_answer=False)
    assert (read.approval_id, read.who, read.made_by) == (
        "pay.0",
        "role:finance",
        "key:boss",
    )
    assert made.expires_at < datetime.now(UTC) + timedelta(seconds=61)
    fay = FAY.model_copy(update={"roles": frozenset({"admin"})})
    other = LinkWish(who="user:ana")
    with pytest.raises(Refused, match=r"who: .*role:finance, user:fay") as refused:
        await link_approval(services, fay, "pay.0", other, base_url="http://here/")
    assert refused.value.problem.status == 403
    away = ApprovalServices(
        answers=services.answers, ledger=services.ledger, links=None
    )
    with pytest.raises(Refused, match="TASKLORE_APPROVAL_SECRET"):
        await link_approval(away, BOSS, "pay.0", wish, base_url="http://here/")
    # What is handed over was asked for elsewhere: all that is known is where the supervisor listens.
    for everywhere in ("http://0.0.0.0:8080/", "http://[::]:8080/"):
        with pytest.raises(Refused, match="TASKLORE_APPROVAL_URL"):
            await link_approval(services, BOSS, "pay.0", wish, base_url=everywhere)


async def test_a_link_ends_with_the_key_that_it_was_made_with(
    services: ApprovalServices, tmp_path: Path
) -> None:
    """Looks and answers are refused with the reason, the question waits on, and a key that is back opens it again."""
    keys = KeyFile(tmp_path / "keys.json")
    keys.make("boss", "admin")
    links = Links("s" * 32, services.answers, makers=Makers(keys.open()))
    keyed = ApprovalServices(
        answers=services.answers, ledger=services.ledger, links=links
    )
    boss = Caller(name="boss", roles=frozenset({"admin"}))
    wish = LinkWish(who="role:finance")
    made = await link_approval(keyed, boss, "pay.0", wish, base_url="http://here/")
    token = made.url.removeprefix(f"http://here{PATH}")
    assert (await links.read(token, is_answer=True)).who == "role:finance"

    entry = keys.remove("boss")
    for is_answer in (False, True):
        with pytest.raises(AnswerRefused, match="'boss' that created it was removed"):
            await links.read(token, is_answer=is_answer)
    shown = await show_approval(keyed, BOSS, "pay.0")
    assert (shown.state, len(shown.refused)) == ("open", 1)
    assert "was removed" in shown.refused[0].why

    keys.put_back(entry, roles=["ask"])
    with pytest.raises(AnswerRefused, match="no longer has the role 'admin'"):
        await links.read(token, is_answer=False)
    keys.put_back(entry)
    assert (await links.read(token, is_answer=True)).approval_id == "pay.0"


@pytest.mark.parametrize(
    "maker",
    [BOSS, Caller(name="ops", roles=frozenset({"admin"}), is_handed=True)],
)
async def test_a_link_of_who_showed_no_key_here_lasts(
    services: ApprovalServices, tmp_path: Path, maker: Caller
) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    keys.make("other", "admin")
    links = Links("s" * 32, services.answers, makers=Makers(keys.open()))
    keyed = ApprovalServices(
        answers=services.answers, ledger=services.ledger, links=links
    )
    wish = LinkWish(who="role:finance")
    made = await link_approval(keyed, maker, "pay.0", wish, base_url="http://here/")
    token = made.url.removeprefix(f"http://here{PATH}")
    assert (await links.read(token, is_answer=True)).approval_id == "pay.0"


async def test_how_many_questions_wait_and_how_long_is_exported(
    services: ApprovalServices,
) -> None:
    """One that was answered or withdrawn does not count, nor what waits for a time or a signal."""
    later = datetime.now(UTC) + timedelta(minutes=10)
    watch = QuestionWatch(services.waits, lambda: later)
    assert (watch.open(), watch.oldest_s()) == (0, 0)
    listed = {
        WaitName("signal", "pay", "9"): later,
        WaitName("ask", "gone", "0"): later,
    }
    await services.waits.look_at_many(listed)
    await watch.look()
    assert watch.open() == 4
    assert watch.oldest_s() == pytest.approx(600, abs=60)
    await approve(services, BOSS, "pay.0", Decision())
    await watch.look()
    assert watch.open() == 3
    for name in await services.waits.list_open("ask", 10):
        await services.waits.drop(name)
    await watch.look()
    assert (watch.open(), watch.oldest_s()) == (0, 0)


async def test_questions_are_no_matter_of_those_who_only_read(
    services: ApprovalServices,
) -> None:
    reader = Caller(name="reader", roles=frozenset({"read", "operate"}))
    for operation in (*OPERATOR_OPERATIONS, *OPERATIONS):
        with pytest.raises(NotPermitted):
            await operation(services, reader)
    with pytest.raises(NotPermitted, match="'admin'"):
        await link_approval(
            services, FAY, "pay.0", LinkWish(who="user:fay"), base_url=""
        )


async def test_questions_are_answered_over_http(
    services: ApprovalServices, own_servers: EmbeddedServers, redis: Redis
) -> None:
    """A link leads back to the address that was asked."""
    parts = {"answers": services.answers, "links": services.links}
    async with (
        http_stand(own_servers, redis, **parts) as stand,
        httpx.AsyncClient(base_url=stand.url, timeout=PATIENCE_S) as door,
    ):
        path = "/v1/approvals/any.0"
        made = await door.post(f"{path}/links", json={"who": "user:ana"})
        assert made.json()["url"].startswith(f"{stand.url}{PATH}")
        tried = await door.post(f"{path}/approve", json={"dry_run": True})
        assert tried.json()["state"] == "open"
        done = await door.post(f"{path}/approve", json={"note": "fine"})
        assert (done.status_code, done.json()["answer"]["by"]) == (200, "key:local")
        late = await door.post(f"{path}/reject", json={})
        assert (late.status_code, late.json()["type"][-17:]) == (
            409,
            "approval-answered",
        )


async def test_a_person_sees_the_question_before_and_answers_no_other_one(
    services: ApprovalServices,
    own_servers: EmbeddedServers,
    redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One that changes while the person decides is not approved."""
    loop = asyncio.get_running_loop()
    other = a_question("0", None, hours=4).model_copy(update={"digest": "f" * 32})
    asked = []

    def change_meanwhile(question: str, **_: str) -> None:
        asked.append((question, "Pay 0 to account 4711?" in capsys.readouterr().out))
        change = redis.hset(keys.task("any"), "wait.0", other.model_dump_json())
        asyncio.run_coroutine_threadsafe(change, loop).result(PATIENCE_S)

    monkeypatch.setattr(run, "confirm", change_meanwhile)
    [entry] = [one for one in operations_of("approvals") if one["verb"] == "approve"]
    parts = {"answers": services.answers, "links": services.links}
    async with http_stand(own_servers, redis, **parts) as stand:
        typed = {"field_approval_id": "any.0", "api": stand.url}
        with pytest.raises(ApiRefused, match="has changed since it was shown"):
            await asyncio.to_thread(run.run_operation, entry, typed)
        assert asked == [("Approve any.0?", True)]
        sure = typed | {"is_sure": True, "is_json": True}
        assert await asyncio.to_thread(run.run_operation, entry, sure) == 0
    assert (await show_approval(services, BOSS, "any.0")).state == "answered"
