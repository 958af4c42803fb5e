"""Results of a file of before, by the code of their agent, come in where its workers look for them."""

import json
from datetime import timedelta

from pydantic import BaseModel
from redis.asyncio import Redis

from examples.migrate_results.memory_file import lines_by_code
from tasklore import Agent, Amount, Field, Parameters
from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import AgentCard
from tasklore.memory import keys
from tasklore.memory.long_term.result_files import TaskForm, entry_of
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.supervisor.operations.forms import Lines
from tasklore.supervisor.operations.results import ResultServices, import_results
from tasklore.workers.card import card_of

OPERATOR = Caller(name="ops", roles=frozenset({"operate"}))


class Frame(BaseModel):
    """A model, whose type no card tells."""

    days: int


class Plan(Parameters):
    """A question with near ones."""

    frame: Frame
    limit: Amount = Field(unit="USD", tolerance="1%")


class Style(BaseModel):
    """Settings of the agent."""

    pace: int = 1


planner = Agent("PlannerAgent", settings=Style)


@planner.task(remember="shared", remember_for=timedelta(hours=1))
def plan(asked: Plan) -> str:
    """Plan a journey."""
    return f"a week for {asked.limit}"


async def test_a_result_of_before_answers_its_question_and_near_ones(
    redis: Redis,
) -> None:
    """Of a worker with settings of its own, and parameters whose types no card tells."""

    async def cards() -> list[AgentCard]:
        return [card_of(planner)]

    memory = LongTermMemory(redis, budget_s=60.0)
    services = ResultServices(memory=memory, cards=cards, keep=timedelta(days=30))
    agent = planner.configured({"pace": 2})
    given = {"frame": {"days": 7}, "limit": 50_000}
    entry = entry_of("plan", TaskForm(("frame", "limit")), given, "a week")
    (line,) = lines_by_code({"tasks": {entry.key: "a week"}}, agent)
    sent = json.loads(json.dumps(line))
    done = await import_results(services, OPERATOR, planner.agent_id, Lines((sent,)))
    assert (done.stored, done.refused) == (1, ())

    def key_of(asked: Plan) -> str:
        version = agent.memory_version(agent.tasks["plan"])
        return keys.ltm(agent.agent_id, version, asked.key("plan"))

    known = await memory.show(key_of(Plan.read(given)))
    assert known is not None
    assert known.answer.result_json == b'"a week"'
    assert known.expires_in_ms is not None
    assert known.expires_in_ms <= 3_600_000
    near = Plan.read(given | {"limit": 50_200})
    asked = Parameters.neighbourhood(near, "plan")
    assert asked is not None
    [found] = await memory.nearest([(key_of(near), asked)])
    assert found is not None
    assert found.answer.result_json == b'"a week"'
