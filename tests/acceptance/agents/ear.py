"""An agent for tests that listens: learns the words of every turn, keeps every fact, and counts its runs."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tasklore import Agent
from tasklore.contracts.edits import Insert
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.items import make_item
from tasklore.memory.documents.plans import Origin, Plan
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, Ruling

agent = Agent("EarAgent")

#: Where each run leaves a line, so that tests count runs and not what became of them.
RUNS = Path(os.environ["PROBE_RUNS"])
FOOD = "resource_user_food_prefs"


def note_run(label: str) -> None:
    """Count a run of *label*."""
    with (RUNS / label).open("a") as runs:
        runs.write(f"{time.time()}\n")


@agent.listen("turns", items=4)
def learn(turn: ChatTurn) -> Sequence[Fact]:
    """Learn the very words, in a thread and slowly enough to be killed over it; `sleep` takes until it is cut short."""
    note_run("turns")
    note_run(f"turn-{turn.turn_id}")
    time.sleep(30 if turn.text == "sleep" else 0.005)
    return [Fact(fact_id=f"fact-{turn.turn_id}", text=turn.text)]


@agent.listen("facts", items=4)
def keep(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
    """Add every fact to what the user likes; the text `deadly` ends the process."""
    note_run("facts")
    rulings = []
    for pending in batch.facts:
        fact = pending.fact
        at = context.now()
        if fact.text == "deadly":
            note_run("deadly")
            os._exit(9)
        plan = Plan(
            plan_id=f"plan-{fact.fact_id}",
            edits=(
                Insert(
                    path="food.likes",
                    new_value=make_item(fact.text, added=at.date(), source="told"),
                    file=FOOD,
                ),
            ),
            origin=Origin(
                by="rules", at=at, fact_id=fact.fact_id, turn_id=pending.turn_id
            ),
        )
        context.draft.apply(plan)
        rulings.append(
            Ruling(fact_id=fact.fact_id, outcome="applied", reasoning="told", plan=plan)
        )
    time.sleep(0.005)
    return rulings
