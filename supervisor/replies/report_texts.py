"""Reports in words: the result, whether it was remembered, how long it took, or the error and its cure.

Pure functions. A text is the answer as it is. Any other result is rendered by its shape alone, below what was asked and
above how it came about, so that every agent's answer reads alike; beside a text those are fields of the reply.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from tasklore.contracts.admission.waits import APPROVED_WITHIN, RunWait
from tasklore.contracts.errors import (
    MessageTooLarge,
    NotAccepted,
    OwnerFull,
    QueueFull,
)
from tasklore.contracts.messages import (
    CompletionReport,
    MemoryNote,
    PersonReply,
    ReplyKind,
    TaskAssignment,
    TaskCall,
    TaskCard,
)
from tasklore.contracts.moments import describe_time, spell_moment
from tasklore.supervisor.replies.memory_answers import word_memory_answer
from tasklore.supervisor.requests.readings import PartRead

#: Lines of a result shown to a person; the whole of it is in the report.
_MOST_LINES = 60
#: Characters of one text value shown to a person.
_LONGEST_TEXT = 2_000
#: Decimals of a number that a person is shown.
_SHOWN_DECIMALS = 4
#: Whole numbers below this are shown by Python's own grouping, which is the same and costs a tenth.
_PLAIN = 10**15
#: Levels of nesting, and characters of indent, that are shown.
_DEEPEST = 16
#: Items of a list on one line.
_MOST_ITEMS = 40
#: Words from which on a list of texts is shown as bullets.
_BULLET_WORDS = 4
#: A whole number behind one of these words names something and counts nothing: 2019, not 2,019.
_NAMING_WORDS = frozenset(
    {"code", "id", "no", "number", "pin", "port", "postcode", "zip"}
)
#: A number that belongs to one of these is a year up to the last that a person means; beyond, it counts something.
_YEARS = frozenset({"year", "years"})
_LAST_YEAR = 9_999

_WAYS_OUT = {
    "completed": "It completed, but its result is no longer stored: {message}",
    "rejected": "It was rejected: {message} Correct this and ask again.",
    "expired": "It expired: {message} Ask again.",
    "cancelled": "It was cancelled: {message} Ask again to restart it.",
    "failed": "It failed after {attempts}: {message}",
    "other": "It ended with a status that this version does not know: {message} Update "
    "the supervisor.",
}


def part_reply(part: PartRead, *, request_id: str, conversation_id: str) -> PersonReply:
    """Return the reply to *part* of a request, which asks back or cannot be done.

    Raises:
        TypeError: *part* is a task, which is answered by its report.
    """
    if part.kind == "task":
        raise TypeError("a task is answered by its report; run it")
    return PersonReply(
        request_id=request_id,
        conversation_id=conversation_id,
        kind=part.kind,
        text=part.text,
        agent_id=part.agent_id,
        task=part.task,
        missing=part.missing,
    )


def report_reply(
    report: CompletionReport | None,
    card: TaskCard | None,
    *,
    assignment: TaskAssignment,
    request_id: str,
    conversation_id: str,
    problem: NotAccepted | MessageTooLarge | None = None,
    remembered: Collection[str] = (),
    computed: Mapping[str, str] | None = None,
    has_worker: bool = True,
    wait: RunWait | None = None,
) -> PersonReply:
    """Return the answer to *assignment*.

    Args:
        report: The report; None while the task is still running, or when it was never started.
        card: The task's card, None when its agent has been retired meanwhile.
        assignment: The task.
        request_id: The request that this answers.
        conversation_id: The conversation it belongs to.
        problem: Why the task could not be handed over, None when it was.
        remembered: Parameters with values that the person did not say, but that memory has of them.
        computed: How the values of parameters were computed that the person said by a difference ("double 50,000").
        has_worker: Whether a worker of the agent is alive, as far as that is known.
        wait: Why the task waits for its next run, None where it does not.
    """
    kind: ReplyKind = "failed"
    wording = Wording("")
    only = _describe_parameters(assignment.task, remembered, computed, only=True)
    taken = f" I took {only}." if only else ""
    if problem is not None:
        text = f"{_describe_problem(problem, request_id)}{taken}"
    elif report is None:
        kind = "pending"
        is_later = assignment.waits_from > assignment.created_at
        at = spell_moment(assignment.waits_from)
        stands = f"begins it at {at}" if is_later else "is still working on it"
        if (needed := assignment.approval) is not None:
            later = f"; they are asked at {at}" if is_later else ""
            stands = (
                f"needs the approval of {needed.who} before it starts "
                f"{assignment.task.name}; it waits up to {APPROVED_WITHIN.days} "
                f"days{later} (question {assignment.approval_id})"
            )
        where = f"{assignment.agent_id} {stands}"
        if wait is not None and needed is None and not is_later:
            where = f"{assignment.agent_id} {wait.sentence}"
        if not has_worker and needed is None and not is_later:
            where = (
                f"No worker of {assignment.agent_id} is running; the task waits for one"
            )
        task_id = assignment.task_id
        text = (
            f"{where}. Ask again with the request id {request_id} for the answer: "
            f"nothing is started twice. `tasklore trace {task_id}` shows its status, "
            f"`tasklore cancel {task_id}` stops it.{taken}"
        )
    else:
        kind = "answer" if has_result(report) else "failed"
        wording = word_report(
            report,
            card=card,
            call=assignment.task,
            remembered=remembered,
            computed=computed,
        )
        text = wording.text + (taken if kind == "failed" else "")
    return PersonReply(
        request_id=request_id,
        conversation_id=conversation_id,
        kind=kind,
        text=text,
        agent_id=assignment.agent_id,
        task=assignment.task,
        report=report,
        approval_id=assignment.approval_id if kind == "pending" else None,
        heading=wording.heading,
        origin=wording.origin,
        taken=only or None,
        waits_for=(
            None
            if kind != "pending"
            else "worker"
            if not has_worker
            else wait and wait.kind
        ),
    )


def _describe_parameters(
    call: TaskCall,
    remembered: Collection[str],
    computed: Mapping[str, str] | None,
    *,
    only: bool = False,
) -> str:
    """Return the parameters of *call* in words, with their origin; with *only* those that were not said as they are."""
    found = []
    for name, value in call.parameters.items():
        words = _label_value(name, value)
        if name in remembered:
            found.append(f"{words} as I remember it")
        elif computed and name in computed:
            found.append(f"{words} ({computed[name]})")
        elif not only:
            found.append(words)
    return _join(found)


def _describe_problem(problem: NotAccepted | MessageTooLarge, request_id: str) -> str:
    """Return why a task could not be handed over, and when to ask again."""
    if isinstance(problem, MessageTooLarge | OwnerFull):
        return f"The task could not be queued, and nothing was started: {_sentence(str(problem))}"
    if isinstance(problem, QueueFull):
        return f"The queue is full, and nothing was started: {_sentence(str(problem))}"
    return (
        f"It is not known whether the task was queued: {_sentence(str(problem))} Ask "
        f"again in {problem.retry_after_s:g} s with the request id {request_id}: "
        "nothing is started twice."
    )


class Wording(NamedTuple):
    """The words for a report, by the fields of a reply that take them."""

    text: str
    heading: str | None = None
    origin: str | None = None
    taken: str | None = None


def has_result(report: CompletionReport) -> bool:
    """Return whether *report* is of a task that completed, and of which there is still more than that."""
    return report.status == "completed" and report.error is None


def word_report(
    report: CompletionReport,
    card: TaskCard | None,
    call: TaskCall | None = None,
    remembered: Collection[str] = (),
    computed: Mapping[str, str] | None = None,
) -> Wording:
    """Return *report* in words, whatever its status."""
    if not has_result(report):
        return Wording(describe_failure(report))
    only = _describe_parameters(call, remembered, computed, only=True) if call else None
    return Wording(
        describe_result(
            report, card=card, call=call, remembered=remembered, computed=computed
        ),
        describe_heading(
            report, card=card, call=call, remembered=remembered, computed=computed
        ),
        describe_origin(report, card, call),
        only or None,
    )


def describe_result(
    report: CompletionReport,
    card: TaskCard | None,
    call: TaskCall | None = None,
    remembered: Collection[str] = (),
    computed: Mapping[str, str] | None = None,
) -> str:
    """Return the result of a completed *report* in words.

    A text is returned as it is, and what memory answers in sentences. Any other one stands line by line between the
    question and its origin.
    """
    if isinstance(report.result, str):
        return report.result
    if (sentences := word_memory_answer(report, call)) is not None:
        return sentences
    lines = list(_lines(report.result))
    if len(lines) > _MOST_LINES:
        lines = [
            *lines[:_MOST_LINES],
            f"... and {len(lines) - _MOST_LINES} more lines; the report has them all.",
        ]
    heading = describe_heading(
        report, card=card, call=call, remembered=remembered, computed=computed
    )
    return "\n".join([f"{heading}:", *lines, describe_origin(report, card, call)])


def describe_heading(
    report: CompletionReport,
    card: TaskCard | None,
    call: TaskCall | None = None,
    remembered: Collection[str] = (),
    computed: Mapping[str, str] | None = None,
) -> str:
    """Return the task of *report* and its parameters: "Analyze budget (budget limit 50,000; spent 42,000)"."""
    label = _label(card.name if card is not None else report.task_name)
    asked = _describe_parameters(call, remembered, computed) if call else ""
    return f"{label} ({asked})" if asked else label


def describe_origin(
    report: CompletionReport, card: TaskCard | None = None, call: TaskCall | None = None
) -> str:
    """Return whether the answer was remembered (and how old it is) or computed, and how long that took.

    An answer to a neighbouring question names it, beside the parameters of *call* and the tolerance of *card*.
    """
    note = report.memory
    took = describe_time(report.run_ms)
    if note.outcome in {"hit", "near"}:
        age = (
            f", computed {describe_time(note.age_ms)} ago"
            if note.age_ms is not None
            else ""
        )
        return f"From the cache{age}{_describe_nearness(note, card, call)}; answered in {took}."
    return {
        "joined": f"Computed once for several identical requests; answered in {took}.",
        "refreshed": f"Recomputed in {took}, and cached.",
        "miss": f"Computed in {took}, and cached.",
        "unavailable": f"Computed in {took}; the cache did not answer, so it may not be "
        "cached.",
        "bypassed": f"Computed in {took}; the cache was bypassed, as requested.",
    }.get(note.outcome, f"Computed in {took}.")


def _describe_nearness(
    note: MemoryNote, card: TaskCard | None, call: TaskCall | None
) -> str:
    """Return the neighbouring question of a near match, and how far away it is."""
    if note.outcome != "near":
        return ""
    if not (note.distances and note.computed_for):
        values = _join(
            [
                _label_value(name, value)
                for name, value in (note.computed_for or {}).items()
            ]
        )
        away = (
            f", {_number(Decimal(str(note.distance)))} away"
            if note.distance is not None
            else ""
        )
        return f", for a similar question{f' ({values})' if values else ''}{away}"
    asked = call.parameters if call is not None else {}
    fields = card.parameters.get("properties") if card is not None else None
    steps = []
    for name, distance in note.distances.items():
        if distance == "0":
            continue
        value = _label_value(name, note.computed_for.get(name))
        field = fields.get(name) if isinstance(fields, dict) else None
        tolerance = field.get("tolerance") if isinstance(field, dict) else None
        if asked.get(name) is None or not isinstance(tolerance, str):
            steps.append(
                f"{value}, which is {_inline(distance)} away from what you asked"
            )
        else:
            within = tolerance.replace("%", " %")
            steps.append(
                f"{value}, which is within {within} of the {_inline(asked[name], name)} you asked"
            )
    return f", for {' and '.join(steps)}"


def describe_failure(report: CompletionReport) -> str:
    """Return why a task did not complete, and what to do about it."""
    error = report.error
    message = (
        _sentence(error.message or error.type)
        if error is not None
        else "no reason was given."
    )
    if error is not None and error.type == "NotApproved":
        return f"It was not started: {message}"
    attempts = "one attempt" if report.attempt <= 1 else f"{report.attempt} attempts"
    text = _WAYS_OUT[report.status if report.status in _WAYS_OUT else "other"].format(
        message=message, attempts=attempts
    )
    if report.status == "failed" and error is not None:
        text += (
            " This error may be temporary; ask again later."
            if error.retryable
            else f" ({error.type})"
        )
        text += f" `tasklore dead-letters show {report.task_id}` shows more."
    return text


def _lines(value: Any, indent: str = "  ") -> Iterator[str]:
    """Yield *value* as labelled lines; a value that fits on one line stands beside its label."""
    if len(indent) > _DEEPEST:
        yield f"{indent}..."
    elif isinstance(value, Mapping) and value and not _is_amount(value):
        for name, part in value.items():
            if _is_block(part):
                yield f"{indent}{_label(str(name))}:"
                yield from _lines(part, indent + "  ")
            else:
                yield f"{indent}{_label(str(name))}: {_inline(part, str(name))}"
    elif isinstance(value, str) and _is_block(value):
        for line in _cut(value).splitlines():
            yield f"{indent}{line}".rstrip()
    elif _is_block(value):
        for part in value:
            if _has_lines(part):
                first, *others = _lines(part, indent + "  ")
                yield f"{indent}- {first.strip()}"
                yield from others
            else:
                yield f"{indent}- {_inline(part)}"
    else:
        yield f"{indent}{_inline(value)}"


def _is_block(value: Any) -> bool:
    """Return whether *value* needs lines of its own: lines of text, an object, or a list with such or a sentence."""
    if isinstance(value, str):
        return "\n" in value.strip()
    if isinstance(value, Mapping):
        return bool(value) and not _is_amount(value)
    if not isinstance(value, Sequence):
        return False
    return any(
        (isinstance(part, str) and len(part.split()) >= _BULLET_WORDS)
        or (isinstance(part, Mapping) and not _is_amount(part))
        or _has_lines(part)
        for part in value
    )


def _has_lines(value: Any) -> bool:
    """Return whether *value* is a text of several lines, or an object with one."""
    if isinstance(value, Mapping):
        return any(_has_lines(part) for part in value.values())
    return isinstance(value, str) and _is_block(value)


def _inline(value: Any, name: str = "", depth: int = 0) -> str:
    """Return *value* on one line; by its *name* a number counts something or names it."""
    if value is None:
        return "none"
    if depth > _DEEPEST:
        return "..."
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and _is_name(name, value):
        return str(value)
    if isinstance(value, int) and abs(value) < _PLAIN:
        return f"{value:,}"
    if isinstance(value, int | float | Decimal):
        return _number(Decimal(str(value)))
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        if _is_amount(value):
            return (
                f"{_inline(value['value'])} {value['unit']}"
                if value.get("unit")
                else _inline(value["value"])
            )
        return (
            _join(
                [_label_value(str(key), part, depth + 1) for key, part in value.items()]
            )
            or "none"
        )
    items = [_inline(part, name, depth + 1) for part in value[:_MOST_ITEMS]]
    more = f" and {len(value) - _MOST_ITEMS} more" if len(value) > _MOST_ITEMS else ""
    return f"{_join(items)}{more}" if items else "none"


def _label_value(name: str, value: Any, depth: int = 0) -> str:
    """Return *value* behind its name, a list in brackets, so that its end is clear."""
    words = _inline(value, name, depth)
    is_list = (
        isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 1
    )
    return f"{name.replace('_', ' ')} {f'[{words}]' if is_list else words}"


def _join(items: Sequence[str]) -> str:
    """Return *items* with commas between them; semicolons where one has a comma itself, if only in a number."""
    return ("; " if any("," in item for item in items) else ", ").join(items)


def _is_name(name: str, value: int) -> bool:
    words = name.lower().replace("-", "_").split("_")
    return words[-1] in _NAMING_WORDS or (
        not _YEARS.isdisjoint(words) and abs(value) <= _LAST_YEAR
    )


def _number(value: Decimal) -> str:
    if not value.is_finite():
        return str(value)
    if -int(value.as_tuple().exponent) > _SHOWN_DECIMALS and abs(value.adjusted()) < 30:
        # A person wants 33.3333; the program has all of it in the report.
        rounded = round(value, _SHOWN_DECIMALS)
        value = rounded or value
    plain = format(value.normalize(), "f") if abs(value.adjusted()) < 30 else str(value)
    whole, point, fraction = plain.partition(".")
    try:
        return (
            f"{int(whole):,}{point}{fraction}" if not whole.startswith("-0") else plain
        )
    except ValueError:
        return plain


def _text(value: str) -> str:
    """Return *value* on one line; digits that came as text because they are many get their separators."""
    if (
        value
        and len(value) <= 80
        and value.lstrip("-").replace(".", "", 1).isdecimal()
        and len(value) > 15
    ):
        try:
            return _number(Decimal(value))
        except InvalidOperation:
            return value
    return _cut(" ".join(value.split()))


def _cut(value: str) -> str:
    return value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}..."


def _is_amount(value: Mapping[str, Any]) -> bool:
    return "value" in value and set(value) <= {"value", "unit"}


def _label(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ").strip() or name
    return f"{words[:1].upper()}{words[1:]}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
