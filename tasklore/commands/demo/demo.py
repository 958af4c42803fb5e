"""`tasklore demo`: questions, a chat, a pipeline and a story, in a whole system that leaves nothing behind."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tasklore.commands.demo import analysis as analysis_demo
from tasklore.commands.demo import chat as chat_demo
from tasklore.commands.demo import pipeline as pipeline_demo
from tasklore.commands.exits import FAILED, OK
from tasklore.commands.operations.target import Target, read_target
from tasklore.commands.operations.transport import Json
from tasklore.commands.render.screen import (
    patience,
    print_paragraph,
    printable,
    say,
    styled,
)
from tasklore.commands.up.system import SystemPlan, running
from tasklore.contracts.errors import TaskloreError
from tasklore.runtime.servers import valkey

AGENT = "tasklore.workers.agents.budget"

#: Three questions, two of them one and the same in other words.
QUESTIONS = (
    "Check my budget: the limit is 50000 and I have spent 42000.",
    "How is my budget doing? $50,000.00 limit, forty-two thousand spent so far.",
    "Budget of 50k, and by now 45,000 is spent.",
)

_CHAT_MORAL = (
    "No model was asked: rules read the chat, and every edit is stored with its undo.\n"
    "With TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL a model proposes what they cannot read; what may be written is "
    "still decided here."
)

_PIPELINE_MORAL = (
    "After a failure nothing is lost: each phase stores its results in a session before it reports that it "
    "is done.\nAnother supervisor or worker could have resumed it as well, also on another day."
)

_ANALYSIS_MORAL = (
    "Without a model a story is read for names and counts only; with one, each agent asks it, and its findings are "
    "checked. Late findings are marked, and the rest is used."
)

_SERVED = frozenset({"hit", "joined", "near"})
#: Seconds in which a supervisor has heard of an agent that is ready.
_HEARS_WITHIN_S = 5.0


async def demonstrate() -> int:
    """Start everything in a temporary directory, ask, print, stop everything; return the exit code.

    Raises:
        TaskloreError: something cannot start here; the message says what.
    """
    started = time.perf_counter()
    with (
        tempfile.TemporaryFile(prefix="tasklore-demo-") as log,
        tempfile.TemporaryDirectory(prefix="tasklore-demo-") as directory,
    ):
        folder = Path(directory)
        plan = SystemPlan(
            agents=(AGENT, *chat_demo.AGENTS, pipeline_demo.AGENT, analysis_demo.AGENT),
            log=log,
            grace_s=5.0,
            variables={
                "TASKLORE_EVIDENCE_DIR": str(folder / "evidence"),
                "TASKLORE_PIPELINE_ROOTS": str(folder),
            },
        )
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with patience("starting NATS, Valkey, a supervisor and a worker"):
                    system = await stack.enter_async_context(running(plan))
            except TaskloreError:
                log.seek(0)
                for line in log.read().decode(errors="replace").splitlines()[-5:]:
                    say(printable(line))
                raise
            up_s = time.perf_counter() - started
            print_paragraph(
                f"Tasklore  NATS, Valkey, a supervisor and a worker are up ({up_s:.1f} s)\n\n",
                style="bold",
            )
            supervisor = read_target(system.endpoints.api or "", None, "the demo")
            # This one serves every operation.
            api = read_target(system.endpoints.operations or "", None, "the demo")
            played = [await _play(supervisor, question) for question in QUESTIONS]
            print_paragraph(f"{_moral(played)}\n\n")
            redis = await stack.enter_async_context(
                valkey.connect(system.endpoints.redis_url, name="tasklore-demo")
            )
            is_well = all(reply["kind"] == "answer" for reply, _ in played)
            parts: tuple[tuple[str, Callable[[], Awaitable[bool]], str], ...] = (
                ("chat", lambda: chat_demo.chat(api), _CHAT_MORAL),
                (
                    "pipeline",
                    lambda: pipeline_demo.run_pipeline(api, redis, folder),
                    _PIPELINE_MORAL,
                ),
                (
                    "analysis",
                    lambda: analysis_demo.read_a_story(api, folder),
                    _ANALYSIS_MORAL,
                ),
            )
            for name, play, moral in parts:
                is_part_well = await play()
                is_well &= is_part_well
                print_paragraph(
                    f"{moral if is_part_well else f'The {name} did not go as expected.'}\n\n"
                )
    return OK if is_well else FAILED


async def _play(api: Target, question: str) -> tuple[Json, float]:
    """Ask *question*, print it with its answer, and return both the reply and the milliseconds it took."""
    give_up_at = time.monotonic() + _HEARS_WITHIN_S
    while True:
        started = time.perf_counter()
        view = await asyncio.to_thread(
            chat_demo.call, api, "requests", "ask", text=[question]
        )
        reply = view["reply"]
        took_ms = (time.perf_counter() - started) * 1000
        # The supervisor hears of the agent within milliseconds of its start.
        if reply["kind"] != "unable" or time.monotonic() > give_up_at:
            break
    print_paragraph(f"> {question}", style="bold")
    memory = (reply["report"] or {}).get("memory", {})
    if memory.get("key") is not None:
        print(f"  {styled('understood as', 'dim')} {printable(memory['key'])}")
    verdict = (
        styled("from cache", "green")
        if memory.get("outcome") in _SERVED
        else styled("computed", "yellow")
    )
    is_answer = reply["kind"] == "answer"
    body = printable(reply["text"]).splitlines()
    # The heading repeats the question, and the last line our own verdict.
    for line in body[1:-1] if is_answer else body:
        print_paragraph(line.strip(), "    " if line.startswith("    ") else "  ")
    said = verdict if is_answer else styled(reply["kind"], "red")
    print(f"  {said} in {took_ms:.1f} ms\n")
    return reply, took_ms


def _moral(played: list[tuple[Json, float]]) -> str:
    second = played[1][1]
    outcomes = [
        reply["report"]["memory"]["outcome"] if reply["report"] else reply["kind"]
        for reply, _ in played
    ]
    if outcomes != ["miss", "hit", "miss"]:
        return f"That did not go as expected: {', '.join(outcomes)}."
    return (
        "The second question is the first one in other words, and nothing was computed "
        f"for it: {second:.1f} ms from the cache.\nA budget takes no time to compute; "
        "what a cache saves is what an agent takes: a model's seconds, for example."
    )


__all__ = ["QUESTIONS", "demonstrate"]
