"""`tasklore memory tell`: a turn of a chat, and what became of it."""

import asyncio
import re
import shlex
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from nats.aio.client import Client

from contracts import subjects
from contracts.errors import InvalidInput
from contracts.identifiers import new_id
from contracts.messages import ChatTurn
from memory.documents.storage.history import PlanRecord
from memory.documents.storage.reader import MAX_USER_ID
from memory.queues.claims import KnownRow
from runtime.messaging.connection import connected
from runtime.messaging.link import Link
from runtime.messaging.outbox import open_outbox
from tasklore.exits import FAILED, OK
from tasklore.memory.facts import fact_document, read_fact
from tasklore.memory.history import record_document, record_lines
from tasklore.memory.lines import one_line
from tasklore.memory.stores import UserMemory, user_memory
from tasklore.places import current_endpoints, demand_listener
from tasklore.render.screen import patience, print_json, say, styled

#: Seconds between the first two looks at what became of the turn: below what a person notices. Each pause is half as
#: long again as the one before, up to a point where a system that is busy is not kept busy by us.
_LOOK_S, _LOOK_AT_LEAST_S = 0.05, 0.5
#: With which word the host of the switchboard closes a turn that told something.
_LEARNED = "learned"
#: Rows of a table that are looked through for those of one turn.
_ROWS = 1_000
#: States in which a fact stays until somebody else does something.
_SETTLED = frozenset({"done", "failed", "rejected", "conflict", "needs_model"})
#: Characters of one turn, as of a request.
_LONGEST = 20_000
#: Half of a surrogate pair: what Python makes of an argument that is no UTF-8.
_HALF = re.compile("[\ud800-\udfff]")


