"""The operations of dead letters on real servers: looked at, sent again, deleted, and never more than was previewed."""

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, NotPermitted
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.dead_letters import queue
from tasklore.supervisor.dead_letters import stream as dead_stream
from tasklore.supervisor.dead_letters.queue import open_dead_letters
from tasklore.supervisor.operations.dead_letters import (
    OPERATIONS,
    DeadLetterServices,
    LetterChoice,
    LetterFilter,
    LetterQuery,
    LetterRest,
    LettersToRedrive,
    group_dead_letters,
    list_dead_letters,
    purge_dead_letters,
    redrive_dead_letters,
    show_dead_letter,
)
from tasklore.supervisor.operations.refusals import Refused
from tests.integration.dead_letters import Morgue, a_letter, an_assignment, morgue_of
from tests.integration.operations.doors import door_of

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
OPERATOR = Caller(name="ops", roles=frozenset({"operate"}))
ANN = OPERATOR.model_copy(update={"name": "ann", "user": "ann"})
ACME = OPERATOR.model_copy(update={"name": "acme", "tenant": "acme"})


@pytest.fixture
async def morgue(own_servers: EmbeddedServers) -> AsyncIterator[Morgue]:
    async with morgue_of(own_servers) as opened:
        yield opened


@pytest.fixture
def services(morgue: Morgue) -> DeadLetterServices:
    return DeadLetterServices(letters=morgue.letters)


def of_user(task_id: str, user: str, tenant: str, **fields: Any) -> bytes:
    """Return the letter of a task that was given for *user* of *tenant*."""
    return a_letter(
        task_id, an_assignment(task_id, user_id=user, tenant=tenant), **fields
    )


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", NOW - timedelta(hours=2)),
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T12:00:00+02:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        (" 2026-11-20 ", datetime(2026, 11, 20, tzinfo=UTC)),
        ("99999w", NOW - timedelta(weeks=99_999)),
        ("999999w", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_since_is_a_span_or_a_time(text: str, moment: datetime) -> None:
    assert LetterFilter(since=text).selection_for(OPERATOR, NOW).since == moment  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "h"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="such as 2h or 7d, or a time such as"):
        LetterFilter(until=text)  # type: ignore[arg-type]


async def test_letters_are_listed_page_by_page_from_either_end(
    morgue: Morgue, services: DeadLetterServices
) -> None:
    """By what a page says, however few fit of those that one call looks at."""
    await morgue.bury_many(7)
    await morgue.bury(of_user("t8", "ann", "acme"))
    for oldest, numbers in ((False, list(range(8, 0, -1))), (True, list(range(1, 9)))):
        found: list[int] = []
        after = ""
        while True:
            asked = LetterQuery(oldest=oldest, after=after, limit=3)
            page = await list_dead_letters(services, OPERATOR, asked)
            assert page.total == 8
            found += [one.sequence for one in page.letters]
            if page.after is None:
                break
            after = page.after
        assert found == numbers
    [mine] = (
        await list_dead_letters(services, OPERATOR, LetterQuery(user="ann"))
    ).letters
    assert (mine.sequence, mine.task_id, mine.user, mine.tenant) == (
        8,
        "t8",
        "ann",
        "acme",
    )


@pytest.mark.parametrize(
    ("conditions", "numbers"),
    [
        ({"agent": "OtherAgent"}, [3]),
        ({"task": "other"}, [4]),
        ({"reason": "gave_up"}, [2]),
        ({"error": "KeyError"}, [5]),
        ({"tenant": "acme"}, [6]),
        ({"user": "bob", "tenant": "acme"}, []),
        ({"since": "1h"}, [6, 5, 4, 3, 2, 1]),
        ({"until": "1h"}, []),
        ({"since": "1h", "agent": "TripAgent", "reason": "attempts"}, [6, 5, 4, 1]),
    ],
)
async def test_each_condition_narrows_a_list(
    conditions: dict[str, Any],
    numbers: list[int],
    morgue: Morgue,
    services: DeadLetterServices,
) -> None:
    await morgue.bury(a_letter("t1"), a_letter("t2", reason="gave_up"))
    await morgue.bury_many(1, agent="OtherAgent")
    error = {"type": "KeyError", "message": "'tea'"}
    await morgue.bury(
        a_letter("t4", task_name="other"),
        a_letter("t5", error=error),
        of_user("t6", "ann", "acme"),
    )
    page = await list_dead_letters(services, OPERATOR, LetterQuery(**conditions))
    assert [one.sequence for one in page.letters] == numbers
    groups = await group_dead_letters(services, OPERATOR, LetterRest(**conditions))
    assert (groups.total, groups.after) == (len(numbers), None)


