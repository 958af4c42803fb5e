"""How long the prompts of the switchboard are, for batches of one turn and of eight, beside few and many items.

Tokens are counted as o200k_base has them; the schema that goes along is counted apart: providers bill it, though
nobody sees how it is spelled for the model.
"""

import json
from datetime import timedelta
from pathlib import Path

from benchmarks.profiles import Profile
from benchmarks.table import Row
from tasklore.contracts.messages import ChatTurn
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.rendering.tokens import counter
from tasklore.workers.agent_files import load_agent_files
from tasklore.workers.agents import switchboard
from tasklore.workers.agents.switchboard.answer import Heard
from tasklore.workers.agents.switchboard.prompt import (
    categories_of,
    question_of,
    scene_of,
)
from tasklore.workers.listening.values import TurnBatch
from tests.memory_bench import NOW, documents

#: Turns of a batch, and items that are kept.
SIZES = ((1, 0), (1, 400), (8, 0), (8, 400))
#: Tokens that a turn with one new fact is allowed, on average over its batch.
ALLOWED = 900
SAID = "By the way, omelettes are what I reach for on slow mornings"
DISHES = (
    "Pasta with basil",
    "Walnut bread",
    "Miso soup",
    "Scrambled eggs",
    "Lentil curry",
    "Apple pie",
)


async def measure(_profile: Profile) -> list[Row]:
    """Return a row for each size of batch."""
    return [_row(turns, items) for turns, items in SIZES]


def _row(turns: int, items: int) -> Row:
    kinds = Kinds.load()
    count = counter()
    bodies = documents(
        food__likes=[
            f"{DISHES[number % len(DISHES)]}, recipe {number}"
            for number in range(items)
        ]
    )
    batch = TurnBatch("u1", tuple(_turn(number) for number in range(turns)))
    files = load_agent_files(Path(switchboard.__file__).parent)
    system = files.render(categories=categories_of(kinds))
    user = question_of(scene_of(batch, bodies, kinds))
    tokens = (count(system) + count(user)) / turns
    schema = count(json.dumps(Heard.model_json_schema(), separators=(",", ":"))) / turns
    return Row(
        f"prompt of the switchboard, {turns} turns, {items} items",
        compared=f"{tokens:,.0f} tokens a turn of {ALLOWED}, {tokens + schema:,.0f} with its schema",
        how="one question a batch; items near the batch within their own budget",
    )


def _turn(number: int) -> ChatTurn:
    told = {
        "turn_id": f"t{number}",
        "conversation_id": "c",
        "user_id": "u1",
        "speaker": "person",
        "text": SAID,
    }
    return ChatTurn.model_validate({**told, "at": NOW + timedelta(seconds=number)})
