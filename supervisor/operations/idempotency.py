"""Ids that callers choose: the same again starts nothing twice."""

from typing import Annotated

import structlog
from pydantic import Field

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.messages import PersonRequest
from tasklore.memory.ledger.requests import RequestRecord, RequestRecords
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.operations.refusals import Refused, unavailable

log = structlog.get_logger(__name__)

IdempotencyKey = Annotated[
    str | None,
    Field(
        pattern=NAME_PATTERN,
        description="Idempotency key: repeating a request with the same id does not "
        "start it again. Generated if omitted.",
    ),
]


async def demand_room(
    dispatch: Dispatch, records: RequestRecords, request: PersonRequest, key: str | None
) -> None:
    """Count *request* to its caller; a repeat of the one at *key* takes no room, None for a new one.

    Raises:
        OwnerFull: the caller keeps too much; nothing was kept.
    """
    if key is None or not await is_known(records, key):
        await dispatch.bounds.demand_words(request)


async def is_known(records: RequestRecords, key: str) -> bool:
    """Return whether a request is kept at *key*; False where the store does not answer."""
    try:
        return (await records.find(key)).record is not None
    except MemoryUnavailable as error:
        log.info("request_not_found", error=str(error))
        return False


async def claim_record(
    records: RequestRecords,
    key: str,
    record: RequestRecord,
    chosen: str | None,
    *,
    hold_ms: int = 0,
) -> bool:
    """Keep *record* and return True; False when the same request is there already. *hold_ms* as in `claim`.

    Raises:
        Refused: 409, another one came under the id that was *chosen*.
    """
    try:
        earlier = await records.claim(key, record, hold_ms)
    except MemoryUnavailable as error:
        # Without the store it is still asked and answered; only a later look at it has to wait.
        log.warning("request_not_kept", error=str(error))
        return True
    demand_same(earlier, record, chosen)
    return earlier is None


def demand_same(
    earlier: RequestRecord | None, record: RequestRecord, chosen: str | None
) -> None:
    """Return where *earlier*, if there is one, is of the same request as *record*.

    Raises:
        Refused: 409, another one came under the id that was *chosen*.
    """
    if earlier is not None and earlier.digest != record.digest:
        detail = f"the Idempotency-Key {chosen!r} was used with another body; use a new one for another request"
        raise Refused(409, "other-body", detail)


async def demand_kept(
    records: RequestRecords, key: str, record: RequestRecord, hold_ms: int = 0
) -> None:
    """Return when *record* is kept, so that a promised task is found; it is tried again where it failed before.

    Raises:
        Refused: 503, the store does not answer: the work goes on, and nothing promises that it is found.
    """
    try:
        await records.claim(key, record, hold_ms)
    except MemoryUnavailable as error:
        log.warning("request_not_kept", error=str(error))
        raise unavailable(
            "it may continue, but its id could not be stored, so that it could not be "
            "found by it; send it again with the same Idempotency-Key (without one it "
            "is another request)"
        ) from error
