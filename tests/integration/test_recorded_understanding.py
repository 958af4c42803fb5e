"""Recorded answers of a strong model, replayed behind the real client: the outcome of the whole reading."""

import hashlib
import json
from collections import Counter
from functools import cache

from tasklore.runtime.models.llm import Llm, LlmSettings
from tasklore.supervisor.understanding.model import LlmInterpreter
from tests.llm_double import Asked, Scripted, ScriptedLlm
from tests.understanding.recorded import CATALOGUE, NOW, answers, cases, judge, messages

#: Of the messages that the answers were recorded for. When one of them changes, record anew (`recorded.py` writes them)
#: under the new day's name, and put the new digest here.
RECORDED_FOR = "b46d0a8ed3b9dea1"
#: Share of the cases that have to come out as their key says.
RIGHT = 0.95


@cache
def prompts() -> dict[str, dict[str, str]]:
    """Return the messages of each case, by its id; rendering them takes seconds."""
    return {case.id: messages(case) for case in cases()}


def test_the_cases_are_many_and_of_every_kind() -> None:
    """In the numbers that make the share mean something."""
    kinds = Counter(case.kind for case in cases())
    languages = Counter(case.lang for case in cases())
    agents = {
        key["task"].split(".")[0]
        for case in cases()
        for key in case.key
        if "task" in key
    }
    assert len(cases()) >= 150
    assert len(agents) >= 8
    assert kinds["several"] >= 30
    assert kinds["follow"] >= 30
    assert languages.total() - languages["en"] >= 40
    assert len(languages) >= 7
    assert answers().keys() == {case.id for case in cases()}


def test_the_answers_were_given_to_these_messages() -> None:
    """Another prompt would have had other answers."""
    text = json.dumps(
        [prompts()[case.id] for case in cases()], ensure_ascii=False, sort_keys=True
    )
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == RECORDED_FOR


async def test_recorded_answers_come_out_right() -> None:
    """Started, shown for a yes or asked for as the key says; without a request where the rules settle it."""
    known = {prompts()[case.id]["user"]: answers()[case.id] for case in cases()}

    def respond(asked: Asked) -> Scripted:
        found: Scripted = known[asked.user]
        return found

    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    async with (
        ScriptedLlm(respond) as server,
        Llm(LlmSettings(base_url=server.base_url, max_attempts=1)) as llm,
    ):
        for case in cases():
            interpreter = LlmInterpreter(llm, recalling=case)
            found = await interpreter.interpret(
                case.say,
                catalogue=CATALOGUE,
                previous=case.previous,
                user_id="ann",
                now=NOW,
            )
            outcome = judge(case, found)
            outcomes[outcome] += 1
            if outcome == "wrong":
                wrong.append(f"{case.id} {case.say!r}: {found}")
    assert outcomes["wrong"] <= (1 - RIGHT) * outcomes.total(), wrong
    # A question for everything would be right as well, and of no use.
    assert outcomes["started"] >= 100
