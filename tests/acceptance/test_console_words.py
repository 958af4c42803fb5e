"""No word of one owner for a key of another: every page, form, stream and path of the API, by ids that were stolen.

Users, tenants and the deployment itself have words in all that they may set, in a system of real processes. What a key
of one of them reads is looked through for words, and ids, of all the others.
"""

import asyncio
import json
import random
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from tasklore.contracts.callers import Role
from tasklore.supervisor.http.admission.key_file import make_key
from tasklore.supervisor.http.console.routes import PAGES
from tasklore.supervisor.operations.nouns import NOUNS
from tests.acceptance.system import AGENTS, running_system

SECRET = "0123456789abcdef0123456789abcdef"
#: Reads of pages and paths in all; one form is sent beside ten of them.
READS = 1_500
MANY_READS = 10_000
#: Users are no tenant's: who is trusted with the memory of one, by a key of no user, is trusted with that of each.
OF_USERS = ("/v1/memory/", "/console/people")
#: The user and the tenant of each owner.
OWNERS: Mapping[str, tuple[str | None, str | None]] = {
    "ana": ("ana", None),
    "ben": ("ben", None),
    "acme": (None, "acme"),
    "rival": (None, "rival"),
}
ROLES: Mapping[str, tuple[Role, ...]] = {
    "all": ("ask", "read", "approve", "operate"),
    "admin": ("admin",),
    "ask": ("ask",),
    "read": ("read", "approve"),
}
#: The cookie of what is said after a form.
SAID = "tasklore_console_said"
ENDS = ("fail", "return", "raise", "ask", "answer")
#: A word of somebody, whatever stands behind it: whose it is, and in which place.
WORD = re.compile(r"zq(ana|ben|acme|rival|house)[A-Za-z0-9]*")
_TOKEN = re.compile(r'name="form_token" value="([^"]*)"')


@dataclass
class Loot:
    """Everything that somebody who saw the pages of all owners would ask for: ids, words and cursors, by owner."""

    ids: dict[str, list[str]] = field(default_factory=dict)
    cursors: list[str] = field(default_factory=list)

    def owner_of(self, name: str) -> str | None:
        return next((one for one, known in self.ids.items() if name in known), None)


