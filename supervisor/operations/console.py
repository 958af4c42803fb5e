"""The web console: links that sign a browser in, each for one use."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from tasklore.contracts.callers import Caller
from tasklore.memory.ledger.requests import RequestRecord, RequestRecords, place_of
from tasklore.supervisor.operations.console_links import ConsoleLinks
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import Refused, not_found
from tasklore.supervisor.operations.table import Operations, Shows, operation

#: Where a link leads to. Looking at it uses it up no more than a preview does.
SIGN_IN = "/console/sign-in"
#: Kinds of records: of a link that was used, and of a session that somebody signed out of.
_LINK = "console-link"
_ENDED = "console-ended"


@dataclass(frozen=True, kw_only=True)
class ConsoleServices:
    """The signer of links, None without a secret; the records of those that were used, and the clock in UTC."""

    links: ConsoleLinks | None
    records: RequestRecords
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class ConsoleLink(View):
    """A link that signs a browser in once, until `expires_at`, as the caller who asked for it."""

    url: str
    expires_at: datetime


@operation(
    "console",
    "link",
    "POST /v1/console/links",
    roles=("ask", "read", "approve", "operate"),
    problems=(404,),
    shows=Shows(shortcut="console", picture="console_link", example="console"),
)
async def link_console(
    services: ConsoleServices, caller: Caller, *, base_url: str
) -> ConsoleLink:
    """Open the web console: a link that signs a browser in once, within five minutes, with the roles of your key.

    Raises:
        Refused: 404, no secret signs links.
    """
    if services.links is None:
        raise not_found(
            "signing in to the console requires TASKLORE_APPROVAL_SECRET; set it for "
            "every supervisor"
        )
    try:
        token, expires = services.links.make_link(caller)
    except LookupError as error:
        raise Refused(401, "no-key", "this key was removed just now") from error
    address = (services.links.address or base_url).rstrip("/")
    return ConsoleLink(
        url=f"{address}{SIGN_IN}?link={token}",
        expires_at=datetime.fromtimestamp(expires, UTC),
    )


async def claim_link(services: ConsoleServices, number: str) -> bool:
    """Return whether the link with this *number*, whose signature was checked, is used for the first time.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    # An id that its sender chose counts once, as that of a request does.
    return await _claim(services, _LINK, number)


async def end_session(services: ConsoleServices, number: str) -> None:
    """Let the session with this *number* count nowhere any more, in whichever browser its cookie is.

    It is known for as long as the id of a request is, which is longer than a session lives.

    Raises:
        MemoryUnavailable: the store does not answer: it goes on.
    """
    await _claim(services, _ENDED, number)


async def has_ended(services: ConsoleServices, number: str) -> bool:
    """Return whether its person signed out of the session with this *number*.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    known = await services.records.find(place_of("", _ENDED, number))
    return known.record is not None


async def _claim(services: ConsoleServices, kind: str, number: str) -> bool:
    """Return whether the record of this *kind* and *number* is kept for the first time."""
    record = RequestRecord(
        digest=number,
        task_id=number,
        at_ms=int(services.now().timestamp() * 1000),
    )
    return await services.records.claim(place_of("", kind, number), record) is None


OPERATIONS: Operations[ConsoleServices] = (link_console,)


def for_supervisor(parts: SupervisorDependencies) -> ConsoleServices:
    """Return the services of operations of the console in a supervisor."""
    return ConsoleServices(links=parts.console_links, records=parts.records)


def for_operator(parts: OperatorDependencies) -> ConsoleServices:
    """Return the services of operations of the console by the rights of an operator.

    A link leads to where it was asked for: another address is of supervisors.
    """
    return ConsoleServices(
        links=parts.console_links, records=RequestRecords(parts.redis)
    )


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, OPERATIONS),
    operator=serve(for_operator, OPERATIONS),
)
