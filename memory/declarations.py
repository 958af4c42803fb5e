"""The declaration of a store in Redis: its keys, the roles that reach them, whose words they hold, and its bounds.

Each declaration lies beside its store, in `memory/NOUN/declaration.py`, and `tasklore.memory.stores` lists them all.
The page of the keys, the rights of each role at Valkey, the functions that a server is given and what is forgotten
with a user are made from that list.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from redis.asyncio import Redis

#: What the page of keys says where no store forgets: nothing of a user is there, or it ends by itself within a month.
NOTHING: Final = "-"
ITS_END: Final = "its end"
#: Stands in a pattern for the id of each agent of the role.
AGENT: Final = "AGENT"


class StoreRole(StrEnum):
    """A kind of process with rights of its own at Valkey; operators reach every key, programs none."""

    SUPERVISOR = "supervisor"
    MEMORY = "memory"
    WORKER = "worker"


#: Whoever runs tasks: workers, and the one that keeps documents.
WORKERS: Final = (StoreRole.MEMORY, StoreRole.WORKER)
EVERY_ROLE: Final = tuple(StoreRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKey:
    """One kind of key, or several that lie beside each other, as a row of the page of keys.

    `names` are their patterns: the first begins with `tl:`, others may be what follows its hash tag, such as `:due`. A
    pair of braces is that tag, `{token}` that of a user, and `...` any further parts. `type` is that of the first, and
    of others where they differ; `lasts` the time to live, "none" for keys that only their store removes. `forgotten_as`
    names the `UserStore` of each that removes what a user left there; `ends_by_itself` is for words that no store has
    to forget, since they are gone within a month.
    """

    names: tuple[str, ...]
    type: str
    lasts: str
    holds: str
    forgotten_as: tuple[str, ...] = ()
    ends_by_itself: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its keys, each once: the word behind `tl:`."""
        heads = (re.match(r"tl:([a-z-]+)", name) for name in self.names)
        return tuple(dict.fromkeys(head[1] for head in heads if head is not None))

    @property
    def spelled(self) -> tuple[str, ...]:
        """Its names, each with its beginning up to the hash tag."""
        found = list[str]()
        for name in self.names:
            is_whole = name.startswith("tl:")
            found.append(name if is_whole else found[-1].partition("}")[0] + "}" + name)
        return tuple(found)

    @property
    def forgotten(self) -> str:
        """What forgets the words of a user here, as the page of keys says it."""
        if self.ends_by_itself:
            return ITS_END
        return ", ".join(self.forgotten_as) or NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccess:
    """A pattern of keys, as Valkey knows patterns, with the roles that write (and read) them and those that read them.

    `AGENT` in the pattern stands for each agent of the role; `is_for_called` adds the agents that its tasks call.
    `layouts` are those of the ledger in which the right is given.
    """

    pattern: str
    writers: tuple[StoreRole, ...] = ()
    readers: tuple[StoreRole, ...] = ()
    is_for_called: bool = False
    layouts: tuple[int, ...] = (1, 2)


_Count = Callable[[str], Awaitable[Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class UserStore:
    """One store in which data of users lies, as forgetting sees it.

    `forget` removes the data of a user id and returns counts by kind, in the plural; a record on which others rely is
    redacted instead. `count` counts again; a kind with nothing may be left out.
    """

    name: str
    forget: _Count
    count: _Count


def user_store(
    name: str,
    forget: Callable[[str], Awaitable[int]],
    count: Callable[[str], Awaitable[int]],
) -> UserStore:
    """Return a store with data of one kind, which has its name."""

    async def forget_by_kind(user_id: str) -> dict[str, int]:
        return {name: await forget(user_id)}

    async def count_by_kind(user_id: str) -> dict[str, int]:
        return {name: await count(user_id)}

    return UserStore(name, forget_by_kind, count_by_kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One store in Redis.

    `writers` and `readers` reach every key of its kinds; where roles reach only some of them, or only those of their
    own agents, `access` says it instead. `bound` says what keeps it from growing. `scripts` are the modules that load
    its Lua functions. `of_users` opens what forgetting removes and counts, for a client and seconds for one round
    trip; None where nothing of a user is, and where that takes more than Redis (`tasklore.workers.forgetting`).
    """

    name: str
    keys: tuple[StoreKey, ...]
    bound: str
    writers: tuple[StoreRole, ...] = ()
    readers: tuple[StoreRole, ...] = ()
    access: tuple[KeyAccess, ...] = ()
    channels: Mapping[str, tuple[StoreRole, ...]] | None = None
    scripts: tuple[ModuleType, ...] = ()
    of_users: "Callable[[Redis, float], UserStore] | None" = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its keys, each once: the word behind `tl:`."""
        return tuple(dict.fromkeys(kind for key in self.keys for kind in key.kinds))

    @property
    def rights(self) -> tuple[KeyAccess, ...]:
        """The rights of every role on its keys."""
        whole = tuple(
            KeyAccess(
                pattern=f"tl:{kind}:{{*", writers=self.writers, readers=self.readers
            )
            for kind in self.kinds
            if self.writers or self.readers
        )
        return whole + self.access
