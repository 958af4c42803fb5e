"""Failures of every kind, each in a real system: from the overview its cause is read after three clicks at most."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.external_program import outside
from tests.acceptance.system import AGENTS, NAPPER, PROBE, Served, running_system
from tests.browser.conftest import Window
from tests.browser.test_console import SECRET, Consoles
from tests.llm_double import ScriptedLlm, fault

pytestmark = pytest.mark.browser

MODEL = "gpt-scripted"
MOST_CLICKS = 3
#: Seconds in which a failure has happened, on a machine that does other things.
PATIENCE_S = 60.0

Ids = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One kind of failure: the links from the overview to its *cause*, a part of a sentence that is read there.

    A link is the name of a page in the navigation, or an address below the console, in which `{NAME}` is an id of what
    failed.
    """

    kind: str
    links: tuple[str, ...]
    cause: str


FAILURES = (
    Failure(
        kind="gave up",
        links=("runs/{gave-up}",),
        cause="GiveUp: no run can mend this",
    ),
    Failure(
        kind="a result that is too large",
        links=("runs/{too-large}",),
        cause="the result has 1000002 bytes, a report at most 983040",
    ),
    Failure(
        kind="a child failed",
        links=("runs/{parent}",),
        cause="GiveUp: number 1 is bad",
    ),
    Failure(
        kind="a person said no",
        links=("runs?state=rejected&ended_after=1h", "runs/{refused}"),
        cause="said no: too dear",
    ),
    Failure(
        kind="the deadline passed",
        links=("runs?state=expired&ended_after=1h", "runs/{late}"),
        cause="passed while fresh ran",
    ),
    Failure(
        kind="a person cancelled it",
        links=("runs?state=cancelled&ended_after=1h", "runs/{cancelled}"),
        cause="cancelled by admin",
    ),
    Failure(
        kind="the parameters are refused",
        links=("runs?state=rejected&ended_after=1h", "runs/{rejected}"),
        cause="ms: 'soon' is not a valid amount",
    ),
    Failure(
        kind="no worker is alive",
        links=("runs?agent=NapAgent&state=accepted", "runs/{untaken}"),
        cause="No worker of NapAgent is alive",
    ),
    Failure(
        kind="a limit leaves no room",
        links=("runs?state=open", "runs/{limited}"),
        cause="waits for a concurrency slot under limit tellers (at most 1 at once)",
    ),
    Failure(
        kind="a person has not answered",
        links=("approvals", "runs/{asking}"),
        cause="waits for the answer of role:finance",
    ),
    Failure(
        kind="a phase of a pipeline failed",
        links=("Pipelines", "pipelines/{pipeline}"),
        cause="GiveUp: no run can mend this",
    ),
    Failure(
        kind="a message is no task",
        links=("Dead letters", "dead-letters/{letter}"),
        cause="it cannot be read",
    ),
    Failure(
        kind="a schedule begins nothing",
        links=("Schedules",),
        cause="no agent that is known has DoublerAgent.double",
    ),
    Failure(
        kind="a task waits for the provider of a model",
        links=("runs?state=waiting", "runs/{away}"),
        cause=f"waits for the provider of model {MODEL} (it said: ",
    ),
    Failure(
        kind="the provider of a model is away",
        links=(),
        cause=f"{MODEL} went away",
    ),
)


@dataclass
class Reader:
    """A person at the console who has only a mouse; `clicks` counts what they clicked since the overview."""

    page: Page
    base: str
    clicks: int = 0

    def follow(self, link: str) -> None:
        """Click a link that is seen on this page."""
        found = self._find(link)
        expect(found).to_be_visible()
        found.click()
        self.clicks += 1

    def _find(self, link: str) -> Locator:
        main = self.page.get_by_role("main")
        if link[0].isupper():
            side = self.page.get_by_role("navigation", name="Pages", exact=True)
            return side.get_by_role("link", name=link)
        return main.locator(f"a[href='/console/{link}']").first


@dataclass
class Seeded:
    """A system in which everything has failed, and the ids of that."""

    consoles: Consoles
    ids: Ids = field(default_factory=dict)


