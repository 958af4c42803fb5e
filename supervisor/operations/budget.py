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
            description="Spending of this many days; default: today and this month.",
        ),
    ] = None,
    tree: Annotated[
        str | None,
        Field(
            pattern=NAME_PATTERN,
            max_length=64,
            description="Only this task and the tasks below it.",
        ),
    ] = None,
    limit: Annotated[
        int | None, Field(ge=1, description="Maximum number of accounts.")
    ] = None,
) -> BudgetOverview:
    """Show what is left of each limit, and the spending of today and this month, by agent.

    An account shows the spending of its current window, the maximum cost of calls in
    progress, and the cost of calls whose worker crashed. A limit for each value (`*`),
    task or tree has an account for each. Amounts are list prices; days are UTC, those
    of limits in their time zone. Saved is the original cost of cached answers.
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
