"""A task that returns a text is answered with it, byte for byte, at every door, streamed once and never twice."""

import asyncio
import subprocess
import sys

import openai

from tasklore.commands.ask.ask import ask as ask_person
from tasklore.commands.ask.ask import make_request
from tests.acceptance.house import AGENTS, House
from tests.answer_texts import TEXTS
from tests.http_client import ask

LETTERS = str(AGENTS / "letters.py")
#: Requests of a door at once.
AT_ONCE = 8
#: Texts that a command prints: Markdown, line breaks of Windows, controls, emoji, right to left, and 60 kB.
PRINTED = (3, 18, 19, 21, 25, 38)


async def test_a_text_is_the_answer_at_every_door(own_house: House) -> None:
    """What was asked and in what time are fields beside it."""
    own_house.worker(LETTERS).ready()
    served = own_house.supervisor().ready()
    client = openai.AsyncOpenAI(base_url=f"{served.api}/v1", api_key="none")
    gate = asyncio.Semaphore(AT_ONCE)

    async def by_requests(number: int) -> None:
        body = {"text": f"write the letter number {number}", "wait_seconds": 30}
        reply = (await ask(served.api, "POST", "/v1/requests", body)).body["reply"]
        assert reply["text"] == reply["report"]["result"] == TEXTS[number]
        assert reply["heading"] == f"Write (number {number})"
        assert reply["origin"].startswith("Computed in ")
        place = f"/v1/requests/{reply['request_id']}"
        assert (await ask(served.api, "GET", place)).body["reply"]["text"] == TEXTS[
            number
        ]

    async def by_chat(number: int) -> None:
        said = [{"role": "user", "content": f"write the letter number {number}"}]
        done = await client.chat.completions.create(model="tasklore", messages=said)  # type: ignore[arg-type]
        assert done.choices[0].message.content == TEXTS[number]
        assert done.model_dump()["tasklore"]["heading"] == f"Write (number {number})"

    async def by_stream(number: int, told: str) -> None:
        words = f"write the letter number {number}, told {told}"
        stream = await client.chat.completions.create(
            model="tasklore",
            messages=[{"role": "user", "content": words}],
            stream=True,
        )
        pieces = [
            chunk.choices[0].delta.content or ""
            async for chunk in stream
            if chunk.choices
        ]
        assert "".join(pieces) == TEXTS[number]

    async def by_show(number: int) -> None:
        pieces: list[str] = []
        request = make_request(f"write the letter number {number}, told yes")
        await ask_person(
            own_house.servers.nats_url,
            "SupervisorAgent",
            request,
            show=pieces.append,
        )
        assert "".join(pieces) == TEXTS[number]

    async def tried(number: int) -> None:
        async with gate:
            await by_requests(number)
            await by_chat(number)
            await by_stream(number, "no")
            await by_stream(number, "yes")
            await by_show(number)

    async with client, asyncio.TaskGroup() as group:
        for number in range(len(TEXTS)):
            group.create_task(tried(number))


async def test_ask_prints_a_text_byte_for_byte(own_house: House) -> None:
    """One line break ends it; with `--verbose` the rest stands on stderr."""
    own_house.worker(LETTERS).ready()
    own_house.supervisor().ready()

    def printed(number: int) -> "subprocess.CompletedProcess[bytes]":
        words = f"write the letter number {number}"
        return subprocess.run(
            [sys.executable, "-m", "tasklore", "ask", words, "--verbose"],
            env=own_house.environment,
            cwd=own_house.folder,
            capture_output=True,
            check=True,
        )

    for number in PRINTED:
        done = await asyncio.to_thread(printed, number)
        assert done.stdout == f"{TEXTS[number]}\n".encode()
        assert f"Write (number {number}). Computed in " in done.stderr.decode()
