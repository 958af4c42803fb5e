"""The caller: one value that goes along whole from a request to all work that is made of it."""

import hashlib
import json
from collections.abc import Collection
from operator import not_
from typing import Annotated, Final, Literal, Protocol, TypeVar

from pydantic import Field, PlainSerializer

from tasklore.contracts.errors import NotPermitted
from tasklore.contracts.identifiers import demand_user_id, tenant_token, user_token
from tasklore.contracts.message_parts import Part, is_none

#: `ask` may ask for work and see its results, `read` memories, `messages` what models saw in runs, `approve` answer
#: questions of tasks, `operate` see and change what is kept of everybody (dead letters, results, sessions), `admin` all
#: of it.
Role = Literal["ask", "read", "messages", "approve", "operate", "admin"]
ROLES: Final[tuple[Role, ...]] = (
    "ask",
    "read",
    "messages",
    "approve",
    "operate",
    "admin",
)

#: Among the roles that a caller answers in: all of them. No key can name it.
ALL = "*"

#: Spelled in one order, so that the same caller is the same JSON in every process.
_Names = Annotated[
    frozenset[str], PlainSerializer(sorted, return_type=list[str], when_used="json")
]


def _is_empty(value: Collection[str]) -> bool:
    return not value


class Caller(Part):
    """The sender of a request, as its API key says.

    `name` is that of the key, never the key; "" where a program sent it to NATS itself. `admin` among the `roles` holds
    every other one. `user` is the one user that the key acts for, None for any. `tenant` is whose budgets, bounds and
    turns count, None for no tenant's; `named` says that the key, which is of no tenant, named it. `approves` are the
    roles in which the caller answers questions of tasks. `is_handed` says that a process of operations, which has keys
    of its own, admitted the caller.
    """

    name: str = Field(default="", max_length=200)
    roles: _Names = Field(default=frozenset(), exclude_if=_is_empty)
    user: str | None = Field(
        default=None, min_length=1, max_length=256, exclude_if=is_none
    )
    tenant: str | None = Field(
        default=None, min_length=1, max_length=200, exclude_if=is_none
    )
    named: bool = Field(default=False, exclude_if=not_)
    approves: _Names = Field(default=frozenset(), exclude_if=_is_empty)
    is_handed: bool = Field(default=False, exclude_if=not_)

    @property
    def space(self) -> str:
        """The space of ids that the caller chose: a key for one user shares none with another caller."""
        return user_token(self.user) if self.user is not None else ""

    @property
    def holder(self) -> str:
        """The token of the holder of the key: processes with keys of their own may give one name to unlike keys."""
        return json.dumps([self.name, self.user, self.own_tenant])

    @property
    def own_tenant(self) -> str | None:
        """The tenant that its key is bound to; None for a key of no tenant, whichever it names."""
        return None if self.named else self.tenant

    @property
    def owner(self) -> str:
        """The token of the owner whose bounds count for kept things: its own tenant's, else its key's.

        "" is the deployment itself, for which there is a reserve: an operator's key, of role `admin`, without a user
        or a tenant.
        """
        if self.own_tenant is not None:
            return tenant_token(self.own_tenant)
        is_operator = "admin" in self.roles and self.user is None
        return "" if is_operator else f"{user_token(self.name)}="

    def may_hear(self, user_id: str | None) -> bool:
        """Return whether the caller may read the words of *user_id*, and the answers to them."""
        return self.user is None or user_id == self.user

    def may_see(self, user_id: str | None, tenant: str | None) -> bool:
        """Return whether the caller may see and change things made for *user_id* with *tenant*; either may be None.

        A key of a tenant reaches what names that tenant alone; one of no tenant, as an operator has it, reaches all.
        """
        return self.may_hear(user_id) and self.own_tenant in (None, tenant)

    def demand_user(self, user_id: str | None) -> str | None:
        """Return the user to act for: *user_id*, or the one the key is for when none is named.

        Raises:
            NotPermitted: the key is for another user.
            InvalidInput: it is the name of another scope.
        """
        if user_id is not None:
            demand_user_id(user_id)
        if self.user is None or user_id == self.user:
            return user_id
        if user_id is None:
            return self.user
        raise NotPermitted(
            "this key is for another user; leave the user out, or use a key without one",
            "other-user",
        )

    def for_tenant(self, tenant: str | None) -> "Caller":
        """Return this caller as one of *tenant*, None for its own, whose budgets are spent.

        Raises:
            NotPermitted: the key is for another tenant, or for one user of no tenant.
        """
        if tenant is None or tenant == self.tenant:
            return self
        if self.own_tenant is None and self.user is None:
            return self.model_copy(update={"tenant": tenant, "named": True})
        raise NotPermitted(
            "this key may not name that tenant; leave the tenant out, or use its key",
            "other-tenant",
        )

    def demand_unbound(self) -> None:
        """Return when the key is for no one user or tenant: what is kept for all at once is not shown to one.

        Raises:
            NotPermitted: it is.
        """
        if self.user is not None or self.own_tenant is not None:
            raise NotPermitted(
                "this key is for one user or tenant, and that concerns all of them; use a key for neither",
                "bound-key",
            )

    def demand_role(self, *roles: str) -> None:
        """Return when the caller has one of *roles*.

        Raises:
            NotPermitted: it has none of them.
        """
        if self.roles.isdisjoint({*roles, "admin"}):
            needed = " or ".join(map(repr, roles))
            raise NotPermitted(
                f"this key does not have the role {needed}; create one with `tasklore "
                f"api-key NAME --role {roles[0]}`",
                "role",
            )