class Outcome(NamedTuple):
    """What became of a turn: its state, None while nobody has read it, and its facts with the plans they led to.

    `reason` is why it came to that state.
    """

    state: str | None
    facts: Sequence[KnownRow] = ()
    plans: Sequence[PlanRecord] = ()
    reason: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will come of it by itself."""
        return self.state in _SETTLED and all(fact.state in _SETTLED for fact in self.facts)

    @property
    def exit_code(self) -> int:
        """How a command ends that waited for it: failed also when nothing was decided about it within the wait."""
        has_failed = self.state == "failed" or any(fact.state == "failed" for fact in self.facts)
        return OK if self.is_settled and not has_failed else FAILED


async def tell_aloud(text: str, user: str, *, conversation: str | None, wait_s: float, as_json: bool) -> int:
    """Publish *text* as a turn of *user*, wait for what becomes of it, print that, and return the exit code."""
    turn = make_turn(text, user, conversation)
    url = current_endpoints().nats
    await demand_listener(url)
    # Opened before anything is said: what is said is kept, and a person wants to see what came of it.
    async with user_memory() as memory:
        async with connected(url, "tasklore-tell") as client:
            await publish_turn(client, turn)
        outcome = await _waited(memory, turn, wait_s)
    if as_json:
        print_json(_document(turn, outcome))
    else:
        print_outcome(turn, outcome)
    return outcome.exit_code


async def _waited(memory: UserMemory, turn: ChatTurn, wait_s: float) -> Outcome:
    """Return what became of *turn*; whoever does not want to wait is told that it is kept."""
    try:
        async with patience("waiting for what becomes of it"):
            return await outcome_of(memory, turn, wait_s)
    except asyncio.CancelledError:
        say(f"it is kept as turn {turn.turn_id}; {_later(turn)}")
        raise


def _demand_tellable(**said: str) -> None:
    """Return when everything of *said* can be told, by the name it has on the command line.

    Raises:
        InvalidInput: one is empty, too long or no text.
    """
    for name, text in said.items():
        shown = "TEXT" if name == "text" else f"--{name}"
        longest = _LONGEST if name == "text" else MAX_USER_ID
        if not text.strip() or len(text) > longest:
            raise InvalidInput(f"{shown} must have 1 to {longest:,} characters and not only blanks; mend it")
        if not text.isascii() and _HALF.search(text):
            raise InvalidInput(f"{shown} is no valid Unicode; send it as UTF-8")


def make_turn(text: str, user: str, conversation: str | None = None) -> ChatTurn:
    """Return what *user* says now, in a conversation of its own when none is given."""
    _demand_tellable(text=text, user=user)
    if conversation is not None:
        _demand_tellable(conversation=conversation)
    now = datetime.now(UTC)
    turn_id = new_id(time.time_ns() // 1_000_000)
    return ChatTurn(
        turn_id=turn_id,
        conversation_id=conversation or f"tell-{turn_id}",
        user_id=user,
        speaker="person",
        text=text.strip(),
        at=now,
    )


async def publish_turn(client: Client, turn: ChatTurn) -> None:
    """Return once *turn* is stored where the switchboard finds it."""
    async with open_outbox(Link(client)) as outbox:
        body = turn.model_dump_json(exclude_none=True).encode()
        await outbox.put(subjects.turns(turn.user_id or turn.conversation_id), body, turn.turn_id)


async def outcome_of(memory: UserMemory, turn: ChatTurn, wait_s: float) -> Outcome:
    """Return what became of *turn*, at the latest after *wait_s* seconds."""
    gives_up_at, pause_s = time.monotonic() + wait_s, _LOOK_S
    while not (outcome := await _look(memory, turn)).is_settled:
        left_s = gives_up_at - time.monotonic()
        if left_s <= 0:
            break
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(_LOOK_AT_LEAST_S, 1.5 * pause_s)
    return outcome


async def _look(memory: UserMemory, turn: ChatTurn) -> Outcome:
    user = turn.user_id or ""
    turns = [row for row in await memory.turns.rows(user, _ROWS) if row.row_id == turn.turn_id]
    if not turns:
        return Outcome(None)
    rows = await memory.facts.rows(user, _ROWS)
    facts = sorted((row for row in rows if _is_of(row, turn)), key=lambda row: row.row_id)
    wanted = {row.plan_id for row in facts if row.plan_id}
    plans = (
        [one for one in await memory.documents.history(user, limit=_ROWS) if one.plan_id in wanted] if wanted else []
    )
    # The turn is closed once its facts are published; all of them arrive in the table together, a moment later.
    has_learned = turns[0].reason == _LEARNED or (turns[0].note is not None and b'"fact_id"' in turns[0].note)
    is_on_its_way = has_learned and not facts
    return Outcome("waiting" if is_on_its_way else turns[0].state, facts, plans, turns[0].reason)


def _is_of(row: KnownRow, turn: ChatTurn) -> bool:
    found = read_fact(row)
    return found is not None and found[0] == turn.turn_id


def print_outcome(turn: ChatTurn, outcome: Outcome) -> None:
    """Print what became of *turn*, for people."""
    if outcome.state is None:
        print(
            f"Kept as turn {turn.turn_id}; no worker has taken it yet: `tasklore up` runs them, also with "
            f"`--agents memory --agents switchboard`. {_later(turn)}."
        )
        return
    if outcome.state == "failed":
        print(f"{styled('failed', 'red')} {one_line(outcome.reason)}")
    elif outcome.state == "needs_model":
        print("It is kept until a model can be asked; TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL names one.")
    elif not outcome.facts and outcome.is_settled:
        print("Nothing to remember in that.")
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
        print(f"Still at it; {_later(turn)}.")


def _later(turn: ChatTurn) -> str:
    return f"`tasklore memory facts --user {shlex.quote(one_line(turn.user_id or ''))}` shows what comes of it"


def _document(turn: ChatTurn, outcome: Outcome) -> dict[str, Any]:
    return {
        "turn_id": turn.turn_id,
        "state": outcome.state,
        "settled": outcome.is_settled,
        "reason": outcome.reason,
        "facts": [fact_document(row) for row in outcome.facts],
        "plans": [record_document(plan) for plan in outcome.plans],
    }
