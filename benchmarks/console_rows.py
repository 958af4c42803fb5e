"""Pages of the console among 100,000 runs: what a browser waits for one, and what the overview takes of the process."""

import time
from collections.abc import Mapping

import httpx
from redis.asyncio import Redis

from benchmarks.http_rows import Serving, serving
from benchmarks.listing_rows import many_listed
from benchmarks.processes import NotMeasuredError
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile
from tasklore.memory.ledger.run_index import MOST_RUNS

#: Milliseconds that a page may take, p95, and those of the processor that the overview may.
ASKED_MS = 300.0
ASKED_CPU_MS = 20.0
_PAGES = 60
_ANSWER_S = 60.0
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
                return [
                    await _opened(one, name, path, pages)
                    for name, path in _PATHS.items()
                ]
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