async def test_a_letter_is_shown_by_its_number_or_its_task(
    morgue: Morgue, services: DeadLetterServices
) -> None:
    await morgue.bury(
        a_letter("t1", place="app.py, line 1, in a > lib.py, line 2, in b"),
        a_letter("t1", generation=2),
        a_letter("t2"),
    )
    first = await show_dead_letter(services, OPERATOR, "1")
    assert (first.sequence, first.why_kept, first.others) == (1, None, ())
    assert first.frames == ("lib.py, line 2, in b", "app.py, line 1, in a")
    assert first.payload == json.loads(an_assignment("t1"))
    newest = await show_dead_letter(services, OPERATOR, "t1")
    assert (newest.sequence, newest.others) == (2, (1,))
    for unknown in ("99", "t9"):
        with pytest.raises(Refused, match="GET /v1/dead-letters") as refused:
            await show_dead_letter(services, OPERATOR, unknown)
        assert refused.value.problem.status == 404


async def test_a_dry_run_names_what_would_be_sent_and_only_that_is(
    morgue: Morgue, services: DeadLetterServices
) -> None:
    """A letter that comes between the two stays, whatever conditions it fits."""
    await morgue.bury_many(3)
    trial = await redrive_dead_letters(
        services, OPERATOR, LettersToRedrive(everything=True, dry_run=True)
    )
    assert (trial.dry_run, trial.concerns, trial.bound) == (True, 3, "3")
    assert [(one.agent_id, one.error_type, one.count) for one in trial.groups] == [
        ("TripAgent", "OSError", 3)
    ]
    assert await morgue.count("TASKS") == 0
    await morgue.bury_many(2)
    wanted = LettersToRedrive(everything=True, bound=trial.bound)
    done = await redrive_dead_letters(services, OPERATOR, wanted)
    assert (done.concerns, done.kept, done.stopped, done.after) == (3, (), None, None)
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (3, 2)


@pytest.mark.parametrize(
    ("conditions", "concerns"),
    [
        ({"sequences": (1,)}, 1),
        ({"agent": "OtherAgent"}, 2),
        ({"reason": "crashes"}, 0),
        ({"everything": True}, 4),
    ],
)
async def test_a_purge_deletes_what_its_dry_run_counted(
    conditions: dict[str, Any],
    concerns: int,
    morgue: Morgue,
    services: DeadLetterServices,
) -> None:
    """And not the one that came meanwhile, whatever conditions it fits."""
    await morgue.bury_many(2)
    await morgue.bury_many(2, agent="OtherAgent")
    wanted = LetterChoice(**conditions)
    tried = wanted.model_copy(update={"dry_run": True})
    trial = await purge_dead_letters(services, OPERATOR, tried)
    assert (trial.concerns, await morgue.count("DEAD")) == (concerns, 4)
    assert sum(group.count for group in trial.groups) == concerns
    await morgue.bury_many(1, agent="OtherAgent")
    bound = wanted.model_copy(update={"bound": trial.bound})
    done = await purge_dead_letters(services, OPERATOR, bound)
    assert (done.concerns, await morgue.count("DEAD")) == (concerns, 5 - concerns)


