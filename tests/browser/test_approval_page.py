"""The page behind a link to a question: light and dark, by keys alone, on a narrow screen, without a script."""

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.system import AGENTS, Served, System, running_system
from tests.browser.conftest import Window

pytestmark = pytest.mark.browser

CHECKS = Path(__file__).with_name("checks.js").read_text("utf-8")
PHONE = {"viewport": {"width": 390, "height": 844}, "java_script_enabled": True}
SCHEMES = [PHONE | {"color_scheme": "light"}, PHONE | {"color_scheme": "dark"}]


class Questions:
    """Asks questions and makes links to them."""

    def __init__(self, supervisor: Served) -> None:
        self._url = supervisor.api

    def call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own address
            self._url + path, data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
            return json.loads(answer.read())

    def ask(self, label: str) -> tuple[str, str]:
        """Return the id of a new question and a link to it."""
        parameters = {"label": label, "amount": 1200}
        body = {
            "agent_id": "PayerAgent",
            "task": "pay",
            "parameters": parameters,
            "wait_seconds": 0,
        }
        task_id = self.call("/v1/tasks", body)["task_id"]
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if found := [
                one
                for one in self.call("/v1/approvals")["approvals"]
                if one["task_id"] == task_id
            ]:
                link = self.call(
                    f"/v1/approvals/{found[0]['id']}/links", {"who": "role:finance"}
                )
                return found[0]["id"], link["url"]
            time.sleep(0.1)
        raise AssertionError("no question came")


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Questions]:
    with running_system(tmp_path_factory.mktemp("system")) as system:
        yield _questions(system)


def _questions(system: System) -> Questions:
    supervisor = system.supervisor(
        approval_secret="0123456789abcdef0123456789abcdef"
    ).ready()
    system.worker(str(AGENTS / "payer.py")).ready()
    supervisor.await_agents(1)
    return Questions(supervisor)


@pytest.mark.parametrize(
    "context", SCHEMES, indirect=True, ids=lambda options: options["color_scheme"]
)
def test_a_question_is_answered_by_keys_alone_on_a_phone(
    questions: Questions, window: Window, tmp_path: Path
) -> None:
    approval_id, url = questions.ask(f"L{id(window)}")
    page: Page = window.page
    page.goto(url)
    expect(page.get_by_role("heading", name="Pay 1200?")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=tmp_path / "question.png", full_page=True)
    page.keyboard.press("Tab")
    page.keyboard.type("as ordered")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    assert (
        page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        == "solid"
    )
    page.screenshot(path=tmp_path / "focused.png", full_page=True)
    assert questions.call(f"/v1/approvals/{approval_id}")["state"] == "open"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    page.screenshot(path=tmp_path / "answered.png", full_page=True)
    assert questions.call(f"/v1/approvals/{approval_id}")["answer"]["value"] == {
        "approved": True,
        "note": "as ordered",
    }
    page.goto(url)
    expect(page.get_by_text("There is nothing left to decide.")).to_be_visible()
    assert not [one for one in window.complaints if "favicon" not in one]


@pytest.mark.parametrize(
    "context", [PHONE | {"java_script_enabled": False}], indirect=True
)
def test_the_page_needs_no_script(questions: Questions, window: Window) -> None:
    approval_id, url = questions.ask("Lscriptless")
    window.page.goto(url)
    window.page.get_by_role("button", name="Reject").click()
    expect(window.page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert (
        questions.call(f"/v1/approvals/{approval_id}")["answer"]["value"]["approved"]
        is False
    )
