"""What rules know of words in statements (`opposites.toml`): what excludes what, and what tells of change or doubt."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("opposites.toml")
#: Words whose stems are kept: those of a story.
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Side:
    """What a word says of a `group` of states, features or tastes: words of other sides exclude it."""

    group: str
    side: str


@dataclass(frozen=True, slots=True)
class State:
    """A group of states: how grave a conflict of it is, and the side that may come about by itself."""

    severity: str
    natural: str


@dataclass(frozen=True)
class Lexicon:
    """The words of `opposites.toml`, by what they are looked up by."""

    severity: Mapping[str, str]
    states: Mapping[str, State]
    state_of: Mapping[str, Side]
    features_of: Mapping[str, tuple[Side, ...]]
    taste_of: Mapping[str, Side]
    place_of: Mapping[str, str]
    kin_of: Mapping[str, str]
    in_turn: Mapping[str, str]
    trade_of: Mapping[str, str]
    roles: frozenset[str]
    nouns: Mapping[str, frozenset[str]]
    words: Mapping[str, frozenset[str]]
    stop: frozenset[str]
    lasting: frozenset[str]
    saying: frozenset[str]
    factual: frozenset[str]
    forms: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """Return what `opposites.toml` says; read once."""
    said = _said()
    return Lexicon(
        severity=said["severity"],
        states={one["name"]: State(one["severity"], one["natural"]) for one in said["states"]},
        state_of=_states(said["states"]),
        features_of=_features(said["features"]),
        taste_of={
            stem(word): Side(group, str(side))
            for group, sides in said["tastes"].items()
            for side, listed in enumerate(sides)
            for word in listed
        },
        place_of={stem(word): name for name, listed in said["places"].items() for word in listed},
        kin_of={stem(word): name for name, listed in said["kin"].items() for word in listed},
        in_turn=said["kin_in_turn"],
        trade_of={stem(word): listed[0] for listed in said["trades"]["known"] for word in listed},
        roles=frozenset(map(stem, said["roles"]["single"])),
        nouns={name: frozenset(map(stem, listed)) for name, listed in said["nouns"].items()},
        words={name: frozenset(listed) for name, listed in said["words"].items()},
        stop=frozenset(map(stem, said["words"]["stop"])) | frozenset(said["words"]["stop"]),
        lasting=frozenset(map(stem, said["words"]["lasting"])),
        saying=frozenset(map(stem, said["words"]["saying"])),
        factual=frozenset(map(stem, said["words"]["factual"])),
        forms=frozenset(said["irregular"]),
    )


@cache
def _said() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text("utf-8"))


@lru_cache(_KEPT)
def stem(word: str) -> str:
    """Return what *word*, in small letters, shares with its other forms: "lives", "lived" and "living" are one."""
    word = word.removesuffix("'s")
    known = _said()["irregular"].get(word)
    if known is not None:
        return _bare(known)
    for ending, instead in (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word[-2] in "su'"):
            return _bare(word.removesuffix(ending) + instead)
    return _bare(word)


def _bare(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def _states(listed: list[dict[str, str | list[str]]]) -> dict[str, Side]:
    return {
        word: Side(str(one["name"]), side)
        for one in listed
        for side, found in one.items()
        if isinstance(found, list)
        for word in found
    }


def _features(groups: Mapping[str, list[list[str]]]) -> dict[str, tuple[Side, ...]]:
    found: dict[str, tuple[Side, ...]] = {}
    for group, sides in groups.items():
        for side in sides:
            for word in side:
                found[word] = (*found.get(word, ()), Side(group, side[0]))
    return found
