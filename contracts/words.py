"""Closed lists of words that survive a newer writer: a word from the future is read as `other` and never written."""

from typing import Any, get_args

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

OTHER = "other"


def reads_unknown_as_other(words: Any) -> BeforeValidator:
    """Return a validator for the `Literal` *words*, which must contain `other`: strings it does not know become it."""
    known = frozenset(get_args(words))

    def read(value: Any) -> Any:
        return OTHER if isinstance(value, str) and value not in known else value

    return BeforeValidator(read)


def _write(word: str) -> str:
    if word == OTHER:
        kind = "unwritable_word"
        text = "'other' stands for a word this version does not know; it is only read"
        raise PydanticCustomError(kind, text)
    return word


#: Refuses to put `other` on the wire.
writes_only_known = PlainSerializer(_write, return_type=str, when_used="json")
