"""The tenant whose budgets a task spends: that of the key, or the one that a key without one names."""

import pytest

from tasklore.contracts.errors import NotPermitted
from tasklore.supervisor.http.admission.keys import Caller

ASK = frozenset({"ask"})


@pytest.mark.parametrize(
    ("caller", "named", "tenant"),
    [
        (Caller(name="a", roles=ASK, tenant="acme"), None, "acme"),
        (Caller(name="a", roles=ASK, tenant="acme"), "acme", "acme"),
        (Caller(name="a", roles=ASK), "other", "other"),
        (Caller(name="a", roles=ASK), None, None),
        (Caller(name="a", roles=ASK, user="ann"), None, None),
    ],
)
def test_a_task_is_of_the_tenant_of_its_key(
    caller: Caller, named: str | None, tenant: str | None
) -> None:
    assert caller.for_tenant(named).tenant == tenant


@pytest.mark.parametrize(
    ("caller", "seen"),
    [
        (Caller(name="a"), {None, "acme", "rich"}),
        (Caller(name="a", tenant="acme"), {"acme"}),
        (Caller(name="a", tenant="acme", named=True), {None, "acme", "rich"}),
        (Caller(name="a", user="ann"), {None, "acme", "rich"}),
        (Caller(name="a", user="ann", tenant="acme"), {"acme"}),
    ],
)
def test_a_key_of_a_tenant_sees_what_names_it_alone(
    caller: Caller, seen: set[str | None]
) -> None:
    tenants = (None, "acme", "rich")
    assert {one for one in tenants if caller.may_see("ann", one)} == seen
    may_hear = caller.user is None
    assert any(caller.may_see("bob", one) for one in tenants) == may_hear


@pytest.mark.parametrize(
    "caller",
    [
        Caller(name="a", roles=ASK, tenant="acme"),
        Caller(name="a", roles=ASK, user="ann"),
    ],
)
def test_a_key_of_one_tenant_or_user_spends_no_other_budget(caller: Caller) -> None:
    with pytest.raises(NotPermitted, match="may not name that tenant"):
        caller.for_tenant("rich")
