"""The console under hostile clients: odd cookies, addresses and forms, and words of workers that are meant to harm."""

import base64
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.console_sessions import (
    COOKIE,
    ConsoleSessions,
    KeyHolders,
)
from tasklore.supervisor.http.console import helpers
from tasklore.supervisor.http.console.pages import Notice, address, read_said
from tasklore.supervisor.http.console.routes import PAGES
from tests.http_client import ask
from tests.integration.console.browsing import (
    KEYS,
    SECRET,
    ConsoleStand,
    Tab,
    console_stand,
    list_runs,
    row,
)

#: Values that break what takes them for what they are not.
ODD = (
    "",
    " ",
    "\0",
    "9" * 5_000,
    "-1",
    "٣",
    "²",
    "1e999",
    "NaN",
    "x" * 3_000,
    "../../v1/tasks",
    "//evil.example/",
    "\\\\evil.example",
    "/console/../v1/tasks",
    "https://evil.example/",
    "\r\nSet-Cookie: a=b",
    "\u202egnp.exe",
    "\U000e0041\ufeff\u200b",
    '"\\ud800"',
    "[" * 2_500,
    '{"a":' * 400,
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "%00%0d%0a",
    "0" * 32,
    "t1.0",
    f"t1.0 {'z' * 32}",
)
FIELDS = (
    "task_id",
    "sequence",
    "letter",
    "id",
    "digest",
    "note",
    "decision",
    "answer",
    "question",
    "agent",
    "error",
    "user",
    "tenant",
    "since",
    "until",
    "bound",
    "everything",
    "no_deadline",
    "back",
    "sure",
)


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


def check_headers(answer: httpx.Response, what: object) -> None:
    """Whatever it answers, it is framed nowhere and kept nowhere."""
    assert "default-src 'none'" in answer.headers["content-security-policy"], what
    assert answer.headers["x-frame-options"] == "DENY", what
    assert answer.headers["cache-control"] in ("no-store", "no-cache"), what


@asynccontextmanager
async def lenient(console: ConsoleStand, name: str) -> AsyncIterator[Tab]:
    """Open a tab to which a fault of the server is an answer, as it is over a socket."""
    async with console.tab(name) as tab:
        transport = tab.client._transport
        assert isinstance(transport, httpx.ASGITransport)
        transport.raise_app_exceptions = False
        yield tab


async def test_an_odd_cookie_breaks_no_page(console: ConsoleStand) -> None:
    """Another program of this host may set cookies: they are read as nothing, or as text."""
    for said in (
        b"[" * 2_500,
        b'["good","\\ud800"]',
        b'[["good"],"x"]',
        b'{"good":1,"x":2}',
        b"\xff\xfe",
        b"1",
        b"null",
        b'["good",{"x":1}]',
    ):
        async with console.tab("admin") as tab:
            cookie = base64.urlsafe_b64encode(said).decode()
            tab.client.cookies.set("tasklore_console_said", cookie, path="/console/")
            await tab.open("/console/runs")


async def test_cookies_of_others_shut_nobody_out(console: ConsoleStand) -> None:
    """Whatever another program of this host, or one below its name, sets: the session among them is found."""
    url = console.stand.url
    async with console.tab("ana") as tab, console.tab("ben") as other:
        own = f"{COOKIE}={tab.client.cookies[COOKIE]}"
        elsewhere = ConsoleSessions(SECRET[::-1], KeyHolders(None))
        foreign = elsewhere.make_session(Caller(name="ana"))
        bodies = [
            f"{COOKIE}=x; {own}",
            f"{own}; {COOKIE}=x",
            f"{COOKIE}=; {own}",
            f"{COOKIE}={foreign}; {own}",
            f"{own}; {COOKIE}={other.client.cookies[COOKIE]}",
            f"a={'x' * 16_000}; {own}",
            "".join(f"c{number}=v; " for number in range(500)) + own,
        ]
        for said in bodies:
            answer = await ask(url, "GET", "/console/runs", headers={"Cookie": said})
            assert answer.status == 200, said[:80]
            assert "key called ana" in answer.body
        for said in (
            f"{COOKIE}=x; " * 2_000 + own,
            f"{COOKIE}={foreign}",
            f"{COOKIE}={'x' * 16_000}",
            f"{COOKIE}=\xff.\xe9; é=\xff",
            "",
        ):
            answer = await ask(url, "GET", "/console/runs", headers={"Cookie": said})
            assert answer.status == 401, said[:80]


def test_a_sentence_fits_into_its_cookie() -> None:
    """A browser drops a cookie of more than 4,096 bytes, whatever the letters are."""
    for letter in ("x", "é", "\U0001f600", "\u202e", '"', "\n"):
        said = Notice(to="/console/", text=letter * 5_000)
        assert len(said.spell()) <= 3_800
        read = read_said(said.spell())
        assert read is not None
        assert read[1].startswith(letter * 100)


