"""The services that requests in words are answered with."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.requests.work import InFlightRequests
from tasklore.supervisor.service import Service


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestServices:
    """The services of operations of requests.

    `share` says how many of so many one caller may have. `draining` is set when the process is asked to end.
    """

    catalogue: Callable[[], Catalogue]
    service: Service
    dispatch: Dispatch
    ledger: Ledger
    conversations: Conversations
    records: RequestRecords
    work: InFlightRequests
    canceller: Canceller
    share: Callable[[int], int]
    draining: asyncio.Event
