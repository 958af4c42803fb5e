"""What a turn has taught so far, as it is noted beside the turn: what of it is published, and whether more may come."""

from pydantic import ValidationError

from contracts.messages import ExtractedFacts
from memory.queues.claims import Row
from workers.listening.rows import Unreadable


class Lesson(ExtractedFacts):
    """What was learned from one turn, and how far that is.

    The first `published` of its facts are known to be stored in FACTS. `waits_for` is why a model is still to be asked,
    None when all is learned. `runs` counts those of the listener.
    """

    published: int = 0
    waits_for: str | None = None
    runs: int = 1

    @property
    def is_published(self) -> bool:
        """Whether nothing of it has to be published any more."""
        return self.published >= len(self.facts)

    @property
    def message_id(self) -> str:
        """Under which id the rest of it is published: that of the turn at first, which no other may be mistaken for."""
        return f"{self.turn_id}.{self.published}" if self.published else self.turn_id

    def as_published(self) -> "Lesson":
        """Return the same after all of it was published."""
        return self.model_copy(update={"published": len(self.facts)})

    def as_note(self) -> bytes:
        """Return what stands beside the turn."""
        return self.model_dump_json(exclude_none=True).encode()

    def as_message(self) -> bytes:
        """Return what is to be published of it."""
        extracted = ExtractedFacts(
            turn_id=self.turn_id,
            conversation_id=self.conversation_id,
            user_id=self.user_id,
            facts=self.facts[self.published :],
            at=self.at,
        )
        return extracted.model_dump_json(exclude_none=True).encode()


def read_lesson(row: Row) -> Lesson | None:
    """Return what is noted beside *row*, None when nothing is.

    Raises:
        Unreadable: that is no lesson.
    """
    if row.note is None:
        return None
    try:
        return Lesson.model_validate_json(row.note)
    except ValidationError as error:
        # Without a word of it: the reason is read in lists.
        raise Unreadable(f"the row's note holds no facts ({error.error_count()} faults)") from None
