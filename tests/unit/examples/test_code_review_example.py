"""The code-review example with a model, without one, and with one that refuses."""

from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import CompletionReport
from tasklore.supervisor.pipelines.declaration.cards import problems_with
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.files import read_pipeline
from tasklore.supervisor.pipelines.declaration.graph import Graph
from tasklore.workers.card import card_of
from tasklore.workers.loading import load_agents
from tasklore.workers.testing import run_task

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "code_review"
AGENTS = {agent.agent_id: agent for agent in load_agents(str(FOLDER / "agents.py"))}
PIPELINE = read_pipeline(FOLDER / "review.toml").pipeline

CODE = (
    "def add(item, basket=[]):\n"
    "    try:\n"
    "        basket.append(eval(item))\n"
    "    except:\n"
    "        pass\n"
    "    if basket == None:\n"
    "        return []\n"
    "    return basket\n"
)
TRUE = {
    "line": 6,
    "quote": "basket == None",
    "problem": "compares by value",
    "severity": "style",
}
INVENTED = {
    "line": 5,
    "quote": "retry()",
    "problem": "retries for ever",
    "severity": "bug",
}


def said(kind: str, **fields: Any) -> BaseModel:
    """Return what a model answers, as the class of that name in the example."""
    module = next(iter(AGENTS.values())).tasks["review"].handler.function.__globals__
    return cast("BaseModel", module[kind](reasoning="looked at each line", **fields))


async def reported(
    phase: str, llm: tuple[BaseModel | LlmError, ...] = (), **entries: Any
) -> CompletionReport:
    """Return the report of the phase of that name, on CODE and earlier *entries*."""
    declared = next(one for one in PIPELINE.phases if one.name == phase)
    parameters = {"name": "basket.py", "text": CODE, **entries}
    assert set(parameters) == set(declared.parameters)
    return await run_task(AGENTS[declared.agent], declared.task, parameters, llm=llm)


async def done(
    phase: str, llm: tuple[BaseModel | LlmError, ...] = (), **entries: Any
) -> dict[str, Any]:
    report = await reported(phase, llm, **entries)
    assert report.status == "completed", report.error
    result: dict[str, Any] = report.result
    return result


async def test_rules_review_without_a_model() -> None:
    review = await done("review")
    checked = await done("check", review=review)
    report = await done("report", review=review)

    assert (review["by"], review["note"]) == (
        "rules",
        "no language model is configured: found by rules",
    )
    assert [
        (one["line"], one["severity"], one["quote"]) for one in review["findings"]
    ] == [
        (1, "bug", "def add(item, basket=[]):"),
        (3, "risk", "basket.append(eval(item))"),
        (4, "risk", "except:"),
        (6, "style", "if basket == None:"),
    ]
    assert checked == {"sound": 4, "doubts": []}
    assert (report["by"], report["note"]) == (
        "rules",
        "no language model is configured: only counted",
    )
    assert "4 findings in 8 lines.\nReviewed by rules." in report["markdown"]
    assert (
        "| 4 | risk | catches everything, an interrupt too; name what is expected | `except:` |"
        in report["markdown"]
    )


async def test_invented_quotes_are_doubted() -> None:
    findings = [TRUE, INVENTED, TRUE | {"quote": " "}, TRUE | {"line": 99}]
    review = await done("review", (said("SaidReview", findings=findings),))
    checked = await done("check", review=review)
    assert (review["by"], review["findings"]) == ("model", findings)
    assert checked["sound"] == 1
    assert [doubt["why"] for doubt in checked["doubts"]] == [
        "'retry()' does not stand there",
        "' ' does not stand there",
        "the file has 8 lines",
    ]


@pytest.mark.parametrize("text", ["def", "(" * 5_000])
async def test_invalid_python_is_refused(text: str) -> None:
    report = await run_task(
        AGENTS["CodeReviewAgent"],
        "review",
        {"name": "odd.py", "text": text},
        llm=[said("SaidReview", findings=[])],
    )
    assert (report.status, report.attempt) == ("rejected", 1)
    assert report.error is not None
    assert "odd.py is no Python" in report.error.message


def test_the_pipeline_runs_the_second_pass_only_on_doubts() -> None:
    second = next(one for one in PIPELINE.phases if one.corrects)
    cards = {agent_id: card_of(agent) for agent_id, agent in AGENTS.items()}
    assert (second.name, second.corrects) == ("review_pass_2", "review")
    assert second.when == "len(${check:results.doubts}) > 0"
    assert Graph.of(PIPELINE).order[-1] == "report"
    assert "review_pass_2" in Graph.of(PIPELINE).dependencies["report"]
    assert problems_of(PIPELINE) == problems_with(PIPELINE, cards) == []
