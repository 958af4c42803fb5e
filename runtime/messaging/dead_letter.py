"""Dead letters: the record of a message that is given up, and the wording of its error."""

import base64
import hashlib
import traceback
from datetime import UTC, datetime

from tasklore.contracts.messages import DeadLetter, ErrorNote, TaskAssignment, Usage
from tasklore.runtime.messaging.pull import Delivery

#: Bytes of a body that a dead letter keeps; the digest and the origin's sequence tell of the rest.
DEAD_BODY = 512 * 1024
#: Characters of headers that a dead letter keeps: ours are short, and it has to fit into a message itself.
DEAD_HEADERS = 16 * 1024


def error_note(error: BaseException) -> ErrorNote:
    """Return *error* as reports carry it: its class, its words, and whether another run could help."""
    return ErrorNote(
        type=type(error).__name__,
        message=_words_of(error)[:4000],
        retryable=bool(getattr(error, "retryable", False)),
    )


def _words_of(error: BaseException) -> str:
    """Return what *error* says, as text that JSON takes: file names bring surrogates, and `__str__` may itself fail."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - the report has to go out all the same
        words = ""
    return _encodable(words or type(error).__name__)


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def dead_letter(
    delivery: Delivery,
    *,
    reason: str,
    error: BaseException,
    attempts: int,
    generation: int,
    agent_id: str | None,
    worker_id: str,
    supervisor_id: str | None = None,
    assignment: TaskAssignment | None = None,
    queued_ms: int | None = None,
    run_ms: int | None = None,
    usage: Usage | None = None,
    place: str | None = None,
) -> bytes:
    """Return the message that DEAD keeps of *delivery*; *assignment* is None when it is none, or no readable one.

    *place* is the lines of the agent's own code that raised.
    """
    trace = (
        "".join(traceback.format_exception(error))[-20_000:]
        if error.__traceback__ is not None
        else None
    )
    letter = DeadLetter(
        reason=reason,
        error=error_note(error),
        traceback=None if trace is None else _encodable(trace),
        place=place,
        subject=delivery.subject,
        sequence=delivery.sequence,
        attempts=attempts,
        headers=_kept_headers(delivery.headers or {}),
        body=base64.b64encode(delivery.body[:DEAD_BODY]).decode(),
        body_bytes=len(delivery.body),
        body_digest=hashlib.blake2b(delivery.body, digest_size=16).hexdigest(),
        task_id=assignment.task_id if assignment else None,
        generation=generation,
        agent_id=agent_id,
        task_name=assignment.task.name if assignment else None,
        supervisor_id=assignment.supervisor_id if assignment else supervisor_id,
        worker_id=worker_id,
        created_at=assignment.created_at if assignment else None,
        queued_ms=queued_ms,
        run_ms=run_ms,
        usage=usage or Usage(),
        died_at=datetime.now(UTC),
    )
    return letter.model_dump_json().encode()


def _kept_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return what a dead letter keeps of *headers*: none of the server's, and no more than fit beside the body."""
    kept: dict[str, str] = {}
    left = DEAD_HEADERS
    for name, value in headers.items():
        size = len(name) + len(value)
        if size <= left and not name.startswith("Nats-"):
            kept[name] = value
            left -= size
    return kept
