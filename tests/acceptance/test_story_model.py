"""The example story by a scripted model: how much it is asked, in which form, what that costs, and who does without."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.memory.rendering.tokens import exact
from tasklore.workers.agent_files import load_agent_files
from tests.acceptance.story_system import (
    AGENTS,
    Reader,
    Stage,
    reader,
    responses,
    sections,
    story_stage,
)
from tests.architecture.tree import ROOT
from tests.llm_double import (
    Asked,
    Canned,
    ScriptedLlm,
    answer,
    cut_off,
    fault,
    refusal,
    saying,
)

#: Which section an answer is for, by the name of its schema.
SECTIONS = {
    "SceneReading": "resp_analyzer",
    "FoundMemories": "memory_create",
    "FoundShows": "relationship",
    "FoundThreads": "plot_threads",
    "FoundFacts": "knowledge",
    "FoundConflicts": "contradiction",
    "EntityChoice": "entity_analysis",
    "CondensedFacts": "fact_extract",
    "ChosenMemories": "memory_extract",
    "ChosenThreads": "thread_extract",
}
NAMES = tuple(SECTIONS.values())
GROUPS = {seat.section: seat.group for seat in SECTION_AGENTS}
#: Tokens of a question beside the response, and of the response.
MOST_TOKENS = 1_500
MOST_TOLD = 3_000
#: US dollars for a million tokens of the model that reads the context, as the story says by default.
READER_USD = 3
_MILLION = 1_000_000
#: US dollars for a million tokens asked, asked and cached, and answered.
PRICES = {"gpt-6-luna": ("0.10", "0.01", "0.50"), "gpt-6.1-terra": ("1", "0.05", "5")}
#: A dated name of a model, which has its price, and a breaker of its own.
DATED = "gpt-6-luna-2026-09-22"
PRICES[DATED] = PRICES["gpt-6-luna"]
#: Responses of different length and place in the story, for runs that are not to take minutes.
SOME = (1, 2, 8, 22, 24, 30)


class Model:
    """Answers every question with the least that is an answer; each section costs other tokens, cached ones too."""

    def __init__(self) -> None:
        #: What is answered instead, by section.
        self.instead: dict[str, Canned] = {}
        self._asked: list[Asked] = []
        self._lock = threading.Lock()

    def respond(self, asked: Asked) -> Canned:
        """Answer one question."""
        with self._lock:
            self._asked.append(asked)
        section = SECTIONS[asked.schema_name]
        if (canned := self.instead.get(section)) is not None:
            return canned
        tokens = dict(
            zip(
                ("input_tokens", "output_tokens", "cached_tokens"),
                tokens_of(section),
                strict=True,
            )
        )
        return answer(_filled(asked.schema), **tokens)

    def take(self) -> list[Asked]:
        """Return every question since the last look."""
        with self._lock:
            taken = self._asked
            self._asked = []
        return taken


def tokens_of(section: str) -> tuple[int, int, int]:
    """Return how many tokens the question of *section* has, its answer, and how many of the former were cached."""
    number = NAMES.index(section)
    return 701 + 13 * number, 31 + 7 * number, 64 * (number % 3)


def _filled(schema: Mapping[str, Any]) -> Any:
    """Return the least that fits *schema*: the first word of a choice, and nothing in lists."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {
                name: _filled(field) for name, field in schema["properties"].items()
            }
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case _:
            return ""


@dataclass(frozen=True)
class Asking:
    """A stage whose agents ask `model`."""

    stage: Stage
    model: Model


@contextmanager
def beside_a_model(folder: Path, **settings: Any) -> Iterator[Asking]:
    """Run the agents beside a scripted model; *settings* are those of the workers."""
    model = Model()
    with (
        ScriptedLlm(model.respond) as server,
        story_stage(folder, llm_base_url=server.base_url, **settings) as stage,
    ):
        yield Asking(stage, model)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """Run the agents beside a scripted model."""
    with beside_a_model(tmp_path_factory.mktemp("model")) as asking:
        yield asking


async def test_every_agent_asks_briefly_and_what_that_costs_is_told_to_the_cent(
    asking: Asking,
) -> None:
    async with reader(asking.stage) as desk:
        await desk.load("some")
        for number in SOME:
            await _demand_true_accounts(asking.model, desk, "some", number)


@pytest.mark.long
async def test_that_holds_for_every_response(asking: Asking) -> None:
    async with reader(asking.stage) as desk:
        await desk.load("all")
        for number in range(1, 31):
            await _demand_true_accounts(asking.model, desk, "all", number)


#: What a model does instead of answering, at which response, and to whom.
MISDEEDS: tuple[tuple[int, str, Canned], ...] = (
    (1, "knowledge", refusal()),
    (8, "memory_create", cut_off()),
    (22, "plot_threads", saying("Here is what you asked for: {]")),
    (24, "thread_extract", answer({"reasoning": "none", "threads": "all of them"})),
    (30, "resp_analyzer", answer({"reasoning": "none", "characters": "all of them"})),
)


@pytest.mark.parametrize(
    ("number", "section", "canned"),
    MISDEEDS,
    ids=[section for _, section, _ in MISDEEDS],
)
async def test_who_gets_no_answer_goes_by_rules_and_the_others_by_their_model(
    asking: Asking, number: int, section: str, canned: Canned
) -> None:
    """A refusal, an answer cut off, and nonsense of three kinds; all ten sections are there."""
    await _demand_rules(asking, number, section, canned)


