"""The processes of a stage by role, out of one forge: begun, killed and replaced."""

import asyncio
from collections.abc import Mapping
from random import Random
from types import MappingProxyType

from tests.acceptance.chaos.forge import ROLE_VARIABLE
from tests.acceptance.chaos.forged import Forged
from tests.acceptance.chaos.history import History
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.faults.plan import Every, Fault, Role


class Cast:
    """All processes that serve on a stage; *environment* are their settings."""

    def __init__(
        self, smith: Smith, history: History, environment: Mapping[str, str]
    ) -> None:
        self.serving: dict[Role, list[Forged]] = {"worker": [], "supervisor": []}
        self._smith = smith
        self._history = history
        self._environment = environment
        self._settings: dict[str, str] = {}
        self._deeds: Mapping[Role, str] = {}

    @property
    def everybody(self) -> list[Forged]:
        """Every process."""
        return [one for processes in self.serving.values() for one in processes]

    @property
    def dead(self) -> list[int]:
        """The ids of those that have died and were not killed by us."""
        return [one.pid for one in self.everybody if not one.is_alive]

    async def fork(self, role: Role) -> Forged:
        """Return another process of *role*, which serves in a moment."""
        environment = {**self._environment, **self._settings, ROLE_VARIABLE: role}
        forged = await self._smith.fork(
            environment, self._history, self._deeds.get(role, "")
        )
        self.serving[role].append(forged)
        return forged

    async def begin(
        self,
        numbers: Mapping[Role, int],
        *,
        deeds: Mapping[Role, str] = MappingProxyType({}),
        settings: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Return once so many new ones of each role serve, with *settings*; all of a role commit its deed.

        For deeds see `tests.acceptance.chaos.sabotage`.
        """
        await self.close()
        self._deeds = deeds
        self._settings = {
            f"TASKLORE_{name.upper()}": str(value) for name, value in settings.items()
        }
        for role, number in numbers.items():
            # The first one makes streams and consumers; together they would do the same work.
            await (await self.fork(role)).begun()
            for _ in range(number - 1):
                await self.fork(role)
        for forged in self.everybody:
            await forged.begun()

    async def kill(self, role: Role, victim: Forged) -> None:
        """Kill *victim* and return when it is gone."""
        # First, as others look meanwhile at who has died by itself.
        self.serving[role].remove(victim)
        victim.kill()
        await victim.gone()

    async def kill_and_replace(self, fault: Fault, dice: Random) -> bool:
        """Kill one of the role of *fault* at its time and fork another; return whether it had begun to serve.

        Raises:
            TypeError: the fault falls at another time than now and again.
        """
        when = fault.when
        if not isinstance(when, Every):
            raise TypeError(f"nobody is killed but now and again: {fault}")
        victim = dice.choice(self.serving[fault.role])
        if dice.random() < when.share:
            await victim.begun()
        await asyncio.sleep(dice.uniform(when.shortest_s, when.longest_s))
        has_begun = victim.ready.done()
        await self.kill(fault.role, victim)
        await self.fork(fault.role)
        return has_begun

    async def close(self) -> None:
        """End every process."""
        for forged in self.everybody:
            forged.dismiss()
        for processes in self.serving.values():
            while processes:
                await processes.pop().gone()
