"""The interpreter with a language model behind the real client library."""

import pytest

from tasklore.contracts.errors import LlmMalformed
from tasklore.supervisor.understanding import (
    LlmInterpreter,
    Understood,
    make_interpreter,
)
from tests.llm_double import Canned, ScriptedLlm, fault, refusal, saying, stalled
from tests.llm_questions import Opener
from tests.understanding.recorded import CATALOGUE, NOW, answers

pytest_plugins = ["tests.fixtures_llm"]

#: The rules cannot tell what the shop is to do.
TEXT = "run off seventy-five A5 programmes on recycled stock"
GOOD = answers()["en16"]
READ = {"copies": 75, "paper": "recycled", "size": "A5"}


async def test_a_reading_travels_as_structured_output(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    scripted_llm.queue(GOOD)
    interpreter = make_interpreter(open_llm())
    assert isinstance(interpreter, LlmInterpreter)
    found = await interpreter.interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW)
    assert isinstance(found, Understood)
    assert found.task.parameters == READ
    (asked,) = scripted_llm.requests
    assert asked.schema_name == "Reading"
    assert next(iter(asked.schema["properties"])) == "reasoning"
    said = asked.schema["$defs"]["SlotAnswer"]
    assert (
        set(said["required"])
        == set(said["properties"])
        == {"field", "value", "quotation", "source"}
    )
    assert "PrintShop.order_print" in asked.user


@pytest.mark.parametrize(
    "reply",
    [refusal(), fault(400), saying("not json"), stalled()],
    ids=["refusal", "rejected", "no json", "stalled"],
)
async def test_without_an_answer_of_the_model_the_answer_of_the_rules_stays(
    open_llm: Opener, scripted_llm: ScriptedLlm, reply: Canned
) -> None:
    scripted_llm.respond = lambda _asked: reply
    alone = await make_interpreter(None).interpret(
        TEXT, catalogue=CATALOGUE, previous=[], now=NOW
    )
    interpreter = LlmInterpreter(
        open_llm(max_attempts=2), deadline_s=0.2 if reply.ending == "stall" else 30.0
    )
    assert (
        await interpreter.interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW)
        == alone
    )


async def test_a_malformed_answer_goes_back_once_and_is_then_grounded(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    wrong = {**GOOD, "intents": [{**GOOD["intents"][0], "agent_id": "Shop"}]}
    scripted_llm.queue({"reasoning": "no intents"}, wrong, GOOD)
    found = await make_interpreter(open_llm()).interpret(
        TEXT, catalogue=CATALOGUE, previous=[], now=NOW
    )
    assert isinstance(found, Understood)
    assert found.task.parameters == READ
    first, mended, again = scripted_llm.requests
    assert LlmMalformed.__name__ not in mended.user
    assert first.user in mended.user
    assert "'Shop.order_print' is none of the tasks" in again.user


async def test_while_the_model_is_away_sentences_are_read_by_rules(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    scripted_llm.respond = lambda _asked: fault(503)
    interpreter = make_interpreter(open_llm())
    for _ in range(3):
        await interpreter.interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW)
    assert len(scripted_llm.requests) == 3