def test_whose_server_fails_goes_by_rules_and_the_others_by_their_model(
    tmp_path: Path,
) -> None:
    """It has a model to itself: what fails in a row is asked no more for a while, by whomever."""
    section = "entity_analysis"
    config = tmp_path / "files" / "story" / section / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"model: {DATED}\n")
    with beside_a_model(tmp_path / "house", agent_files=tmp_path / "files") as asking:
        asked = asyncio.run(_demand_rules(asking, 2, section, fault(500)))
    assert {one.model for one in asked if SECTIONS[one.schema_name] == section} == {
        DATED
    }


async def _demand_rules(
    asking: Asking, number: int, section: str, canned: Canned
) -> list[Asked]:
    """Demand rules for *section* alone, whose question is answered by *canned*; return every question."""
    asking.model.take()
    asking.model.instead = {section: canned}
    async with reader(asking.stage) as desk:
        await desk.load(section)
        document = await desk.analysed(responses()[number - 1], story_id=section)
    asking.model.instead = {}
    found = sections(document)
    assert (document.meta.status, document.meta.agents_ok) == ("fresh", 10)
    assert {name: one["by"] for name, one in found.items()} == {
        name: "rules" if name == section else model_of(name) for name in NAMES
    }
    assert len(found[section]) > 2, (
        "rules have found something, and not just said that it was they"
    )
    wasted = (100, 20, 0) if canned.status == 200 else (0, 0, 0)
    costs = dict.fromkeys(NAMES, Decimal())
    every = asking.model.take()
    for one in every:
        name = SECTIONS[one.schema_name]
        costs[name] += cost_of(
            one.model, *(wasted if name == section else tokens_of(name))
        )
    _demand_costs(document, costs)
    return every


async def _demand_true_accounts(
    model: Model, desk: Reader, story_id: str, number: int
) -> None:
    model.take()
    document = await desk.analysed(responses()[number - 1], story_id=story_id)
    asked = {SECTIONS[one.schema_name]: one for one in model.take()}
    assert (document.meta.status, document.meta.agents_ok) == ("fresh", 10)
    assert set(asked) == set(NAMES), "each has something to ask in each of these"
    for section, one in asked.items():
        _demand_brevity(one)
        assert one.model == model_of(section)
        assert sections(document)[section]["by"] == one.model, section
    _demand_costs(
        document,
        {
            section: cost_of(one.model, *tokens_of(section))
            for section, one in asked.items()
        },
    )


def _demand_brevity(asked: Asked) -> None:
    """Demand a question of at most 1,500 tokens beside the response, its schema included, for a strict answer."""
    wanted = asked.body["response_format"]
    told = [str(message["content"]) for message in asked.body["messages"]]
    count = exact()
    assert count is not None
    before, _, rest = told[-1].partition("<response>")
    response, _, after = rest.partition("</response>")
    assert (
        sum(map(count, (*told[:-1], before, after, json.dumps(wanted)))) <= MOST_TOKENS
    ), asked.schema_name
    assert count(response) <= MOST_TOLD
    assert (wanted["type"], wanted["json_schema"]["strict"]) == ("json_schema", True)
    assert next(iter(asked.schema["properties"])) == "reasoning"


def _demand_costs(document: AnalysisDocument, costs: Mapping[str, Decimal]) -> None:
    """Demand that the stats of *document* are those of *costs* by section, exactly."""
    stats = document.stats
    by_group = {
        group: sum(
            (cost for section, cost in costs.items() if GROUPS[section] == group),
            Decimal(),
        )
        for group in ("background", "immediate")
    }
    total = sum(costs.values())
    assert stats.background_cost_usd == float(by_group["background"])
    assert stats.immediate_cost_usd == float(by_group["immediate"])
    assert stats.total_cost_usd == float(total)
    assert stats.total_reduction is not None
    saved = Decimal(stats.total_reduction.before - stats.total_reduction.after)
    worth = saved * READER_USD / _MILLION / total
    assert stats.roi == float(worth.quantize(Decimal("0.1"), ROUND_HALF_UP))


def model_of(section: str) -> str:
    """Return the model that the role of *section* asks."""
    return load_agent_files(ROOT / AGENTS.replace(".", "/") / section).model


def cost_of(model: str, tokens_in: int, tokens_out: int, cached: int) -> Decimal:
    """Return US dollars, by the list."""
    price, cached_price, answer_price = map(Decimal, PRICES[model])
    return (
        (tokens_in - cached) * price + cached * cached_price + tokens_out * answer_price
    ) / _MILLION


@pytest.mark.parametrize(("calls", "count"), [("grouped", 2), ("one", 1)])
def test_agents_in_two_processes_share_their_questions(
    tmp_path: Path, calls: str, count: int
) -> None:
    """Two for each response, or one: all ten sections are the model's, and whoever asked paid."""
    asked: list[Asked] = []

    def respond(one: Asked) -> Canned:
        asked.append(one)
        return answer(_filled(one.schema), input_tokens=5_000, output_tokens=300)

    async def tell(stage: Stage) -> None:
        async with reader(stage) as desk:
            await desk.load()
            for number in SOME:
                asked.clear()
                document = await desk.analysed(responses()[number - 1])
                assert len(asked) == count
                assert {one["by"] for one in sections(document).values()} == {
                    model_of("shared")
                }
                cost = count * cost_of(model_of("shared"), 5_000, 300, 0)
                assert document.stats.total_cost_usd == float(cost)
            again = await desk.analysed(responses()[SOME[-1] - 1], refresh=True)
            assert len(asked) == 2 * count, "what is begun anew is asked anew"
            assert again.meta.agents_ok == 10

    with (
        ScriptedLlm(respond) as server,
        story_stage(tmp_path, llm_base_url=server.base_url, story_calls=calls) as stage,
    ):
        asyncio.run(tell(stage))
