"""The recorded cases: what was said, what it is to come to, and the very messages that a model was sent for each.

`python -m tests.understanding.recorded FOLDER` writes the messages, 25 cases a file; what a model answers to them lies
in `tests/recorded/understanding_*.jsonl`, one `{"id", "answer"}` a line, and is never edited.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, TypeAdapter

from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.runtime.models.client import _response_format
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.answers import Reading
from tasklore.supervisor.understanding.outcome import (
    Interpretation,
    Several,
    Single,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.prompt import (
    SYSTEM,
    PersonalMemory,
    narrow,
    question,
    sources_of,
)
from tasklore.supervisor.understanding.routing import Router
from tests.understanding.recorded_agents import TASKS, cards

HERE = Path(__file__).parent
#: What a strong model answered on the day of the name, in a session that saw nothing but the messages.
RECORDED = HERE.parent / "recorded" / "understanding_2026-11-23.jsonl"
#: When every case is said: a Monday.
NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Berlin"))
CATALOGUE = Catalogue(cards())
#: Cases in one file of messages.
_BATCH = 25


T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class Given(Generic[T]):
    """An answer, as `tasklore.runtime.models.llm.Reply` has it."""

    value: T


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
            common: dict[str, Any] = {
                "conversation_id": "c",
                "user_id": "ann",
                "at": at,
                "request_id": f"r{place}",
            }
            turns.append(
                ChatTurn(
                    turn_id=f"{place}-p", speaker="person", text=one["person"], **common
                )
            )
            agent_id, _, name = one.get("task", "").partition(".")
            call = TaskCall(name=name, parameters=one["parameters"]) if name else None
            common |= {"agent_id": agent_id or None, "task": call}
            turns.append(
                ChatTurn(
                    turn_id=f"{place}-a",
                    speaker="assistant",
                    text=one["assistant"],
                    **common,
                )
            )
        return turns

    @property
    def recollection(self) -> Sequence[PersonalMemory]:
        """What is remembered of the person."""
        return tuple(
            PersonalMemory(f"notes {place}", text)
            for place, text in enumerate(self.memory)
        )

    async def of(self, user_id: str | None, text: str) -> Sequence[PersonalMemory]:
        """Return that, as the interpreter looks it up."""
        return self.recollection if user_id else ()


@cache
def cases() -> tuple[Case, ...]:
    """Return every case."""
    return tuple(
        Case(**one)
        for one in json.loads((HERE / "recorded_cases.json").read_text("utf-8"))
    )


@cache
def answers() -> Mapping[str, Any]:
    """Return what a model answered to each case, as it was recorded."""
    lines = RECORDED.read_text("utf-8").splitlines()
    return {one["id"]: one["answer"] for one in map(json.loads, lines)}


class Model:
    """A model that gives the same answer as often as it is asked, in this process."""

    configured = True

    def __init__(self, answer: Mapping[str, Any] | LlmError) -> None:
        self.answer = answer
        self.users: list[str] = []

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,
    ) -> Given[T]:
        """Answer."""
        self.users.append(user)
        if isinstance(self.answer, LlmError):
            raise self.answer
        return Given(answer.model_validate(self.answer))


def messages(case: Case) -> dict[str, Any]:
    """Return what a model is sent for *case*, with the id of it."""
    tasks = Router(CATALOGUE).tasks
    sources = sources_of(case.say, case.previous, case.recollection, NOW)
    user = question(sources, *narrow(tasks, lambda: tasks))
    schema: Any = _response_format(Reading)
    return {
        "id": case.id,
        "system": SYSTEM,
        "user": user,
        "schema": schema["json_schema"]["schema"],
    }


def judge(case: Case, found: Interpretation) -> str:
    """Return what *found* is by the key of *case*: "started", "shown" for a yes first, "asked", "unable" or "wrong"."""
    parts = list(found.parts) if isinstance(found, Several) else [found]
    wanted = list(case.key)
    if not wanted:
        return (
            "unable" if all(isinstance(part, Unfitting) for part in parts) else "wrong"
        )
    if len(parts) != len(wanted):
        return "wrong"
    ways = {_judged(part, key) for part, key in zip(parts, wanted, strict=True)}
    return next((way for way in ("wrong", "shown", "asked") if way in ways), "started")


def _judged(part: Single, key: Mapping[str, Any]) -> str:
    if isinstance(part, Unfitting):
        return "unable" if key.get("unfit", "\0") in part.text else "wrong"
    if "unfit" in key:
        return "wrong"
    call = part.task if isinstance(part, Understood) else part.call
    if call is None or f"{part.agent_id}.{call.name}" != key["task"]:
        return "wrong"
    asks = set(key.get("asks", ()))
    missing = set() if isinstance(part, Understood) else set(part.missing)
    if missing != asks or not _is_worth(
        key["task"], call.parameters, key["parameters"]
    ):
        return "wrong"
    return "asked" if asks else "started" if isinstance(part, Understood) else "shown"


def _is_worth(task: str, said: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    """Return whether *said* are the values of *key*, however either is spelled; {"any": [...]} names several."""
    if not said.keys() <= key.keys():
        return False
    for name, wanted in key.items():
        allowed = wanted["any"] if isinstance(wanted, Mapping) else [wanted]
        if not any(
            collapse_space(task, name, said.get(name))
            == collapse_space(task, name, one)
            for one in allowed
        ):
            return False
    return True


def collapse_space(task: str, name: str, value: Any) -> Any:
    """Return *value* of the field *name* of *task* as the task itself would have it, one for every spelling."""
    if value is None:
        return None
    parameters = TASKS[task][0]
    if isinstance(value, str) and parameters.model_fields[name].annotation in (
        str,
        str | None,
    ):
        return value.casefold().strip()
    reading = parameters._readings[name]
    read = reading.read(value) if reading.is_read else value
    adapter: TypeAdapter[Any] = TypeAdapter(parameters.model_fields[name].annotation)
    return adapter.validate_python(read)


def write_batches(folder: Path) -> None:
    """Write the messages of all cases to files of *folder*."""
    for first in range(0, len(cases()), _BATCH):
        lines = [
            json.dumps(messages(case), ensure_ascii=False)
            for case in cases()[first : first + _BATCH]
        ]
        (folder / f"batch_{first // _BATCH + 1:02}.jsonl").write_text(
            "\n".join(lines) + "\n", "utf-8"
        )


if __name__ == "__main__":
    write_batches(Path(sys.argv[1]))
