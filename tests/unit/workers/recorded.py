"""A shelf that stands for the store of messages of runs: it keeps what a recorder gives it."""

import asyncio
from collections.abc import Sequence
from typing import cast

from tasklore.contracts.run_messages import RunMessage, read_run_message
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.run_messages.store import RunMessages
from tasklore.workers.context.recorder import Recording
from tasklore.workers.message_masking import MessageMasker

SECRET = "hunter2hunter2"


class Shelf:
    """A store that notes what it is given; `gate` holds it up, `fault` is raised, `counts` is what it says."""

    def __init__(self) -> None:
        self.batches: list[list[RunMessage]] = []
        self.owners: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.fault: Exception | None = None
        self.counts = True
        self.filled = asyncio.Event()

    async def append(
        self, _run: RunName, _agent_id: str, owner: str, messages: Sequence[bytes]
    ) -> bool:
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.owners.add(owner)
        self.batches.append([read_run_message(one) for one in messages])
        self.filled.set()
        return self.counts

    @property
    def messages(self) -> list[RunMessage]:
        return [one for batch in self.batches for one in batch]

    @property
    def recording(self) -> Recording:
        """How messages are kept here."""
        return Recording(
            store=cast("RunMessages", self),
            masker=MessageMasker([SECRET]),
            model_of=lambda role: f"{role}-model",
        )
