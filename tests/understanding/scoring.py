"""Reading a corpus and judging each reading: right, asked about, or a task served that was not meant."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import thread_time_ns
from typing import Any, Literal

from tasklore.contracts.errors import InvalidParameters
from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Interpretation,
    Several,
    Understood,
)
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.understanding.agents import EVERYDAY, NOW, Cast

#: "right" is what the key says. "asked" is a question about a task that the key has, where it has one; "refused" any
#: other question, or saying that nothing fits. Where nothing may start, both are a way out. "wrong" was served.
Verdict = Literal["right", "asked", "refused", "wrong"]
#: A key is one task, several, "asks" (a question is right), "none" (no task may start), or `one_of` some of these.
Key = str | dict[str, Any] | list[dict[str, Any]]

#: What a text may begin with or not: "the notary" is as good as "notary".
_ARTICLE = re.compile(r"^(?:a|an|the|my|our|some)\s+")


@dataclass(frozen=True)
class Judged:
    """One sentence, what was made of it, and how long that took."""

    say: str
    key: Key
    found: Interpretation
    verdict: Verdict
    cpu_ms: float

    def __str__(self) -> str:
        """Tell what was expected and found, for the one who has to mend it."""
        return (
            f"{self.verdict}: {self.say!r}\n  expected {self.key}\n  found {self.found}"
        )


def conversations(path: Path) -> list[list[dict[str, Any]]]:
    """Return the conversations of a corpus, each the list of its sentences with their keys."""
    return [row.get("turns", [row]) for row in json.loads(path.read_text("utf-8"))]


async def judge_corpus(
    rows: Sequence[Sequence[dict[str, Any]]],
    interpreter: RuleInterpreter,
    cast: Cast = EVERYDAY,
) -> list[Judged]:
    """Say every sentence of *rows* to *interpreter*, for the agents of *cast*, and judge what it makes of it."""
    judged = []
    for row in rows:
        previous: list[ChatTurn] = []
        for turn in row:
            started = thread_time_ns()
            found = await interpreter.interpret(
                turn["say"], catalogue=cast.catalogue, previous=previous, now=NOW
            )
            spent = (thread_time_ns() - started) / 1e6
            judged.append(
                Judged(
                    turn["say"],
                    turn["key"],
                    found,
                    verdict_on(found, turn["key"], cast),
                    spent,
                )
            )
            previous += _turns(turn, found)
    return judged


def verdict_on(found: Interpretation, key: Key, cast: Cast = EVERYDAY) -> Verdict:
    """Return how *found* stands to *key*."""
    if isinstance(key, dict) and "one_of" in key:
        verdicts: list[Verdict] = [
            verdict_on(found, one, cast) for one in key["one_of"]
        ]
        return min(verdicts, key=["right", "asked", "refused", "wrong"].index)
    parts = found.parts if isinstance(found, Several) else (found,)
    served = [part for part in parts if isinstance(part, Understood)]
    questions = [part for part in parts if isinstance(part, Clarification)]
    if isinstance(key, str):
        if served:
            return "wrong"
        if key == "asks":
            return "right" if questions else "refused"
        return "asked" if questions else "right"
    open_tasks = list(key) if isinstance(key, list) else [key]
    for part in served:
        meant = next((task for task in open_tasks if _is_meant(part, task, cast)), None)
        if meant is None:
            return "wrong"
        open_tasks.remove(meant)
    if not open_tasks:
        return "right"
    if served and len(parts) == len(served):
        return "wrong"  # one of several tasks was dropped without a word
    agents = {task["agent"] for task in open_tasks}
    return (
        "asked"
        if any(part.agent_id is None or part.agent_id in agents for part in questions)
        else "refused"
    )


def _is_meant(part: Understood, task: dict[str, Any], cast: Cast) -> bool:
    """Return whether *part* is *task* with the same values, compared as the task's own class reads them."""
    if (part.agent_id, part.task.name) != (task["agent"], task["task"]):
        return False
    parameters = cast.parameters[part.agent_id, part.task.name]
    try:
        found = parameters.read(part.task.parameters)
    except InvalidParameters:
        return False
    return any(
        _compared(found) == _compared(parameters.read(values))
        for values in _wordings(task["parameters"])
    )


def _wordings(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield *values* with each of the wordings that a text may have."""
    name = next(
        (name for name, value in values.items() if isinstance(value, dict)), None
    )
    if name is None:
        yield values
        return
    for wording in values[name]["one_of"]:
        yield from _wordings({**values, name: wording})


def _compared(parameters: Any) -> dict[str, Any]:
    """Return the values of *parameters*, texts without regard to case or to an article before them."""
    return {name: _evened(value) for name, value in parameters}


def _evened(value: Any) -> Any:
    if isinstance(value, str):
        return _ARTICLE.sub("", value.casefold())
    return tuple(map(_evened, value)) if isinstance(value, tuple) else value


def _turns(turn: dict[str, Any], found: Interpretation) -> list[ChatTurn]:
    """Return the person's turn and the assistant's; after a task the one that was meant, whatever was made of it."""
    person = ChatTurn(
        turn_id="p", conversation_id="c", speaker="person", text=turn["say"], at=NOW
    )
    key = turn["key"]
    text = "Done."
    agent_id = None
    call = None
    if isinstance(key, dict) and "task" in key:
        values = next(_wordings(key["parameters"]))
        agent_id = key["agent"]
        call = TaskCall(name=key["task"], parameters=values)
    elif isinstance(found, Clarification):
        text = found.question
        agent_id = found.agent_id
        call = found.call
    answer = ChatTurn(
        turn_id="a",
        conversation_id="c",
        speaker="assistant",
        text=text,
        at=NOW,
        agent_id=agent_id,
        task=call,
    )
    return [person, answer]


def share(judged: Sequence[Judged], *verdicts: Verdict) -> float:
    """Return the part of *judged*, 0 to 1, that came to one of *verdicts*."""
    return sum(one.verdict in verdicts for one in judged) / len(judged)


def summary_of(judged: Sequence[Judged]) -> str:
    """Return the figures of one corpus on a line."""
    figures = ", ".join(
        f"{verdict} {share(judged, verdict):.1%}"
        for verdict in ("right", "asked", "refused", "wrong")
    )
    times = sorted(one.cpu_ms for one in judged)
    return (
        f"{len(judged)} sentences: {figures}; CPU p50 {times[len(times) // 2]:.2f} ms"
    )
