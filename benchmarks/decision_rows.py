"""How long the question of an agent with a long past is, and what putting it together costs.

A thousand messages and a thousand observations lie behind it, all of them handed over, not a window. Tokens are counted
exactly where the extra `tokens` is installed. Of the questions timed each is another one, so that nothing of the last
one is known; what a process pays once, loading its tokenizer and its template, it has paid before.
"""

import json
import time
from pathlib import Path

from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile
from tasklore.contracts.conversations import History, TakenMessages, Utterance
from tasklore.contracts.observations import (
    Action,
    AgentTarget,
    Observation,
    Position,
    SensoryData,
)
from tasklore.memory.rendering.narration import Narrator
from tasklore.memory.rendering.situation import BUDGET_TOKENS, situation
from tasklore.memory.rendering.tokens import Count, counter, estimate, exact
from tasklore.workers.agent_files import load_agent_files
from tasklore.workers.agents import decision
from tasklore.workers.agents.decision import SKILLS, Moment
from tasklore.workers.agents.decision.answer import Wish
from tasklore.workers.agents.decision.question import question_on

#: Messages, and observations, of the past.
PAST = 1_000
#: CPU milliseconds that building it may take.
ALLOWED_MS = 5.0
_NAMES = ("Bob", "Carol", "Ana", "Dan")


async def measure(profile: Profile) -> list[Row]:
    """Return a row for the whole question, and one for each way of counting its tokens."""
    rows = [_question(profile)]
    for words, count in (("exactly", exact()), ("by estimate", estimate)):
        if count is not None:
            rows.append(_situation(words, count, profile))
    return rows


def _question(profile: Profile) -> Row:
    files = load_agent_files(Path(decision.__file__).parent)
    schema = counter()(json.dumps(Wish.model_json_schema()))
    tokens = []
    took = []
    for number in range(max(20, profile.questions // 10)):
        taken = _taken(number)
        moment = _moment(number)
        started = time.process_time()
        question = question_on(files, moment, taken, SKILLS, Narrator())
        took.append((time.process_time() - started) * 1000)
        tokens.append(schema + counter()(question.system) + counter()(question.user))
    return Row(
        f"question of an agent, {PAST:,} messages and observations",
        p50_ms=percentile(took[1:], 0.5),
        p99_ms=percentile(took[1:], 0.99),
        compared=f"{max(tokens):,} tokens of {BUDGET_TOKENS:,} with schema",
        how="CPU time; prompt, schema and situation together",
    )


def _situation(words: str, count: Count, profile: Profile) -> Row:
    took = []
    tokens = 0
    for number in range(max(20, profile.questions // 10)):
        taken = _taken(number)
        moment = _moment(number)
        started = time.process_time()
        text = situation(
            taken.history,
            taken.observations,
            moment.sensory_data,
            moment.simulation_time,
            moment.allowed,
            name=moment.name,
            count=count,
        )
        took.append((time.process_time() - started) * 1000)
        tokens = max(tokens, count(text))
    return Row(
        f"situation of an agent, counted {words}",
        p50_ms=percentile(took[1:], 0.5),
        p99_ms=percentile(took[1:], 0.99),
        compared=f"allowed {ALLOWED_MS:g} ms; {tokens:,} tokens of {BUDGET_TOKENS:,}",
        how=f"CPU time; {PAST:,} messages, {PAST:,} observations, all handed over",
    )


def _moment(number: int) -> Moment:
    coins = [
        {"type": "coin", "position": {"x": place, "z": number % 9}}
        for place in range(6)
    ]
    sensed = {
        "position": {"x": number % 10, "z": 1},
        "worldObjects": coins,
        "collected": {"coin": number},
    }
    return Moment.read(
        {
            "name": "Ana",
            "sensory_data": sensed,
            "simulation_time": PAST + number,
            "agents": _NAMES,
            "step": 1,
        }
    )


def _taken(number: int) -> TakenMessages:
    """Return a past like no other: who met whom where, and what they made of it."""
    said = []
    seen = []
    for time_s in range(PAST):
        speaker = _NAMES[(time_s + number) % 4]
        words = f"I counted {time_s * 7 + number} coins east of the old mill"
        is_own = speaker == "Ana"
        said.append(
            Utterance(
                message_id=f"{number}-{time_s}",
                speaker=speaker,
                message=words,
                time=time_s,
                own=is_own,
            )
        )
        text = Action(action="text", target=AgentTarget(agent="Bob"), utterance=words)
        did = (
            text
            if is_own
            else Action(
                action="move", target=Position(x=time_s % 13, z=number % 7 + 0.5)
            )
        )
        seen.append(Observation(time=time_s, sensed=_sensed(time_s, number), did=did))
    return TakenMessages(History(tuple(said), 3), tuple(seen))


def _sensed(time_s: int, number: int) -> SensoryData:
    return SensoryData.model_validate(
        {
            "position": {"x": time_s % 17, "z": number % 5 + 0.25},
            "nearbyAgents": [
                {"name": name, "position": {"x": time_s % 3, "z": 2}}
                for name in _NAMES[: time_s % 3]
            ],
            "worldObjects": [
                {"type": "coin", "position": {"x": place, "z": time_s % 11}}
                for place in range(time_s % 5)
            ],
            "collected": {"coin": time_s},
        }
    )
