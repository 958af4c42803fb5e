"""Who asks: the API key of a request, what it may do, and for whom."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPBearer

from contracts.identifiers import demand_user_id, user_token
from supervisor.http.admission.key_file import ROLES, Role
from supervisor.http.problems import Refused

#: Says in the OpenAPI document that a key is sent as `Authorization: Bearer KEY`; the door has looked at it by then.
BEARER = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="A key made by `tasklore api-key`.")

#: Where the door leaves the caller in the scope of a request.
CALLER = "tasklore.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request; `user_scope` None may act for any user.

    `name` is that of the key, never the key. `admin` holds every other role.
    """

    name: str
    roles: frozenset[Role]
    user_scope: str | None = None

    def demand_user(self, user_id: str | None) -> str | None:
        """Return the user to act for: *user_id*, or the one the key is for when none is named.

        Raises:
            Refused: 403, the key is for another user.
            InvalidInput: it is the name of another scope.
        """
        if user_id is not None:
            demand_user_id(user_id)
        if self.user_scope is None or user_id == self.user_scope:
            return user_id
        if user_id is None:
            return self.user_scope
        raise Refused(403, "other-user", "this key is for another user; leave the user out, or use a key without one")

    def demand_role(self, *roles: Role) -> None:
        """Return when the caller has one of *roles*.

        Raises:
            Refused: 403, it has none of them.
        """
        if self.roles.isdisjoint({*roles, "admin"}):
            needed = " or ".join(map(repr, roles))
            detail = f"this key has not the role {needed}; make one with `tasklore api-key NAME --role {roles[0]}`"
            raise Refused(403, "role", detail)

    def may_hear(self, user_id: str | None) -> bool:
        """Tell whether what was said by *user_id*, or to them, is for the caller's ears."""
        return self.user_scope is None or user_id == self.user_scope

    @property
    def space(self) -> str:
        """Where ids that the caller chose are looked up: a key for one user shares none with anybody else."""
        return user_token(self.user_scope) if self.user_scope is not None else ""


#: Who asks where no keys are demanded.
ANYBODY = Caller("local", frozenset(ROLES))


def allowed(*roles: Role) -> Callable[..., Awaitable[Caller]]:
    """Return the dependency that gives a route its caller, and refuses one that has none of *roles*."""

    # A coroutine, as what is none is called in a thread of the pool: for two look-ups a hop there and back.
    async def caller_of(request: Request, _key: Annotated[object, Security(BEARER)] = None) -> Caller:
        caller = request.scope.get(CALLER)
        if not isinstance(caller, Caller):
            raise Refused(401, "no-key", "send an API key as `Authorization: Bearer KEY`")
        caller.demand_role(*roles)
        return caller

    return caller_of
