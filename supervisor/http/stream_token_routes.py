"""The route of tokens that open one stream of events, for clients that can send no key there."""

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import AwareDatetime, Field
from starlette.responses import Response

from tasklore.supervisor.feed.runs import RUN_PLACE
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.admission.stream_tokens import FIELD, LIFE_S, STREAMS
from tasklore.supervisor.http.output import OUTPUT_ID
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.requests.events import EVENT_ID
from tasklore.supervisor.operations import pipelines
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.pipelines import read_standing
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found, unusable
from tasklore.supervisor.operations.requests import demand_request
from tasklore.supervisor.operations.sent_tasks import read_task

#: The ids of events by the kind of a stream.
_IDS = {"tasks": OUTPUT_ID, "requests": EVENT_ID, "pipelines": RUN_PLACE}


class StreamToOpen(Form):
    """The stream to open, by its `path`; after the event `last_event_id` where an earlier one was cut off."""

    path: Annotated[
        str,
        Field(
            pattern=rf"^{STREAMS}$",
            description="`/v1/tasks/ID/output`, `/v1/requests/ID/events` or `/v1/pipelines/ID/events`.",
        ),
    ]
    last_event_id: Annotated[
        str | None,
        Field(
            max_length=8192,
            description="As the stream wrote it: `1.1.5` of a task, `2` of a request, `1.5-4-0` of a run.",
        ),
    ] = None

    @property
    def kind(self) -> str:
        """Return whose stream it is: `tasks`, `requests` or `pipelines`."""
        return self.path.split("/")[2]

    @property
    def name(self) -> str:
        """Return the id of the task, the request or the session."""
        return self.path.split("/")[3]

    def demand_event_id(self) -> None:
        """Refuse an id that no event of this stream has.

        Raises:
            Refused: 422.
        """
        if self.last_event_id is None:
            return
        if re.fullmatch(_IDS[self.kind], self.last_event_id) is None:
            raise unusable(
                [
                    Fault(
                        where="last_event_id",
                        message="is of no event of this stream; send the `id` of its last event as it came, or "
                        "leave it out",
                    )
                ]
            )


class OpenableStream(View):
    """Where to open the stream without a key, until `expires_at`; `token` is null where no keys are required."""

    url: str
    token: str | None
    expires_at: AwareDatetime | None


def routes(parts: ApiParts) -> APIRouter:
    """Return the route."""
    router = APIRouter(prefix="/v1", tags=["streams"])

    @router.post(
        "/stream-tokens",
        operation_id="stream_tokens_make",
        summary="Let a browser open one stream without a key",
        description=f"The token is for this stream and this key alone, and opens it, also again, for {LIFE_S} seconds.",
        responses=answers(404),
    )
    async def make(
        body: StreamToOpen,
        response: Response,
        caller: Annotated[Caller, Depends(require_role("ask"))],
    ) -> OpenableStream:
        body.demand_event_id()
        await _demand_stream(parts, caller, body)
        response.headers["Cache-Control"] = "no-store"
        if parts.keys is None:
            return OpenableStream(url=body.path, token=None, expires_at=None)
        if parts.stream_tokens is None:
            raise not_found(
                "there are no tokens of streams without TASKLORE_APPROVAL_SECRET; set it for every supervisor"
            )
        try:
            token, expires = parts.stream_tokens.make(
                body.path, caller.name, body.last_event_id
            )
        except LookupError as error:
            raise Refused(401, "no-key", "this key was removed just now") from error
        return OpenableStream(
            url=f"{body.path}?{FIELD}={token}",
            token=token,
            expires_at=datetime.fromtimestamp(expires, UTC),
        )

    return router


async def _demand_stream(parts: ApiParts, caller: Caller, wanted: StreamToOpen) -> None:
    """Refuse a stream that *caller* may not open.

    Raises:
        Refused: 404, there is none, or it is another user's.
    """
    if wanted.kind == "tasks":
        await read_task(parts.for_tasks, caller, wanted.name)
    elif wanted.kind == "requests":
        await demand_request(parts.for_requests, caller, wanted.name)
    else:
        await read_standing(pipelines.for_supervisor(parts), caller, wanted.name)
