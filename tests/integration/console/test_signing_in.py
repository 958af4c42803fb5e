"""Signing in to the console: a link for one use, a cookie without a key, and forms that are of that session."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.memory.ledger.requests import KEEP
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.console_sessions import (
    COOKIE,
    LIFE_S,
    LINK_S,
    ConsoleSessions,
    KeyHolders,
)
from tasklore.supervisor.http.admission.key_file import KeyRing
from tests.http_client import Answer, ask
from tests.integration.console.browsing import (
    KEYS,
    SECRET,
    ConsoleStand,
    console_stand,
)
from tests.integration.http_stand import http_stand


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


async def test_a_link_signs_in_once(console: ConsoleStand) -> None:
    """Looking at it uses nothing up; its second use, and that at another supervisor, is refused."""
    link = await console.link("ana")
    async with console.tab() as looking:
        await looking.open(link.removeprefix("http://localhost"))
    async with console.tab() as tab:
        assert "Overview" in await tab.sign_in(link)
        assert "ana" in tab.text
    async with console.tab() as late:
        await late.open(link.removeprefix("http://localhost"))
        with pytest.raises(AssertionError, match="this link was used"):
            await late.sign_in(link)


@pytest.mark.parametrize(
    "said",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1@evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "6.6.6.6"},
        {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"},
        {"Forwarded": "host=evil.example;proto=https"},
    ],
)
async def test_no_header_leads_a_link_elsewhere(
    console: ConsoleStand, said: dict[str, str]
) -> None:
    """Without a public address a link leads to where its connection came, or to this machine by a tunnel."""
    url = console.stand.url
    key = {"Authorization": f"Bearer {console.keys['ana']}"}
    answer = await ask(url, "POST", "/v1/console/links", headers=key | said)
    assert answer.body["url"].startswith(f"{url}/console/sign-in?link=")
    tunnel = key | {"Host": "localhost:9999"}
    answer = await ask(url, "POST", "/v1/console/links", headers=tunnel)
    assert answer.body["url"].startswith("http://localhost:9999/console/sign-in?")


async def test_of_fifty_that_use_a_link_at_once_one_signs_in(
    servers: EmbeddedServers, redis: Redis, console: ConsoleStand
) -> None:
    """At two supervisors; whoever comes later, or guesses, begins no session."""
    ring = KeyRing(console.file)
    more = {"keys": ring, "console": ConsoleSessions.of(SECRET, ring)}
    answers = console.stand.parts.answers
    link = (await console.link("ana")).partition("link=")[2]
    async with http_stand(servers, redis, answers=answers, **more) as second:
        urls = (console.stand.url, second.url)

        async def use(url: str, given: str) -> Answer:
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            body = f"link={given}".encode()
            return await ask(url, "POST", "/console/sign-in", body, kind)

        found = await asyncio.gather(*(use(url, link) for url in urls * 25))
        again = [await use(url, given) for url in urls for given in (link, link[:-1])]
    signed_in = [one for one in found if one.status == 303]
    assert len(signed_in) == 1
    assert COOKIE in signed_in[0].headers["set-cookie"]
    for one in (*found, *again):
        assert one.status in (303, 403, 429)
        assert (one.status == 303) == ("set-cookie" in one.headers)
    assert 303 not in [one.status for one in again]


@pytest.mark.parametrize("name", list(KEYS))
async def test_a_session_is_of_its_key_and_holds_none(
    console: ConsoleStand, name: str
) -> None:
    """The cookie goes to the console alone, is read by no script, and has nothing of the key."""
    async with console.tab(name) as tab:
        cookie = tab.client.cookies[COOKIE]
        assert console.keys[name] not in cookie
        jar = next(one for one in tab.client.cookies.jar if one.name == COOKIE)
        assert jar.path == "/console/"
        assert jar.has_nonstandard_attr("HttpOnly")
        assert jar.get_nonstandard_attr("SameSite") == "strict"
        answer = await tab.client.get("/v1/tasks")
        assert answer.status_code == 401, "the cookie is no key of the API"


async def test_who_has_not_signed_in_sees_nothing(console: ConsoleStand) -> None:
    """Each page says how to sign in; a part of one leads its browser there."""
    async with console.tab() as tab:
        for path in ("/console/", "/console/runs", "/console/nosuch"):
            text = await tab.open(path, 401)
            assert "tasklore console" in text
            assert tab.headers["hx-redirect"] == "/console/sign-in"
        assert await tab.client.get("/console/static/console.css")


async def test_a_removed_key_ends_its_sessions_and_links(
    console: ConsoleStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does another key of its name; a changed line holds from the next request on."""
    link = await console.link("ana")
    async with console.tab("ana") as tab:
        kept = json.loads(console.file.read_text())
        others = [one for one in kept["keys"] if one["name"] != "ana"]
        console.file.write_text(json.dumps({"keys": others}))
        ring = console.stand.parts.keys
        assert ring is not None
        monkeypatch.setattr(ring, "_look_at", 0.0)
        await tab.open("/console/runs", 401)
        answer = await tab.client.post("/console/sign-in", data={"link": link})
        assert answer.status_code == 403


