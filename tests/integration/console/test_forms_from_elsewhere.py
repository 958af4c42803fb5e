"""Forms of the console that another page sends: by whatever a browser says of that page, none of them counts."""

import re
from collections.abc import AsyncIterator, Mapping
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.console_sessions import COOKIE, ConsoleSessions
from tasklore.supervisor.http.admission.key_file import KeyRing
from tests.http_client import Answer, ask
from tests.integration.console.browsing import SECRET, ConsoleStand, console_stand
from tests.integration.http_stand import http_stand

PUBLIC = "https://console.example"
#: What browsers say of a page that is not ours. Not all say each: over plain HTTP none says `Sec-Fetch-Site`.
ELSEWHERE: tuple[Mapping[str, str], ...] = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9"},
    {"Origin": ""},
    {"Origin": "http://[", "Referer": "http://evil.example/"},
    {"Referer": "http://evil.example/console/"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


async def post(
    url: str, path: str, fields: Mapping[str, str], headers: Mapping[str, str]
) -> Answer:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(fields).encode()
    return await ask(url, "POST", f"/console/{path}", body, {**kind, **headers})


def of_our_pages(url: str) -> tuple[Mapping[str, str], ...]:
    """Return what is said of a page at *url* by browsers, and by a program."""
    return (
        {},
        {"Origin": url},
        {"Origin": url.upper()},
        {"Referer": f"{url}/console/runs?state=open"},
        {"Origin": url, "Sec-Fetch-Site": "same-origin"},
    )


def token_in(page: str) -> str:
    found = re.search(r'name="form_token" value="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


async def test_only_our_own_pages_send_a_form(console: ConsoleStand) -> None:
    """Its token alone is not enough: whoever read it has not been read by us."""
    url = console.stand.url
    async with console.tab("ana") as tab:
        fields = {"form_token": token_in(await tab.open("/console/runs"))}
        cookie = {"Cookie": f"{COOKIE}={tab.client.cookies[COOKIE]}"}
    for said in ELSEWHERE:
        answer = await post(url, "runs/cancel", fields, cookie | dict(said))
        assert answer.status == 403, said
        assert "TASKLORE_APPROVAL_URL" in answer.body
    for said in of_our_pages(url):
        answer = await post(url, "runs/cancel", fields, cookie | dict(said))
        assert answer.status == 303, said
        answer = await post(url, "runs/cancel", {}, cookie | dict(said))
        assert answer.status == 403, said


async def test_no_page_signs_a_browser_in_as_somebody_else(
    console: ConsoleStand,
) -> None:
    """Its own link, sent by another page, would have a person work as whoever made it; the link stays unused."""
    url = console.stand.url
    link = (await console.link("ben")).partition("link=")[2]
    for said in ELSEWHERE:
        answer = await post(url, "sign-in", {"link": link}, said)
        assert answer.status == 403, said
        assert "set-cookie" not in answer.headers
    assert (await post(url, "sign-in", {"link": link}, {})).status == 303


async def test_without_keys_a_form_is_of_our_own_page_too(
    servers: EmbeddedServers, redis: Redis, console: ConsoleStand
) -> None:
    """No more is it of another server on this machine, whose pages may ask the API."""
    answers = console.stand.parts.answers
    async with http_stand(servers, redis, answers=answers) as keyless:
        url = keyless.url
        page = await ask(url, "GET", "/console/runs")
        fields = {"form_token": token_in(page.body)}
        cookie = {"Cookie": page.headers["set-cookie"].partition(";")[0]}
        for said in ELSEWHERE:
            answer = await post(url, "runs/cancel", fields, cookie | dict(said))
            assert answer.status == 403, said
        for said in of_our_pages(url):
            answer = await post(url, "runs/cancel", fields, cookie | dict(said))
            assert answer.status == 303, said


async def test_behind_a_proxy_the_public_address_is_ours(
    servers: EmbeddedServers, redis: Redis, console: ConsoleStand
) -> None:
    """Whatever `Host` the proxy sends; the port that an address leaves out makes none of them another one."""
    ring = KeyRing(console.file)
    more = {"keys": ring, "console": ConsoleSessions.of(SECRET, ring, PUBLIC)}
    answers = console.stand.parts.answers
    async with http_stand(servers, redis, answers=answers, **more) as proxied:
        for origin, host in (
            (PUBLIC, "upstream:8080"),
            (f"{PUBLIC}:443", urlsplit(proxied.url).netloc),
            ("http://inside.example", "inside.example:80"),
        ):
            link = (await console.link("ana")).partition("link=")[2]
            said = {"Origin": origin, "Host": host, "X-Forwarded-Host": "evil.example"}
            answer = await post(proxied.url, "sign-in", {"link": link}, said)
            assert answer.status == 303, said
        said = {"Origin": "http://evil.example", "X-Forwarded-Host": "evil.example"}
        answer = await post(proxied.url, "sign-in", {"link": "any"}, said)
        assert "no page from elsewhere" in answer.body
