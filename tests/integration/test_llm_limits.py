"""Deadlines, pauses and the shared limit of `tasklore.runtime.models.llm`, against a scripted server."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tasklore.contracts.errors import (
    LlmError,
    LlmRateLimited,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.llm import Llm, LlmRole, LlmSettings, Spent
from tests.llm_double import (
    Canned,
    ScriptedLlm,
    answer,
    dropped,
    fault,
    rate_limited,
    stalled,
)
from tests.llm_questions import GOOD, Book, Opener, Pauses, ask

pytest_plugins = ["tests.fixtures_llm"]

AWAY = """
class Away:
    async def answer(self, request):
        raise ConnectionError("nobody listens")

    async def aclose(self):
        pass
"""


@pytest.fixture
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a provider of others, called `acme`, that never answers."""
    (tmp_path / "acme_away.py").write_text(AWAY, "utf-8")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme\nVersion: 1.0\n", "utf-8")
    points = "[tasklore.models]\nacme = acme_away:Away\n"
    (info / "entry_points.txt").write_text(points, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("acme_away", None)


async def test_a_stalled_attempt_is_retried_and_a_timeout_in_the_end(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    scripted_llm.respond = lambda asked: stalled()
    llm = open_llm(
        roles={"editor": LlmRole(attempt_deadline_s=0.8)},
        max_attempts=2,
        max_concurrency=1,
    )
    await llm.warm_up()
    with pytest.raises(LlmTimeout, match=r"0\.8 s"):
        await ask(llm)
    assert len(scripted_llm.requests) == 2
    # A cancelled question frees its slot.
    llm = open_llm(max_concurrency=1)
    cancelled = asyncio.create_task(ask(llm))
    await scripted_llm.wait_for_requests(3)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    scripted_llm.respond = lambda asked: answer(GOOD)
    assert (await ask(llm)).value.colour == "green"


async def test_the_deadline_of_the_task_ends_a_long_attempt(
    scripted_llm: ScriptedLlm,
) -> None:
    scripted_llm.respond = lambda asked: stalled()
    async with Llm(LlmSettings(base_url=scripted_llm.base_url)) as llm:
        await llm.warm_up()
        with pytest.raises(LlmTimeout):
            await ask(llm, deadline_s=0.2)
    assert len(scripted_llm.requests) <= 1


async def test_waiting_for_a_slot_counts_against_the_deadline(
    scripted_llm: ScriptedLlm,
) -> None:
    gate = Event()
    scripted_llm.queue(answer(GOOD).behind(gate))
    async with Llm(
        LlmSettings(base_url=scripted_llm.base_url, max_concurrency=1)
    ) as llm:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ask(llm))
            await scripted_llm.wait_for_requests(1)
            with pytest.raises(LlmTimeout):
                await ask(llm, deadline_s=0.2)
            gate.set()
        assert first.result().value.colour == "green"
    assert len(scripted_llm.requests) == 1


async def test_pauses_grow_and_stay_below_their_cap(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses
) -> None:
    scripted_llm.queue(*[fault(500)] * 4, GOOD)
    await ask(open_llm(max_attempts=5, backoff_base_s=1.0, backoff_cap_s=3.0))
    assert pauses.pauses == [1.0, 2.0, 3.0, 3.0]


async def test_the_pause_of_the_provider_is_kept(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses
) -> None:
    """Retry-After in each spelling is waited out, with our jitter on top; nonsense leaves only the jitter."""
    dates = {
        "retry_after": "Wed, 21 Oct 2026 07:28:12 GMT",
        "Date": "Wed, 21 Oct 2026 07:28:00 GMT",
    }
    for status, headers, asked_s in (
        (429, {"retry_after": "7"}, 7.0),
        (503, {"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        (429, dates, 12.0),
        (503, {"retry_after": "soon"}, 0.0),
        (429, {"retry_after": "nan"}, 0.0),
        (503, {"retry_after": "-5"}, 0.0),
    ):
        scripted_llm.queue(fault(status, **headers), GOOD)
        await ask(open_llm(backoff_base_s=0.5))
        assert pauses.pauses.pop() == asked_s + 0.5


async def test_a_pause_too_long_for_us_or_the_deadline_goes_to_the_caller(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses
) -> None:
    scripted_llm.queue(rate_limited(3_600), rate_limited(20))
    with pytest.raises(LlmRateLimited) as caught:
        await ask(open_llm())
    assert caught.value.retry_after_s == 3_600
    with pytest.raises(LlmRateLimited):
        await ask(open_llm(), deadline_s=15.0)
    with pytest.raises(LlmTimeout, match="no time is left"):
        await ask(open_llm(), deadline_s=0.0)
    assert pauses.pauses == []
    assert len(scripted_llm.requests) == 2


async def test_all_roles_share_one_limit(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    gate = Event()
    scripted_llm.respond = lambda asked: answer(GOOD).after(0.03).behind(gate)
    llm = open_llm(max_concurrency=2)
    async with asyncio.TaskGroup() as group:
        for role in ["finder", "editor", "supervisor"] * 3:
            group.create_task(ask(llm, role))
        await scripted_llm.wait_for_requests(2, in_flight=True)
        gate.set()
    assert len(scripted_llm.requests) == 9
    assert scripted_llm.max_in_flight == 2


async def test_a_pause_holds_no_slot(scripted_llm: ScriptedLlm) -> None:
    resumed = asyncio.Event()

    async def sleep(pause_s: float) -> None:
        await resumed.wait()

    scripted_llm.queue(fault(500), GOOD, GOOD)
    async with Llm(
        LlmSettings(base_url=scripted_llm.base_url, max_concurrency=1), sleep=sleep
    ) as llm:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ask(llm))
            await scripted_llm.wait_for_requests(1)
            second = await ask(llm)
            resumed.set()
        assert (first.result().attempts, second.attempts) == (2, 1)


@pytest.mark.parametrize(
    "canned", [fault(503), dropped(), stalled()], ids=["503", "cut", "stall"]
)
async def test_a_provider_that_is_away_is_only_asked_by_questions_under_way(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses, canned: Canned
) -> None:
    scripted_llm.respond = lambda asked: GOOD if asked.model == "well" else canned
    book = Book()
    spent = Spent()
    roles = {
        "editor": LlmRole(
            model="ill", attempt_deadline_s=0.6 if canned.ending == "stall" else 30.0
        ),
        "finder": LlmRole(model="well"),
    }
    llm = open_llm(meter=book, roles=roles, max_concurrency=8)
    errors = await asyncio.gather(
        *(ask(llm, spent=spent) for _ in range(40)), return_exceptions=True
    )
    assert all(
        isinstance(error, LlmError) and error.away_s is not None for error in errors
    )
    assert len(book.lines) == spent.attempts <= 8 + 3
    assert len(scripted_llm.requests) <= spent.attempts
    assert llm.open_seconds().keys() == {"ill"}
    [away] = llm.away_models()
    assert away.model == "ill"
    assert away.said
    # Another model of the same provider is none of its business.
    assert (await ask(llm, "finder")).value.colour == "green"
    scripted_llm.respond = lambda _asked: GOOD
    pauses.now_s += 10
    assert (await ask(llm)).attempts == 1
    assert llm.open_seconds() == {"ill": 0.0, "well": 0.0}
    assert llm.away_models() == ()


@pytest.mark.usefixtures("_away")
async def test_a_provider_that_is_away_takes_no_model_of_that_name_along(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    """Another provider's goes on, by a name that tells them apart wherever outages are shown."""
    scripted_llm.respond = lambda _asked: GOOD
    roles = {
        "editor": LlmRole(model="shared", provider="acme"),
        "finder": LlmRole(model="shared"),
        "writer": LlmRole(model="acme:shared"),
    }
    llm = open_llm(roles=roles, max_attempts=1)
    with pytest.raises(LlmUnavailable) as caught:
        await ask(llm)
    assert caught.value.model == "acme:shared"
    for role in ("finder", "writer"):
        assert (await ask(llm, role)).value.colour == "green"
    assert [away.model for away in llm.away_models()] == ["acme:shared"]
    shown = llm.open_seconds()
    assert shown.keys() == {"acme:shared", "shared", "openai:acme:shared"}
    assert shown["shared"] == shown["openai:acme:shared"] == 0.0


@pytest.mark.parametrize(
    ("role", "other"),
    [("openai", "openai-responses"), ("openai-responses", "openai")],
)
async def test_two_ways_to_one_server_find_it_away_together(
    open_llm: Opener, role: str, other: str
) -> None:
    """What is away is the server at the address that they share; other providers of that model are asked on."""
    roles = {
        "editor": LlmRole(model="shared", provider=role),
        "finder": LlmRole(model="shared", provider=other),
        "writer": LlmRole(model="shared", provider="anthropic"),
    }
    llm = open_llm(roles=roles, max_attempts=1)
    with pytest.raises(LlmUnavailable):
        async with llm.request("editor", "shared"):
            raise LlmUnavailable("503")
    with pytest.raises(LlmUnavailable, match="was not asked"):
        async with llm.request("finder", "shared"):
            pass
    async with llm.request("writer", "shared"):
        pass
    assert llm.open_seconds().keys() == {"shared", "anthropic:shared"}