async def test_what_is_altered_or_over_opens_nothing(tmp_path: Path) -> None:
    """A link is no session, an altered one nothing; each has its time."""
    now = time.time()
    sessions = ConsoleSessions(SECRET, KeyHolders(None), now=lambda: now)
    caller = Caller(name="local")
    link, expires = sessions.make_link(caller)
    assert expires - now <= LINK_S
    assert sessions.read_link(link) is not None
    assert sessions.read_session(link) is None
    cookie = sessions.make_session(caller)
    body, _, signature = cookie.partition(".")
    for wrong in (cookie[:-2], f"{body}x.{signature}", "", ".", "x" * 9_999):
        assert sessions.read_session(wrong) is None
    other = ConsoleSessions(SECRET[::-1], KeyHolders(None), now=lambda: now)
    assert other.read_session(cookie) is None
    now += LIFE_S + 2
    assert sessions.read_session(cookie) is None


async def test_each_supervisor_takes_the_session_of_another(
    servers: EmbeddedServers, redis: Redis, console: ConsoleStand
) -> None:
    """Two behind one address share a secret, and nothing else."""
    ring = KeyRing(console.file)
    more = {"keys": ring, "console": ConsoleSessions.of(SECRET, ring)}
    async with (
        http_stand(
            servers, redis, answers=console.stand.parts.answers, **more
        ) as second,
        console.tab("admin") as tab,
        ConsoleStand(second, console.keys, console.file).tab() as other,
    ):
        other.client.cookies.set(COOKIE, tab.client.cookies[COOKIE])
        assert "Runs" in await other.open("/console/runs")


async def test_without_keys_this_machine_needs_no_link(
    servers: EmbeddedServers, redis: Redis, console: ConsoleStand
) -> None:
    """A session begins by itself, for the token of forms; a browser that came by another name is refused."""
    answers = console.stand.parts.answers
    async with (
        http_stand(servers, redis, answers=answers) as keyless,
        ConsoleStand(keyless, {}, console.file).tab() as tab,
    ):
        assert "Overview" in await tab.open("/console/")
        assert COOKIE in tab.client.cookies
        await tab.open("/console/runs")
        assert "No run was chosen" in await tab.send("/console/runs/cancel")
        answer = await tab.client.get("/console/", headers={"Host": "evil.example"})
        assert answer.status_code == 403


