"""An oracle: a model that answers right by construction, from a key, over the very prompts that a model is sent.

What a key says of an item is looked up in the prompt by the item's text, and of a turn by its words; an item that the
prompt does not show cannot be named, as by any model.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasklore.contracts.errors import LlmError
from tasklore.runtime.models.llm import Expense, Reply
from tasklore.workers.agents.switchboard.second_look import SecondLook
from tasklore.workers.testing import ScriptedLlm

_ITEM = re.compile(r"(#\d+) ([\w.\[\]\"]+): (.*?)(?: \(\d{4}-\d\d-\d\d\))?\Z")
_TURN = re.compile(r"(\d+)(?: \d{4}-\d\d-\d\d)?: (\".*\")\Z")


@dataclass(frozen=True)
class Prompt:
    """What a switchboard's model is asked, read back: items by mark, and the turns that are learned from, by number."""

    items: Mapping[str, tuple[str, str]]
    turns: Mapping[int, str]

    @classmethod
    def read(cls, user: str) -> "Prompt":
        """Return the prompt *user*."""
        items: dict[str, tuple[str, str]] = {}
        turns: dict[int, str] = {}
        for line in user.splitlines():
            if (match := _ITEM.match(line)) is not None:
                items[match[1]] = (match[2], match[3])
            elif (match := _TURN.match(line)) is not None:
                turns[int(match[1])] = json.loads(match[2])
        return cls(items, turns)

    def mark_of(self, text: str) -> str | None:
        """Return the mark of the item whose text is *text*, or else holds it."""
        wanted = text.casefold()
        exact = [
            mark
            for mark, (_, shown) in self.items.items()
            if shown.casefold() == wanted
        ]
        held = [
            mark
            for mark, (_, shown) in self.items.items()
            if wanted in shown.casefold()
        ]
        return next(iter(exact or held), None)

    def turn_of(self, words: str) -> int | None:
        """Return the number of the turn that has *words*."""
        return next(
            (
                number
                for number, text in self.turns.items()
                if words.casefold() in text.casefold()
            ),
            None,
        )


def fact_of(prompt: Prompt, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fact of *key* as a model answers it; None where its quotation stands in no turn of *prompt*.

    A key has the fields of an answer; `of` are texts of items, and facts before it as `@1`, instead of marks.
    """
    turn = prompt.turn_of(key["quotation"])
    if turn is None:
        return None
    named = [
        text if text.startswith("@") else prompt.mark_of(text)
        for text in key.get("of", ())
    ]
    usual = {
        "subject": "",
        "value": "",
        "valid_from": "",
        "until": "",
        "durability": "long_term",
        "said": "stated",
    }
    told = {name: value for name, value in key.items() if name != "of"}
    return {
        **usual,
        "relation": "new",
        **told,
        "turn": turn,
        "items": [mark for mark in named if mark is not None],
    }


def heard(user: str, *keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to the prompt *user* that *keys* make right."""
    prompt = Prompt.read(user)
    facts = [fact for key in keys if (fact := fact_of(prompt, key)) is not None]
    return {"reasoning": "as the key has it", "facts": facts}


def found(user: str, words: Sequence[str]) -> dict[str, Any]:
    """Answer as a finder that names each line which has one of *words*, for the first fact."""
    _, _, lines = user.partition("\nlines\n")
    locations = []
    heading = ""
    for line in lines.splitlines():
        item = re.match(r"(\w+): (.*)", line)
        if item is None or ":" in line.split(" ")[0][:-1]:
            heading = line
        elif any(word.casefold() in item[2].casefold() for word in words):
            locations.append(
                {"fact": 1, "path": f"{heading}[{item[1]}]", "relevance": "is about it"}
            )
    return {"reasoning": "read every line", "locations": locations}


def agreed(user: str) -> Mapping[str, Any]:
    """Return the answer to a second look, the question *user*, that calls each fact the person's own word."""
    facts = range(1, user.count("\n") + 2)
    return {
        "reasoning": "as the key has it",
        "verdicts": [{"fact": number, "verdict": "own"} for number in facts],
    }


class Agreeing(ScriptedLlm):
    """A model with a script for all but second looks: these it answers with *second*, None for its own word each time.

    *looked* are the questions of the second looks.
    """

    def __init__(self, script: Sequence[Any]) -> None:
        super().__init__(script)
        self.second: SecondLook | LlmError | None = None
        self.looked: list[str] = []

    async def ask(self, role: str, answer: Any, **options: Any) -> Any:
        """Answer from the script, or agree."""
        if answer is not SecondLook:
            return await super().ask(role, answer, **options)
        self.looked.append(options["user"])
        if isinstance(self.second, LlmError):
            raise self.second
        value = self.second or SecondLook.model_validate(agreed(options["user"]))
        return Reply(value, Expense(), "scripted", 1, 1.0)
