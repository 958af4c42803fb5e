"""The request of a world for an action: refused as a whole when any part of it cannot be true."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated, ClassVar, NewType, Self

from pydantic import ConfigDict, StringConstraints, model_validator
from pydantic import Field as Bound
from pydantic_core import PydanticCustomError

from tasklore import Field, Parameters
from tasklore.contracts.conversations import MessageId, Speech
from tasklore.contracts.observations import (
    FARTHEST,
    Position,
    SensoryData,
    Word,
    WorldPart,
    WorldTime,
)
from tasklore.memory.rendering.narration import list_words, place
from tasklore.memory.rendering.quoting import plain

#: Messages, actions and other agents that one request holds.
MOST_MESSAGES = 200
MOST_ACTIONS = 20
MOST_AGENTS = 500
#: What an agent may do when the request does not say: all that comes with the house.
ACTIONS = ("move", "text", "collect", "wait")

#: Faults that are reported at once: a world that is wrong about one place is wrong about all.
_MOST_FAULTS = 5
#: Names that are told as those there are.
_MOST_NAMES = 10


#: A number as worlds compute it, 0.15000000000000002 for three steps of 0.05: no amount that somebody wrote down.
Measured = NewType("Measured", float)
_Time = Annotated[Measured, Bound(allow_inf_nan=False, ge=0, le=1e12)]
_Length = Annotated[Measured, Bound(allow_inf_nan=False, ge=0, le=2 * FARTHEST)]
_ConversationId = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class NewMessage(WorldPart):
    """A message to the agent since its last request; `time` None is the time of the request.

    With a `message_id` it is the same message however often it is sent, in whatever request; without one it belongs to
    this task alone.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False
    )

    sender: Word
    message: Speech
    time: WorldTime | None = None
    message_id: MessageId | None = None


class Bounds(WorldPart):
    """The rectangle that a world is, its edges included."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False
    )

    low: Position
    high: Position

    @model_validator(mode="after")
    def _is_a_place(self) -> Self:
        if self.low.x > self.high.x or self.low.z > self.high.z:
            raise _error(
                f"low {place(self.low)} lies beyond high {place(self.high)}; swap them"
            )
        return self

    def hold(self, position: Position) -> bool:
        """Return whether *position* is in the world."""
        return (
            self.low.x <= position.x <= self.high.x
            and self.low.z <= position.z <= self.high.z
        )

    def nearest(self, x: float, z: float) -> Position:
        """Return the place in the world that is nearest to these coordinates."""
        return Position(
            x=min(max(x, self.low.x), self.high.x),
            z=min(max(z, self.low.z), self.high.z),
        )

    def __str__(self) -> str:
        return f"from {place(self.low)} to {place(self.high)}"


class Moment(Parameters):
    """What an agent senses and is told at one moment, and what the world allows it to do.

    Raises:
        InvalidParameters: a part cannot be true: a place outside the world, an unknown sender, or the agent
            itself among those who speak to it or are seen by it.
    """

    name: Word = Field(description="What the agent is called in the conversation.")
    sensory_data: SensoryData = Field(description="What it senses now; no messages.")
    simulation_time: _Time = Field(description="Seconds since the world began.")
    new_messages: tuple[NewMessage, ...] = Field(
        (),
        max_length=MOST_MESSAGES,
        description="What it was told since it was last asked, oldest first.",
    )
    allowed: tuple[Word, ...] = Field(
        ACTIONS,
        min_length=1,
        max_length=MOST_ACTIONS,
        description="The actions it may choose from.",
    )
    agents: tuple[Word, ...] = Field(
        (),
        max_length=MOST_AGENTS,
        description="Who may speak to it, and whom it may text.",
    )
    conversations: dict[Word, _ConversationId] = Field(
        {},
        max_length=MOST_AGENTS,
        description="Ids of the conversations of agents into which its texts are delivered.",
    )
    bounds: Bounds | None = Field(
        None, description="How far the world reaches; None when it has no end."
    )
    reach: _Length = Field(
        1.0, description="How far away an object may be to be collected."
    )
    step: _Length | None = Field(
        None, description="How far one move goes at most; None is any distance."
    )
    tell_prompt: bool = Field(
        False, description="Whether the answer holds what the agent was shown."
    )

    @property
    def others(self) -> tuple[str, ...]:
        """Everybody but the agent itself, each once."""
        return tuple(one for one in dict.fromkeys(self.agents) if not self.is_me(one))

    @property
    def can_walk(self) -> bool:
        """Whether a move can go anywhere."""
        return self.step is None or self.step > 0

    def is_me(self, name: str) -> bool:
        """Return whether *name* is the agent's own, in whatever case it is written."""
        return name.casefold() == self.name.casefold()

    @model_validator(mode="after")
    def _can_be_true(self) -> Self:
        problems = [
            *islice(
                chain(
                    self._faults_of_names(),
                    self._faults_of_senders(),
                    self._faults_of_self(),
                    self._faults_of_places(),
                ),
                _MOST_FAULTS,
            )
        ]
        if problems:
            raise _error("; ".join(problems))
        return self

    def _faults_of_names(self) -> Iterator[str]:
        for where, name in (
            ("name", self.name),
            *((f"agents.{number}", one) for number, one in enumerate(self.agents)),
        ):
            if plain(name) != name:
                yield f"{where} is {name!r}, which a prompt can only show as {plain(name)!r}; rename it"

    def _faults_of_senders(self) -> Iterator[str]:
        known = set(self.others)
        for number, one in enumerate(self.new_messages):
            where = f"new_messages.{number}.sender is {one.sender!r}"
            if self.is_me(one.sender):
                yield f"{where}, the agent itself, whose own words are known; send only what others said"
            elif one.sender not in known:
                yield (
                    f"{where}, who is not one of the agents; agents are {self._others()}: add it there, or leave the"
                    " message out"
                )
        for name in self.conversations:
            if name not in known:
                yield f"conversations.{name} is not the name of an agent; agents are {self._others()}"

    def _faults_of_self(self) -> Iterator[str]:
        for number, seen in enumerate(self.sensory_data.nearby_agents):
            if self.is_me(seen.name):
                yield f"sensory_data.nearbyAgents.{number} is {seen.name!r}, the agent itself; leave it out"

    def _faults_of_places(self) -> Iterator[str]:
        for where, position in self._positions():
            if self.bounds is not None and not self.bounds.hold(position):
                yield f"{where} {place(position)} is outside the world, which goes {self.bounds}; mend one of them"

    def _positions(self) -> Iterator[tuple[str, Position]]:
        sensed = self.sensory_data
        yield "sensory_data.position", sensed.position
        for number, one in enumerate(sensed.nearby_agents):
            if one.position is not None:
                yield f"sensory_data.nearbyAgents.{number}.position", one.position
        for number, thing in enumerate(sensed.world_objects):
            yield f"sensory_data.worldObjects.{number}.position", thing.position

    def _others(self) -> str:
        others = self.others
        more = (
            [f"{len(others) - _MOST_NAMES} more"] if len(others) > _MOST_NAMES else []
        )
        return list_words([*map(repr, others[:_MOST_NAMES]), *more]) or "none"


def _error(problem: str) -> PydanticCustomError:
    # The text may hold braces, which a template would read.
    return PydanticCustomError("unusable", "{problem}", {"problem": problem})
