"""The operations of requests and conversations, called as a program of this process calls them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.contracts.messages import (
    ChatTurn,
    PersonReply,
    PersonRequest,
    TaskAssignment,
)
from tasklore.memory.conversations.inbox import Inbox
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.operations import conversations
from tasklore.supervisor.operations.conversations import (
    ConversationServices,
    list_conversations,
    show_conversation,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.requests import (
    Ask,
    ask,
    cancel_asked,
    show_request,
)
from tasklore.supervisor.operations.table import Unfinished
from tasklore.supervisor.requests.outcome import Lookup
from tasklore.supervisor.requests.request import Ended, ExtraCommands, ignore_part
from tests.http_client import until
from tests.integration.http_stand import Scripted, Stand, assigned, http_stand

ANYBODY = Caller(name="shop", roles=frozenset({"ask", "read"}))
ANA = Caller(name="ana-key", roles=frozenset({"ask", "read"}), user="ana")
BEN = Caller(name="ben-key", roles=frozenset({"ask", "read"}), user="ben")


class Patient(Scripted):
    """A service that answers that a task is pending, as the real one does when the time is over."""

    async def answer(
        self,
        request: PersonRequest,
        *,
        routed: Callable[[TaskAssignment], None] = lambda _assignment: None,
        before: Sequence[ChatTurn] | None = None,
        ended: Ended = ignore_part,
        is_new: bool = False,
        alongside: ExtraCommands | None = None,
        among: Catalogue | None = None,
    ) -> PersonReply:
        self.asked.append(request)
        if self.gate.is_set():
            return await super().answer(request, routed=routed)
        await self._keep(
            request, "person", request.text, alongside.words if alongside else ()
        )
        assignment = assigned(self.task_id_of(request), request.text)
        await self.dispatch.assign(assignment)
        routed(assignment)
        return PersonReply(
            request_id=request.request_id or "none",
            conversation_id=request.conversation_id or "none",
            kind="pending",
            text="EchoAgent is still working on it.",
        )


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis) as found:
        found.service.gate.set()
        yield found


@pytest.fixture
async def slow(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis, scripted=Patient) as found:
        yield found


async def asked(
    stand: Stand, caller: Caller, key: str | None = None, **said: Any
) -> Any:
    """Return what the operation answers to *said*."""
    new = Ask.model_validate({"text": "hello", **said})
    return await ask(stand.parts.for_requests, caller, new, idempotency_key=key)


async def test_an_answer_is_the_view_itself_and_the_rest_is_unfinished(
    stand: Stand,
) -> None:
    """Who waits too short a time is told where the end will be."""
    found = await asked(stand, ANYBODY)
    assert isinstance(found, Lookup)
    assert (found.state, found.reply and found.reply.text) == ("done", "Heard: hello")
    stand.service.gate.clear()
    later = await asked(stand, ANYBODY, "job", wait_seconds=0)
    assert isinstance(later, Unfinished)
    assert later.location == "/v1/requests/job"
    stand.service.gate.set()
    assert (await asked(stand, ANYBODY, "job")).reply.text == "Heard: hello"


async def test_a_key_of_one_user_sees_no_request_of_another(stand: Stand) -> None:
    """Under one id two users have a request each, and none speaks for the other."""
    await asked(stand, ANA, "same", text="mine")
    await asked(stand, BEN, "same", text="yours")
    services = stand.parts.for_requests
    heard = await show_request(services, ANA, "same")
    assert heard.reply is not None
    assert heard.reply.text == "Heard: mine"
    with pytest.raises(NotPermitted, match="another user"):
        await asked(stand, ANA, user="ben")
    with pytest.raises(Refused, match="there is no request"):
        await cancel_asked(services, ANYBODY, "same")
    with pytest.raises(NotPermitted, match="'ask'"):
        await asked(stand, Caller(name="reader", roles=frozenset({"read"})))


@pytest.mark.parametrize(
    ("said", "ahead"),
    [
        ({"after": "2h"}, timedelta(hours=2)),
        ({"after": 7200}, timedelta(hours=2)),
        ({"at": "{:%Y-%m-%dT%H:%M:%S}Z"}, timedelta(hours=5)),
        # By the clocks of its sender, which may be named, and in UTC otherwise.
        ({"at": "{:%Y-%m-%dT%H:%M:%S}"}, timedelta(hours=5)),
        (
            {"at": "{:%Y-%m-%dT%H:%M:%S}", "time_zone": "Africa/Lagos"},
            timedelta(hours=4),
        ),
    ],
)
async def test_a_request_may_begin_later(
    slow: Stand, said: dict[str, Any], ahead: timedelta
) -> None:
    """Its sender hears at once that it waits, however long they would wait."""
    now = datetime.now(UTC)
    if "at" in said:
        said = said | {"at": said["at"].format(now + timedelta(hours=5))}
    async with asyncio.timeout(10):
        found = await asked(slow, ANYBODY, wait_seconds=600, **said)
    assert found.view.reply.kind == "pending"
    [request] = slow.service.asked
    assert request.not_before is not None
    assert abs(request.not_before - now - ahead) < timedelta(seconds=60)


async def test_a_request_that_begins_later_may_be_sent_again_when_it_has_begun(
    slow: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its answer: the time has passed then; that of a new one must not have."""
    start = {"at": "2020-01-01T09:00:00Z", "wait_seconds": 0}
    with pytest.raises(Refused, match="has passed"):
        await asked(slow, ANYBODY, "job", **start)
    soon = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    await asked(slow, ANYBODY, "job", at=soon, wait_seconds=0)
    slow.service.gate.set()
    # By the clock of a supervisor an hour later.
    found = await asked(slow, ANYBODY, "job", **start)
    assert found.reply.text == "Heard: hello"


