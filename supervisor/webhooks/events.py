"""The events that webhooks tell of: the end of a task, and a question that is asked, answered or past its time."""

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog

from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import CompletionReport
from tasklore.memory.ledger.waits import WaitName, WaitState
from tasklore.memory.webhooks.outbox import Callback, Webhook, WebhookOutbox
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.approvals.questions import view_of

log = structlog.get_logger(__name__)

#: Bytes of a body: the specification advises against more than 20 KB.
MOST_BYTES = 16 * 1024
#: What is left out of a body that is larger, and the characters that other texts are cut to.
_HEAVY = ("result", "answer", "answer_schema")
_CUT = 1_000
_OF_REPORT = {
    "task_id",
    "generation",
    "agent_id",
    "task_name",
    "status",
    "result",
    "error",
    "usage",
    "finished_at",
}


class WebhookEvents:
    """Puts events into the outbox, for the address of their task and that of the deployment.

    Args:
        everywhere: The address of the deployment, which hears of all questions, and None for none.
        hears_tasks: Whether it hears of the end of all tasks as well.
        look_soon: Called when an event was stored.
    """

    def __init__(
        self,
        outbox: WebhookOutbox,
        meter: Metrics,
        *,
        everywhere: Callback | None = None,
        hears_tasks: bool = False,
        look_soon: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.outbox = outbox
        self._meter = meter
        self._everywhere = everywhere
        self._hears_tasks = hears_tasks
        self._look_soon = look_soon
        self._now = now

    async def note_reports(
        self, reports: Sequence[tuple[CompletionReport, str]]
    ) -> None:
        """Store the ends of tasks; each report comes with the token of its user, "" for none.

        Raises:
            MemoryUnavailable: some may not be stored; do it again.
        """
        callbacks = await self.outbox.callbacks(
            [report.task_id for report, _ in reports]
        )
        for (report, owner), callback in zip(reports, callbacks, strict=True):
            data = report.model_dump(mode="json", include=_OF_REPORT)
            about = f"{report.task_id}.{report.generation}"
            addresses = [callback, self._everywhere if self._hears_tasks else None]
            await self._put(
                f"task.{report.status}",
                about=about,
                data=data,
                addresses=addresses,
                owner=owner,
            )
        ended = [
            report.task_id
            for (report, _), callback in zip(reports, callbacks, strict=True)
            if callback
        ]
        await self.outbox.note_ended(ended, self._now())

    async def note_question(
        self, name: WaitName, state: WaitState, number: int = 0
    ) -> None:
        """Store that a question is asked, with the *number* of the notice, or that it is not asked any more.

        Raises:
            MemoryUnavailable: it may not be stored; do it again.
        """
        view = view_of(name.task_id, state)
        data = view.model_dump(mode="json", exclude={"refused"}) | (
            {"number": number} if number else {}
        )
        what = "asked" if number else view.state
        callbacks = await self.outbox.callbacks([name.task_id])
        owner = user_token(state.wait.user_id) if state.wait.user_id else ""
        about = f"{view.id}.{state.wait.generation}.{number}"
        await self._put(
            f"approval.{what}",
            about=about,
            data=data,
            addresses=[*callbacks, self._everywhere],
            owner=owner,
        )

    async def _put(
        self,
        what: str,
        about: str,
        data: dict[str, Any],
        addresses: Sequence[Callback | None],
        owner: str,
    ) -> None:
        now = self._now()
        # One address hears of one event once.
        for url, address in {
            one.url: one for one in addresses if one is not None
        }.items():
            whole = f"{what.partition('.')[0]} {about} {url}"
            webhook = Webhook(
                url=url,
                host=address.host,
                owner=address.owner or owner,
                caller=address.caller,
                id=f"msg_{hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()}",
                type=what,
                body=spell_body(what, now, data),
                created_at=now,
            )
            stored = await self.outbox.put(webhook, now)
            if stored > 0:
                self._look_soon()
            elif stored < 0:
                log.warning(
                    "webhook_dropped",
                    webhook_id=webhook.id,
                    type=what,
                    host=address.host,
                )
                self._meter.count_webhook("dropped")


def spell_body(what: str, at: datetime, data: dict[str, Any]) -> str:
    """Return the JSON of an event; of one that is too large the parts which the API has are left out."""
    event = {
        "type": what,
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        "data": data,
    }
    body = json.dumps(event, separators=(",", ":"))
    if len(body) <= MOST_BYTES:
        return body
    short = {
        name: None if name in _HEAVY else _cut(value) for name, value in data.items()
    }
    return json.dumps(
        event | {"data": short | {"truncated": True}}, separators=(",", ":")
    )


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in value.items()}
    return value[:_CUT] if isinstance(value, str | list) else value
