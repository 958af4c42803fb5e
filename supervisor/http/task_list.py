"""The route that lists the tasks that a caller may see, page by page."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from tasklore.contracts.identifiers import Name, user_token
from tasklore.memory.ledger.run_list import (
    MOST_OF_PAGE,
    RunFilter,
    TaskList,
    TaskPage,
)
from tasklore.memory.ledger.run_rows import EndState, OpenState
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.forms import Form, SpelledTime

_LISTING = Depends(require_role("ask", "read"))


class TaskQuery(Form):
    """Which tasks are listed: those to which all of it applies. An unknown name is refused: it would filter nothing."""

    agent: Annotated[Name | None, Field(description="The id of their agent.")] = None
    state: Annotated[
        OpenState | EndState | None, Field(description="How they stand, or ended.")
    ] = None
    tenant: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Whose budgets they spend; the key's own, where it has one.",
        ),
    ] = None
    user: Annotated[
        str | None,
        Field(
            min_length=1, max_length=256, description="Whose they are; the key's own."
        ),
    ] = None
    created_after: Annotated[
        SpelledTime | None, Field(description="RFC 3339, with its zone; included.")
    ] = None
    created_before: Annotated[
        SpelledTime | None, Field(description="RFC 3339, with its zone; left out.")
    ] = None
    parent: Annotated[
        Name | None, Field(description="The id of the task that called them.")
    ] = None
    error: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="The class of the error that ended them, as `TaskExpired`.",
        ),
    ] = None
    after: Annotated[
        str, Field(max_length=100, description="The `after` of the page before.")
    ] = ""
    limit: Annotated[
        int, Field(ge=1, le=MOST_OF_PAGE, description="Tasks of a page.")
    ] = 50

    def filter_for(self, caller: Caller) -> RunFilter:
        """Return which runs *caller* is shown: of its own user and tenant alone, where its key is bound to one.

        Raises:
            NotPermitted: another user or tenant is asked for.
        """
        user_id = caller.demand_user(self.user)
        since = self.created_after
        until = self.created_before
        return RunFilter(
            agent_id=self.agent,
            state=self.state,
            tenant=caller.for_tenant(self.tenant).tenant,
            user=user_token(user_id) if user_id is not None else None,
            created_from_ms=None if since is None else int(since.timestamp() * 1000),
            created_before_ms=None if until is None else int(until.timestamp() * 1000),
            parent_id=self.parent,
            error=self.error,
        )


def routes(parts: ApiParts) -> APIRouter:
    """Return the route of the list of tasks."""
    router = APIRouter(tags=["tasks"])

    @router.get(
        "/v1/tasks",
        operation_id="tasks_list",
        summary="List tasks",
        responses=answers(),
    )
    async def list_tasks(
        query: Annotated[TaskQuery, Query()], caller: Annotated[Caller, _LISTING]
    ) -> TaskPage:
        asked = query.filter_for(caller)
        return await TaskList(parts.redis).read(
            asked, after=query.after, limit=query.limit
        )

    return router
