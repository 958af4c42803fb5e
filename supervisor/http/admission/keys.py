"""The caller of a request: its API key, its roles, and the user it may act for."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPBearer

from tasklore.contracts.callers import ALL, ROLES, Caller, Role
from tasklore.supervisor.operations.refusals import Refused

__all__ = ["ANYBODY", "BEARER", "CALLER", "Caller", "require", "require_role"]

#: Declares `Authorization: Bearer KEY` in the OpenAPI document; the admission has checked it by then.
BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    description="A key made by `tasklore api-key`.",
)

#: Where the admission leaves the caller in the scope of a request.
CALLER = "tasklore.caller"


#: The caller where no keys are required.
ANYBODY = Caller(name="local", roles=frozenset(ROLES), approves=frozenset({ALL}))


def require_role(*roles: Role) -> Callable[..., Awaitable[Caller]]:
    """Return the dependency that gives a route its caller, and refuses one that has none of *roles*."""
    return require(lambda caller: caller.demand_role(*roles))


def require(check: Callable[[Caller], None]) -> Callable[..., Awaitable[Caller]]:
    """Return the dependency that gives a route its caller, and refuses one at whom *check* raises."""

    # A coroutine, as FastAPI calls any other function in a thread: two look-ups are not worth the way there and back.
    async def find_caller(
        request: Request, _key: Annotated[object, Security(BEARER)] = None
    ) -> Caller:
        caller = request.scope.get(CALLER)
        if not isinstance(caller, Caller):
            raise Refused(
                401, "no-key", "send an API key as `Authorization: Bearer KEY`"
            )
        check(caller)
        return caller

    return find_caller
