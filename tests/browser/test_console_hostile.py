"""The console in a browser, full of texts that would run, ask elsewhere or change a page if one were more than text."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.system import AGENTS, Served, System, running_system
from tests.browser.conftest import Window
from tests.hostile_texts import NUMBER, hostile_texts

pytestmark = pytest.mark.browser

SECRET = "0123456789abcdef0123456789abcdef"
TEXTS = hostile_texts()
#: Two texts that are planted in one task, the first where it has one place alone.
PAIRS = tuple(zip(TEXTS[: NUMBER // 2], TEXTS[NUMBER // 2 :], strict=True))
ENDS = ("fail", "return", "raise", "ask", "answer")
#: Elements and attributes that no page of the console has, wherever they came from.
FOREIGN = """() => {
  const wrong = "img, iframe, object, embed, base, style, video, audio, math, foreignObject, template, marquee, "
    + "noscript, body x, animate, meta[http-equiv], script:not([src^='/console/static/']), "
    + "link:not([href^='/console/static/']), [srcdoc], [style], [ping], [contenteditable], [data-hx-on], "
    + "[hx-get], [hx-post], [hx-on], [hx-trigger]";
  const found = [...document.querySelectorAll(wrong)].map((one) => one.outerHTML.slice(0, 200));
  for (const one of document.querySelectorAll("*")) {
    for (const { name, value } of one.attributes) {
      const leads = ["href", "src", "action", "formaction", "data-output", "data-hx-get", "xlink:href"].includes(name);
      const isOurs = value.startsWith("/console/") || value.startsWith("#");
      if (leads && !isOurs || /^on|^hx-/.test(name)) found.push(`${name}=${value.slice(0, 100)}`);
    }
  }
  if (window.ran !== undefined || document.title.includes("\\u202e")) found.push("something ran");
  return found;
}"""


@dataclass
class Place:
    """A system whose every string that somebody can set is a hostile text, and the pages that show them."""

    base: str
    supervisor: str
    key: str
    tasks: dict[str, str] = field(default_factory=dict)
    pipeline: str = ""

    def call(self, method: str, path: str, body: Any = None, base: str = "") -> Any:
        """Return the answer; None where the door refuses a text, which then is in its refusal alone."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own address
            (base or self.supervisor) + path,
            data,
            {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self.key}",
            },
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            return None

    def send(self, text: str, ends: str, lines: tuple[str, ...]) -> str:
        body = {
            "agent_id": "ParrotAgent",
            "task": "say",
            "parameters": {"text": text, "lines": lines, "ends": ends},
            "user": lines[0],
            "tenant": text,
            "conversation": text,
            "wait_seconds": 0,
        }
        return str(self.call("POST", "/v1/tasks", body)["task_id"])

    def plant(self) -> None:
        """Have each text in what a task is given, says and ends with, and in all that is kept beside tasks."""
        for number, (text, other) in enumerate(PAIRS):
            ends = ENDS[number % len(ENDS)]
            self.tasks[self.send(text, ends, (other,))] = ends
        self.tasks[self.send(TEXTS[0], "return", TEXTS)] = "return"
        entries = [
            {"item": f"i{number}", "display": text, "added": "2026-01-02"}
            for number, text in enumerate(TEXTS)
        ]
        content = {
            "_metadata": {"resource_id": "resource_user_food_prefs", "tags": ["food"]},
            "food": {"likes": entries},
        }
        document = {
            "resource": "food",
            "content": json.dumps(content),
            "file": "food.json",
        }
        self.call("POST", "/v1/memory/ana/import", document, base=self.base)
        for number, text in enumerate(TEXTS):
            said = {"conversation_id": "odd", "sender": text[:60], "message": text}
            if self.call("POST", "/v1/worlds/messages", said) is None:
                # Names of speakers stand in sentences, and have no such letters.
                self.call("POST", "/v1/worlds/messages", said | {"sender": "Eve"})
            if number % 5:
                continue
            settings = {"story_id": f"story-{number}", "title": text[:200]}
            self.call("POST", "/v1/stories", {"settings": settings})
            parameters = {"text": text, "lines": [text]}
            schedule = {"agent_id": "ParrotAgent", "task": "say", "every": "1d"}
            schedule |= {"id": f"s{number}", "parameters": parameters, "user": text}
            self.call("POST", "/v1/schedules", schedule)
            limit = {"usd": "20", "every": "day", "tenant": text[:100]}
            self.call("PATCH", f"/v1/limits/named/l{number}", limit, base=self.base)
        phases = [
            {
                "name": name,
                "agent": "ParrotAgent",
                "task": "say",
                "description": text,
                "parameters": {"text": text, "lines": [text], "ends": ends},
                "after": after,
            }
            for name, text, ends, after in (
                ("first", TEXTS[0], "return", []),
                ("second", TEXTS[4], "raise", ["first"]),
                ("third", TEXTS[8], "return", ["second"]),
            )
        ]
        declared = {
            "name": "odd",
            "description": TEXTS[1],
            "phases": phases,
            "inputs": {"word": {"description": TEXTS[2], "default": TEXTS[3]}},
        }
        begun = self.call("POST", "/v1/pipelines", {"pipeline": declared})
        self.pipeline = str(begun["session_id"])
        self.await_end()

    def await_end(self) -> None:
        """Return once no task is under way."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            states = self.call("GET", "/v1/task-counts")["states"]
            run = self.call("GET", f"/v1/pipelines/{self.pipeline}")
            if states.keys() <= {"waiting"} and run["state"] == "failed":
                return
            time.sleep(0.2)
        raise AssertionError(f"still {states}, {run}")

    def pages(self) -> Iterator[str]:
        """Yield the address of every page."""
        yield from ("", "approvals", "dead-letters", "agents", "agents/ParrotAgent")
        yield from ("agents/ParrotAgent/say", "money", "money/limits", "schedules")
        yield from ("schedules/new", "schedules/new?task=ParrotAgent.say", "stories")
        yield from ("pipelines", f"pipelines/{self.pipeline}", "worlds", "people")
        yield from (f"money/limit?name=l{number}" for number in range(0, NUMBER, 40))
        yield from (f"stories/story-{number}" for number in range(0, NUMBER, 20))
        for view in ("memory", "history", "facts"):
            yield f"people?user=ana&view={view}"
        yield "people/why?user=ana&path=food.likes[0]&resource=resource_user_food_prefs"
        for task_id in self.tasks:
            yield f"runs/{task_id}"
            yield f"runs/{task_id}/messages"
        for task_id, ends in self.tasks.items():
            if ends in ("fail", "raise"):
                yield f"dead-letters/{task_id}"
        # What somebody was led to by a link: values of a query, and addresses of what is not there.
        for number, pair in enumerate(PAIRS):
            one, other = (quote(text, safe="") for text in pair)
            yield (
                f"runs?error={one}&user={other}&created_after={one}&agent={other}",
                f"people?user={one}&view=search&q={other}&at={one}",
                f"worlds?conversation={one}&after={other}",
                f"agents/ParrotAgent/say?parameter.text={one}&parameter.lines={other}",
                f"dead-letters?error={one}&since={other}&agent={one}",
                f"runs/{one}?x={other}",
                f"schedules?user={one}&after={other}",
                f"sign-in?link={one}",
                f"nosuch/{one}?state={other}",
            )[number % 9]

    def follow_lists(self, page: Page) -> Iterator[str]:
        """Yield each page of lists of runs, dead letters and messages, by the links that lead on."""
        for path in ("runs", "dead-letters", "worlds?conversation=odd", "stories"):
            page.goto(f"{self.base}/console/{path}")
            yield path
            while page.locator("a[rel=next]").count():
                page.locator("a[rel=next]").first.click()
                yield page.url


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("system")
    file = folder / "keys.json"
    key = make_key(file, "admin", ("admin",), None, ("finance",))
    settings = {"llm_base_url": "", "llm_api_key": ""}
    shared = {"api_keys_file": file, "approval_secret": SECRET, **settings}
    with running_system(folder) as system:
        yield _serve(system, shared, settings, key)


def _serve(
    system: System, shared: dict[str, Any], settings: dict[str, Any], key: str
) -> Place:
    worker: Served = system.worker(
        str(AGENTS / "parrot.py"), run_messages_hours=24, **settings
    )
    operations = system.operations(**shared)
    supervisor = system.supervisor(**shared)
    for one in (worker, operations, supervisor):
        one.ready()
    supervisor.await_agents(1)
    made = Place(operations.api, supervisor.api, key)
    made.plant()
    return made


def enter(place: Place, window: Window, base: str) -> None:
    """Sign in at *base*, in a page that notes dialogs and what the policy forbids."""
    window.page.on(
        "dialog",
        lambda dialog: (window.complaints.append(dialog.message), dialog.dismiss()),
    )
    window.page.add_init_script(
        "addEventListener('securitypolicyviolation',"
        " (one) => console.error(`forbidden: ${one.blockedURI}`))"
    )
    window.page.goto(place.call("POST", "/v1/console/links", base=base)["url"])
    window.page.get_by_role("button", name="Sign in").click()
    expect(window.page.get_by_role("heading", name="Overview")).to_be_visible()


def check(window: Window, base: str, what: str) -> None:
    """Nothing ran, asked elsewhere, or is anything but text on the page that is open."""
    assert window.page.evaluate(FOREIGN) == [], what
    # Of an address that leads nowhere the browser itself says that it was not found.
    said = [one for one in window.complaints if "status of 4" not in one]
    assert not said, (what, said)
    assert window.origins() == {base}, what
    assert urlsplit(window.page.url).path.startswith("/console/"), what


def test_no_text_is_more_than_text(place: Place, window: Window) -> None:
    """Two hundred texts, in all that agents, models, users and tenants can set, on every page that shows any."""
    assert len(set(TEXTS)) == NUMBER == 200
    page = window.page
    enter(place, window, place.base)
    shown = 0
    for path in place.pages():
        page.goto(f"{place.base}/console/{path}", wait_until="domcontentloaded")
        check(window, place.base, path)
        shown += 1
    for path in place.follow_lists(page):
        check(window, place.base, path)
        shown += 1
    assert shown > 250
    # Each is there, as it was written, but for letters that are spelled out.
    page.goto(f"{place.base}/console/people?user=ana")
    words = page.locator("main").text_content() or ""
    assert all(one in words for one in TEXTS if one.isprintable())


def test_no_text_of_a_form_is_more_than_text(place: Place, window: Window) -> None:
    """What a person types, and what is said after it."""
    page = window.page
    enter(place, window, place.base)
    for text in TEXTS[:: NUMBER // 10]:
        plain = " ".join(text.split())
        page.goto(f"{place.base}/console/approvals")
        page.get_by_label("Answer, as JSON").first.fill(text)
        page.get_by_role("button", name="Send the answer").first.click()
        expect(page.get_by_role("status")).to_contain_text(
            "The answer is not valid JSON"
        )
        check(window, place.base, text)
        page.get_by_placeholder("Note").first.fill(plain)
        page.get_by_role("button", name="Reject").first.click()
        expect(page.get_by_role("status")).to_contain_text("Rejected")
        check(window, place.base, text)
        page.goto(f"{place.base}/console/money/limit")
        page.get_by_label("Its name").fill(plain[:64])
        page.get_by_label("At most").fill(plain)
        page.get_by_label("Tenant").fill(plain)
        page.get_by_role("button", name="Set the limit").click()
        expect(page.get_by_label("Tenant")).to_have_value(plain)
        check(window, place.base, text)


def test_no_text_is_more_than_text_while_it_comes(place: Place, window: Window) -> None:
    """Output, progress and questions, and parts that are fetched anew; marks and controls are spelled out."""
    page = window.page
    base = place.supervisor
    enter(place, window, base)
    text = next(one for one in TEXTS if "\u202e" in one)
    task_id = place.send(text, "hold", (text, *TEXTS))
    page.goto(f"{base}/console/runs/{task_id}")
    output = page.locator("[data-output-text]")
    expect(output).to_contain_text("url(//evil.invalid/c.png)")
    check(window, base, text)
    expect(page.locator("[data-output-state]")).to_contain_text("completed")
    expect(page.locator("#run .badge").first).to_have_text("completed")
    words = page.locator("main").text_content() or ""
    assert "⟨U+202E⟩>tpircs/<1=nar.wodniw>tpircs<⟨U+202C⟩" in words
    assert "⟨U+0007⟩⟨U+001B⟩]8;;" in words
    assert not set(words) & set("\u202e\u202c\u2066\x07\x1b\x7f\x9f")
    check(window, base, text)
