"""Makers of schedules, webhooks and runs: whether the key of one still exists, and has the role that the work needs.

What was made is not lost with its key: it rests, and goes on once the key is back, or for whoever takes it over.
"""

import re
from datetime import datetime, timedelta
from typing import Final, Protocol

from tasklore.contracts.callers import ALL, Caller, Role, payer_of, tenant_of
from tasklore.contracts.identifiers import NAME_PATTERN

#: Every note of work that rests begins so.
HELD: Final = "paused: "
#: So begins the note of a webhook that an administrator has sent although the key of its maker is not there.
RELEASED: Final = "sent without the key of its maker"
#: Pauses between looks at whether a key is back: a part of the time since it was missed, from the least to the most.
#: The least is far below the time after which a tick counts as missed, so that of two supervisors of which one does
#: not know a new key yet the other makes it.
_LOOK_PART = 4
_LEAST_PAUSE = timedelta(seconds=2)
_MOST_PAUSE = timedelta(seconds=60)


class HeldKeys(Protocol):
    """The keys that a supervisor knows now."""

    def find_holder(self, name: str) -> Caller | None:
        """Return the caller that shows the key called *name*, None where there is none."""


class Makers:
    """Says whether makers may still have work done; without *keys* none is required, and all may."""

    def __init__(self, keys: HeldKeys | None = None) -> None:
        self._keys = keys

    def is_foreign(self, caller: Caller) -> bool:
        """Return whether *caller* has shown a key, and none of these."""
        if self._keys is None or not _shows_key(caller):
            return False
        found = self._keys.find_holder(caller.name)
        return found is None or found.holder != caller.holder

    def find_loss(self, maker: Caller | None, role: Role) -> str | None:
        """Return what the key of *maker* lost that work in its name needs; None where nothing is lost.

        Nothing is of the code of an agent, of a program that showed no key, of an operator who needs none, and of a
        key that a process of operations alone knows. One made anew under its name is the same, for the same user and
        tenant.
        """
        if maker is None or self._keys is None or not _shows_key(maker):
            return None
        found = self._keys.find_holder(maker.name)
        if found is None:
            return f"the API key {maker.name!r} that created it was removed"
        if found.holder != maker.holder:
            return f"the API key {maker.name!r} that created it is now for another user or tenant"
        if found.roles.isdisjoint({role, "admin"}):
            return f"the API key {maker.name!r} that created it no longer has the role {role!r}"
        return None

    def holder_of(self, caller: Caller) -> Caller | None:
        """Return *caller* as no more than who holds the key, to be asked about later; None where that is no key."""
        if self._keys is None or not _shows_key(caller):
            return None
        return Caller(
            name=caller.name,
            user=caller.user,
            tenant=caller.tenant,
            named=caller.named,
        )

    def payer_of(
        self, asking: Caller | None, maker: Caller | None, role: Role
    ) -> Caller | None:
        """Return whose work it is that *asking* lets begin of a thing which *maker* made: theirs where its key is lost.

        Raises:
            NotPermitted: they may not act for the tenant of *maker*.
        """
        if asking is None or self.find_loss(maker, role) is None:
            return payer_of(asking, maker)
        return asking.for_tenant(tenant_of(maker))


def until_look(now: datetime, missed_at: datetime) -> timedelta:
    """Return how long to wait before it is looked again whether a key is back that was missed since *missed_at*."""
    return min(_MOST_PAUSE, max(_LEAST_PAUSE, (now - missed_at) / _LOOK_PART))


def spell_hold(loss: str, cure: str) -> str:
    """Return the note of work that rests because of *loss*, with the command that lets it go on."""
    return f"{HELD}{loss}; it continues when the key is back, or when somebody takes it over: `{cure}`"


def _shows_key(caller: Caller) -> bool:
    """Return whether *caller* has shown a key that a supervisor has to know."""
    return (
        not caller.is_handed
        and ALL not in caller.approves
        and re.fullmatch(NAME_PATTERN, caller.name) is not None
    )