def until(fact: Callable[[], Any]) -> Any:
    """Return what *fact* returns once that is true."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while not (found := fact()):
        assert time.monotonic() < gives_up_at
        time.sleep(0.1)
    return found


def seed(consoles: Consoles, napper: Served, doubler: Served) -> Ids:
    """Have a failure of each kind, and return the ids of what failed."""
    call = consoles.call
    ids = {
        "gave-up": consoles.send(
            "ProbeAgent", "trouble", label="gave-up", kind="give_up"
        ),
        "too-large": consoles.send("ProbeAgent", "swell", bytes=1_000_000),
        "parent": consoles.send("TreeAgent", "spread", label="p", width=2, bad=[1]),
        "cancelled": consoles.send("ProbeAgent", "fresh", label="c", ms=600_000),
        "asking": consoles.send("PayerAgent", "pay", label="asking", amount=1200),
        "away": consoles.send("AskerAgent", "colour", number=1),
        "late": call(
            "POST",
            "/v1/tasks",
            {
                "agent_id": "ProbeAgent",
                "task": "fresh",
                "parameters": {"label": "late", "ms": 600_000},
                "within_seconds": 1,
                "wait_seconds": 0,
            },
        )["task_id"],
    }
    for number in range(8):
        consoles.send("AskerAgent", "colour", number=number)
    for name in ("computed", "recalled"):
        ids[name] = consoles.send("TreeAgent", "remembered", label="told", number=21)
        consoles.await_state(ids[name], "completed")
    refuse(consoles, ids)
    asyncio.run(publish(consoles, ids))
    napper.terminate()
    doubler.terminate()
    napper.wait()
    doubler.wait()
    ids["untaken"] = consoles.send("NapAgent", "take_nap", ms=1)
    begin_nothing(consoles)
    consoles.send("TellerAgent", "tell", words=100_000)
    ids["limited"] = consoles.send("TellerAgent", "tell", words=100_001)
    ids["pipeline"] = consoles.break_pipeline("phase")
    consoles.await_state(ids["cancelled"], "running")
    call("DELETE", f"/v1/tasks/{ids['cancelled']}")
    for name in ("gave-up", "too-large", "parent"):
        consoles.await_state(ids[name], "failed")
    for name in ("asking", "away"):
        consoles.await_state(ids[name], "waiting")
    consoles.await_state(ids["cancelled"], "cancelled")
    consoles.await_state(ids["late"], "expired")
    return ids


def refuse(consoles: Consoles, ids: Ids) -> None:
    """Ask in words for a transfer, and say no to it."""
    asked = {
        "text": 'transfer: label "L-7", amount 12',
        "wait_seconds": 0,
        "user": "ana",
    }
    call = consoles.call
    call("POST", "/v1/requests", asked)

    def find_question() -> Any:
        open_ones = call("GET", "/v1/approvals")["approvals"]
        return [one for one in open_ones if one["task"] == "transfer"]

    [question] = until(find_question)
    answer = {"approved": False, "note": "too dear"}
    call("POST", f"/v1/approvals/{question['id']}", {"answer": answer})
    ids["refused"] = question["task_id"]
    consoles.await_state(ids["refused"], "rejected")


async def publish(consoles: Consoles, ids: Ids) -> None:
    """Send, as a program of others does, a message that is no task, and a task with parameters that do not fit."""
    async with outside(consoles.system.servers.nats_url) as program:
        await program.publish("tasks.ProbeAgent.fresh", b"\xff no task")
        wrong = {"label": "x", "ms": "soon"}
        ids["rejected"] = await program.assign("ProbeAgent", "fresh", wrong)
        await program.report_of(ids["rejected"])

    def find_letter() -> Any:
        path = "/v1/dead-letters?reason=unreadable"
        return consoles.call("GET", path, base=consoles.operations.api)["letters"]

    [letter] = await asyncio.to_thread(until, find_letter)
    ids["letter"] = str(letter["sequence"])


def begin_nothing(consoles: Consoles) -> None:
    """Have a schedule of an agent that is taken out of the catalogue."""
    new = {
        "agent_id": "DoublerAgent",
        "task": "double",
        "parameters": {"number": 2},
        "id": "doubling",
        "after": "10s",
    }
    consoles.call("POST", "/v1/schedules", new)
    base = consoles.operations.api
    consoles.call("POST", "/v1/agents/DoublerAgent/retire", {"force": True}, base=base)

    def has_problem() -> bool:
        path = "/v1/schedules/doubling"
        return bool(consoles.call("GET", path)["problem"])

    until(has_problem)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    folder = tmp_path_factory.mktemp("failures")
    file = folder / "keys.json"
    key = make_key(file, "admin", ("admin",), None, ("finance",))
    shared = {"api_keys_file": file, "approval_secret": SECRET}
    models = {"llm_base_url": "", "llm_api_key": ""}
    with (
        ScriptedLlm(respond=lambda _: fault(503)) as model,
        running_system(folder) as system,
    ):
        operations = system.operations(**shared, **models).ready()
        consoles = Consoles(system, operations, [], key)
        # Workers know it from their beginning on.
        limit = {"agent": "TellerAgent", "at_most": 1}
        path = "/v1/limits/named/tellers"
        consoles.call("PATCH", path, limit, base=operations.api)
        worker = system.worker(
            PROBE,
            *(agent("payer"), agent("tree"), agent("teller")),
            retry_base_s="0.05",
            **models,
        )
        asker = system.worker(
            agent("asker"),
            llm_base_url=model.base_url,
            llm_api_key="sk-test",
            llm_model=MODEL,
        )
        napper = system.worker(NAPPER, **models)
        doubler = system.worker(agent("doubler"), **models)
        supervisor = system.supervisor(**shared, **models)
        for one in (worker, asker, napper, doubler, supervisor):
            one.ready()
        supervisor.await_agents(7)
        consoles.supervisors.append(supervisor)
        yield Seeded(consoles, seed(consoles, napper, doubler))


def agent(name: str) -> str:
    """Return where an agent for tests is."""
    return str(Path(AGENTS) / f"{name}.py")


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: one.kind)
def test_a_cause_is_three_clicks_away(
    seeded: Seeded, window: Window, failure: Failure
) -> None:
    """By links alone that are seen on the way, and it stands there as a sentence."""
    base = seeded.consoles.operations.api
    seeded.consoles.enter(window.page, base)
    reader = Reader(window.page, base)
    for link in failure.links:
        reader.follow(link.format_map(seeded.ids))
    main = window.page.get_by_role("main")
    expect(main.get_by_text(failure.cause).first).to_be_visible()
    assert reader.clicks <= MOST_CLICKS
    assert not window.complaints


def test_a_run_shows_the_words_that_it_was_made_of_and_its_parameters(
    seeded: Seeded, window: Window
) -> None:
    """It ended without a dead letter: the ledger has its parameters no more, and the conversation does."""
    page = window.page
    base = seeded.consoles.operations.api
    seeded.consoles.enter(page, base)
    page.goto(f"{base}/console/runs/{seeded.ids['refused']}")
    said = page.get_by_role("region", name="What was said")
    expect(said).to_contain_text('transfer: label "L-7", amount 12')
    expect(said).to_contain_text("read by rules")
    expect(page.get_by_role("region", name="Parameters").first).to_contain_text(
        '"amount": 12'
    )


def test_a_run_shows_whether_the_memory_answered_it(
    seeded: Seeded, window: Window
) -> None:
    """Of both the parameters are found with the result that is remembered."""
    page = window.page
    base = seeded.consoles.operations.api
    seeded.consoles.enter(page, base)
    recalled = page.get_by_role("region", name="Answered from the cache")
    for name, count in (("computed", 0), ("recalled", 1)):
        page.goto(f"{base}/console/runs/{seeded.ids[name]}")
        expect(recalled).to_have_count(count)
        expect(page.get_by_role("region", name="Parameters").first).to_contain_text(
            '"number": 21'
        )
    expect(recalled).to_contain_text("by an earlier run of this task")
    assert not window.complaints