def caller_of(caller: Caller | None, tenant: str | None) -> Caller | None:
    """Return who asked, by the fields of a message: one of 0.2, or of a program, names its *tenant* alone.

    None: it is not known.
    """
    if tenant is None or (caller is not None and caller.tenant is not None):
        return caller
    return (caller or Caller()).model_copy(update={"tenant": tenant, "named": True})


def tenant_of(caller: Caller | None) -> str | None:
    """Return the tenant of what *caller* made; None where it is not known, or made with none."""
    return None if caller is None else caller.tenant


def owner_of(caller: Caller | None) -> str:
    """Return the token of those whose bounds count for what *caller* keeps; None is the deployment itself, ""."""
    return "" if caller is None else caller.owner


def keeper_of(caller: Caller | None, user_id: str | None) -> str:
    """Return the token of the owner whose bounds count for a request: who asks, or at NATS the user it is for.

    A caller without a name shows no key: its owner is the user that is named, with the tenant, or that tenant alone.
    "" is the deployment itself. Of what is only named it is a digest: bounds outlive what is forgotten of a user.
    """
    if caller is not None and caller.name:
        return caller.owner
    tenant = None if caller is None else caller.tenant
    if user_id is None and tenant is None:
        return ""
    whose = json.dumps([tenant, user_id])
    return f"~{hashlib.sha256(whose.encode()).hexdigest()[:32]}"


def payer_of(asking: Caller | None, maker: Caller | None) -> Caller | None:
    """Return whose work it is that *asking* lets begin of a thing which *maker* made.

    A caller with a tenant pays for the work that they begin; an operator begins it for its maker.
    """
    return asking if asking is not None and asking.tenant is not None else maker


class _Asked(Protocol):
    """A message with the caller, and beside it the tenant that readers of 0.2 know alone."""

    @property
    def caller(self) -> Caller | None: ...

    @property
    def tenant(self) -> str | None: ...


_A = TypeVar("_A", bound=_Asked)


def name_tenant(message: _A) -> _A:
    """Set the tenant of *message* to that of its caller, where it names one."""
    if message.caller is not None and message.caller.tenant is not None:
        object.__setattr__(message, "tenant", message.caller.tenant)
    return message
