"""The budget of a deployment: the room under each limit, and the spending."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.budgets.overview import BudgetOverview, By, read_overview
from tasklore.memory.budgets.store import KEEP, Budgets
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.table import Operations, Shows, operation


@dataclass(frozen=True, kw_only=True)
class BudgetServices:
    """The accounts and the books, and the clock in UTC."""

    budgets: Budgets
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@operation(
    "budget",
    "show",
    "GET /v1/budget",
    roles=("read",),
    shows=Shows(
        picture="budget",
        shortcut="budget",
        example="budget --by tenant\nbudget --days 7 --by model\nbudget --days 7 --by day",
    ),
)
async def show_budget(
    services: BudgetServices,
    caller: Caller,
    *,
    by: Annotated[By, Field(description="How spending is grouped.")] = "agent",
    days: Annotated[
        int | None,
        Field(
            ge=1,
            le=KEEP.days,
            description="Spending of so many days; else of today and the month.",
        ),
    ] = None,
    tree: Annotated[
        str | None,
        Field(
            pattern=NAME_PATTERN,
            max_length=64,
            description="Only the tree of this task.",
        ),
    ] = None,
    limit: Annotated[
        int | None, Field(ge=1, description="At most so many accounts.")
    ] = None,
) -> BudgetOverview:
    """Show the room under each limit, and the spending of today and this month, by agent.

    An account has the spending of its present window, the most that calls under way may cost, and the cost of calls
    whose worker died. A limit for each value (`*`), task or tree has an account for each. Amounts by list
    price; days are UTC, those of limits in their time zone. Saved is what recalled answers had cost.
    """
    caller.demand_unbound()
    found = await read_overview(
        services.budgets, services.now(), by=by, days=days, tree=tree
    )
    return found if limit is None else replace(found, accounts=found.accounts[:limit])


OPERATIONS: Operations[BudgetServices] = (show_budget,)


def make_services(
    parts: SupervisorDependencies | OperatorDependencies,
) -> BudgetServices:
    """Return the services of operations of the budget, in either process."""
    return BudgetServices(budgets=Budgets(parts.redis))


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(make_services, OPERATIONS),
    operator=serve(make_services, OPERATIONS),
)
