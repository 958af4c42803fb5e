"""The caller of a request: its API key, its roles, and the user it may act for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPBearer

from tasklore.contracts.identifiers import demand_user_id, user_token
from tasklore.supervisor.approvals.answers import Person
from tasklore.supervisor.http.admission.key_file import ROLES, Role
from tasklore.supervisor.http.problems import Refused

#: Declares `Authorization: Bearer KEY` in the OpenAPI document; the admission has checked it by then.
BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    description="A key made by `tasklore api-key`.",
)

#: Where the admission leaves the caller in the scope of a request.
CALLER = "tasklore.caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The sender of a request; `user_scope` None may act for any user.

    `name` is that of the key, never the key. `admin` holds every other role. `approves` are the roles in which the
    caller answers questions of tasks, None for all of them.
    """

    name: str
    roles: frozenset[Role]
    user_scope: str | None = None
    approves: frozenset[str] | None = frozenset()
    tenant: str | None = None

    def as_person(self) -> Person:
        """Return who answers with this key: its user, in its roles."""
        name = (
            f"user:{self.user_scope}"
            if self.user_scope is not None
            else f"key:{self.name}"
        )
        if self.approves is None:
            return Person(name, "http")
        users = () if self.user_scope is None else (name,)
        return Person(
            name,
            "http",
            frozenset([*users, *(f"role:{role}" for role in self.approves)]),
        )

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
        raise Refused(
            403,
            "other-user",
            "this key is for another user; leave the user out, or use a key without one",
        )

    def demand_tenant(self, tenant: str | None) -> str | None:
        """Return the tenant whose budgets a task spends: *tenant*, or that of the key.

        Raises:
            Refused: 403, the key is for another tenant, or for one user of no tenant.
        """
        if tenant is None or tenant == self.tenant:
            return self.tenant
        if self.tenant is None and self.user_scope is None:
            return tenant
        raise Refused(
            403,
            "other-tenant",
            "this key may not name that tenant; leave the tenant out, or use its key",
        )

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
        """Return whether the caller may read the words of *user_id*, and the answers to them."""
        return self.user_scope is None or user_id == self.user_scope

    @property
    def space(self) -> str:
        """The space of ids that the caller chose: a key for one user shares none with another caller."""
        return user_token(self.user_scope) if self.user_scope is not None else ""


#: The caller where no keys are required.
ANYBODY = Caller(name="local", roles=frozenset(ROLES), approves=None)


def require_role(*roles: Role) -> Callable[..., Awaitable[Caller]]:
    """Return the dependency that gives a route its caller, and refuses one that has none of *roles*."""

    # A coroutine, as FastAPI calls any other function in a thread: two look-ups are not worth the way there and back.
    async def find_caller(
        request: Request, _key: Annotated[object, Security(BEARER)] = None
    ) -> Caller:
        caller = request.scope.get(CALLER)
        if not isinstance(caller, Caller):
            raise Refused(
                401, "no-key", "send an API key as `Authorization: Bearer KEY`"
            )
        caller.demand_role(*roles)
        return caller

    return find_caller
