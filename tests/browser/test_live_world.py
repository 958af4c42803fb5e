"""The page of a real world: agents asked over NATS, a worker, Valkey, and a browser that looks on."""

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.system import System, running_system
from tests.browser.conftest import PATIENCE_MS, Window
from tests.browser.worlds import Shown

pytestmark = pytest.mark.browser

#: Coins with which a world does not end within a test: six agents take three in a step.
PLENTY = 250
SITUATION = re.compile(r"I am Alice\.\nI am at position \(")


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run servers and a worker of the agent for all tests here."""
    folder = tmp_path_factory.mktemp("coins")
    with running_system(folder) as system:
        system.worker("tasklore.workers.agents.decision").ready()
        yield system


@pytest.fixture(scope="session")
def world(system: System) -> Iterator[Shown]:
    """Run a world of six agents that does not end while it is looked at."""
    environment = {
        "TASKLORE_NATS_URL": system.servers.nats_url,
        "TASKLORE_REDIS_URL": system.servers.redis_url,
    }
    options = ("--agents", "6", "--coins", "400", "--size", "20", "--seed", "7")
    with Shown("examples.coin_world", *options, environment=environment) as shown:
        yield shown


@pytest.fixture
def page(world: Shown, window: Window) -> Page:
    """Open the page of the world, which plays whatever a test before left."""
    with urllib.request.urlopen(  # noqa: S310 - our own address
        f"{world.url}state", timeout=PATIENCE_MS / 1000
    ) as state:
        left = json.load(state)["left"]
    if left < PLENTY:
        world.kill()
        world.again()
    page = window.open(world.url)
    _play(page)
    return page


def _play(page: Page) -> None:
    page.evaluate("""fetch("control", {
        method: "POST", headers: {"content-type": "application/json"}, body: '{"action": "play", "interval_ms": 500}'
    })""")
    expect(page.locator("#status")).to_have_text("Running")


def _pause(page: Page) -> None:
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#status")).to_have_text("Paused")


def _step(page: Page) -> int:
    text = page.locator("#step").inner_text()
    return int(text) if text.isdigit() else -1


def _await_step(page: Page, step: int) -> None:
    page.wait_for_function(
        "least => Number(document.getElementById('step').textContent) >= least",
        arg=step,
    )


def test_the_page_shows_agents_and_coins_and_goes_on(page: Page) -> None:
    """Steps are made and shown, and what the page draws is what the world says."""
    began = _step(page)
    _await_step(page, began + 3)

    expect(page.locator(".token")).to_have_count(6)
    _pause(page)
    told = _told(page)
    shown = _shown(page)
    gives_up_at = time.monotonic() + PATIENCE_MS / 1000
    # The step that was being made is made to its end.
    while shown != told and time.monotonic() < gives_up_at:
        page.wait_for_timeout(100)
        told = _told(page)
        shown = _shown(page)
    assert shown == told


def _told(page: Page) -> dict[str, Any]:
    """Return what the world says: its step, how many coins it has, and where everybody is with how many."""
    state = page.evaluate("fetch('state').then((reply) => reply.json())")
    wealth = {agent["name"]: agent["collected"]["coin"] for agent in state["agents"]}
    return {
        "step": state["step"],
        "left": state["left"],
        "coins": len(state["coins"]),
        "wealth": wealth,
    }


def _shown(page: Page) -> dict[str, Any]:
    """Return what the page shows of that."""
    seen = page.evaluate("""() => ({
        step: Number(document.getElementById("step").textContent),
        left: Number(document.getElementById("left").textContent),
        coins: document.querySelectorAll(".coin:not(.taken)").length,
        labels: [...document.querySelectorAll(".token")].map((one) => one.ariaLabel),
    })""")
    found = [
        re.match(r"(\w+) at \(.*?\), (\d+) coins?, ", label)
        for label in seen.pop("labels")
    ]
    return {**seen, "wealth": {one[1]: int(one[2]) for one in found if one is not None}}


def test_a_click_shows_what_an_agent_was_shown(page: Page) -> None:
    """Its prompt is there in sections, with its own situation, and stays the newest."""
    _await_step(page, 2)
    page.locator(".token").first.click()

    expect(page.locator("#chosen-title")).to_contain_text("Alice")
    expect(page.locator("#prompt")).to_contain_text(SITUATION, use_inner_text=True)
    headings = page.locator("#prompt h4")
    expect(headings).to_have_text(
        ["Conversation", "Observations", "Current situation", "Instructions"]
    )
    expect(page.locator("#prompt")).to_contain_text(
        "You are Alice, an agent in a flat world"
    )
    expect(page.locator("#why")).to_contain_text("Decided by rules: ")
    shown = page.locator("#prompt").inner_text()
    _await_step(page, _step(page) + 2)
    expect(page.locator("#prompt")).not_to_have_text(shown, use_inner_text=True)


def test_an_agent_is_chosen_and_let_go_by_keys_alone(page: Page) -> None:
    """Tab leads into the world and into the list, arrows from agent to agent, Enter chooses, Escape lets go."""
    _await_step(page, 2)
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.classList[0]"
            )
        )
        if page.evaluate("document.activeElement.matches('.token')"):
            break
    assert seen == ["skip", "run", "once", "pace", "token"]
    page.keyboard.press("Enter")
    expect(page.locator("#chosen-title")).to_contain_text("Alice")
    expect(page.locator("#prompt")).to_contain_text(SITUATION, use_inner_text=True)
    page.keyboard.press("Escape")
    expect(page.locator("#chosen-title")).to_have_text("No agent chosen")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "option"
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option", name=re.compile("^Eve,"))).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("b")
    page.keyboard.press(" ")
    expect(page.locator("#chosen-title")).to_contain_text("Bob")
    expect(page.locator("#prompt")).to_contain_text("I am Bob.")


def test_nothing_is_complained_of_and_nothing_comes_from_elsewhere(
    world: Shown, window: Window, page: Page
) -> None:
    """Neither in the console nor as a request, while agents are chosen and steps are made."""
    for token in page.locator(".token").all():
        token.click(force=True)
    _await_step(page, _step(page) + 4)
    for button in ("Pause", "One step", "Play", "Let go"):
        page.get_by_role("button", name=button).click()

    assert window.complaints == []
    assert window.origins() == {world.url.rstrip("/")}