async def test_a_time_too_far_ahead_keeps_nothing(slow: Stand) -> None:
    """It is refused before there is a record of it."""
    with pytest.raises(Refused, match="/v1/schedules"):
        await asked(slow, ANYBODY, "job", after="40d")
    with pytest.raises(Refused, match="there is no request"):
        await show_request(slow.parts.for_requests, ANYBODY, "job")


async def test_who_asks_for_it_hears_why_it_is_pending(slow: Stand) -> None:
    """As soon as the service says so; the same again is answered, and stands in the conversation."""
    async with asyncio.timeout(10):
        found = await asked(slow, ANYBODY, "job", pending_reply=True, wait_seconds=600)
    assert isinstance(found, Unfinished)
    assert found.view.state == "running"
    assert found.view.reply is not None
    assert found.view.reply.text == "EchoAgent is still working on it."
    slow.service.gate.set()
    again = await asked(slow, ANYBODY, "job", pending_reply=True)
    assert again.reply.text == "Heard: hello"
    page = await show_conversation(
        conversations.make_services(slow.parts), ANYBODY, "job"
    )
    assert [one.message for one in page.messages] == ["hello", "Heard: hello"]


async def test_what_a_client_left_before_it_began_is_begun_all_the_same(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record without anything behind it would promise an answer that nobody works on."""
    claimed = asyncio.Event()
    going = asyncio.Event()
    claim = stand.parts.records.claim

    async def claim_slowly(*given: Any) -> object:
        found = await claim(*given)
        claimed.set()
        await going.wait()
        return found

    monkeypatch.setattr(stand.parts.records, "claim", claim_slowly)
    leaving = asyncio.ensure_future(asked(stand, ANYBODY, "job"))
    await claimed.wait()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    going.set()
    await until(lambda: len(stand.service.asked) == 1)


async def test_the_conversations_of_a_tenant_are_chosen_by_pages(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of the user's are of others: one round trip for fifty of them."""
    conversations = stand.parts.conversations
    for number in range(60):
        turn = ChatTurn(
            turn_id=f"t{number}",
            conversation_id=f"c{number:02}",
            user_id="ana",
            speaker="person",
            text="hi",
            at=datetime.now(UTC),
            tenant="acme" if number % 2 else "other",
        )
        body = turn.model_dump_json().encode()
        await conversations.append(
            turn.conversation_id, body, turn.turn_id, user_id="ana"
        )
    services = ConversationServices(
        conversations=conversations, inbox=Inbox(stand.parts.redis)
    )
    trips = 0
    run = conversations._batch.run

    async def count(commands: Any) -> Any:
        nonlocal trips
        trips += 1
        return await run(commands)

    monkeypatch.setattr(conversations._batch, "run", count)
    key = Caller(name="acme", roles=frozenset({"read"}), tenant="acme")
    page = await list_conversations(services, key, user="ana", limit=20)
    assert page.conversations == tuple(f"c{number:02}" for number in range(1, 40, 2))
    # Their names, and one look.
    assert trips == 2
    rest = await list_conversations(services, key, user="ana", after=page.after or "")
    assert rest.conversations == tuple(f"c{number:02}" for number in range(41, 60, 2))
    assert rest.after is None


async def test_conversations_are_listed_in_pages_and_read_by_their_user(
    stand: Stand,
) -> None:
    """A key of one user is shown its own; one of nobody has to say whose."""
    for number in range(3):
        await asked(stand, ANA, conversation=f"c{number}", text=f"say {number}")
    services = conversations.make_services(stand.parts)
    found: list[str] = []
    after = ""
    while True:
        page = await list_conversations(
            services, ANYBODY, user="ana", after=after, limit=2
        )
        found += page.conversations
        if page.after is None:
            break
        after = page.after
    assert found == ["c0", "c1", "c2"]
    assert (await list_conversations(services, BEN)).conversations == ()
    assert (await list_conversations(services, ANA)).user == "ana"
    with pytest.raises(Refused, match="say whose"):
        await list_conversations(services, ANYBODY)
    with pytest.raises(NotPermitted, match="another user"):
        await list_conversations(services, BEN, user="ana")
    with pytest.raises(Refused, match="there is no conversation"):
        await show_conversation(services, BEN, "c1")
    last = await show_conversation(services, ANA, "c1", limit=1)
    assert [one.message for one in last.messages] == ["Heard: say 1"]
    first = await show_conversation(services, ANA, "c1", before=last.before)
    assert [one.message for one in first.messages] == ["say 1"]
