"""Refusals of the server: read from its words, and handed to the waiting caller."""

import asyncio

import nats.errors
import pytest

from tasklore.contracts.errors import Forbidden
from tasklore.runtime.messaging.refusals import (
    Connection,
    Refusals,
    ServerRefusal,
    ServerRefused,
    read_refusal,
    unless_refused,
)

NOT_PUBLISHED = nats.errors.Error(
    'nats: permissions violation for publish to "$js.api.stream.delete.tasks"'
)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (str(NOT_PUBLISHED), ServerRefusal("publish", "$js.api.stream.delete.tasks")),
        (
            'Permissions Violation for Subscription to "cancel.*" using queue "workers"',
            ServerRefusal("subscription", "cancel.*"),
        ),
        (
            r'nats: permissions violation for publish to "a\"b"',
            ServerRefusal("publish", 'a"b'),
        ),
        ("nats: stale connection", None),
    ],
)
def test_the_servers_words_are_read(words: str, found: ServerRefusal | None) -> None:
    """With a queue and without, quoted as the server quotes."""
    assert read_refusal(words) == found


@pytest.mark.parametrize(
    ("refusal", "is_vital"),
    [
        (ServerRefusal("subscription", "requests.supervisoragent"), True),
        (ServerRefusal("publish", "$js.api.consumer.msg.next.tasks.a"), True),
        (ServerRefusal("publish", "$js.ack.tasks.a.1.1.1.1.0"), True),
        (ServerRefusal("publish", "_inbox.somebody.chose.this"), False),
    ],
)
def test_a_process_lives_on_what_it_hears_and_takes(
    refusal: ServerRefusal, is_vital: bool
) -> None:
    assert refusal.is_vital is is_vital


async def test_whoever_waits_for_what_is_refused_is_told_at_once() -> None:
    """With the role, the subject as it was spelled, and the cure; as an error of ours and of the library."""
    client = Connection(Refusals("worker-budget"))
    subject = "$JS.API.STREAM.DELETE.TASKS"
    waiting = asyncio.ensure_future(
        unless_refused(client, subject, asyncio.Event().wait())
    )
    await asyncio.sleep(0)
    assert client.refusals.hear(NOT_PUBLISHED)
    with pytest.raises(
        ServerRefused,
        match=r"'worker-budget' publish to '\$JS.API.STREAM.DELETE.TASKS'; use the cred",
    ) as told:
        await waiting
    assert isinstance(told.value, Forbidden)
    assert isinstance(told.value, nats.errors.Error)


async def test_others_wait_on() -> None:
    """A refusal of one subject says nothing of another, and an error that is none says nothing at all."""
    client = Connection(Refusals())
    answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer() -> str:
        return await answered

    waiting = asyncio.ensure_future(
        unless_refused(client, "requests.SupervisorAgent", answer())
    )
    await asyncio.sleep(0)
    client.refusals.hear(NOT_PUBLISHED)
    assert not client.refusals.hear(nats.errors.StaleConnectionError())
    answered.set_result("well")
    assert await waiting == "well"


async def test_who_may_not_hear_answers_is_told_whatever_is_asked() -> None:
    """Before and after: no answer would ever arrive."""
    client = Connection(Refusals("operator", "_INBOX_operator"))
    early = asyncio.ensure_future(unless_refused(client, "a", asyncio.Event().wait()))
    await asyncio.sleep(0)
    client.refusals.hear(
        nats.errors.Error(
            'permissions violation for subscription to "_inbox_operator.x.*"'
        )
    )
    for waiting in (early, unless_refused(client, "b", asyncio.Event().wait())):
        with pytest.raises(ServerRefused, match=r"subscribe to '_inbox_operator\.x"):
            await waiting
