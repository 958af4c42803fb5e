"""The recorded cases: what was said, what it is to come to, and the very messages that a model was sent for each.

`python -m tests.understanding.recorded FOLDER` writes the messages, 25 cases a file; what a model answers to them lies in
`tests/recorded/understanding_*.jsonl`, one `{"id", "answer"}` a line, and is never edited.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from contracts.messages import ChatTurn, TaskCall
from runtime.llm_client import _response_format
from supervisor.catalogue import Catalogue
from supervisor.understanding.answers import Reading
from supervisor.understanding.prompt import SYSTEM, Recollection, Remembered, narrow, question, sources_of
from supervisor.understanding.routing import Task
from supervisor.understanding.schema import task_schema
from tests.understanding.recorded_agents import cards

HERE = Path(__file__).parent
#: When every case is said: a Monday.
NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Berlin"))
CATALOGUE = Catalogue(cards())
#: Cases in one file of messages.
_BATCH = 25


@dataclass(frozen=True)
class Case:
    """One utterance, what was said and is remembered before it, and its *key*: the tasks that it asks for."""

    id: str
    lang: str
    kind: str
    say: str
    key: Sequence[Mapping[str, Any]]
    before: Sequence[Mapping[str, Any]] = ()
    memory: Sequence[str] = ()

    @property
    def previous(self) -> list[ChatTurn]:
        """The turns before it, a minute apart."""
        turns: list[ChatTurn] = []
        for place, one in enumerate(self.before):
            at = NOW - timedelta(minutes=len(self.before) - place)
            common: dict[str, Any] = {"conversation_id": "c", "user_id": "ann", "at": at, "request_id": f"r{place}"}
            turns.append(ChatTurn(turn_id=f"{place}-p", speaker="person", text=one["person"], **common))
            agent_id, _, name = one.get("task", "").partition(".")
            call = TaskCall(name=name, parameters=one["parameters"]) if name else None
            common |= {"agent_id": agent_id or None, "task": call}
            turns.append(ChatTurn(turn_id=f"{place}-a", speaker="assistant", text=one["assistant"], **common))
        return turns

    @property
    def recollection(self) -> Recollection:
        """What is remembered of the person."""
        return Recollection(tuple(Remembered(f"notes {place}", text) for place, text in enumerate(self.memory)))

    async def of(self, user_id: str | None, text: str) -> Recollection:
        """Return that, as the interpreter looks it up."""
        return self.recollection if user_id else Recollection()


@cache
def cases() -> tuple[Case, ...]:
    """Return every case."""
    return tuple(Case(**one) for one in json.loads((HERE / "recorded_cases.json").read_text("utf-8")))


def messages(case: Case) -> dict[str, Any]:
    """Return what a model is sent for *case*, with the id of it."""
    tasks = [Task(offer, task_schema(offer.task)) for offer in CATALOGUE.tasks()]
    sources = sources_of(case.say, case.previous, case.recollection, NOW)
    user = question(sources, *narrow(tasks, tasks))
    schema: Any = _response_format(Reading)
    return {"id": case.id, "system": SYSTEM, "user": user, "schema": schema["json_schema"]["schema"]}


def write_batches(folder: Path) -> None:
    """Write the messages of all cases to files of *folder*."""
    for first in range(0, len(cases()), _BATCH):
        lines = [json.dumps(messages(case), ensure_ascii=False) for case in cases()[first : first + _BATCH]]
        (folder / f"batch_{first // _BATCH + 1:02}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    write_batches(Path(sys.argv[1]))