async def test_a_long_work_goes_on_where_a_call_ended(
    morgue: Morgue, services: DeadLetterServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Call by call, and none of them meets what came since the first."""
    monkeypatch.setattr(dead_stream, "PAGE", 4)
    monkeypatch.setattr(queue, "MOST_LOOKED_AT", 4)
    hurried = replace(services, turn_s=0.0)
    await morgue.bury_many(10)
    counted = 0
    bound = after = ""
    while True:
        page = await group_dead_letters(
            hurried, OPERATOR, LetterRest(bound=bound, after=after)
        )
        counted += page.total
        bound = page.bound
        if page.after is None:
            break
        after = page.after
    assert counted == 10
    sent = []
    wanted = LettersToRedrive(agent="TripAgent")
    while True:
        done = await redrive_dead_letters(hurried, OPERATOR, wanted)
        sent.append(done.concerns)
        if done.after is None:
            break
        await morgue.bury_many(1)
        wanted = wanted.model_copy(update={"bound": done.bound, "after": done.after})
    assert sent == [4, 4, 2]
    wanted_purge = LetterChoice(agent="TripAgent")
    purged = await purge_dead_letters(services, OPERATOR, wanted_purge)
    assert (purged.concerns, await morgue.count("DEAD")) == (2, 0)


async def test_letters_that_cannot_be_sent_stay_with_the_reason(
    morgue: Morgue, services: DeadLetterServices
) -> None:
    late = an_assignment("t1", deadline="2026-01-01T00:10:00Z", has_own_deadline=False)
    await morgue.bury(a_letter("t1", late), a_letter("t2", b"{}"))
    wanted = LettersToRedrive(everything=True)
    done = await redrive_dead_letters(services, OPERATOR, wanted)
    assert (done.concerns, done.kept_in_all) == (0, 2)
    [passed, unreadable] = done.kept
    assert "`no_deadline`" in passed.why
    assert "`force`" in unreadable.why
    for change in ({"new_deadline": 600.0}, {"force": True}):
        again = wanted.model_copy(update=change)
        done = await redrive_dead_letters(services, OPERATOR, again)
        assert done.concerns == 1, done
    assert await morgue.count("DEAD") == 0


@pytest.mark.parametrize(
    ("choice", "where"),
    [
        ({}, "sequences: say which"),
        ({"sequences": (7,), "everything": True}, "one of the three"),
        ({"agent": "TripAgent", "everything": True}, "one of the three"),
        (
            {"everything": True, "new_deadline": "1h", "no_deadline": True},
            "leave one out",
        ),
        ({"sequences": (7,)}, "there is no dead letter 7"),
    ],
)
async def test_an_unclear_choice_is_refused_and_nothing_is_done(
    choice: dict[str, Any], where: str, morgue: Morgue, services: DeadLetterServices
) -> None:
    await morgue.bury_many(2)
    with pytest.raises((Refused, InvalidInput), match=where):
        await redrive_dead_letters(services, OPERATOR, LettersToRedrive(**choice))
    if "no_deadline" not in choice:
        with pytest.raises((Refused, InvalidInput), match=where):
            await purge_dead_letters(services, OPERATOR, LetterChoice(**choice))
    assert await morgue.count("DEAD") == 2


async def test_a_key_of_one_user_or_tenant_sees_and_touches_its_own_alone(
    morgue: Morgue, services: DeadLetterServices
) -> None:
    await morgue.bury(
        of_user("t1", "ann", "acme"),
        of_user("t2", "bob", "acme"),
        of_user("t3", "ann", "other"),
        a_letter("t4"),
    )
    for caller, own in ((ANN, [3, 1]), (ACME, [2, 1])):
        page = await list_dead_letters(services, caller, LetterQuery())
        assert [one.sequence for one in page.letters] == own
        assert (await group_dead_letters(services, caller, LetterRest())).total == 2
        with pytest.raises(Refused, match="there is no dead letter '4'"):
            await show_dead_letter(services, caller, "4")
        with pytest.raises(Refused, match="there is no dead letter"):
            await show_dead_letter(services, caller, "t4")
        named = LetterChoice(sequences=(1, 4))
        with pytest.raises(InvalidInput, match="no dead letter 4 of yours"):
            await purge_dead_letters(services, caller, named)
    with pytest.raises(NotPermitted):
        await list_dead_letters(services, ANN, LetterQuery(user="bob"))
    with pytest.raises(NotPermitted):
        await purge_dead_letters(services, ACME, LetterChoice(tenant="other"))
    done = await purge_dead_letters(services, ANN, LetterChoice(everything=True))
    assert (done.concerns, await morgue.count("DEAD")) == (2, 2)


async def test_whoever_may_not_operate_is_refused(services: DeadLetterServices) -> None:
    guest = Caller(name="guest", roles=frozenset({"ask", "read", "approve"}))
    with pytest.raises(NotPermitted, match="'operate'"):
        await list_dead_letters(services, guest, LetterQuery())


#: What a worker may have written: words that steer a terminal, numbers beyond all reason, and half a character.
ODD = "\x1b[2J\x9b31m\u202e\nfaked: line"
HOSTILE: dict[str, Any] = {
    "reason": ODD,
    "error": {"type": ODD, "message": ODD},
    "traceback": ODD * 10_000,
    "place": ODD * 1_000,
    "subject": "tasks.TripAgent.share_trip",
    "sequence": 1,
    "attempts": 10**4000,
    "headers": {ODD: ODD, "traceparent": ODD},
    "body": base64.b64encode(f'{{"user_id": "{ODD}'.encode()).decode(),
    "body_bytes": 1,
    "body_digest": ODD,
    "task_id": ODD,
    "died_at": "0001-01-01T00:00:00+14:00",
    "created_at": "9999-12-31T23:59:59-12:00",
    "queued_ms": -(10**18),
    "run_ms": 10**4000,
    "usage": {"cost_usd": -1e308, "input_tokens": 10**25},
}
BODIES = (b'{"a": "\\ud800"}', b'{"a": NaN}', b"[" * 900 + b"1" + b"]" * 900, b"\xff")


async def test_hostile_letters_are_answered_as_json_and_keep_nobody_from_the_others(
    own_servers: EmbeddedServers, morgue: Morgue, tmp_path: Path
) -> None:
    """Whoever runs a worker may have written them; through HTTP, with the key of an operator."""
    letters = [HOSTILE, HOSTILE | {"agent_id": "OtherAgent"}, HOSTILE | {"body": "$$"}]
    letters += [HOSTILE | {"body": base64.b64encode(one).decode()} for one in BODIES]
    await morgue.bury(*(json.dumps(one).encode() for one in letters))
    await morgue.bury(b"", ODD.encode(), b"[" * 100_000, a_letter("t1"))
    number = len(letters) + 4
    async with (
        valkey.connect(own_servers.redis_url) as redis,
        open_dead_letters(
            morgue.link,
            morgue.letters._outbox,
            Ledger(redis),
        ) as letters,
        door_of(
            own_servers,
            redis,
            tmp_path,
            DeadLetterServices(letters=letters),
            OPERATIONS,
            ops=("operate",),
            guest=("ask", "read"),
        ) as desks,
    ):
        ops = desks["ops"]
        listed = await ops.ask("GET", "/v1/dead-letters?limit=200")
        assert listed.status_code == 200, listed.text
        assert len(listed.json()["letters"]) == number
        for one in listed.json()["letters"]:
            shown = await ops.ask("GET", f"/v1/dead-letters/{one['sequence']}")
            assert shown.status_code == 200, shown.text
            json.loads(shown.text)
        groups = await ops.ask("GET", "/v1/dead-letters/groups")
        assert groups.json()["total"] == number
        body = {"everything": True, "force": True, "dry_run": True}
        trial = await ops.ask("POST", "/v1/dead-letters/redrive", json=body)
        assert (trial.status_code, trial.json()["concerns"]) == (200, 1)
        body = {"everything": True, "force": True, "bound": trial.json()["bound"]}
        sent = await ops.ask("POST", "/v1/dead-letters/redrive", json=body)
        assert sent.json()["kept_in_all"] == number - 1
        refused = await desks["guest"].ask("GET", "/v1/dead-letters")
        assert refused.status_code == 403
        unclear = await ops.ask("POST", "/v1/dead-letters/purge", json={"agent": "A.>"})
        assert unclear.json()["problems"][0]["where"] == "agent"
