"""Observations and actions of an agent in a world; messages to it belong to its conversation.

The keys on the wire are those of worlds written in JavaScript (`nearbyAgents`); Python speaks long names.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError, to_json

#: Further from the origin than any world reaches, in units of the world; beyond it numbers lose their decimals.
FARTHEST = 1_000_000
#: Characters of what is said at once: a message, not a document.
LONGEST_UTTERANCE = 2_000
#: Agents or objects that one look holds.
MOST_SEEN = 500
#: Bytes of all further senses of one look together, as JSON.
MOST_FURTHER = 20_000

#: Keys that hold what somebody said, whatever stands around these words.
_SPEECH = re.compile(
    r"message|utterance|conversation|dialog|speech|receivedtext", re.IGNORECASE
)
#: Words that say so when they are a word of the key: `receivedTexts`, not `texture`.
_SPEECH_WORDS = frozenset(
    {
        "text",
        "texts",
        "texted",
        "chat",
        "chats",
        "said",
        "say",
        "says",
        "told",
        "speaker",
        "spoken",
        "sender",
        "senders",
    }
)
_NUMBERS = (int, float)
_LISTS = (list, tuple)
#: Characters of a key whose meaning is kept.
_LONGEST_KEY = 64
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

#: Signs that would let a name end the quotes, the list or the line it is told in.
_STRUCTURE = frozenset('"`{}<>[]\\;\u00a6')
#: Categories that nobody sees or that break a line: two names that differ in them alone look the same.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@lru_cache(maxsize=1024)
def _one_name(text: str) -> str:
    """Return *text*, which can stand for itself in a sentence and cannot be taken for another."""
    odd = next(
        (
            sign
            for sign in text
            if sign in _STRUCTURE or unicodedata.category(sign) in _UNSEEN
        ),
        None,
    )
    if odd is None and ": " in text:
        odd = ": "
    if odd is not None:
        raise _refused(f"{text!r} holds {odd!r}; names appear in sentences, so omit it")
    if text != " ".join(text.split()) or not unicodedata.is_normalized("NFC", text):
        raise _refused(
            f"{text!r} looks like another name; write single blanks inside only, and letters in NFC"
        )
    if text.casefold() == "i":
        raise _refused(f"{text!r} is what an agent calls itself; write a name")
    if not any(
        unicodedata.category(sign)[0] in "LN" or unicodedata.category(sign) == "So"
        for sign in text
    ):
        raise _refused(f"{text!r} has no letter, digit or symbol; write a name")
    return text


def _refused(problem: str) -> PydanticCustomError:
    # The text may hold braces, which a template would read.
    return PydanticCustomError("unusable", "{problem}", {"problem": problem})


_Coordinate = Annotated[float, Field(allow_inf_nan=False, ge=-FARTHEST, le=FARTHEST)]
#: The name of an agent, an action or a kind of object: one line that can stand in a sentence.
Word = Annotated[
    str, StringConstraints(min_length=1, max_length=64), AfterValidator(_one_name)
]
#: Seconds of a world since it began.
WorldTime = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1e12)]


class WorldPart(BaseModel):
    """What the parts of a world share: they are frozen, and speak the world's keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )


class Position(WorldPart):
    """A place in a flat world, in its own units."""

    x: _Coordinate
    z: _Coordinate


class SeenAgent(WorldPart):
    """Another agent within sight; `position` None when only its presence is sensed."""

    name: Word
    position: Position | None = None


class SeenObject(WorldPart):
    """An object within sight, of a kind such as `coin`."""

    kind: Word = Field(alias="type")
    position: Position


class SensoryData(WorldPart):
    """Senses of an agent at one moment; further senses are kept under their own keys.

    `collected` counts what it has, by kind.

    Raises:
        ValidationError: a sense holds what somebody said, at any depth; or further senses are too much for one look.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        extra="allow",
        defer_build=True,
    )
    __pydantic_extra__: dict[str, JsonValue]

    position: Position
    nearby_agents: tuple[SeenAgent, ...] = Field(
        default=(), alias="nearbyAgents", max_length=MOST_SEEN
    )
    world_objects: tuple[SeenObject, ...] = Field(
        default=(), alias="worldObjects", max_length=MOST_SEEN
    )
    collected: dict[Word, Annotated[int, Field(ge=0, le=1_000_000_000)]] = Field(
        default_factory=dict, max_length=MOST_SEEN
    )

    @model_validator(mode="before")
    @classmethod
    def _holds_no_speech(cls, raw: Any) -> Any:
        if (key := _speech_in(raw)) is not None:
            raise _refused(
                f"{key!r} holds what somebody said; send it in new_messages, as sender and message"
            )
        return raw

    @model_validator(mode="after")
    def _is_one_look(self) -> Self:
        if (
            self.further
            and (size := len(to_json(self.further, inf_nan_mode="strings")))
            > MOST_FURTHER
        ):
            names = ", ".join(sorted(self.further))[:100]
            raise _refused(
                f"{names} take {size} bytes as JSON; send at most {MOST_FURTHER} of further senses"
            )
        return self

    @property
    def further(self) -> dict[str, JsonValue]:
        """The senses that are no fields, by key."""
        return self.__pydantic_extra__


class AgentTarget(WorldPart):
    """The agent that an action is directed at."""

    agent: Word


class Action(WorldPart):
    """What an agent does: move to a position, text an agent, collect an object at a position, wait, or more.

    `target` is a position (`{"x": 2, "z": 1.6}`), an agent (`{"agent": "Alice"}`), or None.
    """

    action: Word
    target: Position | AgentTarget | None = None
    utterance: str | None = Field(default=None, max_length=LONGEST_UTTERANCE)


class Observation(WorldPart):
    """Senses of an agent at one moment, its actions then, or both; `time` is in seconds of its world."""

    time: WorldTime
    sensed: SensoryData | None = None
    did: Action | None = None


def _speech_in(raw: Any) -> str | None:
    """Return the first key in *raw*, at any depth, that holds spoken words; a number holds none."""
    waiting = [raw]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                kind = type(inner)
                # Most of a look is coordinates.
                if kind is float or kind is int:
                    continue
                if (
                    isinstance(key, str)
                    and not isinstance(inner, _NUMBERS)
                    and _names_speech(key)
                ):
                    return key
                if kind is not str:
                    waiting.append(inner)
        elif isinstance(value, _LISTS):
            waiting += value
    return None


def _names_speech(key: str) -> bool:
    # The same few keys come in every look; a long one is not worth keeping.
    return (
        _says_speech(key) if len(key) <= _LONGEST_KEY else _says_speech.__wrapped__(key)
    )


@lru_cache(maxsize=1024)
def _says_speech(key: str) -> bool:
    return bool(_SPEECH.search(key)) or not _SPEECH_WORDS.isdisjoint(
        map(str.lower, _WORDS.findall(key))
    )
