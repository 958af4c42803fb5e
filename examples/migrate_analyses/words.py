"""How values are written in the Markdown form of an analysis: names, numbers with their units, lists on one line."""

import re

from pydantic import JsonValue

#: Units that a long name ends in, and that people leave out.
_UNITS = ("_ms", "_usd", "_minutes")
_NO_WORD = re.compile(r"[\W_]+")
_EMPHASIS = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")
_NAME = re.compile(r"(?P<name>[^:]{1,80}):(?:\s+(?P<rest>.*))?\Z", re.DOTALL)
#: A number with a currency before it, and behind it a unit or the most it can be.
_NUMBER = re.compile(
    r"[$\u20ac]?\s?(?P<number>[+-]?\d[\d,_]*(?P<part>\.\d+)?)\s?(?:/\s?\d+|%|[A-Za-z][A-Za-z ]{0,20})?\.?\Z"
)
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}
_NOTHING = frozenset({"", "-", "none", "nothing", "\u2014"})
_BETWEEN = re.compile(r"\s*(?:,|\u2194)\s*")


def bare(text: str) -> str:
    """Return *text* without emphasis."""
    return _EMPHASIS.sub(r"\2", text).strip()


def split_name(text: str) -> tuple[str, str]:
    """Return what stands before the first colon of *text*, and what behind it."""
    found = _NAME.match(bare(text))
    return (
        (found["name"].strip(), (found["rest"] or "").strip())
        if found
        else (bare(text), "")
    )


def word_of(name: str) -> str:
    """Return *name* as keys are spelled."""
    return _NO_WORD.sub("_", name.casefold()).strip("_")


def named(short: str, long: str, name: str) -> bool:
    """Return whether *name* means the key *short* with the long name *long*, with its unit or without."""
    word = word_of(name)
    return word in (short, long) or any(
        word == long.removesuffix(unit) for unit in _UNITS
    )


def none_meant(text: str) -> bool:
    """Return whether *text* says that there is nothing."""
    return text.casefold() in _NOTHING


def split_list(text: str) -> list[str]:
    """Return the entries of a list on one line."""
    return [entry for entry in _BETWEEN.split(text) if entry]


def read_leaf(kind: str, text: str) -> JsonValue:
    """Return the value of that *kind* (text, whole, number or flag) that *text* spells, None when it spells none."""
    if kind == "text":
        return text or None
    if kind == "flag":
        return _FLAGS.get(text.casefold())
    found = _NUMBER.match(text)
    if not found or (kind == "whole" and found["part"]):
        return None
    digits = found["number"].replace(",", "").replace("_", "")
    return float(digits) if found["part"] else int(digits)
