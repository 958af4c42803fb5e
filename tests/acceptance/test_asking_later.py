"""What is asked for in words begins later, and its answer is fetched by the command that was printed."""

import asyncio
import re
import shlex
import time
from datetime import UTC, datetime, timedelta

from tests.acceptance.system import BUDGET, System

WORDS = "Check my budget: limit 50k, spent 42,000"


async def test_words_begin_later_and_once(own_system: System) -> None:
    """The same command before its time and after it starts nothing twice."""
    own_system.worker(BUDGET).ready()
    supervisor = own_system.supervisor(llm_base_url="", llm_api_key="").ready()
    await asyncio.to_thread(supervisor.await_agents, 1)
    began = time.time()
    asked = await asyncio.to_thread(
        own_system.command, "ask", "--after", "12s", "--wait", "1", WORDS
    )
    assert (asked.returncode, "BudgetTrackerAgent begins it at" in asked.stdout) == (
        0,
        True,
    ), asked.stdout + asked.stderr
    _, *again = shlex.split(
        asked.stderr.strip().splitlines()[-1].partition("for the answer: ")[2]
    )
    early = await asyncio.to_thread(own_system.command, *again, "--wait", "0")
    if time.time() - began < 11:
        assert "begins it at" in early.stdout
    done = await asyncio.to_thread(own_system.command, *again, "--json")
    assert (
        done.returncode,
        re.search(r'"remaining": "?8000', done.stdout) is not None,
    ) == (0, True), done.stdout
    started = datetime.fromtimestamp(began, UTC) + timedelta(seconds=11)
    (finished,) = re.findall(r'"finished_at": "([^"]+)"', done.stdout)
    assert datetime.fromisoformat(finished) > started
    late = await asyncio.to_thread(own_system.command, "ask", "--after", "30d", WORDS)
    assert (late.returncode, "29 days" in late.stderr) == (2, True)
