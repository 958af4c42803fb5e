"""Messages of a conversation, with speaker and time, and which of them are new.

One list holds everything: how many of its last messages are new says what is current and what is past, so that nothing
is kept, sent or shown twice.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.observations import LONGEST_UTTERANCE, Observation, Word

MessageId = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")
]


#: Any text on any number of lines, without control characters.
_SPEAKABLE = r"^[^\x00-\x08\x0b-\x1f\x7f]*$"


def _speakable(text: str) -> str:
    """Return *text* when it has no control characters; it may have any other signs, on several lines."""
    odd = next(
        (
            sign
            for sign in text
            if sign not in "\n\t" and unicodedata.category(sign) in ("Cc", "Cs")
        ),
        None,
    )
    if odd is not None:
        raise PydanticCustomError(
            "unusable",
            "holds the control character {odd}; leave it out",
            {"odd": repr(odd)},
        )
    if not text.strip():
        raise PydanticCustomError("unusable", "says nothing; leave the message out")
    return text


#: What comes in from a program as said: held to more than what is stored already.
Speech = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_UTTERANCE),
    AfterValidator(_speakable),
]


class Utterance(BaseModel):
    """One message of a conversation; `time` is in seconds of the world it was said in.

    `message_id` is the same however often it is delivered: who appends it twice adds nothing. `user_id` is whose words
    they are when a known person's, so that they can be forgotten; nobody is shown it. `own` says that an agent said it
    in this its conversation: only the store sets it, whatever a message says of itself on its way in.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="ignore", defer_build=True
    )

    message_id: MessageId
    speaker: Word
    message: Annotated[
        str,
        StringConstraints(
            min_length=1, max_length=LONGEST_UTTERANCE, pattern=_SPEAKABLE
        ),
    ]
    time: float = Field(ge=0, le=1e12, allow_inf_nan=False)
    user_id: str | None = Field(default=None, min_length=1, max_length=256)
    own: bool = False


@dataclass(frozen=True, slots=True)
class Digest:
    """Messages that fell out of the window: their number, speakers, first and last time, and a summary.

    `summary` is a model's words on the first `summarised` of them, None without any. `removals` counts how often words
    were removed from the conversation: a summary made of what was there before one is refused after it.
    """

    count: int = 0
    speakers: Mapping[str, int] = field(default_factory=dict)
    since: float | None = None
    until: float | None = None
    summary: str | None = None
    summarised: int = 0
    removals: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """A conversation as an agent is shown it: the last messages, oldest first, of which the last `num_new` are new."""

    messages: tuple[Utterance, ...]
    num_new: int
    earlier: Digest = field(default_factory=Digest)

    @property
    def past(self) -> tuple[Utterance, ...]:
        """The earlier messages."""
        return split(self.messages, self.num_new)[0]

    @property
    def current(self) -> tuple[Utterance, ...]:
        """The new messages."""
        return split(self.messages, self.num_new)[1]


@dataclass(frozen=True, slots=True)
class TakenMessages:
    """The messages that a task receives: the same again when it takes them again.

    `observations` are the last ones, oldest first, without the task's own. `is_settled` says that an earlier run of the
    task came to its end, and `done` is what that run noted: what it did is done, and only its report may be missing.
    """

    history: History
    observations: tuple[Observation, ...] = ()
    done: Observation | None = None
    is_settled: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a conversation, oldest first; `before` is where the one before it ends, None at the beginning.

    `gone` is how many of its first messages the conversation no longer holds.
    """

    messages: tuple[Utterance, ...]
    before: int | None
    gone: int = 0


def said_id(task_id: str) -> str:
    """Return the id of what an agent says in the task *task_id*, to whomever it is delivered."""
    return f"{task_id}:said"


def split(
    messages: Sequence[Utterance], num_new: int
) -> tuple[tuple[Utterance, ...], tuple[Utterance, ...]]:
    """Return *messages* as past and current: the last *num_new* are current; with 0 all of them are past.

    Raises:
        InvalidInput: there are not so many.
    """
    if not 0 <= num_new <= len(messages):
        raise InvalidInput(
            f"num_new is {num_new}, but there are {len(messages)} messages; it counts the last of them"
        )
    at = len(messages) - num_new
    return tuple(messages[:at]), tuple(messages[at:])
