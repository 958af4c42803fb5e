"""The console in a browser: every page in both lights and at three widths, by keys, without a script, and live."""

import json
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
from playwright.sync_api import Browser, Page, expect
from redis import Redis

from tasklore.contracts.admission.limits import NANO_USD, Payer
from tasklore.memory.budgets.store import book_field, book_of
from tasklore.supervisor.http.admission.key_file import make_key
from tasklore.supervisor.http.console.routes import PAGES
from tests.acceptance.system import AGENTS, PROBE, Served, System, running_system
from tests.browser.conftest import Window
from tests.browser.pictures import take_picture

pytestmark = pytest.mark.browser

SECRET = "0123456789abcdef0123456789abcdef"
CHECKS = Path(__file__).with_name("checks.js").read_text("utf-8")
SIZES = [(390, 844), (1280, 900), (1920, 1080)]
#: What Ana told, as a file.
FOOD = json.dumps(
    {
        "_metadata": {"resource_id": "resource_user_food_prefs", "tags": ["food"]},
        "food": {"likes": [{"item": "lox", "display": "Lox", "added": "2026-01-02"}]},
    }
)
OPERATOR_OPERATIONS = [
    {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    for width, height in SIZES
    for scheme in ("light", "dark")
]
OPERATOR_OPERATIONS += [
    {
        "viewport": {"width": 640, "height": 450},
        "device_scale_factor": 2,
        "color_scheme": "light",
    }
]
#: Finds the violations that axe calls serious or critical, each with the elements.
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
GRAVE = """axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 200)).join(" ")}`))"""


ENDED = "It has ended: completed."
#: Nodes and bytes by which a page may differ from itself: a status line, and what the engine keeps of code.
SLACK_NODES = 20
SLACK_BYTES = 300_000
#: Counts the events that the script of a page takes, by their names.
COUNT_EVENTS = """
window.taken = {};
const listen = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (name, act) {
  listen.call(this, name, (event) => {
    window.taken[name] = (window.taken[name] || 0) + 1;
    act(event);
  });
};
"""


class Footprint(NamedTuple):
    """How large a page is."""

    nodes: int
    heap_bytes: int

    @classmethod
    def of(cls, page: Page) -> Self:
        """Return that of *page*, without its garbage."""
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        session.send("HeapProfiler.enable")
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        found = session.send("Performance.getMetrics")["metrics"]
        session.detach()
        metrics = {one["name"]: one["value"] for one in found}
        return cls(int(metrics["Nodes"]), int(metrics["JSHeapUsedSize"]))


@dataclass
class Consoles:
    """A system with a process of operations and two supervisors, and the key of its administrator."""

    system: System
    operations: Served
    supervisors: list[Served]
    key: str

    def call(self, method: str, path: str, body: Any = None, base: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own address
            (base or self.supervisors[0].api) + path,
            data,
            {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self.key}",
            },
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
            return json.loads(answer.read())

    def send(self, agent: str, task: str, **parameters: Any) -> str:
        """Send a task, and return its id."""
        body = {"agent_id": agent, "task": task, "parameters": parameters}
        sent = self.call("POST", "/v1/tasks", {**body, "wait_seconds": 0})
        return str(sent["task_id"])

    def fail(self, label: str, kind: str) -> str:
        """Return the id of a task that failed and left a dead letter."""
        task_id = self.send("ProbeAgent", "trouble", label=label, kind=kind)
        self.await_state(task_id, "failed")
        return task_id

    def schedule(self, schedule_id: str, **parameters: Any) -> None:
        """Have a schedule of this name, once a day."""
        known = self.call("GET", "/v1/schedules")["schedules"]
        if schedule_id in [one["id"] for one in known]:
            return
        body = {"agent_id": "TreeAgent", "task": "spread", "parameters": parameters}
        self.call("POST", "/v1/schedules", {**body, "id": schedule_id, "every": "1d"})

    def spend(self) -> None:
        """Have a limit, and spending of three weeks."""
        limit = {"usd": "20", "every": "day", "tenant": "*", "at_limit": "refuse"}
        base = self.operations.api
        self.call("PATCH", "/v1/limits/named/tenants", limit, base=base)
        self.call("PATCH", "/v1/limits/named/all", {"at_once": 8}, base=base)
        with Redis.from_url(self.system.servers.redis_url) as redis:
            for ago, (agent, model) in enumerate(
                7 * [("TreeAgent", "gpt-6"), ("PayerAgent", "small"), ("", "gpt-6")]
            ):
                payer = Payer(tenant="acme" if ago % 2 else "", agent=agent)
                line = book_field(payer, model)
                usd = NANO_USD * (ago % 5 + 1)
                counted = {"calls": 9, "input": 4_000, "usd": usd, "saved": usd // 3}
                redis.hset(
                    book_of(datetime.now(UTC) - timedelta(days=ago)),
                    mapping={f"{line}|{name}": one for name, one in counted.items()},
                )

    def await_state(self, task_id: str, *states: str) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if self.call("GET", f"/v1/tasks/{task_id}")["status"] in states:
                return
            time.sleep(0.1)
        raise AssertionError(f"{task_id} is not {states}")

    def break_pipeline(self, label: str) -> str:
        """Return the session of a run of a pipeline of which the second phase failed."""
        phases = [
            {"name": "first", "agent": "ProbeAgent", "task": "fresh"},
            {"name": "second", "agent": "ProbeAgent", "task": "trouble"},
            {"name": "third", "agent": "ProbeAgent", "task": "fresh"},
        ]
        given: dict[str, dict[str, Any]] = {
            "first": {"label": f"{label}a", "ms": 1},
            "second": {"label": f"{label}b", "kind": "give_up"},
            "third": {"label": f"{label}c", "ms": 1},
        }
        for number, phase in enumerate(phases):
            phase["parameters"] = given[phase["name"]]
            phase["after"] = [one["name"] for one in phases[:number]]
        declared = {"name": "broken", "phases": phases}
        begun = self.call("POST", "/v1/pipelines", {"pipeline": declared})
        session_id = str(begun["session_id"])
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if self.call("GET", f"/v1/pipelines/{session_id}")["state"] == "failed":
                return session_id
            time.sleep(0.1)
        raise AssertionError(f"{session_id} did not fail")

    def tell_of_others(self) -> None:
        """Have a memory, a story and something to be heard in a world."""
        base = self.operations.api
        document = {"resource": "food", "content": FOOD, "file": "food.json"}
        self.call("POST", "/v1/memory/ana/import", document, base=base)
        story = {"settings": {"story_id": "lighthouse", "title": "The lamp"}}
        self.call("POST", "/v1/stories", story)
        said = {"conversation_id": "coins.Ana", "sender": "Bob", "message": "A storm!"}
        self.call("POST", "/v1/worlds/messages", said)

    def enter(self, page: Page, base: str) -> None:
        """Sign in at *base*."""
        page.goto(self.call("POST", "/v1/console/links", base=base)["url"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()


@pytest.fixture(scope="module")
def consoles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consoles]:
    folder = tmp_path_factory.mktemp("system")
    file = folder / "keys.json"
    key = make_key(file, "admin", ("admin",), None, ("finance",))
    shared: dict[str, Any] = {
        "api_keys_file": file,
        "approval_secret": SECRET,
        "evidence_dir": folder / "evidence",
    }
    models = {"llm_base_url": "", "llm_api_key": ""}
    with running_system(folder) as system:
        worker = system.worker(
            PROBE,
            *(str(AGENTS / f"{name}.py") for name in ("payer", "tree", "teller")),
            retry_base_s="0.05",
            run_messages_hours=24,
            **models,
        )
        operations = system.operations(**shared, **models)
        supervisors = [system.supervisor(**shared, **models) for _ in range(2)]
        for one in (worker, operations, *supervisors):
            one.ready()
        supervisors[0].await_agents(4)
        yield Consoles(system, operations, supervisors, key)


@pytest.fixture(scope="module")
def paths(consoles: Consoles) -> Mapping[str, str]:
    """Return every page of the console below its address, by name, in a system where each has something to show."""
    failed = consoles.fail("order-1041", "error")
    spread = consoles.send("TreeAgent", "spread", label="order-1042", width=3)
    asking = consoles.send("PayerAgent", "pay", label="order-1043", amount=1200)
    consoles.send("PayerAgent", "pay", label="order-1044", amount=80)
    consoles.await_state(spread, "completed")
    consoles.await_state(asking, "waiting")
    consoles.schedule("nightly", label="nightly", width=2)
    consoles.spend()
    pipeline = consoles.break_pipeline("import")
    consoles.tell_of_others()
    base = consoles.operations.api
    letter = consoles.call("GET", f"/v1/dead-letters/{failed}", base=base)["sequence"]
    return {
        "overview": "",
        "runs": "runs",
        "runs-none": "runs?error=NoSuchError",
        "runs-fault": "runs?created_after=nonsense",
        "run-failed": f"runs/{failed}",
        "run-tree": f"runs/{spread}",
        "run-waiting": f"runs/{asking}",
        "run-messages": f"runs/{spread}/messages",
        "approvals": "approvals",
        "dead-letters": "dead-letters",
        "dead-letter": f"dead-letters/{letter}",
        "agents": "agents",
        "agent": "agents/TreeAgent",
        "start": "agents/TreeAgent/spread",
        "money": "money",
        "limits": "money/limits",
        "limit": "money/limit?name=tenants",
        "schedules": "schedules",
        "schedule": "schedules/new?task=TreeAgent.spread",
        "pipelines": "pipelines",
        "pipeline": f"pipelines/{pipeline}",
        "people": "people",
        "memory": "people?user=ana",
        "items": "people?user=ana&view=items",
        "item": "people/item?user=ana",
        "history": "people?user=ana&view=history",
        "facts": "people?user=ana&view=facts",
        "search": "people?user=ana&view=search&q=lamp",
        "why": "people/why?user=ana&path=food.likes[0]",
        "forget": "people/forget?user=ana",
        "stories": "stories",
        "story": "stories/lighthouse",
        "worlds": "worlds",
        "world": "worlds?conversation=coins.Ana",
    }


#: Pages that the guide shows, and the bytes that each picture has at most.
PICTURED = (
    "overview",
    "runs",
    "run-tree",
    "approvals",
    "dead-letters",
    "agents",
    "money",
    "schedules",
    "pipeline",
    "memory",
)
MOST_PICTURE_BYTES = 60_000
#: Pages that ask first: the page and the button that lead to each; where several can be chosen, all are.
ASKING: Mapping[str, tuple[str, str]] = {
    "ask-cancel": ("run-waiting", "Cancel"),
    "ask-cancel-several": ("runs", "Cancel the chosen…"),
    "ask-send-again": ("dead-letters", "Send again…"),
    "ask-send-letter-again": ("dead-letter", "Send again…"),
    "ask-approve-several": ("approvals", "Approve the chosen"),
    "ask-limit": ("limits", "Remove…"),
    "ask-schedule": ("schedules", "Remove…"),
    "ask-story": ("story", "Remove…"),
    "ask-phase": ("pipeline", " again…"),
}


def test_every_page_is_looked_at(paths: Mapping[str, str]) -> None:
    """One that is added to the table of pages is added to `paths`, above."""
    opened = [path.partition("?")[0] for path in paths.values()]
    for page in PAGES:
        pattern = re.sub(r"\{[^}]+\}", "[^/]+", page.path)
        assert any(re.fullmatch(pattern, path) for path in opened), page.path


@pytest.mark.parametrize(
    "context",
    OPERATOR_OPERATIONS,
    indirect=True,
    ids=lambda look: f"{look['viewport']['width']}-{look['color_scheme']}",
)
def test_every_page_fits_its_window(
    consoles: Consoles, paths: Mapping[str, str], window: Window, tmp_path: Path
) -> None:
    """None is wider or cuts words off, the browser complains of nothing, and nothing is asked for elsewhere.

    Half of 1,280 pixels with two of the screen for each is a zoom of 200 %. A picture of what does not fit is left in
    the test's folder.
    """
    page = window.page
    base = consoles.operations.api
    consoles.enter(page, base)
    for name, path in paths.items():
        page.goto(f"{base}/console/{path}")
        look_at(page, name, tmp_path)
    for name, (path, button) in ASKING.items():
        page.goto(f"{base}/console/{paths[path]}")
        for box in page.locator("main input[type=checkbox]:not([data-all])").all():
            box.check()
        page.get_by_role("button", name=button).first.click()
        expect(page.get_by_role("link", name="Leave it")).to_be_visible()
        page.wait_for_load_state()
        look_at(page, name, tmp_path)
    # The browser's own word for the address with a time that is none.
    assert ["422 (" in one for one in window.complaints] == [True]
    for name, path in {"sign-in": "sign-in?link=1", "signed-out": "sign-in"}.items():
        page.goto(f"{base}/console/{path}")
        look_at_alone(page, name, tmp_path)
    page.goto(f"{base}/console/runs/unknown")
    look_at_alone(page, "problem", tmp_path)
    assert all("404 (Not Found)" in one for one in window.complaints[1:])
    assert window.origins() == {base}


def look_at(page: Page, name: str, folder: Path) -> None:
    """Demand that nothing is wrong with a page of the navigation that a machine can find."""
    with pictured(page, name, folder):
        assert page.evaluate(CHECKS) == [], name
    look_at_alone(page, name, folder)


def look_at_alone(page: Page, name: str, folder: Path) -> None:
    """Demand of a page what holds without navigation too."""
    with pictured(page, name, folder):
        demand_fit(page, name)


@contextmanager
def pictured(page: Page, name: str, folder: Path) -> Iterator[None]:
    """Leave a picture of a page with which something is wrong."""
    try:
        yield
    except AssertionError:
        page.screenshot(path=folder / f"{name}.png", full_page=True)
        raise


def demand_fit(page: Page, name: str) -> None:
    """Demand one heading, no more width than the window has, and nothing that axe calls serious."""
    expect(page.locator("h1")).to_have_count(1)
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    # Once in each light: contrast is checked in every window, and the rest is the same in a wider one.
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    if (width, is_dark) in ((640, False), (1280, True)):
        page.evaluate(AXE)
        assert page.evaluate(GRAVE) == [], name


def test_a_cause_is_three_clicks_away_and_its_task_sent_again(
    consoles: Consoles, window: Window
) -> None:
    """From the overview to the words of the error, then another try, by the form that says how many."""
    failed = consoles.fail("cause", "give_up")
    page = window.page
    consoles.enter(page, consoles.operations.api)
    page.locator(f"a[href='/console/runs/{failed}']").click()
    expect(page.get_by_text("GiveUp: no run can mend this", exact=True)).to_be_visible()
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("status").first).to_contain_text("sent again")
    page.get_by_role("link", name="Dead letters").first.click()
    page.get_by_role("button", name="Send again…").first.click()
    expect(page.get_by_role("heading", name="This concerns")).to_be_visible()
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("status").first).to_contain_text("sent again")


@pytest.mark.parametrize(
    "context",
    [
        {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
        {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    ],
    indirect=True,
    ids=["light", "dark"],
)
def test_pictures_of_the_guide_are_small(
    consoles: Consoles,
    paths: Mapping[str, str],
    window: Window,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """`make pictures` puts them into docs/images."""
    scheme = request.node.callspec.id
    page = window.page
    base = consoles.operations.api
    consoles.enter(page, base)
    for name in PICTURED:
        page.goto(f"{base}/console/{paths[name]}")
        picture = take_picture(page)
        assert len(picture) <= MOST_PICTURE_BYTES, name
        (tmp_path / f"console-{name}-{scheme}.png").write_bytes(picture)


def test_every_page_reads_the_same_without_a_script(
    consoles: Consoles, paths: Mapping[str, str], browser: Browser
) -> None:
    """The words in each are those that are there with one, numbers and times aside."""
    base = consoles.operations.api
    words: dict[bool, dict[str, set[str]]] = {}
    for has_script in (True, False):
        context = browser.new_context(java_script_enabled=has_script)
        page = context.new_page()
        consoles.enter(page, base)
        words[has_script] = {}
        for name, path in paths.items():
            page.goto(f"{base}/console/{path}")
            found = re.findall(r"[^\W\d_]{3,}", page.locator("main").inner_text())
            words[has_script][name] = set(found) - {"now", "ago", "min"}
        context.close()
    assert words[False] == words[True]


@pytest.mark.parametrize("context", [{"java_script_enabled": False}], indirect=True)
def test_without_a_script_every_form_posts(
    consoles: Consoles, paths: Mapping[str, str], window: Window
) -> None:
    """A task is started, cancelled and sent again, a schedule is kept and removed, a limit is set."""
    page = window.page
    base = consoles.operations.api
    consoles.enter(page, base)

    def open_page(path: str) -> None:
        page.goto(f"{base}/console/{path}")

    def press(name: str, of: str = "") -> None:
        pattern = re.compile(rf"^{name}\W*{of}$")
        page.get_by_role("button").filter(has_text=pattern).first.click()

    def expect_said(words: str) -> None:
        expect(page.locator(".said.good")).to_contain_text(words)

    open_page("runs")
    page.get_by_label("State").select_option("failed")
    press("Filter")
    expect(page.locator("td.state .badge").first).to_have_text("failed")
    open_page("agents/TreeAgent/spread")
    page.get_by_label("label").fill("plain")
    press("Start")
    expect_said("It is started.")
    waiting = consoles.send("PayerAgent", "pay", label="plain-cancelled", amount=1)
    consoles.await_state(waiting, "waiting")
    open_page(f"runs/{waiting}")
    press("Cancel")
    press("Cancel it")
    expect_said("1 cancelled")
    open_page("dead-letters")
    page.locator("input[name=sequence][type=checkbox]").first.check()
    press("Send the chosen again…")
    press("Send again")
    expect_said("sent again")
    open_page("schedules/new?task=TreeAgent.spread")
    page.get_by_label("When", exact=True).fill("6h")
    page.get_by_label("Its name").fill("plain")
    page.get_by_label("label").fill("plain")
    press("Keep it")
    expect_said("plain is kept")
    press("Pause", of="plain")
    expect_said("plain is paused")
    press("Remove…", of="plain")
    press("Remove it")
    expect_said("plain is removed")
    open_page("money/limit")
    page.get_by_label("Its name").fill("plain")
    page.get_by_label("At most").fill("7")
    page.get_by_label("In each").select_option("day")
    press("Set the limit")
    expect_said("plain")
    press("Remove…", of="plain")
    press("Remove it")
    expect_said("plain is removed")
    open_page("worlds?conversation=coins.Ana")
    page.get_by_label("Who speaks").fill("Carol")
    page.get_by_label("What they say").fill("Land!")
    press("Say it")
    expect_said("It is said")
    open_page("people?user=ana&view=history")
    page.get_by_role("button", name="Take back").first.click()
    # No worker of memory is there, which the page says.
    expect(page.locator(".said.bad")).to_contain_text("not undone")
    open_page(paths["pipeline"])
    press("Resume")
    expect_said("")


@pytest.mark.parametrize("context", [{"java_script_enabled": False}], indirect=True)
def test_without_a_script_questions_are_answered(
    consoles: Consoles, window: Window
) -> None:
    """At the process of operations, which hands the answer over to a supervisor."""
    asking = consoles.send("PayerAgent", "pay", label="plain", amount=77)
    consoles.await_state(asking, "waiting")
    page = window.page
    consoles.enter(page, consoles.operations.api)
    page.goto(f"{consoles.operations.api}/console/runs/{asking}")
    page.get_by_placeholder("Note").fill("as ordered")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status")).to_contain_text("Approved: Pay 77?")
    consoles.await_state(asking, "completed")


def test_a_person_is_forgotten_by_their_name_alone(
    consoles: Consoles, window: Window
) -> None:
    """From the entry to why it is there, to the form that wants the name, to the proof that nothing is left."""
    consoles.tell_of_others()
    page = window.page
    base = consoles.operations.api
    consoles.enter(page, base)
    page.get_by_role("link", name="People's memory").first.click()
    page.get_by_label("Name of the person").fill("ana")
    page.get_by_role("button", name="Open the memory").click()
    page.get_by_role("link", name="Why: Lox").click()
    expect(
        page.get_by_role("heading", name="Why it is stored", exact=True)
    ).to_be_visible()
    page.get_by_role("link", name="ana", exact=True).click()
    page.get_by_role("link", name="Forget…").click()
    page.get_by_label("Type the name ana").fill("anna")
    page.get_by_role("button", name="Forget ana").click()
    expect(page.get_by_role("status")).to_contain_text("Nothing was deleted")
    page.get_by_label("Type the name ana").fill("ana")
    page.get_by_role("button", name="Forget ana").click()
    expect(page.get_by_role("heading", name="ana is forgotten")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("Nothing is left")
    page.goto(f"{base}/console/people?user=ana")
    expect(page.get_by_text("Nothing was stored about ana.")).to_be_visible()
    assert not window.complaints


def test_a_run_is_watched_without_loading_it_again(
    consoles: Consoles, window: Window
) -> None:
    """Its output comes as it is emitted, and its state changes in place."""
    page = window.page
    consoles.enter(page, consoles.supervisors[0].api)
    running = consoles.send("ProbeAgent", "fresh", label="watched", ms=6_000)
    consoles.await_state(running, "running")
    page.goto(f"{consoles.supervisors[0].api}/console/runs/{running}")
    page.evaluate("window.isSame = true")
    expect(page.locator("#run .badge").first).to_have_text("running")
    expect(page.locator("#run .badge").first).to_have_text("completed")
    assert page.evaluate("window.isSame")
    assert not window.complaints


def test_output_comes_as_it_is_emitted(consoles: Consoles, window: Window) -> None:
    """While the run goes on, its words are on its page."""
    page = window.page
    base = consoles.supervisors[0].api
    consoles.enter(page, base)
    told = consoles.send("TellerAgent", "tell", words=300, pause_ms=10)
    consoles.await_state(told, "running")
    page.goto(f"{base}/console/runs/{told}")
    expect(page.locator("[data-output-text]")).to_contain_text("1:50é")
    assert page.locator("[data-output-state]").text_content() != ENDED
    expect(page.locator("[data-output-text]")).to_contain_text("1:299é")
    expect(page.locator("[data-output-state]")).to_have_text(ENDED)
    assert not window.complaints


def test_100_000_events_leave_a_page_as_large_as_1_000(
    consoles: Consoles, window: Window
) -> None:
    """Each is an event of its own, from a real run; nodes and heap are what is left without garbage."""
    page = window.page
    page.add_init_script(COUNT_EVENTS)
    consoles.enter(page, consoles.supervisors[0].api)
    few = watch_values(consoles, page, 1_000)
    many = watch_values(consoles, page, 100_000)
    assert many.nodes <= few.nodes + SLACK_NODES, (few, many)
    assert many.heap_bytes <= few.heap_bytes + SLACK_BYTES, (few, many)
    assert not window.complaints


def watch_values(consoles: Consoles, page: Page, values: int) -> Footprint:
    """Return how large the page of a run is that emits so many values once the page was opened."""
    base = consoles.supervisors[0].api
    body = {"agent_id": "TellerAgent", "task": "count", "wait_seconds": 0, "after": 2}
    sent = consoles.call(
        "POST", "/v1/tasks", {**body, "parameters": {"values": values}}
    )
    page.goto(f"{base}/console/runs/{sent['task_id']}")
    last = page.locator("[data-output-text] .mark").last
    expect(last).to_have_text(f"number: {values - 1}")
    expect(page.locator("[data-output-state]")).to_contain_text("completed")
    assert page.evaluate("window.taken.value") == values
    expect(page.locator("#run .badge").first).to_have_text("completed")
    return Footprint.of(page)


@pytest.mark.parametrize("path", ["", "runs"], ids=["overview", "runs"])
def test_200_refreshes_leave_a_page_as_large_as_20(
    consoles: Consoles, window: Window, path: str
) -> None:
    """A part is fetched anew and changed in place, each time the clock of the page reaches its next time."""
    page = window.page
    page.clock.install()
    consoles.send("TreeAgent", "spread", label="refreshed", width=20)
    base = consoles.supervisors[0].api
    consoles.enter(page, base)
    page.goto(f"{base}/console/{path}")
    refresh(page, 20)
    few = Footprint.of(page)
    refresh(page, 180)
    many = Footprint.of(page)
    assert many.nodes <= few.nodes + SLACK_NODES, (few, many)
    assert many.heap_bytes <= few.heap_bytes + SLACK_BYTES, (few, many)
    assert not window.complaints


def refresh(page: Page, times: int) -> None:
    """Let the page refresh its part so often."""
    for _ in range(times):
        with page.expect_response(lambda answer: answer.status == 200):
            page.clock.run_for(5_000)
    page.clock.run_for(100)


def test_the_page_goes_on_when_a_supervisor_is_killed(
    consoles: Consoles, window: Window
) -> None:
    """A session that one of them began is taken by the other, as by the process of operations."""
    page = window.page
    consoles.enter(page, consoles.supervisors[1].api)
    cookies = page.context.cookies()
    consoles.supervisors[1].kill()
    assert cookies
    for base in (consoles.supervisors[0].api, consoles.operations.api):
        page.goto(f"{base}/console/runs")
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_by_keys_alone_a_task_is_approved_another_sent_again_and_runs_filtered(
    consoles: Consoles, window: Window
) -> None:
    """Focus reaches each field and button, in a window of half the width too."""
    asking = consoles.send("PayerAgent", "pay", label="keys", amount=88)
    consoles.await_state(asking, "waiting")
    failed = consoles.fail("keys-failed", "give_up")
    page = window.page
    page.set_viewport_size({"width": 640, "height": 400})
    base = consoles.operations.api
    consoles.enter(page, base)
    page.goto(f"{base}/console/runs/{asking}")
    focus_by_keys(page, "Note, which the task sees")
    page.keyboard.type("by keys")
    focus_by_keys(page, "Approve")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Approved: Pay 88?")
    page.goto(f"{base}/console/runs/{failed}")
    focus_by_keys(page, "Send again")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("sent again")
    page.goto(f"{base}/console/dead-letters")
    focus_by_keys(page, "Send again…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="This concerns")).to_be_visible()
    focus_by_keys(page, "Send again")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("sent again")
    page.goto(f"{base}/console/runs")
    focus_by_keys(page, "TaskExpired")
    page.keyboard.type("NoSuchError")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No run matches.")).to_be_visible()


def focus_by_keys(page: Page, name: str) -> None:
    """Press Tab until the field with the placeholder, or the button with the text, *name* has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if (
            page.evaluate(
                "(document.activeElement.placeholder || document.activeElement.textContent).trim()"
            )
            == name
        ):
            return
    raise AssertionError(f"no key leads to {name!r}")
