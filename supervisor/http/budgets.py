"""The routes of limits and budgets, which are of the whole deployment: not for a key of one user."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from tasklore.contracts.admission.limits import Limits
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.budgets.overview import By, Overview, read_overview
from tasklore.memory.budgets.store import KEEP, Budgets
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.refusals import Refused


class LimitsVersion(View):
    """The limits that hold; version 0 has none."""

    version: int
    who: str
    when: str
    limits: Limits


class NewLimits(Form):
    """All limits, over those of `version`: that of the last `GET /v1/limits`."""

    version: Annotated[int, Field(ge=0, le=2**53, strict=True)]
    limits: Limits


def _demand_everybody(caller: Caller) -> Caller:
    """Return *caller*.

    Raises:
        Refused: 403, the key is for one user.
        NotPermitted: it is of one tenant.
    """
    if caller.user is not None:
        raise Refused(
            403,
            "other-user",
            "limits and budgets are of all users, and this key is for one; use another",
        )
    caller.demand_unbound()
    return caller


async def _find_reader(
    caller: Annotated[Caller, Depends(require_role("read"))],
) -> Caller:
    return _demand_everybody(caller)


async def _find_admin(
    caller: Annotated[Caller, Depends(require_role("admin"))],
) -> Caller:
    return _demand_everybody(caller)


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes `/v1/limits` and `/v1/budget`."""
    router = APIRouter(
        prefix="/v1", tags=["budgets"], dependencies=[Depends(_find_reader)]
    )
    budgets = Budgets(parts.redis)

    async def read() -> LimitsVersion:
        return LimitsVersion.model_validate(await budgets.read())

    @router.get(
        "/limits",
        operation_id="limits_show",
        summary="Read the limits on models",
        responses=answers(),
        response_model_exclude_defaults=True,
    )
    async def limits() -> LimitsVersion:
        return await read()

    @router.put(
        "/limits",
        operation_id="limits_apply",
        summary="Replace the limits on models",
        responses=answers(409),
        response_model_exclude_defaults=True,
    )
    async def replace(
        body: NewLimits, caller: Annotated[Caller, Depends(_find_admin)]
    ) -> LimitsVersion:
        await budgets.change(body.limits, f"key:{caller.name}", over=body.version)
        return await read()

    @router.get(
        "/budget",
        operation_id="budget_show",
        summary="Read what limits leave, and what was spent",
        responses=answers(),
    )
    async def budget(
        by: Annotated[By, Query(description="How spending is grouped.")] = "agent",
        days: Annotated[
            int | None,
            Query(
                ge=1,
                le=KEEP.days,
                description="Spending of so many days; else of today and the month.",
            ),
        ] = None,
        tree: Annotated[
            str | None,
            Query(
                pattern=NAME_PATTERN,
                description="Only the tree of this task.",
                max_length=64,
            ),
        ] = None,
    ) -> Overview:
        return await read_overview(
            budgets, datetime.now(UTC), by=by, days=days, tree=tree
        )

    return router
