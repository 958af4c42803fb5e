"""Cases of the second look at facts at stake: the prompts as a model gets them, and how good recorded answers are.

`python -m tests.memory_reading.second_looks --out DIR` writes each prompt that has no answer yet to `DIGEST.txt`, with
the schema of the answer. `second_looks.json` has the cases: the turn, the turn before it, and facts as a slipping
model took them from it, each with the verdict that is right as `key`. It was written before any answer was seen; who
answers sees the prompts alone. Answers lie in `tests/recorded/second_look_*.jsonl`, one `{"digest", "answer"}` a line.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tasklore.contracts.messages import ChatTurn
from tasklore.workers.agent_files import load_agent_files
from tasklore.workers.agents.switchboard.answer import HeardFact
from tasklore.workers.agents.switchboard.checks import Checked
from tasklore.workers.agents.switchboard.prompt import PromptScene
from tasklore.workers.agents.switchboard.second_look import (
    FOLDER,
    SecondLook,
    question_of,
)

RECORDED = Path(__file__).parents[1] / "recorded"
_AT = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """One question, and the right verdict on each of its facts, in order."""

    case_id: str
    prompt: str
    keys: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What an answer to the prompt is filed under."""
        return blake2b(self.prompt.encode(), digest_size=12).hexdigest()


@dataclass
class Score:
    """How good the answers are.

    `let_pass` are facts that are not the person's own word and were called so, each with its case: the harm.
    `held_back` are own words that were not: a cost. `exact` counts verdicts that are right to the word.
    """

    cases: int = 0
    facts: int = 0
    exact: int = 0
    let_pass: list[str] = field(default_factory=list)
    held_back: list[str] = field(default_factory=list)


@cache
def cases() -> Sequence[Case]:
    """Return all cases."""
    raw = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return [_case(one) for one in raw["cases"]]


@cache
def answers() -> Mapping[str, Any]:
    """Return every recorded answer, by the digest of its prompt."""
    lines = (
        line
        for file in sorted(RECORDED.glob("second_look_*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    )
    return {one["digest"]: one["answer"] for one in map(json.loads, lines)}


def score(found: Mapping[str, Any]) -> Score:
    """Return how good the answers *found*, by digest of the prompt, are; cases without one do not count."""
    total = Score()
    for case in cases():
        if case.digest not in found:
            continue
        total.cases += 1
        answer = SecondLook.model_validate(found[case.digest])
        said = Counter(one.fact for one in answer.verdicts)
        verdicts = {one.fact: one.verdict for one in answer.verdicts}
        for number, key in enumerate(case.keys, start=1):
            total.facts += 1
            verdict = verdicts.get(number, "unsure") if said[number] < 2 else "unsure"
            total.exact += verdict == key
            if verdict == "own" and key != "own":
                total.let_pass.append(f"{case.case_id}: {key}")
            if verdict != "own" and key == "own":
                total.held_back.append(f"{case.case_id}: {verdict}")
    return total


def write_prompts(folder: Path) -> int:
    """Write each prompt that has no answer yet into *folder*; return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    left = [case for case in cases() if case.digest not in answers()]
    for case in left:
        # Its name gives no key away.
        (folder / f"{case.digest}.txt").write_text(case.prompt, "utf-8")
    return len(left)


def _case(raw: Mapping[str, Any]) -> Case:
    turns = list(_turns(raw))
    scene = PromptScene((turns[-1],), tuple(turns))
    facts = [_checked(one) for one in raw["facts"]]
    system = load_agent_files(FOLDER).render()
    schema = json.dumps(SecondLook.model_json_schema(), sort_keys=True)
    prompt = (
        f"{system}\n\n{question_of(scene, facts)}\n\n"
        f"Answer with JSON of this schema:\n{schema}\n"
    )
    return Case(raw["id"], prompt, tuple(one["key"] for one in raw["facts"]))


def _turns(raw: Mapping[str, Any]) -> Iterator[ChatTurn]:
    said = [("assistant", raw["before"])] if raw["before"] else []
    for number, (speaker, text) in enumerate([*said, ("person", raw["turn"])]):
        yield ChatTurn.model_validate(
            {
                "turn_id": f"t{number}",
                "conversation_id": "c",
                "user_id": "u1",
                "speaker": speaker,
                "text": text,
                "at": _AT + timedelta(minutes=number),
            }
        )


def _checked(raw: Mapping[str, str]) -> Checked:
    heard = HeardFact(
        statement=raw["fact"],
        category=raw["category"],
        quotation=raw["quotation"],
        turn=1,
        relation=raw["relation"],
    )
    return Checked(heard, raw["fact"], raw["quotation"], None, None, ())


def main() -> None:
    """Write the prompts that are left, and print how good the answers are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    left = write_prompts(arguments.out)
    sys.stdout.write(f"{left} prompts are left in {arguments.out}\n")
    sys.stdout.write(f"{score(answers())}\n")


if __name__ == "__main__":
    main()
