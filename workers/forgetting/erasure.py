"""Forget a user in every store, pass after pass until none finds anything, and then in the servers' files.

The stores come in the order in which work flows: sources are emptied before results, and a lease that is gone with its
rows keeps its holder from storing anything. Data that arrived meanwhile is found by the next pass. Each step is safe to
repeat: after a crash all of it is done again. No record of the user id is kept; it can be used again at once.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.declarations import UserStore as UserStore

log = structlog.get_logger(__name__)

#: Passes over all stores, at most: each finds the results of work that was under way during the one before.
PASSES = 5

#: Has a server write its files anew; returns by name how many messages or files may keep remains of removed data.
Rewrite = Callable[[], Awaitable[Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Counts by kind: data removed, data left all the same, and messages beside which files may keep remains."""

    removed: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left; remains in files cannot be looked for, and are only reported."""
        return not self.left


async def forget_user(
    user_id: str, stores: Sequence[UserStore], files: Sequence[Rewrite] = ()
) -> Forgotten:
    """Remove *user_id* from *stores* in their order, then from *files*; safe to repeat, also after a crash.

    Raises:
        InvalidInput: *user_id* is empty or no text.
        MemoryUnavailable: Redis did not answer in time; data removed by then stays removed.
        Unreachable: NATS did not.
    """
    try:
        user_id.encode()
    except UnicodeEncodeError as error:
        msg = f"user id {user_id!r} contains an unpaired surrogate, which is invalid Unicode; send valid Unicode"
        raise InvalidInput(msg) from error
    if not user_id.strip():
        raise InvalidInput("say who is to be forgotten: a user id")
    removed = await _empty(user_id, stores)
    beside = await _rewrite(files)
    # That took a while, in which tasks that were running may have ended.
    late = await _empty(user_id, stores)
    if late:
        beside = await _rewrite(files)
    left: Counter[str] = Counter()
    for store in stores:
        left.update(await store.count(user_id))
    done = Forgotten(dict(removed + late), dict(+left), beside)
    log.info("user_forgotten", removed=done.removed, left=done.left, beside=done.beside)
    return done


async def _empty(user_id: str, stores: Sequence[UserStore]) -> Counter[str]:
    """Empty *stores* until a whole pass finds nothing; return the sums."""
    total: Counter[str] = Counter()
    for _ in range(PASSES):
        found: Counter[str] = Counter()
        for store in stores:
            found.update(await store.forget(user_id))
        # Unary plus drops the zeros.
        if not +found:
            break
        total += found
    return total


async def _rewrite(files: Sequence[Rewrite]) -> dict[str, int]:
    beside: Counter[str] = Counter()
    for rewrite in files:
        beside.update(await rewrite())
    return dict(+beside)
