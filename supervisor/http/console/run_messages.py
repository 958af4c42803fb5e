"""Messages of one run: the sources of its answer, and each prompt, answer, tool and step behind it."""

from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    RenderedPage,
    Visit,
    address,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.run_messages import show_messages

#: Characters of one message that a page shows; the command and the API have all that is kept.
_MOST_SHOWN = 8_000


async def show(visit: Visit) -> RenderedPage:
    """Return the messages of the run in the address, or why there are none.

    Raises:
        NotPermitted: this person may see none.
        Refused: 503, the store does not answer.
    """
    task_id = visit.path["task_id"]
    fault = ""
    found = None
    try:
        found = await visit.call(show_messages, task_id)
    except Refused as refused:
        if refused.problem.status != 404:
            raise
        fault = f"{refused}."
    return RenderedPage(
        title="What the model saw · run",
        values={
            "task_id": task_id,
            "found": found,
            "fault": fault,
            "back": address(f"runs/{task_id}"),
            "most": _MOST_SHOWN,
        },
    )


PAGE = ConsolePage(
    path="runs/{task_id}/messages",
    title="What the model saw",
    operation=show_messages,
    show=show,
    template="run_messages.html",
)
