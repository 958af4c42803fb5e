"""`tasklore --direct`: the API in the process of a command, on the servers' URLs and without a key.

For the night on which no supervisor serves: it may do what the credentials of this process may at the servers, which in
a deployment are those of an operator. Work that it starts is handed over, and needs a supervisor all the same.
"""

import asyncio
import getpass
import socket
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version

from tasklore.commands.endpoints import current_endpoints, demand_listener
from tasklore.contracts.callers import ALL, ROLES, Caller
from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.contracts.handed_requests import HandedRequest, HandedResponse
from tasklore.runtime import logs
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.settings import Settings
from tasklore.supervisor.operator_process import make_application, open_operator

#: Seconds for one call unless its sender says otherwise, and bytes of a response.
WITHIN_S = 60.0
_MOST_BYTES = 512 * 1024**2
#: The address that a refusal names where there is none.
_NOWHERE = "http://direct.invalid"
_LONGEST_NAME = 200


def send(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    within_s: float = WITHIN_S,
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the response to a request, as a client of the API gets them.

    *path* and *query* are encoded as in an address; names of headers come back in small letters.

    Raises:
        ConfigurationError: the request is longer than any that there is.
        Unreachable: no system is known here, or a server of it does not answer.
        Forbidden: a server does not know the credentials of this process.
    """
    try:
        request = HandedRequest(
            method=method,
            path=path,
            query=query,
            headers=tuple((name.lower(), value) for name, value in headers.items()),
            caller=caller_of_this_process(),
            within_s=within_s,
            body=body,
        )
    except ValueError as error:
        raise ConfigurationError(
            "the path, the query or the headers are too long; shorten them"
        ) from error
    found = asyncio.run(_call(request))
    return found.status, dict(found.headers), found.body


def caller_of_this_process() -> Caller:
    """Return the user of this machine as a caller with every role."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # In a container the number of a user may have no name.
        user = "unknown"
    return Caller(
        name=f"operator:{user}@{socket.gethostname()}"[:_LONGEST_NAME],
        roles=frozenset(ROLES),
        approves=frozenset({ALL}),
    )


async def _call(request: HandedRequest) -> HandedResponse:
    # Starlette and FastAPI, which no other command loads.
    from tasklore.commands.memory_hands import lend_hands
    from tasklore.supervisor.http.dependencies import Admission
    from tasklore.supervisor.http.in_process import call_in_process

    # What is read on the way is no news to a person; what is done is a line of the audit.
    logs.configure("error")
    found = current_endpoints()
    settings = Settings.load(nats_url=found.nats, redis_url=found.redis_url)
    await demand_listener(found.nats)
    await demand_listener(found.redis_url)
    metrics = Metrics(version("tasklore"))
    async with open_operator(settings, "direct", metrics, lend_hands) as opened:
        with suppress(Unreachable):
            await opened.cards.load(opened.link)
        application = make_application(opened, Admission(meter=metrics))
        logs.configure(settings.log_level, settings.log_format)
        try:
            return await call_in_process(
                application, request, _NOWHERE, most_bytes=_MOST_BYTES
            )
        finally:
            logs.configure("error")
