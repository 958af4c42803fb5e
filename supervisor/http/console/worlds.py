"""Worlds: messages that agents have not heard yet, and a form that sends one."""

from pydantic import ValidationError

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.worlds import WorldMessage, list_unheard, tell_agent


async def show(visit: Visit) -> RenderedPage:
    """Return what waits for the agent in the address, or the form that asks for one."""
    name = visit.query.get("conversation", "").strip()
    fault = ""
    is_unusable = False
    found = None
    if name:
        try:
            found = await visit.call(
                list_unheard, conversation_id=name, after=visit.after
            )
        except (Refused, InvalidInput) as refused:
            if isinstance(refused, Refused) and refused.problem.status >= 500:
                raise
            fault = f"{refused}."
            is_unusable = (
                isinstance(refused, InvalidInput) or refused.problem.status == 422
            )
    return RenderedPage(
        is_unusable=is_unusable,
        title=f"{name} · world" if name else "",
        values={
            "name": name,
            "found": found,
            "fault": fault,
            "paging": visit.paging(
                "worlds", found.after if found else None, conversation=name
            ),
            "here": address("worlds", conversation=name),
            "may_tell": visit.may(tell_agent),
        },
    )


async def tell(visit: Visit) -> Notice:
    """Say something to an agent."""
    back = address("worlds", conversation=visit.one("conversation_id"))
    given = {
        "conversation_id": visit.one("conversation_id"),
        "sender": visit.one("sender"),
        "message": visit.one("message"),
        "time": visit.one("time") or None,
    }
    try:
        said = WorldMessage.model_validate(given)
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False, include_input=False)[0])
        return Notice(to=back, text=fault, tone="bad")
    try:
        told = await visit.call(tell_agent, said)
    except (Refused, InvalidInput) as refused:
        return Notice(to=back, text=f"It was not said: {refused}.", tone="bad")
    return Notice(to=back, text=f"It is said, at {told.time:g} s of the world.")


PAGE = ConsolePage(
    path="worlds",
    title="Worlds",
    operation=list_unheard,
    show=show,
    template="worlds.html",
    group="Memory",
    actions=(FormAction(path="worlds/tell", operation=tell_agent, run=tell),),
)