@pytest.mark.parametrize(
    "at",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        datetime(9999, 12, 31, 23, 59),  # noqa: DTZ001 - none says where it is
        1e300,
        float("nan"),
        float("inf"),
        -1e17,
        10**400,
    ],
)
def test_no_time_breaks_a_page(at: datetime | float) -> None:
    """A sender chooses times: one that no calendar of ours has is said to be that."""
    assert str(helpers.spell_when(at, datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.mark.parametrize("ms", [float("nan"), float("inf"), -5.0, 1e300, 10**400])
def test_no_number_breaks_a_page(ms: float) -> None:
    for spell in (helpers.spell_span, helpers.spell_number, helpers.spell_money):
        assert spell(ms)


def test_an_address_stays_in_the_console() -> None:
    """Whatever a part of it is."""
    for odd in ("../../v1/tasks", "a?b=c", "a#b", "a\r\nb", "..", "é/x", "\\\\x"):
        made = address(f"runs/{odd}")
        assert re.fullmatch(r"/console/[A-Za-z0-9%/_.~-]*", made), made
        assert str(httpx.URL("http://h").join(made).path).startswith("/console/")


async def test_no_form_breaks_whatever_it_holds(console: ConsoleStand) -> None:
    """A seeded thousand of forms: each answer is a page that says what is wrong, and leads nowhere else."""
    chance = random.Random(37)
    paths = [action.path for page in PAGES for action in page.actions]
    paths += ["sign-out", "sign-in", "nosuch"]
    async with lenient(console, "admin") as tab:
        await tab.open("/console/runs")
        found = re.search(r'name="form_token" value="([^"]*)"', tab.text)
        assert found is not None
        for turn in range(1_000):
            path = paths[turn % (len(paths) - 3)] if turn % 10 else chance.choice(paths)
            fields = {
                name: [chance.choice(ODD) for _ in range(chance.choice((1, 1, 3)))]
                for name in chance.sample(FIELDS, 7)
            }
            fields["form_token"] = [found[1]]
            if path == "sign-out":
                fields["form_token"] = [chance.choice(ODD)]
            answer = await tab.client.post(f"/console/{path}", data=fields)
            told = (path, fields, answer.text[-300:])
            assert answer.status_code < 500 or answer.status_code == 503, told
            check_headers(answer, told)
            if answer.status_code == 303:
                to = answer.headers["location"]
                assert httpx.URL("http://h").join(to).path.startswith("/console/"), told
                await tab.client.get("/console/runs")


@pytest.mark.timeout(400)
async def test_no_address_breaks_and_none_shows_what_is_anothers(
    console: ConsoleStand, redis: Redis
) -> None:
    """Reads by every key over every page and its output, in a seeded order: no word of another user or tenant."""
    chance = random.Random(37)
    owners: dict[str, tuple[str | None, str | None]] = {
        "ana": ("ana", None),
        "ben": ("ben", None),
    }
    owners |= {"acme": (None, "acme"), "rival": (None, "rival")}
    words: dict[str, str] = {}
    rows = []
    for name, (user, tenant) in owners.items():
        words[name] = f"word{name}word"
        rows += [
            row(
                f"{words[name]}{number}",
                user,
                tenant=tenant or "",
                error=f"E{words[name]}",
                task=f"t{words[name]}",
                state=chance.choice(("failed", "running", "waiting", "completed")),
            )
            for number in range(5)
        ]
    await list_runs(redis, *rows)
    ids = [one.task_id for one in rows]
    fields = ("agent", "state", "error", "user", "tenant", "created_after", "parent")
    reads = 0
    for name in KEYS:
        async with lenient(console, name) as tab:
            for _ in range(10_000 // len(KEYS) + 1):
                path = chance.choice(PAGES).path
                given = (
                    chance.choice(ids) if chance.random() < 0.7 else chance.choice(ODD)
                )
                path = re.sub(r"\{\w+\}", quote(given[:200], safe=""), path)
                if path.startswith("runs/") and chance.random() < 0.2:
                    path += "/output"
                query = {
                    one: chance.choice(
                        (*ODD, *KEYS, *words.values(), "failed", "open")
                    )[:200]
                    for one in chance.sample(fields, chance.choice((0, 0, 1, 2)))
                }
                answer = await tab.client.get(f"/console/{path}", params=query)
                reads += 1
                told = (name, path, query, answer.status_code)
                assert answer.status_code < 500, told
                if name not in owners:
                    continue
                asked = f"{path} {query}"
                for other, word in words.items():
                    if other != name and word not in asked:
                        assert word not in answer.text, told
    assert reads >= 10_000


async def test_words_are_shown_in_the_order_that_they_have(
    console: ConsoleStand, redis: Redis
) -> None:
    """Controls, and marks that turn the order of writing, are spelled out, wherever a worker or a user set them."""
    marks = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
    turned = f"\x07\x1b\x7f\x9f{marks}"
    name = f"pay {turned}0001 to eve"
    await list_runs(redis, row("t1", "ana", error=name[:60], tenant=name))
    async with console.tab("admin") as tab:
        for path in ("", "runs", f"runs?error={quote(name)}"):
            text = await tab.open(f"/console/{path}")
            assert not set(turned) & set(text), path
            assert "⟨U+202E⟩0001" in text or "⟨U+2069⟩0001" in text


def test_json_is_shown_as_far_as_a_page_can() -> None:
    """What is left out is said, and no depth breaks it."""
    spelled = helpers.spell_json({"a": "x" * 1_000_000})
    assert len(spelled) < 51_000
    assert "characters more" in spelled
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    assert "too deep" in helpers.spell_json(deep)


async def test_other_methods_do_nothing(console: ConsoleStand) -> None:
    """Nor do they let a page from elsewhere go on."""
    paths = ("", "runs", "runs/cancel", "sign-in", "static/console.css")
    async with console.tab("admin") as tab:
        for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "HEAD", "TRACE"):
            for path in paths:
                answer = await tab.client.request(method, f"/console/{path}")
                told = (method, path, answer.status_code)
                assert answer.status_code in (200, 204, 404, 405), told
                assert not answer.headers.get("access-control-allow-origin"), told
                if answer.status_code != 204:
                    check_headers(answer, told)
