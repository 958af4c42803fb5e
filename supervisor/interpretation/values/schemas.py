"""The JSON schemas of cards, checked where they are looked at: a card may come from any program, or from nobody's.

What JSON Schema allows is let through, also where rules make nothing of it. What it forbids, and what no person could
be asked for, is refused with its place, so that one odd card is left out and the others are understood.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.errors import InvalidAmount, InvalidInput
from contracts.messages import TaskCard
from quantities.amounts import Amount
from quantities.amounts.spellings import shown

#: Characters of one task's schema: ten times that of a large class; all of it is indexed, and shown to a model.
MOST_CHARACTERS = 64 * 1024
#: Fields of one task: each amount of a sentence is weighed against each of them.
MOST_FIELDS = 200
#: Names, aliases and cues of one field, for the same reason.
MOST_PHRASES = 100


@dataclass(frozen=True, slots=True)
class Schema:
    """One JSON schema at its *place* in a task's parameters; null stands for a keyword that is not there.

    Raises:
        InvalidInput: by every method, when the keyword holds what JSON Schema does not allow there.
    """

    keywords: Mapping[str, Any]
    place: str

    def has(self, keyword: str) -> bool:
        """Return whether *keyword* says something."""
        return self.keywords.get(keyword) is not None

    def text(self, keyword: str) -> str | None:
        """Return the text under *keyword*, None without any."""
        found = self.keywords.get(keyword)
        if found is not None and not isinstance(found, str):
            raise self._problem(keyword, "a text", found)
        return found

    def values(self, keyword: str) -> tuple[Any, ...]:
        """Return the list under *keyword*, empty without any."""
        found = self.keywords.get(keyword)
        if found is None:
            return ()
        if not isinstance(found, list):
            raise self._problem(keyword, "a list", found)
        return tuple(found)

    def texts(self, keyword: str) -> tuple[str, ...]:
        """Return the list of texts under *keyword*, empty without any."""
        found = self.values(keyword)
        for one in found:
            if not isinstance(one, str):
                raise self._problem(keyword, "a list of texts", one)
        return found

    def inner(self, keyword: str) -> "Schema":
        """Return the schema under *keyword*, one that allows everything without any."""
        found = self.keywords.get(keyword)
        return _schema_at({} if found is None else found, f"{self.place}.{keyword}")

    def alternatives(self, keyword: str) -> list["Schema"]:
        """Return the list of schemas under *keyword*, empty without any."""
        return [_schema_at(one, f"{self.place}.{keyword}[{n}]") for n, one in enumerate(self.values(keyword))]

    def named(self, keyword: str) -> dict[str, "Schema"]:
        """Return the schemas under *keyword* by name, empty without any."""
        found = self.keywords.get(keyword)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self._problem(keyword, "an object", found)
        return {name: _schema_at(one, f"{self.place}.{keyword}.{name[:64]}") for name, one in found.items()}

    def unit(self) -> str | None:
        """Return the unit that amounts have here, None without any."""
        found = self.text("unit")
        if found is not None:
            try:
                Amount.read(0, unit=found)
            except InvalidAmount as error:
                raise InvalidInput(f"{self.place}.unit: {error}") from error
        return found

    def _problem(self, keyword: str, wanted: str, found: object) -> InvalidInput:
        return InvalidInput(f"{self.place}.{keyword} must be {wanted}, not {shown(found)}")


def spelled(task: TaskCard) -> str:
    """Return the schema of *task*'s parameters as JSON, the same for the same schema.

    Raises:
        InvalidInput: it is too large or too deep, or holds a number too long to be written.
    """
    try:
        text = json.dumps(task.parameters)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"parameters cannot be written as JSON: {error}") from error
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"parameters have {len(text):,} characters; keep to {MOST_CHARACTERS:,}")
    return text


def read_schema(text: str) -> Schema:
    """Return the schema of a whole task, as `spelled` wrote it."""
    return _schema_at(json.loads(text), "parameters")


def _schema_at(found: Any, place: str) -> Schema:
    """Return *found* as a schema; true and false are schemas too, about which there is nothing to read."""
    if isinstance(found, bool):
        return Schema({}, place)
    if not isinstance(found, dict):
        raise InvalidInput(f"{place} must be a schema, not {shown(found)}")
    return Schema(found, place)
