"""What users tell in a storm, what must become of it, and the model that answers where no rule reads a sentence."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from contracts.messages import Fact
from tests.llm_double import Asked, Canned, answer

FOOD, ROUTINE, GENERAL = "resource_user_food_prefs", "resource_user_routine", "resource_user_general_prefs"
#: The list of each document that is told about.
LISTS = {FOOD: "food.likes", ROUTINE: "routine.daily", GENERAL: "general.interests"}
TAGS = {FOOD: "food", ROUTINE: "routine", GENERAL: "general"}
#: How many tellings later a thing is taken back.
LATER = 16

#: `by_rules` is read by patterns, `by_model` by none, `both` is a plan over two documents.
Kind = Literal["by_rules", "by_model", "both"]

_NUMBER = re.compile(r"brel (\d+)", re.IGNORECASE)
_FACT = re.compile(r'^(\d+): "(.*)"$', re.MULTILINE)
_FOUND = re.compile(r"^(\S+\[\d+\]): Brel (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Told:
    """One fact: its text and tags, the documents it adds an item to, or takes one out of."""

    number: int
    text: str
    resources: tuple[str, ...]
    is_taken_back: bool = False

    def fact(self, user: str) -> Fact:
        """Return it as a fact of *user*."""
        tags = tuple(TAGS[resource] for resource in self.resources)
        return Fact(fact_id=f"{user}-{self.number}", text=self.text, tags=tags, evidence=self.text)


def tellings(kinds: Sequence[Kind], resources: Sequence[str] = (FOOD,)) -> Iterator[Told]:
    """Yield facts without end, of *kinds* and about *resources* in turn; every third takes back an earlier one."""
    said: list[Told] = []
    number = 0
    while True:
        kind, resource = kinds[number % len(kinds)], resources[number % len(resources)]
        if number % 3 == 2 and len(said) >= LATER:
            earlier = said.pop(0)
            yield _taken_back(number, earlier)
        else:
            told = _new(number, kind, resource)
            said.append(told)
            yield told
        number += 1


def _new(number: int, kind: Kind, resource: str) -> Told:
    if kind == "by_rules":
        return Told(number, f"User likes brel {number}", (FOOD,))
    if kind == "by_model":
        return Told(number, f"Brel {number} suits User fine", (resource,))
    return Told(number, f"Brel {number} suits User fine", (FOOD, ROUTINE))


def _taken_back(number: int, earlier: Told) -> Told:
    if earlier.text.startswith("User likes"):
        return Told(number, f"User does not like brel {earlier.number} any more", (FOOD,), is_taken_back=True)
    return Told(number, f"Brel {earlier.number} suits User no longer", earlier.resources, is_taken_back=True)


def expected(told: Sequence[Told]) -> dict[str, list[str]]:
    """Return what stands in the list of each document once all of *told* is done in its order."""
    lists: dict[str, list[str]] = {resource: [] for resource in LISTS}
    for one in told:
        named = _NUMBER.search(one.text)
        assert named is not None
        for resource in one.resources:
            if one.is_taken_back:
                lists[resource].remove(f"Brel {named[1]}")
            else:
                lists[resource].append(f"Brel {named[1]}")
    return lists


class Answers:
    """What the model says, `delay_s` seconds after it was asked."""

    def __init__(self) -> None:
        self.delay_s = 0.0

    def __call__(self, asked: Asked) -> Canned:
        """Return the answer to *asked*: the finder is shown whole pages, the editor what was found."""
        said = _find(asked.user) if asked.schema_name == "Found" else _edit(asked.user)
        return answer(said).after(self.delay_s)


def _find(question: str) -> dict[str, object]:
    told, _, page = question.partition("\ndocument\n")
    path = next(path for path in LISTS.values() if path.partition(".")[0] + "." in page)
    rows = dict(_rows(page, path))
    facts = _FACT.findall(told)
    locations = [
        {"fact": int(index), "path": f"{path}[{rows[name]}]", "relevance": "it is named"}
        for index, text in facts
        if (name := _NUMBER.search(text)[1]) in rows  # type: ignore[index]
    ]
    return {"reasoning": "by name", "locations": locations, "suggested_insert_path": [path for _ in facts]}


def _rows(page: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield the number in each item of the list at *path*, and its place."""
    heading = ""
    for line in page.splitlines():
        place, colon, text = line.partition(": ")
        if not colon or not place.isdigit():
            heading = line
        elif heading == path and (named := _NUMBER.search(text)):
            yield named[1], place


def _edit(question: str) -> dict[str, object]:
    told, found = question.partition("\n")[::2]
    named = _NUMBER.search(told)
    assert named is not None
    lists = found.partition("insert at\n")[2].splitlines()
    if "no longer" in told:
        # What earlier facts of the batch brought is shown too.
        gone = [path for path, number in _FOUND.findall(found) if number == named[1]]
        edits = [{"operation": "delete", "path": path, "display": ""} for path in gone]
    else:
        edits = [{"operation": "insert", "path": path, "display": f"Brel {named[1]}"} for path in lists if "." in path]
    return {"reasoning": "as told", "decision": "proceed", "edits": edits}
