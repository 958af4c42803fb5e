"""`tasklore memory tell`: a turn of a chat, and its outcome."""

import asyncio
import re
import shlex
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from nats.aio.client import Client

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.memory.history import record_document, record_lines
from tasklore.commands.memory.lines import one_line
from tasklore.commands.memory.stores import UserMemory, user_memory
from tasklore.commands.memory.views import fact_document, read_fact
from tasklore.commands.places import open_nats
from tasklore.commands.render.screen import patience, print_json, say, styled
from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import ChatTurn
from tasklore.memory.documents.storage.history import PlanRecord
from tasklore.memory.documents.storage.reader import MAX_USER_ID
from tasklore.memory.queues.claims import KnownRow
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox

#: Seconds between the first two looks at the outcome: below what a person notices. Each pause is half as long again as
#: the one before, up to a point where a busy system is not kept busy by us.
_LOOK_S = 0.05
_LONGEST_LOOK_S = 0.5
#: The word with which the host of the switchboard closes a turn that led to facts.
_LEARNED = "learned"
#: Rows of a table that are looked through for those of one turn.
_ROWS = 1_000
#: States in which a fact stays until somebody else does something.
_SETTLED = frozenset({"done", "failed", "rejected", "conflict", "needs_model"})
#: Characters of one turn, as of a request.
_LONGEST = 20_000
#: Half of a surrogate pair: Python makes it of an argument that is no UTF-8.
_HALF = re.compile("[\ud800-\udfff]")