async def test_without_a_secret_nobody_signs_in(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    """The refusal names the setting."""
    async with (
        console_stand(servers, redis, tmp_path, console=None) as stand,
        stand.tab() as tab,
    ):
        headers = {"Authorization": f"Bearer {stand.keys['admin']}"}
        answer = await tab.client.post("/v1/console/links", headers=headers)
        assert answer.status_code == 404
        assert "TASKLORE_APPROVAL_SECRET" in answer.text


async def test_a_form_counts_only_with_its_token(console: ConsoleStand) -> None:
    """Nor does one that a page from elsewhere sends; none is a GET."""
    async with console.tab("asker") as tab, console.tab("asker") as other:
        await other.open("/console/runs")
        await tab.open("/console/runs")
        own = tab.text
        for wrong in ("", "x", other.text.partition('form_token" value="')[2][:43]):
            answer = await tab.client.post(
                "/console/runs/cancel", data={"form_token": wrong, "task_id": "t1"}
            )
            assert answer.status_code == 403, wrong
        token = own.partition('form_token" value="')[2].partition('"')[0]
        answer = await tab.client.post(
            "/console/runs/cancel",
            data={"form_token": token},
            headers={"Sec-Fetch-Site": "cross-site"},
        )
        assert answer.status_code == 403
        assert (await tab.client.get("/console/runs/cancel")).status_code in (404, 405)


async def test_signing_out_ends_it_in_this_browser(console: ConsoleStand) -> None:
    async with console.tab("admin") as tab:
        await tab.send("/console/sign-out", 200)
        assert COOKIE not in tab.client.cookies
        await tab.open("/console/", 401)


async def test_signing_out_ends_a_copied_cookie_everywhere(
    servers: EmbeddedServers, redis: Redis, console: ConsoleStand
) -> None:
    """At the supervisor that hears it and at another one, for pages, forms and output; other sessions go on."""
    assert timedelta(seconds=LIFE_S) < KEEP
    ring = KeyRing(console.file)
    more = {"keys": ring, "console": ConsoleSessions.of(SECRET, ring)}
    answers = console.stand.parts.answers
    async with (
        http_stand(servers, redis, answers=answers, **more) as second,
        console.tab("admin") as tab,
        console.tab("admin") as own,
        console.tab() as copied,
        ConsoleStand(second, console.keys, console.file).tab() as elsewhere,
    ):
        for one in (copied, elsewhere):
            one.client.cookies.set(COOKIE, tab.client.cookies[COOKIE])
            await one.open("/console/runs")
        await tab.send("/console/sign-out", 200)
        for one in (copied, elsewhere):
            for path in ("/console/", "/console/runs", "/console/runs/t1/output"):
                assert "signed out" in await one.open(path, 401)
            fields = {"form_token": "any", "task_id": "t1"}
            answer = await one.client.post("/console/runs/cancel", data=fields)
            assert answer.status_code == 401
        await own.open("/console/runs")


async def test_every_answer_has_the_headers(console: ConsoleStand) -> None:
    """Pages, files and refusals: nothing is framed, kept, guessed, or fetched from elsewhere."""
    async with console.tab("admin") as tab, console.tab() as nobody:
        for one, path in (
            (tab, "/console/"),
            (tab, "/console/runs"),
            (tab, "/console/runs?state=nosuch"),
            (tab, "/console/nosuch"),
            (tab, "/console/static/console.css"),
            (nobody, "/console/"),
            (nobody, "/console/sign-in?link=x"),
        ):
            answer = await one.client.get(path)
            said = answer.headers
            policy = said["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "unsafe" not in policy
            assert said["x-frame-options"] == "DENY"
            assert said["x-content-type-options"] == "nosniff"
            assert said["referrer-policy"] == "same-origin"
            kept = "no-cache" if "static" in path else "no-store"
            assert said["cache-control"] == kept, path


async def test_a_browser_asks_once_for_a_file_and_again_for_another_version(
    console: ConsoleStand,
) -> None:
    """The address has the tag of the file; by another tag, as of an older page, it is asked for each time."""
    async with console.tab("admin") as tab:
        text = await tab.open("/console/")
        address, tag = re.findall(
            r'href="(/console/static/console.css)\?v=(\w+)"', text
        )[0]
        for asked, kept in (
            (tag, "max-age=31536000, immutable"),
            ("0" * 16, "no-cache"),
        ):
            answer = await tab.client.get(address, params={"v": asked})
            assert answer.headers["cache-control"] == kept
