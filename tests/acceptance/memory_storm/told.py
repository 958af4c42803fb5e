"""What users tell in a storm, what must become of it, and the model that says which lines a sweeping fact is about."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tasklore.contracts.messages import Fact
from tests.llm_double import Asked, Canned, answer

FOOD = "resource_user_food_prefs"
ROUTINE = "resource_user_routine"
GENERAL = "resource_user_general_prefs"
#: The list of each document that is told about.
LISTS = {FOOD: "food.avoids", ROUTINE: "routine.daily", GENERAL: "general.interests"}
TAGS = {FOOD: "food", ROUTINE: "routine", GENERAL: "general"}
#: How many tellings later a thing is taken back.
LATER = 16

#: `by_rules` is of food, `by_model` of any document, `both` stands in two. What is avoided sweeps its document: a model
#: is asked which lines it rules out, and names none.
Kind = Literal["by_rules", "by_model", "both"]

_NUMBER = re.compile(r"brel (\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Told:
    """One fact: its text and tags, the documents it adds an item to, or takes one out of."""

    number: int
    text: str
    resources: tuple[str, ...]
    is_taken_back: bool = False

    def fact(self, user: str) -> Fact:
        """Return it as a fact of *user*."""
        named = _NUMBER.search(self.text)
        assert named is not None
        lists = [f"{resource}:{LISTS[resource]}" for resource in self.resources]
        return Fact(
            fact_id=f"{user}-{self.number}",
            text=self.text,
            tags=tuple(TAGS[resource] for resource in self.resources),
            evidence=self.text,
            category=LISTS[self.resources[0]],
            value=f"Brel {named[1]}",
            relation="forget" if self.is_taken_back else "new",
            related=tuple(f"{one}.brel_{named[1]}" for one in lists)
            if self.is_taken_back
            else (),
        )


def tellings(
    kinds: Sequence[Kind], resources: Sequence[str] = (FOOD,)
) -> Iterator[Told]:
    """Yield facts without end, of *kinds* and about *resources* in turn; every third takes back an earlier one."""
    said: list[Told] = []
    number = 0
    while True:
        kind = kinds[number % len(kinds)]
        resource = resources[number % len(resources)]
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
        return Told(
            number,
            f"User does not like brel {earlier.number} any more",
            (FOOD,),
            is_taken_back=True,
        )
    return Told(
        number,
        f"Brel {earlier.number} suits User no longer",
        earlier.resources,
        is_taken_back=True,
    )


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
    """What the model says, `delay_s` seconds after it was asked: that nothing is ruled out."""

    def __init__(self) -> None:
        self.delay_s = 0.0

    def __call__(self, asked: Asked) -> Canned:
        """Return the answer to *asked*."""
        assert asked.schema_name == "Found"
        return answer({"reasoning": "nothing is meant", "locations": []}).after(
            self.delay_s
        )
