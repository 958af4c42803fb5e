"""`tasklore approvals list|show|approve|reject|answer`: looking at questions and answering them."""

import contextlib
import getpass
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from tasklore.commands.places import open_nats, open_redis
from tasklore.commands.render.columns import print_facts
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import patience, print_json, print_table, printable
from tasklore.contracts.admission.waits import demand_person, parse_wait_id
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.ledger.waits import Waits
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.signatures import open_signer
from tasklore.runtime.servers.valkey import DEADLINE_S
from tasklore.runtime.settings import Settings
from tasklore.supervisor.approvals.answers import Answers, Person
from tasklore.supervisor.approvals.questions import list_questions, view_of
from tasklore.supervisor.json_schemas import JsonSchemas

#: Characters of a question in a list; `show` and `--json` have all.
_WIDTH = 80


async def print_questions(limit: int, task_id: str | None, *, as_json: bool) -> None:
    """Print a line for each of at most *limit* open questions, of one task if given; what ends first is on top.

    Raises:
        InvalidInput: *task_id* is none.
    """
    if task_id is not None:
        checked_name(task_id, "--task")
    async with _open_answers() as answers, patience("reading questions"):
        found = await list_questions(
            answers.waits, limit, lambda _state: True, task_id=task_id
        )
    found = tuple(sorted(found, key=lambda one: one.until))
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    if not found:
        print("No task asks anybody." if task_id is None else f"{task_id} asks nobody.")
        return
    rows = []
    for one in found:
        text = " ".join(printable(one.question).split())
        left = read_aloud(
            max(0, int((one.until - datetime.now(UTC)) / timedelta(milliseconds=1)))
        )
        asked = ", ".join(one.who) or "anybody"
        rows.append(
            (
                one.id,
                left,
                one.agent_id,
                asked,
                text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}...",
            )
        )
    print_table(("ID", "TIME LEFT", "AGENT", "ASKED", "QUESTION"), rows)


async def print_question(which: str, *, as_json: bool) -> None:
    """Print everything about one question.

    Raises:
        InvalidInput: there is none.
    """
    task_id, slot = parse_wait_id(which)
    async with _open_answers() as answers:
        one = view_of(task_id, await answers.read(task_id, slot))
    if as_json:
        print_json(one.model_dump(mode="json"))
        return
    answer = one.answer
    print_facts(
        {
            "question": one.question,
            "state": one.state,
            "asked": ", ".join(one.who) or "anybody",
            "task": f"{one.task_id} ({one.agent_id}.{one.task})",
            "since": _spell(one.asked_at),
            "until": _spell(one.until),
            "answer": None
            if answer is None
            else json.dumps(answer.value, ensure_ascii=False),
            "answered": None
            if answer is None
            else f"by {answer.by or 'its time'}, {_spell(answer.at)}, {answer.door}",
            "fields": None
            if one.answer_schema is None
            else json.dumps(one.answer_schema),
            "digest": one.digest,
        }
    )
    for refusal in one.refused:
        print_facts(
            {
                "refused": f"{refusal.by}, {_spell(refusal.at)}, {refusal.door}: {refusal.why}"
            }
        )
    if one.refused_left_out:
        print_facts({"refused": f"{one.refused_left_out:,} more, not kept"})


async def answer_question(which: str, value: JsonValue, who: Sequence[str]) -> None:
    """Answer a question as *who*, and say that it counts.

    Raises:
        AnswerRefused: it does not.
        InvalidInput: it does not fit the question.
    """
    task_id, slot = parse_wait_id(which)
    names = [demand_person(one) for one in who] or [f"user:{getpass.getuser()}"]
    async with _open_answers() as answers:
        await answers.answer(
            task_id, slot, value, Person(names[0], "cli", frozenset(names))
        )
    print(f"Answered {which} as {names[0]}; its task goes on.")


def parse_answer(text: str) -> JsonValue:
    """Return the JSON in *text*.

    Raises:
        InvalidInput: it is none.
    """
    try:
        answer: JsonValue = json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"{text!r} is no JSON ({error}); quote it for the shell"
        ) from error
    return answer


@contextlib.asynccontextmanager
async def _open_answers() -> AsyncIterator[Answers]:
    """Open the questions of the system that runs here."""
    keep = timedelta(days=Settings.load().ledger_keep_days)
    async with (
        open_nats("tasklore-approvals") as client,
        open_redis("tasklore-approvals", DEADLINE_S) as redis,
        open_outbox(Link(client)) as outbox,
    ):
        waits = Waits(redis, keep=keep, sign=open_signer(access_of()))
        schemas = JsonSchemas()
        try:
            yield Answers(waits, outbox, schemas)
        finally:
            await schemas.close()


def _spell(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
