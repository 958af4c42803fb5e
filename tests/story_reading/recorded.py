"""Answers that a strong model gave to the prompts of story agents, replayed; and the prompts still to be answered.

`python -m tests.story_reading.recorded CHAPTERS.json --out DIR` has the chapters of each story analysed one after the
other, and writes each prompt that has no answer yet to a file of its own, `CHAPTER-SECTION-DIGEST.txt`. Later prompts
show what earlier answers left: it is run again after each round, until it writes nothing; then it prints precision and
recall of each section, contradictions found, and reductions. `--part` scores one part alone; all chapters before it are
told nevertheless. `--calls grouped|one` measures shared questions.

CHAPTERS.json is `{"stories": [{"id", "characters", "locations", "before", "chapters"}]}`, or `{"story", "chapters"}`.
A chapter is `{"id", "voice", "part", "text", "key"}`; the key lists what there is to be found, `optional` what may be
found, too: words with alternatives split by `|`. Answers lie in `tests/recorded/story_*.jsonl`, one `{"digest",
"answer"}` a line.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Entity,
    StoryBase,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
)
from tasklore.contracts.errors import LlmTimeout
from tasklore.memory.rendering.tokens import counter
from tasklore.runtime.models.llm import Expense, LlmSettings, Reply
from tests.story_reading.scores import Score
from tests.story_reading.stage import Telling

RECORDED = Path(__file__).parents[1] / "recorded"


@cache
def answers() -> Mapping[str, Any]:
    """Return every recorded answer, by the digest of its prompt."""
    lines = (
        line
        for file in sorted(RECORDED.glob("story_*.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    )
    return {one["digest"]: one["answer"] for one in map(json.loads, lines)}


@dataclass
class Replay:
    """A model that gives the recorded answer to each prompt, and none to one that has none; those are `missing`."""

    configured: bool = True
    calls: int = 0
    tokens: int = 0
    missing: dict[str, tuple[str, str]] = field(default_factory=dict)

    def role(self, name: str) -> Any:
        """Return who answers."""
        return LlmSettings().role(name)

    async def ask(
        self, role: str, answer: Any, *, system: str, user: str, **_options: object
    ) -> Any:
        """Answer as recorded.

        Raises:
            LlmTimeout: nobody did; the prompt is noted.
        """
        schema = json.dumps(answer.model_json_schema(), sort_keys=True)
        prompt = f"{system}\n\n{user}\n\nAnswer with JSON of this schema:\n{schema}\n"
        digest = blake2b(prompt.encode(), digest_size=12).hexdigest()
        if digest not in answers():
            self.missing[digest] = role, prompt
            raise LlmTimeout(f"no answer to {digest} is recorded")
        self.calls += 1
        self.tokens += counter()(system) + counter()(user) + counter()(schema)
        return Reply(
            answer.model_validate(answers()[digest]),
            Expense(),
            self.role(role).model,
            1,
            1.0,
        )


def base_of(story: Mapping[str, Any]) -> StoryBase:
    """Return where *story* begins."""
    before = story.get("before", story)
    people = [_entity("character", one) for one in story.get("characters", ())]
    places = [_entity("location", one) for one in story.get("locations", ())]
    memories = [
        StoryMemory(
            id=one.get("id") or f"MEM-000-{number}",
            character=one.get("who") or one.get("character") or "",
            summary=one.get("summary") or one["text"],
            text=one.get("text") or "",
        )
        for number, one in enumerate(before.get("memories", ()), 1)
    ]
    threads = [
        StoryThread(
            id=one.get("id") or f"THREAD-{number:03}",
            title=one["title"],
            text=one.get("text", ""),
        )
        for number, one in enumerate(before.get("threads", ()), 1)
    ]
    facts = [
        KnownFact(subject=one["subject"], fact=one["fact"], source="before")
        for one in before.get("facts", ())
    ]
    return StoryBase(
        settings=StorySettings(
            story_id=re.sub(r"\W+", "-", str(story.get("id", "story")))[:60] or "story"
        ),
        entities=(*people, *places),
        memories=tuple(memories),
        threads=tuple(threads),
        knowledge=tuple(facts),
    )


def _entity(kind: Any, told: Mapping[str, Any]) -> Entity:
    lines = [f"- {fact}" for fact in told.get("facts", ())]
    text = "\n".join([f"# {told['name']}", "", f"- Kind: {kind}", "", *lines])
    return Entity(
        name=told["name"],
        kind=kind,
        aliases=tuple(told.get("aliases", ())),
        text=text,
        file=told["name"],
    )


async def run(
    stories: Sequence[Mapping[str, Any]], out: Path | None, part: str | None, calls: str
) -> tuple[Score, Replay, int]:
    """Return the score over all chapters of *part* that are answered, the model, and how many prompts are not.

    Of a story only what stands before the first chapter with an unanswered prompt is told: the rest rests on it.
    """
    total = Score()
    every = Replay()
    unanswered = 0
    for story in stories:
        telling = Telling(base_of(story), calls)
        for number, chapter in enumerate(story["chapters"], 1):
            model = Replay()
            response = StoryResponse(
                number=number, chapter=number, text=chapter["text"]
            )
            found = await telling.tell(response, model)
            every.calls = every.calls + model.calls
            every.tokens = every.tokens + model.tokens
            unanswered += len(model.missing)
            for digest, (role, prompt) in (
                model.missing.items() if out is not None else ()
            ):
                _write(out / f"{chapter['id']}-{role}-{digest}.txt", prompt)
            if model.missing:
                break
            if part in (None, chapter["part"]):
                total.add(chapter, found)
    return total, every, unanswered


def _write(file: Path, prompt: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(prompt, "utf-8")


def stories_in(file: Path) -> list[dict[str, Any]]:
    """Return the stories of *file*, each with its chapters."""
    body = json.loads(file.read_text("utf-8"))
    return (
        list(body["stories"])
        if "stories" in body
        else [{**body["story"], "chapters": body["chapters"]}]
    )


if __name__ == "__main__":
    reader = argparse.ArgumentParser()
    reader.add_argument("chapters", type=Path)
    reader.add_argument("--out", type=Path)
    reader.add_argument("--part", choices=("development", "held"))
    reader.add_argument("--calls", choices=("ten", "grouped", "one"), default="ten")
    given = reader.parse_args()
    score, replay, left = asyncio.run(
        run(stories_in(given.chapters), given.out, given.part, given.calls)
    )
    lines = [
        *score.lines(),
        f"{replay.calls} calls, {replay.tokens:,} tokens asked",
        f"{left} prompts without an answer",
    ]
    sys.stdout.write("\n".join([*lines, *score.misses]) + "\n")
