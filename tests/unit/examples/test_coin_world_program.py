"""The coin world as a program: options, texts and answers in other forms."""

from datetime import UTC, datetime
from typing import Any

import pytest

from examples.coin_world.agents import answer_of, choice_of
from examples.coin_world.options import read_options
from examples.coin_world.running import Answer, Runner
from examples.coin_world.telling import plain, tell
from examples.coin_world.world import Choice, Place, World
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import CompletionReport, MemoryNote

DECISION = {
    "action": "text",
    "target": {"agent": "Bob"},
    "utterance": "Hello!",
    "reasoning": "Bob is near.",
    "by": "x",
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--agents 0", "--agents is 0; it goes from 1 to 500"),
        ("--coins 999", "a world of size 20 has places for 0 to 441"),
        ("--size many", "argument --size: invalid int value: 'many'; see"),
        ("--port 70000", "--port is 70000; it goes from 0 to 65535"),
        ("--record a --replay b", "--record does not go with --replay"),
        ("--seed 7 --replay b", "--seed does not go with --replay"),
        (
            "--no-pag\x1b[2J",
            "unrecognized arguments: --no-pag[2J; see `python -m examples.coin_world --help`",
        ),
    ],
)
def test_invalid_options_end_with_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_options(words.split())
    errors = capsys.readouterr().err
    assert ended.value.code == 2
    assert said in errors
    assert errors.startswith("coin world: ")
    assert errors.index("\n") == len(errors) - 1


def test_control_characters_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    world = World.new(7, ("A\x1b[2Jna", "Bob"), 10, 20)
    world.apply(
        {"A\x1b[2Jna": Choice("text", to="Bob", said="one\r\ntwo\u202e \ud800end")},
        {"Bob": "it\x07 is away"},
    )
    tell(world, {})
    assert (
        capsys.readouterr().out
        == "1s A[2Jna to Bob: one two end\n1s Bob waits: it is away\n"
    )
    assert plain("\x1b]0;title\x07") == "]0;title"


def test_a_decision_is_read_as_a_choice() -> None:
    assert choice_of({**DECISION, "more": 1}) == Choice(
        "text", to="Bob", said="Hello!", reasoning="Bob is near.", by="x"
    )
    assert choice_of({**DECISION, "target": {"x": 1, "z": 2.5}}).target == Place(
        1.0, 2.5
    )


@pytest.mark.parametrize(
    ("result", "field"),
    [
        ({}, "action"),
        (None, "result"),
        ({**DECISION, "by": None}, "by"),
        ({**DECISION, "target": {"x": float("nan"), "z": 1}}, "target.x"),
        ({**DECISION, "utterance": {"text": "Hello!"}}, "utterance"),
    ],
)
async def test_an_invalid_answer_costs_its_agent_a_step(
    result: Any, field: str
) -> None:
    with pytest.raises(
        InvalidInput, match=rf"^the answer of DecisionAgent cannot be read \({field}: "
    ):
        choice_of(result)

    async def decide(world: World) -> dict[str, Answer]:
        return {"Ana": answer_of(_report(result)), "Bob": answer_of(_report(DECISION))}

    runner = Runner(World.new(7, ("Ana", "Bob"), 10, 20), decide, steps=2)
    await runner.run()
    ana, bob = runner.picture()["agents"]

    assert runner.world.step == 2
    assert ana["late"]
    assert ana["reasoning"].startswith("the answer of DecisionAgent cannot be read")
    assert not bob["late"]


def _report(result: Any) -> CompletionReport:
    return CompletionReport(
        task_id="t",
        agent_id="DecisionAgent",
        supervisor_id="S",
        task_name="decide",
        status="completed",
        result=result,
        memory=MemoryNote(outcome="bypass"),
        worker_id="w",
        finished_at=datetime.now(UTC),
    )
