"""The whole example story by rules, over the wire: what is kept of it, what it is worth, and that nothing is chance."""

import asyncio
import json
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.memory.rendering.prompt_context import BUDGET_TOKENS, within
from tasklore.memory.rendering.quoting import plain
from tasklore.memory.rendering.tokens import counter
from tasklore.memory.stories.view import CHANGING, StandingStory
from tests.acceptance.command import Running, environment, tasklore
from tests.acceptance.story_system import (
    AGENTS,
    FOLDER,
    STORY,
    Stage,
    example,
    findings,
    reader,
    responses,
    sections,
    story_stage,
)

#: Responses after the last one: the story as all of them left it.
AFTER = 31
#: Responses that the second system is asked for where not all are: enough that each rests on what the others left.
SOME = 6
#: Responses that touch the same threads and people.
PAIRS = ((24, 30), (1, 7), (11, 26), (4, 12), (8, 28))


@dataclass(frozen=True)
class Told:
    """A system in which every response was analysed, each after the one before; documents as answered and as stored."""

    stage: Stage
    documents: tuple[AnalysisDocument, ...]
    stored: tuple[bytes, ...]
    story: StandingStory


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Run the whole story once."""
    with story_stage(tmp_path_factory.mktemp("story")) as stage:
        yield asyncio.run(_tell(stage))


async def _tell(stage: Stage, most: int = AFTER) -> Told:
    async with reader(stage) as desk:
        await desk.load()
        documents = [await desk.analysed(response) for response in responses()[:most]]
        stored = [
            await desk.stored(document.meta.response_number) for document in documents
        ]
        return Told(
            stage,
            tuple(documents),
            tuple(stored),
            await desk.stories.standing(STORY, AFTER),
        )


def test_every_agent_reads_every_response_by_rules(told: Told) -> None:
    """Without a model nothing fails, nothing is free of charge by mistake, and the heads are truthful."""
    assert len(told.documents) == 30
    for document in told.documents:
        meta = document.meta
        found = sections(document)
        assert (meta.status, meta.agents_run, meta.agents_ok) == ("fresh", 10, 10), meta
        assert list(found) == [seat.section for seat in SECTION_AGENTS]
        assert {section["by"] for section in found.values()} == {"rules"}
        assert (document.stats.total_cost_usd, document.stats.roi) == (0, None)


def test_every_context_keeps_its_budget_and_what_must_not_be_lost(told: Told) -> None:
    """Counted exactly: at most 350 tokens; critical threads, alerts and who is in the scene are there, 95 of 100."""
    kept: list[tuple[str, bool]] = []
    for document in told.documents:
        context = within(document)
        assert counter()(context.text) == context.tokens <= BUDGET_TOKENS
        lines = {
            line.partition(": ")[0]: f"{line}, " for line in context.text.split("\n")
        }
        lines[""] = context.text
        kept += [
            (what, what in lines.get(label, "")) for label, what in _must_keep(document)
        ]
    assert len(kept) > 80
    assert sum(is_kept for _, is_kept in kept) >= 0.95 * len(kept), [
        what for what, is_kept in kept if not is_kept
    ]


def _must_keep(document: AnalysisDocument) -> Iterator[tuple[str, str]]:
    """Yield what must not be lost as the context shows it, each with the label of its line, if that matters."""
    found = document.background.response_analysis
    threads = document.background.plot_threads
    assert found is not None
    assert found.characters is not None
    assert threads is not None
    if found.alerts is not None:
        for alert in filter(None, (found.alerts.variety, found.alerts.pacing)):
            yield "**Scene**", f"\u26a0\ufe0f {plain(alert)}"
    for thread in (*threads.new, *threads.mentioned):
        if thread.status == "critical":
            yield "**Threads**", plain(thread.id)
    loaded = document.immediate.thread_extraction
    assert loaded is not None
    yield from (
        ("", plain(thread.id))
        for thread in loaded.loaded
        if thread.status == "critical"
    )
    if found.characters.in_scene:
        yield (
            "**Characters**",
            f"In Scene: {', '.join(map(plain, found.characters.in_scene))}",
        )


def test_a_document_is_a_third_of_the_files_it_stands_for(told: Told) -> None:
    """In tokens: files of whoever matters, memories of whoever is there, open threads; and a ninth of all there is."""
    count = counter()
    tables = [
        path.read_text("utf-8")
        for path in FOLDER.glob("*.toml")
        if path.name != "story.toml"
    ]
    source = sum(map(count, tables)) + sum(
        entity.tokens for entity in example().entities
    )
    assert source >= 20_000
    for document, raw in zip(told.documents, told.stored, strict=True):
        tokens = count(raw.decode())
        assert read_document(raw).minified() == raw
        assert 3 * tokens <= _stands_for(document), document.meta
        assert 9 * tokens <= source, document.meta


def _stands_for(document: AnalysisDocument) -> int:
    """Return the tokens of all that a prompt would be given without the analysis."""
    entities = document.immediate.entity_analysis
    total = document.stats.total_reduction
    assert entities is not None
    assert total is not None
    return total.before + sum(one.tokens or 0 for one in entities.tier1)


async def test_asked_again_it_is_served_and_nothing_is_sent_or_changed(
    told: Told,
) -> None:
    """The first response and the last one: no task, no report, the same bytes, the same story."""
    async with reader(told.stage) as desk:
        counts = await desk.counts()
        for response in (responses()[0], responses()[-1]):
            reply = await desk.ask(response)
            assert (reply.kind, reply.served) == ("done", True)
            assert (
                await desk.stored(response.number) == told.stored[response.number - 1]
            )
        assert await desk.counts() == counts
        assert await desk.stories.standing(STORY, AFTER) == told.story


async def test_the_same_story_is_read_the_same_in_another_system(
    told: Told, tmp_path: Path
) -> None:
    """Servers with nothing in them, other processes: the first responses say the same but for what a clock says."""
    await _demand_the_same(told, tmp_path, SOME)


@pytest.mark.long
async def test_all_of_the_story_is_read_the_same_in_another_system(
    told: Told, tmp_path: Path
) -> None:
    await _demand_the_same(told, tmp_path, AFTER)


async def _demand_the_same(told: Told, folder: Path, most: int) -> None:
    def tell() -> Told:
        with story_stage(folder) as stage:
            return asyncio.run(_tell(stage, most))

    again = await asyncio.to_thread(tell)
    for first, second in zip(told.documents, again.documents, strict=False):
        assert findings(second) == findings(first)
    assert len(again.documents) == min(most, 30)


async def test_two_responses_at_once_change_what_they_do_one_after_the_other(
    told: Told,
) -> None:
    """Five pairs that touch the same threads, asked for in an order by chance: nothing is lost."""
    async with reader(told.stage) as desk:
        await desk.load("pairs")
        for seed, pair in enumerate(PAIRS):
            order = random.Random(seed).sample(pair, 2)
            await asyncio.gather(
                *(
                    desk.analysed(responses()[number - 1], story_id="pairs")
                    for number in order
                )
            )
        at_once, serial = [
            await desk.stories.changes(story_id, CHANGING)
            for story_id in ("pairs", STORY)
        ]

    numbers = {number for pair in PAIRS for number in pair}
    assert at_once == {
        number: change for number, change in serial.items() if number in numbers
    }
    assert len(at_once) >= 6


@pytest.mark.long
def test_a_person_with_a_copy_of_the_story_needs_no_more_than_two_commands(
    tmp_path: Path,
) -> None:
    """`tasklore up` and `analysis run`: what comes of it is a file that needs no system any more."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    here = tmp_path / "here"
    env = environment(TMPDIR=str(tmp_path / "tmp"))
    assert tasklore("stories", "example", STORY, cwd=here, env=env).returncode == 0
    command = ("analyses", "run", STORY, "--json")
    with Running(
        "up", "--agents", AGENTS, cwd=here, env=env, errors=tmp_path / "errors"
    ) as system:
        assert system.line().startswith("ready "), (tmp_path / "errors").read_text()
        done = tasklore(*command, cwd=here, env=env)
        assert system.end(signal.SIGINT) == 0
    assert done.returncode == 0, done.stderr
    written = (here / STORY / "state" / "agent_analysis.json").read_text("utf-8")
    document = read_document(written)
    assert (document.meta.response_number, document.meta.status) == (30, "fresh")
    assert written.rstrip("\n") == json.dumps(
        json.loads(written), indent=2, ensure_ascii=False
    )
    assert json.loads(done.stdout) == document.body()
    shown = tasklore(
        "analyses", "context", f"{STORY}/state/agent_analysis.json", cwd=here, env=env
    )
    assert (shown.returncode, shown.stdout) == (0, f"{within(document).text}\n")
    assert tasklore(*command, cwd=here, env=env).returncode == 3
