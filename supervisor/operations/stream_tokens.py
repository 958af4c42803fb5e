"""Stream tokens: each opens one stream of events, for clients that can send no key there."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

from tasklore.contracts.callers import Caller
from tasklore.supervisor.feed.events import OUTPUT_ID, REQUEST_EVENT_ID
from tasklore.supervisor.feed.runs import RUN_PLACE
from tasklore.supervisor.operations import pipelines
from tasklore.supervisor.operations.dependencies import SupervisorDependencies
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.pipelines import PipelineServices, read_standing
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found, unusable
from tasklore.supervisor.operations.requests import demand_request
from tasklore.supervisor.operations.sent_tasks import TaskServices, read_task
from tasklore.supervisor.operations.table import Operations, Shows, operation
from tasklore.supervisor.operations.token_signer import TokenSigner
from tasklore.supervisor.requests.services import RequestServices

#: The field of the query that has a token.
FIELD = "stream_token"
_ID = r"[A-Za-z0-9_-]{1,64}"
#: The streams that are opened by GET and last.
STREAMS = rf"/v1/(tasks/{_ID}/output|(requests|pipelines)/{_ID}/events)"
#: The ids of events by the kind of a stream.
_IDS = {"tasks": OUTPUT_ID, "requests": REQUEST_EVENT_ID, "pipelines": RUN_PLACE}


@dataclass(frozen=True, kw_only=True)
class StreamTokenServices:
    """What finds streams, and signs tokens for them; `signer` None signs none.

    Without `demands_keys` everybody opens every stream as it is.
    """

    demands_keys: bool
    signer: TokenSigner | None
    tasks: TaskServices
    requests: RequestServices
    pipelines: PipelineServices


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
            description="Resume after this event id, as received: `1.1.5` of a task, "
            "`2` of a request, `1.5-4-0` of a run.",
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


@operation(
    "stream-tokens",
    "make",
    "POST /v1/stream-tokens",
    roles=("ask",),
    problems=(404,),
    shows=Shows(
        arguments=("path",),
        example="stream-tokens make /v1/requests/job-7/events",
    ),
)
async def make_stream_token(
    services: StreamTokenServices, caller: Caller, wanted: StreamToOpen
) -> OpenableStream:
    """Create a token by which a browser can open one stream without an API key.

    The token is valid for this stream and this key only, any number of times, until
    `expires_at`.

    Raises:
        Refused: 404, there is no such stream, it is another user's, or no tokens are made here; 401, the key was just
            removed; 422, no event of the stream has that id.
    """
    wanted.demand_event_id()
    await _demand_stream(services, caller, wanted)
    if not services.demands_keys:
        return OpenableStream(url=wanted.path, token=None, expires_at=None)
    if services.signer is None:
        raise not_found(
            "stream tokens require TASKLORE_APPROVAL_SECRET; set it for every "
            "supervisor"
        )
    try:
        token, expires = services.signer.make(
            wanted.path, caller.name, wanted.last_event_id
        )
    except LookupError as error:
        raise Refused(401, "no-key", "this key was removed just now") from error
    return OpenableStream(
        url=f"{wanted.path}?{FIELD}={token}",
        token=token,
        expires_at=datetime.fromtimestamp(expires, UTC),
    )


OPERATIONS: Operations[StreamTokenServices] = (make_stream_token,)


async def _demand_stream(
    services: StreamTokenServices, caller: Caller, wanted: StreamToOpen
) -> None:
    """Refuse a stream that *caller* may not open.

    Raises:
        Refused: 404, there is none, or it is another user's.
    """
    if wanted.kind == "tasks":
        await read_task(services.tasks, caller, wanted.name)
    elif wanted.kind == "requests":
        await demand_request(services.requests, caller, wanted.name)
    else:
        await read_standing(services.pipelines, caller, wanted.name)


def for_supervisor(parts: SupervisorDependencies) -> StreamTokenServices:
    """Return the services of operations of stream tokens."""
    return StreamTokenServices(
        demands_keys=parts.demands_keys,
        signer=parts.token_signer,
        tasks=parts.for_tasks,
        requests=parts.for_requests,
        pipelines=pipelines.for_supervisor(parts),
    )


# An operator's process hands it over, and a supervisor refuses it from there: its keys are those of its own clients.
NOUN = NounDeclaration(
    operations=OPERATIONS, supervisor=serve(for_supervisor, OPERATIONS)
)
