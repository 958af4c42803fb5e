"""A user is forgotten everywhere: part by part, again until nothing more is found, and then from the servers' files.

The parts come in the order in which work flows: what makes things is emptied before what is made of them, and a lease
that is gone with its rows keeps who works on them from storing anything. What was under way meanwhile is found by the
next pass. Each step is safe to repeat, so that after a crash the whole is simply done again. Nothing is kept of who was
forgotten: the name can be used again at once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from contracts.errors import InvalidInput

log = structlog.get_logger(__name__)

#: Passes over all parts, at most: each finds what came of work that was under way during the one before.
PASSES = 5


class ForgetsUser(Protocol):
    """A place where something of a user may lie.

    Whoever builds another store in which users are named hands one of these to `forget_user`. What has to stay, as a
    record that others rely on, is redacted: it is forgotten once nothing in it tells whose it was or what they said.
    """

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove what is of *user_id* and return how much, by kind in the plural; nothing when nothing was there."""

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Look again, and return how much of *user_id* is there, by kind; kinds of which nothing is may be left out."""


class RewritesFiles(Protocol):
    """A server whose files keep for a while what was removed from it."""

    async def rewrite(self) -> Mapping[str, int]:
        """Have them written anew, and return how much, by what it is, may keep remains in them for now."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed, what is there all the same, and beside how much the files may keep remains; each by kind."""

    removed: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left; remains beside other messages cannot be looked for, and are only told of."""
        return not self.left


async def forget_user(user_id: str, parts: Sequence[ForgetsUser], files: Sequence[RewritesFiles] = ()) -> Forgotten:
    """Remove *user_id* from all *parts*, in their order, then from *files*, and say what was removed and what is left.

    Safe to repeat, also after a crash in the middle.

    Raises:
        InvalidInput: *user_id* names nobody.
        MemoryUnavailable: Redis did not answer in time; what was removed by then stays removed.
        Unreachable: NATS did not.
    """
    _demand_name(user_id)
    removed = await _emptied(user_id, parts)
    beside = await _rewritten(files)
    # That took a while: somebody may have ended meanwhile what was under way.
    late = await _emptied(user_id, parts)
    if late:
        beside = await _rewritten(files)
    left: Counter[str] = Counter()
    for part in parts:
        left.update(await part.left(user_id))
    done = Forgotten(dict(removed + late), dict(+left), beside)
    log.info("user_forgotten", removed=done.removed, left=done.left, beside=done.beside)
    return done


async def _emptied(user_id: str, parts: Sequence[ForgetsUser]) -> Counter[str]:
    """Return what was removed until a whole pass found nothing."""
    total: Counter[str] = Counter()
    for _ in range(PASSES):
        found: Counter[str] = Counter()
        for part in parts:
            found.update(await part.forget(user_id))
        # Drops the kinds of which there was nothing.
        if not +found:
            break
        total += found
    return total


async def _rewritten(files: Sequence[RewritesFiles]) -> dict[str, int]:
    beside: Counter[str] = Counter()
    for one in files:
        beside.update(await one.rewrite())
    return dict(+beside)


def _demand_name(user_id: str) -> None:
    try:
        user_id.encode()
    except UnicodeEncodeError as error:
        msg = f"user id {user_id!r} holds half of a surrogate pair, which is no text; send valid Unicode"
        raise InvalidInput(msg) from error
    if not user_id.strip():
        raise InvalidInput("say who is to be forgotten: a user id")
