"""The interpreter with a language model behind the real client library."""

import pytest

from contracts.errors import LlmMalformed
from supervisor.understanding import LlmInterpreter, Understood, make_interpreter
from tests.llm_double import Canned, ScriptedLlm, cut_off, fault, filtered, raw, refusal, saying, stalled
from tests.llm_questions import Opener
from tests.understanding.recorded import CATALOGUE, NOW, answers

pytest_plugins = ["tests.fixtures_llm"]

#: The rules cannot tell what the shop is to do.
TEXT = "run off seventy-five A5 programmes on recycled stock"
GOOD = answers()["en16"]
READ = {"copies": 75, "paper": "recycled", "size": "A5"}


async def test_a_reading_travels_as_structured_output(open_llm: Opener, scripted_llm: ScriptedLlm) -> None:
    """The strict schema goes with the question, reasoning first; the grounded values come back as parameters."""
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
    assert set(said["required"]) == set(said["properties"]) == {"field", "value", "quotation", "source"}
    assert "PrintShop.order_print" in asked.user


@pytest.mark.parametrize(
    "reply",
    [refusal(), cut_off(), filtered(), fault(400), saying("not json"), raw(b"<html>"), saying('{"reasoning": "half')],
    ids=["refusal", "cut off", "filtered", "rejected", "no json", "html", "truncated json"],
)
async def test_a_model_that_gives_no_answer_leaves_the_rules_answer(
    open_llm: Opener, scripted_llm: ScriptedLlm, reply: Canned
) -> None:
    """Whatever came instead."""
    scripted_llm.respond = lambda _asked: reply
    alone = await make_interpreter(None).interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW)
    assert await make_interpreter(open_llm()).interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW) == alone


async def test_an_answer_out_of_form_goes_back_once_and_then_is_grounded(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    """The client mends the form; the faults of its values are sent back beside the same question."""
    wrong = {**GOOD, "intents": [{**GOOD["intents"][0], "agent_id": "Shop"}]}
    scripted_llm.queue({"reasoning": "no intents"}, wrong, GOOD)
    found = await make_interpreter(open_llm()).interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW)
    assert isinstance(found, Understood)
    assert found.task.parameters == READ
    first, mended, again = scripted_llm.requests
    assert LlmMalformed.__name__ not in mended.user
    assert first.user in mended.user
    assert "'Shop.order_print' is none of the tasks" in again.user


async def test_a_model_that_takes_too_long_leaves_the_rules_answer(scripted_llm: ScriptedLlm, open_llm: Opener) -> None:
    """The person waits for the deadline, no longer."""
    scripted_llm.respond = lambda _asked: stalled()
    interpreter = LlmInterpreter(open_llm(max_attempts=1), deadline_s=0.2)
    alone = await make_interpreter(None).interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW)
    assert await interpreter.interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW) == alone


async def test_while_the_model_is_away_sentences_are_read_by_rules_at_once(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    """The first one finds out, the next ones do not even ask."""
    scripted_llm.respond = lambda _asked: fault(503)
    interpreter = make_interpreter(open_llm())
    for _ in range(3):
        await interpreter.interpret(TEXT, catalogue=CATALOGUE, previous=[], now=NOW)
    assert len(scripted_llm.requests) == 3
