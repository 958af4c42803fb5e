"""An agent whose card is known and that no worker serves: who asks is told, and the task waits."""

import asyncio

from tests.acceptance.house import AGENTS, House
from tests.answer_texts import TEXTS

LETTERS = str(AGENTS / "letters.py")


async def test_who_asks_an_agent_without_a_worker_is_told_so(own_house: House) -> None:
    """Long before `--wait` is over, with a status; the answer is fetched once a worker is there."""
    worker = own_house.worker(LETTERS).ready()
    own_house.supervisor().ready()
    await asyncio.to_thread(worker.terminate)
    assert await asyncio.to_thread(worker.wait) == 0

    words = ("write the letter number 3", "--wait", "600")
    done = await asyncio.to_thread(own_house.command, "ask", *words)
    assert done.returncode == 1
    assert "No worker of LetterAgent is running; the task waits for one" in done.stdout
    request = done.stderr.split("--request-id ")[1].split()[0]

    own_house.worker(LETTERS).ready()
    again = await asyncio.to_thread(
        own_house.command, "ask", *words, "--request-id", request
    )
    assert (again.returncode, again.stdout) == (0, f"{TEXTS[3]}\n")
