"""Pages of the console among 100,000 runs: what a browser waits for one, and what the overview takes of the process.

Each page is asked for over HTTP, and then opened in Debian's Chromium as a person does: by a link or by the filter.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import httpx
from playwright.async_api import Error, Page, async_playwright
from redis.asyncio import Redis

from benchmarks.http_rows import Serving, serving
from benchmarks.listing_rows import many_listed
from benchmarks.processes import NotMeasuredError
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile
from tasklore.memory.ledger.task_index import MOST_RUNS
from tests.browser.chromium import launch_beside

#: Milliseconds that a page may take, p95, and those of the processor that the overview may.
ASKED_MS = 300.0
ASKED_CPU_MS = 20.0
_PAGES = 60
_ANSWER_S = 60.0
_BROWSING_S = 600.0
#: Pages, and how a row of the table calls each.
_PATHS: Mapping[str, str] = {
    "overview": "",
    "runs": "runs",
    "runs, failed": "runs?state=failed",
    "runs, waiting": "runs?state=waiting",
    "runs of a tenant": "runs?tenant=tenant-3",
    "runs of a user": "runs?user=user-3%40example.org",
    "runs of an error": "runs?error=TaskExpired",
    "runs sent in the last hour": "runs?created_after=1h",
    "runs of nobody": "runs?tenant=nobody",
}


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure."""
    pages = min(_PAGES, profile.questions)
    async with Redis.from_url(redis_url) as redis, many_listed(redis):
        try:
            async with serving(nats_url, redis_url) as one:
                asked = [
                    await _opened(one, name, path, pages)
                    for name, path in _PATHS.items()
                ]
                return [*asked, *await _browsed(one, pages)]
        except (NotMeasuredError, TimeoutError, OSError, httpx.HTTPError) as error:
            return [missing("pages of the console", str(error) or "no answer in time")]


async def _opened(one: Serving, name: str, path: str, pages: int) -> Row:
    """Return the row of the page at *path*, opened again and again in one session."""
    took: list[float] = []
    async with httpx.AsyncClient(base_url=one.api, timeout=_ANSWER_S) as client:
        for _ in range(3):
            # The first begins the session, and reads the templates.
            (await client.get(f"/console/{path}")).raise_for_status()
        used_s = one.supervisor.cpu_s()
        for _ in range(pages):
            started = time.perf_counter()
            answer = await client.get(f"/console/{path}")
            took.append((time.perf_counter() - started) * 1000)
            answer.raise_for_status()
        used_ms = (one.supervisor.cpu_s() - used_s) * 1000 / pages
    p95 = percentile(took, 0.95)
    cpu = f", asked {ASKED_CPU_MS:g} at most" if not path else ""
    return Row(
        f"console: {name}",
        p50_ms=percentile(took, 0.5),
        p99_ms=percentile(took, 0.99),
        cpu_us=used_ms * 1000,
        compared=f"p95 {p95:.1f} ms, asked {ASKED_MS:g} at most; CPU {used_ms:.1f} ms{cpu}",
        how=f"GET /console/{path} among {MOST_RUNS:,} runs; CPU of the supervisor a page",
    )


def _by_link(name: str) -> Callable[[Page], Awaitable[None]]:
    """Return what opens the page of this name in the navigation."""

    async def go(page: Page) -> None:
        await page.locator("nav.side").get_by_role("link", name=name).click()

    return go


def _by_filter(**fields: str) -> Callable[[Page], Awaitable[None]]:
    """Return what fills the filter of runs in, alone with these fields, and sends it."""

    async def go(page: Page) -> None:
        for name, value in fields.items():
            field = page.locator(f"[name={name}]")
            if name == "state":
                await field.select_option(value)
            else:
                await field.fill(value)
        await page.get_by_role("button", name="Filter").click()

    return go


#: What is pressed in the browser: where it stands before, and how it goes on.
_WAYS: Mapping[str, tuple[str, Callable[[Page], Awaitable[None]]]] = {
    "overview": ("runs", _by_link("Overview")),
    "runs": ("", _by_link("Runs")),
    "runs, failed": ("runs", _by_filter(state="failed")),
    "runs, waiting": ("runs", _by_filter(state="waiting")),
    "runs of an error": ("runs", _by_filter(error="TaskExpired")),
    "runs sent in the last hour": ("runs", _by_filter(created_after="1h")),
    "older runs": ("runs", lambda page: page.get_by_role("link", name="Older").click()),
}
#: Milliseconds from the press to the end of the load, and to the first frame with content, of the page that is open.
_TIMES = """() => new Promise((done) => {
  const read = () => {
    const [load] = performance.getEntriesByType("navigation");
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    if (load.loadEventEnd && paint) done([load.loadEventEnd, paint.startTime]);
    else requestAnimationFrame(read);
  };
  read();
})"""


async def _browsed(one: Serving, pages: int) -> list[Row]:
    """Return the rows of pages as a browser opens them; one that says why, where there is none."""
    try:
        async with asyncio.timeout(_BROWSING_S), async_playwright() as playwright:
            browser = await launch_beside(playwright)
            page = await browser.new_page(viewport={"width": 1280, "height": 900})
            rows = [await _pressed(page, one, name, pages) for name in _WAYS]
            await browser.close()
            return rows
    except (Error, AssertionError, TimeoutError) as error:
        return [
            missing(
                "pages of the console in Chromium", str(error) or "no answer in time"
            )
        ]


async def _pressed(page: Page, one: Serving, name: str, pages: int) -> Row:
    """Return the row of what is pressed under *name*, again and again."""
    before, press = _WAYS[name]
    took: list[float] = []
    for _ in range(pages + 1):
        await page.goto(f"{one.api}/console/{before}")
        async with page.expect_navigation(wait_until="load"):
            await press(page)
        took.append(max(await page.evaluate(_TIMES)))
    # The first one fills the browser's caches.
    del took[0]
    p95 = percentile(took, 0.95)
    return Row(
        f"console in Chromium: {name}",
        p50_ms=percentile(took, 0.5),
        p99_ms=percentile(took, 0.99),
        compared=f"p95 {p95:.1f} ms, asked {ASKED_MS:g} at most",
        how=f"from the press to content and the end of the load, among {MOST_RUNS:,} runs",
    )