class Outcome(NamedTuple):
    """The state of a turn, None while no worker has read it, with the reason, its facts and the plans they led to."""

    state: str | None
    facts: Sequence[KnownRow] = ()
    plans: Sequence[PlanRecord] = ()
    reason: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether it changes no more by itself."""
        return self.state in _SETTLED and all(
            fact.state in _SETTLED for fact in self.facts
        )

    @property
    def exit_code(self) -> int:
        """The exit code of a command that waited for it: failed also when nothing was decided within the wait."""
        has_failed = self.state == "failed" or any(
            fact.state == "failed" for fact in self.facts
        )
        return OK if self.is_settled and not has_failed else FAILED


async def tell(
    text: str, user: str, *, conversation: str | None, wait_s: float, as_json: bool
) -> int:
    """Publish *text* as a turn of *user*, wait for the outcome, print it, and return the exit code."""
    turn = make_turn(text, user, conversation)
    # Opened before anything is said: a turn is kept, and its person wants to see the outcome.
    async with user_memory() as memory:
        async with open_nats("tasklore-tell") as client:
            await publish_turn(client, turn)
        try:
            async with patience("waiting for what becomes of it"):
                outcome = await outcome_of(memory, turn, wait_s)
        except asyncio.CancelledError:
            say(f"it is kept as turn {turn.turn_id}; {_how_to_follow(turn)}")
            raise
    if as_json:
        print_json(
            {
                "turn_id": turn.turn_id,
                "state": outcome.state,
                "settled": outcome.is_settled,
                "reason": outcome.reason,
                "facts": [fact_document(row) for row in outcome.facts],
                "plans": [record_document(plan) for plan in outcome.plans],
            }
        )
    else:
        print_outcome(turn, outcome)
    return outcome.exit_code


def make_turn(text: str, user: str, conversation: str | None = None) -> ChatTurn:
    """Return a turn of *user* at this moment, in a conversation of its own when none is given.

    Raises:
        InvalidInput: one of them is empty, too long or no valid text.
    """
    given = {"TEXT": text, "--user": user} | (
        {} if conversation is None else {"--conversation": conversation}
    )
    for name, value in given.items():
        longest = _LONGEST if name == "TEXT" else MAX_USER_ID
        if not value.strip() or len(value) > longest:
            raise InvalidInput(
                f"{name} must have 1 to {longest:,} characters and not only blanks; mend it"
            )
        if not value.isascii() and _HALF.search(value):
            raise InvalidInput(f"{name} is no valid Unicode; send it as UTF-8")
    turn_id = new_id(time.time_ns() // 1_000_000)
    return ChatTurn(
        turn_id=turn_id,
        conversation_id=conversation or f"tell-{turn_id}",
        user_id=user,
        speaker="person",
        text=text.strip(),
        at=datetime.now(UTC),
    )


async def publish_turn(client: Client, turn: ChatTurn) -> None:
    """Return once *turn* is stored where the switchboard finds it."""
    async with open_outbox(Link(client)) as outbox:
        body = turn.model_dump_json(exclude_none=True).encode()
        await outbox.put(
            subjects.turns(turn.user_id or turn.conversation_id), body, turn.turn_id
        )


async def outcome_of(memory: UserMemory, turn: ChatTurn, wait_s: float) -> Outcome:
    """Return the outcome of *turn*, at the latest after *wait_s* seconds."""
    gives_up_at = time.monotonic() + wait_s
    pause_s = _LOOK_S
    while not (outcome := await _look(memory, turn)).is_settled:
        left_s = gives_up_at - time.monotonic()
        if left_s <= 0:
            break
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(_LONGEST_LOOK_S, 1.5 * pause_s)
    return outcome


async def _look(memory: UserMemory, turn: ChatTurn) -> Outcome:
    user = turn.user_id or ""
    turns = [
        row
        for row in await memory.turns.rows(user, _ROWS)
        if row.row_id == turn.turn_id
    ]
    if not turns:
        return Outcome(None)
    found = [(row, read_fact(row)) for row in await memory.facts.rows(user, _ROWS)]
    facts = sorted(
        (row for row, fact in found if fact and fact[0] == turn.turn_id),
        key=lambda row: row.row_id,
    )
    wanted = {row.plan_id for row in facts if row.plan_id}
    history = await memory.documents.history(user, limit=_ROWS) if wanted else []
    plans = [one for one in history if one.plan_id in wanted]
    # The turn is closed once its facts are published; all of them arrive in the table together, a moment later.
    has_learned = turns[0].reason == _LEARNED or (
        turns[0].note is not None and b'"fact_id"' in turns[0].note
    )
    is_on_its_way = has_learned and not facts
    return Outcome(
        "waiting" if is_on_its_way else turns[0].state, facts, plans, turns[0].reason
    )


def print_outcome(turn: ChatTurn, outcome: Outcome) -> None:
    """Print the outcome of *turn* for people."""
    if outcome.state is None:
        print(
            f"Kept as turn {turn.turn_id}; no worker has taken it yet: `tasklore up` runs them, also with "
            f"`--agents memory --agents switchboard`. {_how_to_follow(turn)}."
        )
        return
    if outcome.state == "failed":
        print(f"{styled('failed', 'red')} {one_line(outcome.reason)}")
    elif outcome.state == "needs_model":
        print(
            "It is kept until a model can be asked; TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL names one."
        )
    elif not outcome.facts and outcome.is_settled:
        print(
            "No fact was recognised in that; the turn itself is kept. Without a model only plain statements are"
            " recognised: TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL names one."
        )
    plans = {plan.plan_id: plan for plan in outcome.plans}
    for row in outcome.facts:
        found = read_fact(row)
        style = {"done": "green", "failed": "red"}.get(row.state, "yellow")
        state = styled(row.state.replace("_", " ").ljust(11), style)
        print(f"{state} {one_line(found[1].text if found else row.row_id)}")
        plan = plans.get(row.plan_id or "")
        for line in record_lines(plan) if plan is not None else ():
            print(f"  {line}")
        if row.reason:
            print(f"  {styled(one_line(row.reason), 'dim')}")
    if not outcome.is_settled:
        print(f"Still at it; {_how_to_follow(turn)}.")


def _how_to_follow(turn: ChatTurn) -> str:
    return f"`tasklore memory facts --user {shlex.quote(one_line(turn.user_id or ''))}` shows what comes of it"
