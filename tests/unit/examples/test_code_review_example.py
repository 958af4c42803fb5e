"""The example of a review: a model proposes, every quote is looked up, and without a model rules do it all."""

from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from contracts.errors import LlmError, LlmRefused, LlmTimeout
from contracts.messages import CompletionReport
from supervisor.pipelines.declaration.cards import problems_with
from supervisor.pipelines.declaration.checks import problems_of
from supervisor.pipelines.declaration.files import read_pipeline
from supervisor.pipelines.declaration.graph import Graph
from workers.card import card_of
from workers.loading import load_agents
from workers.testing import AgentKit, run_task

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
TRUE = {"line": 6, "quote": "basket == None", "problem": "compares by value", "severity": "style"}
INVENTED = {"line": 5, "quote": "retry()", "problem": "retries for ever", "severity": "bug"}
MENDED = {"line": 5, "quote": "pass", "problem": "hides every error", "severity": "risk"}


def said(kind: str, **fields: Any) -> BaseModel:
    """Return what a model answers, as the class of that name in the example."""
    module = next(iter(AGENTS.values())).tasks["review"].handler.function.__globals__
    return cast("BaseModel", module[kind](reasoning="looked at each line", **fields))


async def reported(phase: str, llm: tuple[BaseModel | LlmError, ...] = (), **entries: Any) -> CompletionReport:
    """Return the report of the phase of that name, on CODE and earlier *entries*."""
    declared = next(one for one in PIPELINE.phases if one.name == phase)
    parameters = {"name": "basket.py", "text": CODE, **entries}
    assert set(parameters) == set(declared.parameters)
    return await run_task(AGENTS[declared.agent], declared.task, parameters, llm=llm)


async def done(phase: str, llm: tuple[BaseModel | LlmError, ...] = (), **entries: Any) -> dict[str, Any]:
    """Return the result of a phase."""
    report = await reported(phase, llm, **entries)
    assert report.status == "completed", report.error
    result: dict[str, Any] = report.result
    return result


async def test_without_a_model_rules_review_and_say_so() -> None:
    """What they find stands where they say, so that no second pass is needed."""
    review = await done("review")
    checked = await done("check", review=review)
    report = await done("report", review=review)

    assert (review["by"], review["note"]) == ("rules", "no language model is configured: found by rules")
    assert [(one["line"], one["severity"], one["quote"]) for one in review["findings"]] == [
        (1, "bug", "def add(item, basket=[]):"),
        (3, "risk", "basket.append(eval(item))"),
        (4, "risk", "except:"),
        (6, "style", "if basket == None:"),
    ]
    assert checked == {"sound": 4, "doubts": []}
    assert (report["by"], report["note"]) == ("rules", "no language model is configured: only counted")
    assert "4 findings in 8 lines.\nReviewed by rules." in report["markdown"]
    assert (
        "| 4 | risk | catches everything, an interrupt too; name what is expected | `except:` |" in report["markdown"]
    )


async def test_what_a_model_invents_is_doubted() -> None:
    """A quote that does not stand there, an empty one, and a line that the file does not have."""
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


async def test_the_second_pass_keeps_what_holds_and_mends_the_rest() -> None:
    """The model is told what was wrong; what it invents again is left out."""
    review = {"by": "model", "note": "", "findings": [TRUE, INVENTED]}
    checked = await done("check", review=review)
    kit = AgentKit(AGENTS["CodeReviewAgent"], llm=[said("SaidReview", findings=[MENDED, INVENTED])])
    report = await kit.run("review_again", {"name": "basket.py", "text": CODE, "review": review, "checked": checked})

    assert "line 5: 'retry()' does not stand there" in kit.asked[0].user
    assert report.result["findings"] == [MENDED, TRUE]
    assert report.result["note"] == "second pass: 1 findings left out"


async def test_the_second_pass_without_a_model_leaves_out_what_does_not_hold() -> None:
    """As after a resume on a worker that has none."""
    review = {"by": "model", "note": "", "findings": [TRUE, INVENTED]}
    checked = await done("check", review=review)
    mended = await done("review_pass_2", review=review, checked=checked)

    assert (mended["by"], mended["findings"]) == ("rules", [TRUE])
    assert mended["note"].endswith("what did not hold was left out")


async def test_a_model_that_refuses_is_replaced_by_rules() -> None:
    """And the result says by whom it is."""
    review = await done("review", (LlmRefused("I would rather not"),))
    report = await done("report", (LlmRefused("no"),), review=review)

    assert (review["by"], len(review["findings"])) == ("rules", 4)
    assert review["note"] == "the model gave no answer that can be used (LlmRefused): found by rules"
    assert (report["by"], report["note"]) == (
        "rules",
        "the model gave no answer that can be used (LlmRefused): only counted",
    )


async def test_a_model_that_is_away_is_asked_again() -> None:
    """An outage is no opinion: the phase is run again."""
    report = await reported("review", (LlmTimeout("late"), said("SaidReview", findings=[TRUE])))

    assert (report.status, report.attempt, report.result["by"]) == ("completed", 2, "model")


async def test_the_report_opens_with_what_the_model_says() -> None:
    """In one line, beside the count, which is ours; cells cannot break out of the table."""
    review = {"by": "model", "note": "", "findings": [TRUE | {"quote": "a | `b`"}]}
    report = await done("report", (said("SaidSummary", sentence="One\nslip."),), review=review)

    assert (report["by"], report["note"]) == ("model", "")
    assert "\nOne slip. (1 findings in 8 lines)\nReviewed by a language model.\n" in report["markdown"]
    assert "| `a \\| 'b'` |" in report["markdown"]


async def test_a_sound_file_has_nothing_to_sum_up() -> None:
    """No model is asked for a sentence on nothing."""
    report = await run_task(
        AGENTS["CodeReportAgent"],
        "summarise",
        {"text": "x = 1\n", "review": {"by": "rules", "note": "", "findings": []}},
        llm=[said("SaidSummary", sentence="Nothing.")],
    )

    assert (report.result["by"], report.result["note"]) == ("rules", "there was nothing to sum up")
    assert "0 findings in 1 lines." in report.result["markdown"]


@pytest.mark.parametrize("text", ["def", "x = '\0'", "(" * 5_000])
async def test_what_is_no_python_is_refused(text: str) -> None:
    """Before a model is asked, and for good."""
    report = await run_task(
        AGENTS["CodeReviewAgent"], "review", {"name": "odd.py", "text": text}, llm=[said("SaidReview", findings=[])]
    )

    assert (report.status, report.attempt) == ("rejected", 1)
    assert report.error is not None
    assert "odd.py is no Python" in report.error.message


def test_the_second_pass_stands_for_the_review_and_runs_only_when_something_is_doubted() -> None:
    """As the file declares it; the report waits for it, and nothing in it misfits the agents."""
    second = next(one for one in PIPELINE.phases if one.corrects)
    cards = {agent_id: card_of(agent) for agent_id, agent in AGENTS.items()}

    assert (second.name, second.corrects) == ("review_pass_2", "review")
    assert second.when == "len(${check:results.doubts}) > 0"
    assert Graph.of(PIPELINE).order[-1] == "report"
    assert "review_pass_2" in Graph.of(PIPELINE).dependencies["report"]
    assert problems_of(PIPELINE) == problems_with(PIPELINE, cards) == []
