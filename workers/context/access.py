"""What a task has declared to touch: its context refuses everything else."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from tasklore.contracts.errors import UndeclaredAccess

#: Long enough for a question that comes back every month to be known again. Compared by identity: 30 days that an
#: author wrote are another object.
REMEMBER_FOR = timedelta(days=30)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredAccess:
    """The declarations of a task that its context checks; every `demand_...` raises UndeclaredAccess with the cure."""

    name: str
    remember: Literal["shared", "user", "never"]
    remember_for: timedelta | None
    uses: frozenset[str]

    @property
    def says_how_long(self) -> bool:
        """Whether the author wrote a time to live for its results."""
        return self.remember_for is not None and self.remember_for is not REMEMBER_FOR

    def demand_use(self, use: str, attribute: str) -> None:
        """Refuse *attribute* of the context unless *use* is declared."""
        if use not in self.uses:
            msg = f"{self.name} uses context.{attribute}; declare @agent.task(uses=({use!r},))"
            raise UndeclaredAccess(msg)

    def demand_unremembered(self, attribute: str, holder: str) -> None:
        """Refuse *attribute* to a task whose answers are remembered, whatever *holder* holds."""
        if self.remember != "never":
            msg = (
                f"{self.name} uses context.{attribute}, but its results are cached by "
                f"its parameters alone, which do not include the state of {holder}, and "
                "a cached result writes nothing there; declare "
                "@agent.task(remember=False), or take what it reads as parameters and "
                "let the phase write the result"
            )
            raise UndeclaredAccess(msg)

    def demand_owner(self, attribute: str) -> None:
        """Refuse *attribute* to a task whose answers are shared by all users."""
        if self.remember == "shared":
            msg = (
                f"{self.name} reads context.{attribute}, but its cached results are "
                'shared by all users; declare @agent.task(remember="user") or '
                "remember=False"
            )
            raise UndeclaredAccess(msg)
