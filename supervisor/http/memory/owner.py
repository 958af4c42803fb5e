"""Whose memory a request is about: a user's, or that of an agent, a run or an organisation."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Path, Query

from contracts.identifiers import Scope, scoped
from supervisor.http.admission.key_file import Role
from supervisor.http.admission.keys import Caller, allowed
from supervisor.http.problems import Refused

_Name = Annotated[str, Path(alias="user", min_length=1, max_length=200, description="Whose memory, without a slash.")]
_Scope = Annotated[Scope, Query(description="What `user` names: a user, an agent, a run or an organisation.")]


def _owner_for(role: Role) -> Callable[..., Awaitable[str]]:
    async def owner_of(name: _Name, caller: Annotated[Caller, Depends(allowed(role))], scope: _Scope = "user") -> str:
        if scope == "user":
            caller.demand_user(name)
        elif caller.user_scope is not None:
            raise Refused(403, "scope", f"this key is for one user; use a key without one for the scope {scope!r}")
        return scoped(scope, name)

    return owner_of


#: The owner in the path, for who may read; and for who may ask.
ReadBy = Annotated[str, Depends(_owner_for("read"))]
AskedBy = Annotated[str, Depends(_owner_for("ask"))]