@dataclass
class System:
    """A process of operations and a supervisor, with keys of each owner."""

    operations: str
    supervisor: str
    keys: dict[str, str]
    loot: Loot = field(default_factory=Loot)

    async def plant(self) -> None:
        """Have a word of each owner in each string that is theirs."""
        async with httpx.AsyncClient(timeout=60) as client:
            for owner, (user, tenant) in OWNERS.items():
                await self._plant(client, owner, user, tenant)
            await self._plant_house(client)
            await self._await_end(client)

    async def send(
        self,
        client: httpx.AsyncClient,
        key: str,
        method: str,
        path: str,
        body: Any,
        base: str = "",
    ) -> Any:
        answer = await client.request(
            method,
            f"{base or self.supervisor}{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.keys[key]}"},
        )
        assert answer.status_code < 300, (path, answer.text)
        return answer.json()

    async def _plant(
        self,
        client: httpx.AsyncClient,
        owner: str,
        user: str | None,
        tenant: str | None,
    ) -> None:
        key = f"{owner}-all"
        word = f"zq{owner}"
        ids = self.loot.ids.setdefault(owner, [])
        who = user or f"{word}user"
        for number, ends in enumerate(ENDS):
            body = {
                "agent_id": "ParrotAgent",
                "task": "say",
                "parameters": {
                    "text": f"{word}text{ends}",
                    "lines": [f"{word}line{ends}"],
                    "ends": ends,
                    "who": f"role:{owner}",
                },
                "user": who,
                "conversation": f"{word}conversation{number}",
                "wait_seconds": 0,
            }
            sent = await self.send(client, key, "POST", "/v1/tasks", body)
            ids += [sent["task_id"], f"{word}conversation{number}"]
        schedule = {
            "id": f"{word}schedule",
            "agent_id": "ParrotAgent",
            "task": "say",
            "parameters": {"text": f"{word}scheduled"},
            "user": who,
            "every": "1d",
        }
        kept = await self.send(client, key, "POST", "/v1/schedules", schedule)
        said = {
            "conversation_id": f"{word}world",
            "sender": f"{word}sender",
            "message": f"{word}message",
            "user": who,
        }
        await self.send(client, key, "POST", "/v1/worlds/messages", said)
        request = {"text": f"parrot {word}request", "user": who}
        asked = await self.send(client, key, "POST", "/v1/requests", request)
        phases = [
            {
                "name": f"{word}{name}",
                "agent": "ParrotAgent",
                "task": "say",
                "description": f"{word}phase",
                "parameters": {"text": f"{word}{name}text", "ends": ends},
                "after": after,
            }
            for name, ends, after in (
                ("first", "return", []),
                ("second", "fail", [f"{word}first"]),
            )
        ]
        declared = {
            "name": f"{word}pipeline",
            "description": f"{word}declared",
            "phases": phases,
            "inputs": {f"{word}in": {"default": f"{word}given"}},
        }
        run = {"pipeline": declared, "user": who}
        begun = await self.send(client, key, "POST", "/v1/pipelines", run)
        ids += [kept["id"], asked["request_id"], begun["session_id"], f"{word}world"]
        await self._remember(client, who, word)
        ids.append(who)

    async def _remember(self, client: httpx.AsyncClient, user: str, word: str) -> None:
        entry = {
            "item": f"{word}item",
            "display": f"{word}entry",
            "added": "2026-01-02",
        }
        food = {
            "_metadata": {"resource_id": "resource_user_food_prefs", "tags": ["food"]},
            "food": {"likes": [entry]},
        }
        document = {"resource": "food", "content": json.dumps(food), "file": "f.json"}
        path = f"/v1/memory/{user}/import"
        await self.send(client, "house", "POST", path, document, self.operations)

    async def _plant_house(self, client: httpx.AsyncClient) -> None:
        """What is of the whole deployment: no key of one user or tenant sees it."""
        story = {"settings": {"story_id": "zqhousestory", "title": "zqhousetitle"}}
        await self.send(client, "house", "POST", "/v1/stories", story)
        for tenant in ("acme", "rival", "zqhousetenant"):
            limit = {"usd": "20", "every": "day", "tenant": tenant}
            path = f"/v1/limits/named/zqhouse{tenant}"
            await self.send(client, "house", "PATCH", path, limit, self.operations)
        self.loot.ids["house"] = ["zqhousestory", "zqhouseacme", "zqhousetenant"]

    async def _await_end(self, client: httpx.AsyncClient) -> None:
        """Return once nothing is under way but questions, and take note of the ids of those."""
        until = time.monotonic() + 90
        while True:
            path = "/v1/task-counts"
            found = await self.send(client, "house", "GET", path, None)
            if found["states"].keys() <= {"waiting"}:
                break
            assert time.monotonic() < until, found
            await asyncio.sleep(0.2)
        for owner in OWNERS:
            tasks = await self.send(client, f"{owner}-all", "GET", "/v1/tasks", None)
            listed = [one["task_id"] for one in tasks["tasks"]]
            assert len(listed) >= len(ENDS) + 2, owner
            known = self.loot.ids[owner]
            known += [one for one in listed if one not in known]
            known += [f"{one}.0" for one in known if "." not in one]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("words")
    file = folder / "keys.json"
    keys = {"house": make_key(file, "house", ("admin",), None, ("finance",))}
    for owner, (user, tenant) in OWNERS.items():
        for kind, roles in ROLES.items():
            name = f"{owner}-{kind}"
            keys[name] = make_key(file, name, roles, user, (owner,), tenant)
    models = {"llm_base_url": "", "llm_api_key": ""}
    more = {"api_rate": 10_000, "api_burst": 10_000, **models}
    with running_system(folder) as processes:
        worker = processes.worker(str(AGENTS / "parrot.py"), **models)
        shared = {"api_keys_file": file, "approval_secret": SECRET, **more}
        operations = processes.operations(**shared)
        supervisor = processes.supervisor(**shared)
        for one in (worker, operations, supervisor):
            one.ready()
        supervisor.await_agents(1)
        made = System(operations.api, supervisor.api, keys)
        asyncio.run(made.plant())
        yield made


@dataclass
class Reader:
    """A key of *owner* at one process, signed in to its console."""

    system: System
    name: str
    base: str
    client: httpx.AsyncClient
    chance: random.Random
    foreign: int = 0

    @property
    def owner(self) -> str:
        return self.name.partition("-")[0]

    async def sign_in(self) -> None:
        key = {"Authorization": f"Bearer {self.system.keys[self.name]}"}
        made = await self.client.post(f"{self.base}/v1/console/links", headers=key)
        link = made.json()["url"].partition("link=")[2]
        await self.client.post(f"{self.base}/console/sign-in", data={"link": link})

    def pick(self) -> str:
        """Return an id, a word or a cursor of anybody, seldom of their own."""
        loot = self.system.loot
        owner = self.chance.choice(list(loot.ids))
        known = [*loot.ids[owner], f"zq{owner}text", owner]
        return self.chance.choice(known + loot.cursors[:20])

    def query(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return some values of a query, stolen or plain."""
        plain = ("failed", "waiting", "open", "2h", "2026-01-01", "1", "day", "history")
        return {
            name: self.pick()
            if self.chance.random() < 0.6
            else self.chance.choice(plain)
            for name in self.chance.sample(names, self.chance.choice((0, 0, 1, 2)))
        }

    def check(self, answer: httpx.Response, asked: str) -> None:
        """No word or id of another owner is in it, but those that were asked for."""
        told = (self.name, asked, answer.status_code)
        assert answer.status_code < 500 or answer.status_code == 503, (
            told,
            answer.text,
        )
        # A token that an answer carries on is text, too.
        text = unquote(unescape(f"{answer.text} {answer.headers}"))
        for found in WORD.finditer(text):
            if found[1] != self.owner and found[0] not in asked:
                raise AssertionError((told, found[0], text[: found.end()][-300:]))
        for owner, known in self.system.loot.ids.items():
            if owner != self.owner:
                self.foreign += 1
                shown = {one for one in known if len(one) > 16 and one in text}
                wrong = [one for one in shown if one.removesuffix(".0") not in asked]
                assert not wrong, (told, wrong)


PAGE_QUERIES = (
    *("agent", "state", "error", "user", "tenant", "created_after", "parent", "after"),
    *("view", "q", "at", "path", "resource", "conversation", "response", "by", "name"),
    *("days", "since", "until", "task", "reason", "ended_after", "parameter.text"),
)
#: Reads of the API, each as its path with places for ids; what `operator` alone is asked for is among them.
API = tuple(
    path
    for noun in NOUNS
    for one in noun.operations
    for method, _, path in [one.http.partition(" ")]
    if method == "GET"
)


async def read_as(reader: Reader, reads: int, forms: int) -> None:
    """Read pages, parts, streams and paths, and send forms, in a seeded order."""
    chance = reader.chance
    key = {"Authorization": f"Bearer {reader.system.keys[reader.name]}"}
    paths = [f"/console/{one.path}" for one in PAGES for _ in range(2)] + [*API]
    if OWNERS[reader.owner][0] is None:
        paths = [one for one in paths if not one.startswith(OF_USERS)]
    for _ in range(reads):
        path = chance.choice(paths)
        is_api = path.startswith("/v1/")
        places = re.findall(r"\{\w+\}", path)
        for one in places:
            given = "ParrotAgent" if one == "{agent_id}" else reader.pick()
            given = "say" if one == "{task}" else given
            path = path.replace(one, httpx.URL(f"/{given}").raw_path.decode()[1:], 1)
        headers = dict(key) if is_api else {}
        if path.startswith("/console/runs/") and chance.random() < 0.3:
            own = set(reader.system.loot.ids[reader.owner])
            if unquote(path.rpartition("/")[2]) not in own:
                path += "/output"
        if not is_api and chance.random() < 0.3:
            headers["HX-Request"] = "true"
        params = reader.query(PAGE_QUERIES)
        asked = f"{unquote(path)} {params}"
        answer = await reader.client.get(
            reader.base + path, params=params, headers=headers
        )
        reader.check(answer, asked)
        found = re.findall(r"after=([^\"&]+)", answer.text)
        reader.system.loot.cursors += [unescape(unquote(one)) for one in found[:1]]
    page = await reader.client.get(f"{reader.base}/console/runs")
    token = _TOKEN.search(page.text)
    assert token is not None
    actions = [one.path for page in PAGES for one in page.actions]
    fields = (
        *("task_id", "id", "question", "letter", "sequence", "schedule_id", "user"),
        *("session_id", "phase", "story_id", "name", "plan_id", "conversation_id"),
        *("error", "tenant", "agent", "typed"),
    )
    for _ in range(forms):
        path = chance.choice(actions)
        given = {name: reader.pick() for name in fields}
        given["typed"] = given["user"] if chance.random() < 0.5 else "x"
        given |= {"decision": "approve", "digest": "0" * 32, "answer": "1"}
        given |= {"agent_id": "ParrotAgent", "task": "say", "bound": ""}
        # Whoever sends one for sure may change what is theirs; nothing of others.
        given["sure"] = ""
        sent = {**given, "form_token": unescape(token[1])}
        answer = await reader.client.post(f"{reader.base}/console/{path}", data=sent)
        reader.check(answer, f"{path} {given}")
        if answer.status_code == httpx.codes.SEE_OTHER:
            followed = await reader.client.get(
                f"{reader.base}{answer.headers['location']}"
            )
            reader.check(followed, f"{path} {given}")
        # What is said of this form, which names ids of others, is of no later one.
        jar = reader.client.cookies.jar
        for cookie in [one for one in jar if one.name == SAID]:
            jar.clear(cookie.domain, cookie.path, cookie.name)


async def _read_all(system: System, reads: int) -> int:
    """Return how many answers were looked through."""
    names = [one for one in system.keys if one != "house"]
    bases = (system.operations, system.supervisor)
    share = reads // (len(names) * len(bases)) + 1
    checked = 0
    for number, name in enumerate(names):
        for base in bases:
            async with httpx.AsyncClient(timeout=60) as client:
                chance = random.Random(37_000 + number)
                reader = Reader(system, name, base, client, chance)
                await reader.sign_in()
                await read_as(reader, share, share // 10)
                checked += reader.foreign // len(OWNERS)
    return checked


@pytest.mark.parametrize(
    "reads", [READS, pytest.param(MANY_READS, marks=pytest.mark.long)]
)
def test_no_word_of_another_owner_is_read(system: System, reads: int) -> None:
    """By any role, on any page or path, with ids, filters and cursors of others."""
    assert asyncio.run(_read_all(system, reads)) >= reads


def test_words_are_where_their_owner_looks(system: System) -> None:
    """Else nothing would be found that leaks: parameters, errors, output, questions, memory and all the rest."""
    missing = asyncio.run(_look(system))
    assert not missing


async def _look(system: System) -> list[tuple[str, str]]:
    missing = []
    for owner in OWNERS:
        word = f"zq{owner}"
        ids = system.loot.ids[owner]
        async with httpx.AsyncClient(timeout=60) as client:
            chance = random.Random(1)
            name = f"{owner}-all"
            reader = Reader(system, name, system.operations, client, chance)
            await reader.sign_in()
            text = ""
            user = OWNERS[owner][0] or f"{word}user"
            paths = [f"runs/{one}" for one in ids] + [f"pipelines/{one}" for one in ids]
            paths += [f"dead-letters/{one}" for one in ids]
            paths += ["runs", "approvals", "dead-letters", "schedules", "pipelines"]
            paths += [f"people?user={user}", f"worlds?conversation={word}world"]
            for path in paths:
                answer = await client.get(f"{system.operations}/console/{path}")
                text += answer.text
            wanted = ["textfail", "textask", "lineask", "schedule", "scheduled"]
            wanted += ["pipeline", "first", "secondtext", "given", "sender", "message"]
            wanted += ["linereturn", "entry"] if OWNERS[owner][0] else []
            missing += [(owner, one) for one in wanted if f"{word}{one}" not in text]
    return missing


async def _ask_twice(system: System) -> int:
    """Return how many pages were compared: one of another's id, and one of an id that nobody has."""
    compared = 0
    for name in (one for one in system.keys if one != "house"):
        async with httpx.AsyncClient(timeout=60) as client:
            chance = random.Random(2)
            reader = Reader(system, name, system.operations, client, chance)
            await reader.sign_in()
            for path in (
                "runs/{}",
                "runs/{}/output",
                "dead-letters/{}",
                "pipelines/{}",
            ):
                for owner, known in system.loot.ids.items():
                    if owner == reader.owner:
                        continue
                    task_id = next(
                        one
                        for one in known
                        if not one.startswith("zq") or owner == "house"
                    )
                    texts = []
                    for one in (task_id, uuid.uuid4().hex[: len(task_id)]):
                        url = f"{system.operations}/console/{path.format(one)}"
                        answer = await client.get(url)
                        texts.append(
                            (answer.status_code, answer.text.replace(one, "ID"))
                        )
                    assert texts[0] == texts[1], (name, path, owner)
                    compared += 1
    return compared


def test_an_id_of_another_is_as_one_of_nobody(system: System) -> None:
    """Neither the status nor a sentence tells that there is such a thing."""
    assert asyncio.run(_ask_twice(system)) > 100
