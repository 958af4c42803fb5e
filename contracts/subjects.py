"""The only file that spells a NATS subject, stream, bucket or header name.

Programs in any language publish and subscribe to these: a change here is a change of the wire.
"""

import re
from datetime import datetime

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import (
    PARTITIONS,
    checked_name,
    partition_of,
    tenant_token,
    user_token,
)

TASKS = "TASKS"
WAITING = "WAITING"
LATER = "LATER"
REPORTS = "REPORTS"
TURNS = "TURNS"
FACTS = "FACTS"
MESSAGES = "MESSAGES"
DEAD = "DEAD"
OUTPUT = "OUTPUT"

AGENTS_BUCKET = "agents"
WORKERS_BUCKET = "workers"

#: The account of nats-server that has every stream and no user, where roles have accounts of their own.
ACCOUNT = "TASKLORE"
#: Between a key and the tenant that it names, in the subject of a task that waits; no token of a name has it.
_OF_KEY = "="
#: Where JetStream tells of the account that it is asked in.
JETSTREAM_INFO = "$JS.API.INFO"

#: What is published when a card is put into, or taken out of, its bucket.
CARD_NOTICES = f"$KV.{AGENTS_BUCKET}.*"

TASKS_ALL = "tasks.>"
WAITING_ALL = "waiting.>"
SCHEDULES_ALL = "schedules.>"
DUE_ALL = "due.>"
DUE_TASKS_ALL = "due.tasks.>"
REPORTS_ALL = "reports.>"
DEAD_ALL = "dead.>"
OUTPUT_ALL = "output.>"
TURNS_ALL = "turns.>"
FACTS_ALL = "facts.>"
MESSAGES_ALL = "messages.>"
#: Requests to compare a report with the ledger, and the durable that reads them: `~` is in no supervisor's name.
COMPARISONS = "~compare"
COMPARISONS_ALL = "reports.~compare.>"

#: 1 for what a supervisor assigned; each redrive of a dead letter adds one.
GENERATION_HEADER = "Tasklore-Generation"
#: Runs so far, counted by us: JetStream starts again at one for a scheduled retry.
ATTEMPT_HEADER = "Tasklore-Attempt"
TRACE_HEADER = "traceparent"
TRACE_STATE_HEADER = "tracestate"
#: Whose task a report or a dead letter is of, as a user token, so that forgetting them finds it; none on nobody's.
USER_HEADER = "Tasklore-User"
MESSAGE_ID_HEADER = "Nats-Msg-Id"
#: Who published a turn, a fact or a message to an agent: a role and its signature, where roles have keys.
SIGNATURE_HEADER = "Tasklore-Signature"

#: When a message of LATER is published (`@at` and a time in RFC 3339), where to, and how long it is kept there.
SCHEDULE_HEADER = "Nats-Schedule"
SCHEDULE_TARGET_HEADER = "Nats-Schedule-Target"
SCHEDULE_TTL_HEADER = "Nats-Schedule-TTL"
#: How long a message that has become due stays in LATER: TASKS takes it within milliseconds, one that is full within a
#: day. It is deleted as soon as its task is delivered (see `tasklore.workers.execution.due_copies`).
DUE_TTL = "24h"
#: On what a schedule has published: the subject of that schedule.
SCHEDULER_HEADER = "Nats-Scheduler"
#: Where a message lies that was read directly.
SEQUENCE_HEADER = "Nats-Sequence"
#: Stream and sequence that a sourced message came from, and more.
SOURCE_HEADER = "Nats-Stream-Source"

#: Bytes of a subject that we publish to: with reply and lengths beside it, a line stays far below the server's 4 KiB.
MAX_SUBJECT = 1024

#: Bytes of a body that we accept; the server's 1 MiB also has to hold headers and a dead letter's envelope.
MAX_BODY = 960 * 1024

#: Bytes of a body and its headers that we send, a little below the server's 1 MiB: it closes the connection over more.
MAX_MESSAGE = 1024 * 1024 - 1024

_REPORT = re.compile(r"reports\.[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{1,64}\.\d+")


def covers(pattern: str, subject: str) -> bool:
    """Return whether *pattern* matches every subject that *subject*, perhaps a pattern too, matches."""
    parts = pattern.split(".")
    wanted = subject.split(".")
    for place, part in enumerate(parts):
        if part == ">":
            return len(wanted) > place
        if (
            place >= len(wanted)
            or wanted[place] == ">"
            or part not in ("*", wanted[place])
        ):
            return False
    return len(parts) == len(wanted)


def overlap(one: str, other: str) -> bool:
    """Return whether some subject fits both patterns."""
    parts = one.split(".")
    others = other.split(".")
    for part, wanted in zip(parts, others, strict=False):
        if ">" in (part, wanted):
            return True
        if "*" not in (part, wanted) and part != wanted:
            return False
    return len(parts) == len(others)


def account_of(role: str) -> str:
    """Return the account of *role*; that of a program begins with `program-`, and that of workers with `worker-`."""
    return f"{ACCOUNT}-{role}"


def filler(stream: str) -> str:
    """Return a subject of *stream*, one of our nine, that no consumer reads: `~` is in no name and no partition."""
    return f"{'due' if stream == LATER else stream.lower()}.~filler"


def bucket_stream(bucket: str) -> str:
    """Return the stream that holds *bucket*, as JetStream names it."""
    return f"KV_{bucket}"


def bucket_keys(bucket: str) -> str:
    """Return the filter that matches every key of *bucket*."""
    return f"$KV.{bucket}.>"


def task(agent_id: str, task_name: str) -> str:
    """Return where an assignment of *task_name* to *agent_id* is published."""
    return f"tasks.{checked_name(agent_id, 'agent_id')}.{checked_name(task_name, 'task name')}"


def tasks_of(agent_id: str) -> str:
    """Return the filter that matches every task of *agent_id*."""
    return f"tasks.{checked_name(agent_id, 'agent_id')}.>"


def calls_to(agent_id: str) -> str:
    """Return the pattern of every subject that a task of *agent_id* is published to."""
    return f"tasks.{checked_name(agent_id, 'agent_id')}.*"


def waiting(
    agent_id: str, priority: str, tenant: str, task_name: str, *, key: str | None = None
) -> str:
    """Return where a task waits for its turn, until it is moved to `task(agent_id, task_name)`.

    *key* is the sender that names the tenant as it likes, "" where no key asked; None where the tenant is the sender.
    """
    token = tenant_token(tenant)
    if key is not None:
        token = f"{user_token(key)}{_OF_KEY}{token}"
    whose = f"{checked_name(agent_id, 'agent_id')}.{priority}.{token}"
    return f"waiting.{whose}.{checked_name(task_name, 'task name')}"


def sender_of(token: str) -> str:
    """Return the sender whose turn a task takes, by the *token* in its subject: the token itself, or that of a key."""
    key, of_key, _ = token.partition(_OF_KEY)
    return f"{key}{of_key}"


def tenant_of(token: str) -> str:
    """Return the token of the tenant alone, by the *token* in a subject of `waiting`."""
    return token.rpartition(_OF_KEY)[2]


def waiting_of(agent_id: str, *, priority: str = "", token: str = "") -> str:
    """Return the filter for every task of *agent_id* that waits: of a *priority*, and of a tenant's *token* there."""
    whose = ".".join(
        [checked_name(agent_id, "agent_id"), *filter(None, (priority, token))]
    )
    return f"waiting.{whose}.{'*' if token else '>'}"


def read_waiting(subject: str) -> tuple[str, str, str, str]:
    """Return agent, priority, tenant's token and task name of a *subject* of `waiting`.

    Raises:
        InvalidInput: it is another one.
    """
    parts = subject.split(".")
    if len(parts) != 5 or parts[0] != "waiting":
        raise InvalidInput(f"no task waits on {subject!r}")
    return (
        checked_name(parts[1], "agent_id"),
        parts[2],
        parts[3],
        checked_name(parts[4], "task name"),
    )


def waits(agent_id: str) -> str:
    """Return the subject of notices that tasks of *agent_id* wait for their turn (core NATS, not stored)."""
    return f"waits.{checked_name(agent_id, 'agent_id')}"


def schedule(task_id: str, generation: int) -> str:
    """Return where the next run of a task is scheduled; a second schedule there replaces the first."""
    return f"schedules.tasks.{checked_name(task_id, 'task_id')}.{generation}"


def schedule_headers(due_at: datetime, target: str) -> dict[str, str]:
    """Return the headers of a message in LATER that is published to *target* at *due_at*, in UTC.

    The server looks four times a second: one that is due at a whole second is out within milliseconds.
    """
    return {
        SCHEDULE_HEADER: f"@at {due_at.isoformat().replace('+00:00', 'Z')}",
        SCHEDULE_TARGET_HEADER: target,
        SCHEDULE_TTL_HEADER: DUE_TTL,
    }


def due(agent_id: str, task_name: str) -> str:
    """Return the target of a schedule, which TASKS then sources as a plain task."""
    return f"due.{task(agent_id, task_name)}"


def report(supervisor_id: str, task_id: str, generation: int) -> str:
    """Return where the one terminal report of a generation of a task lies."""
    subject = f"reports.{supervisor_id}.{task_id}.{generation}"
    if not _REPORT.fullmatch(subject):
        checked_name(supervisor_id, "supervisor_id")
        checked_name(task_id, "task_id")
    return subject


def comparison(report_subject: str, token: str) -> str:
    """Return where it is asked to compare what lies on *report_subject* with the ledger; the body names that subject.

    *token* is another for each request: the stream takes one message a subject.
    """
    return f"reports.{COMPARISONS}.{report_subject.split('.')[2]}.{token}"


def reports_on(task_id: str) -> str:
    """Return the filter for the reports of every generation of a task, of any supervisor."""
    return f"reports.*.{checked_name(task_id, 'task_id')}.*"


def generations_of(supervisor_id: str, task_id: str) -> str:
    """Return the filter for the reports of every generation of a task of *supervisor_id*."""
    return f"{report(supervisor_id, task_id, 1).rpartition('.')[0]}.*"


def reports_to(supervisor_id: str) -> str:
    """Return the filter for every report that *supervisor_id* waits for."""
    return f"reports.{checked_name(supervisor_id, 'supervisor_id')}.>"


def progress(supervisor_id: str, task_id: str) -> str:
    """Return the subject of the progress of a running task (core NATS, not stored)."""
    return f"progress.{checked_name(supervisor_id, 'supervisor_id')}.{checked_name(task_id, 'task_id')}"


def progress_to(supervisor_id: str) -> str:
    """Return the filter for what tasks tell *supervisor_id* of how far they are."""
    return f"progress.{checked_name(supervisor_id, 'supervisor_id')}.*"


def output(supervisor_id: str, task_id: str, generation: int, attempt: int) -> str:
    """Return where one run of a task emits its output."""
    whose = f"{checked_name(supervisor_id, 'supervisor_id')}.{checked_name(task_id, 'task_id')}"
    return f"output.{whose}.{generation}.{attempt}"


def output_on(task_id: str) -> str:
    """Return the filter for the output of every run of a task, of any supervisor."""
    return f"output.*.{checked_name(task_id, 'task_id')}.*.*"


def output_to(supervisor_id: str) -> str:
    """Return the filter for the output of every task that *supervisor_id* assigned."""
    return f"output.{checked_name(supervisor_id, 'supervisor_id')}.>"


def run_of_output(subject: str) -> tuple[str, int, int] | None:
    """Return task id, generation and attempt of a *subject* of output; None for any other."""
    parts = subject.split(".")
    if (
        len(parts) != 5
        or parts[0] != "output"
        or not (parts[3].isdecimal() and parts[4].isdecimal())
    ):
        return None
    return parts[2], int(parts[3]), int(parts[4])


def cancel(task_id: str) -> str:
    """Return where the request to cancel a task is said (core NATS, not stored)."""
    return f"cancel.{checked_name(task_id, 'task_id')}"


#: Every subject of its kind, as many words long as each of them is: what a role may say, or hear, of all.
TASK_ANY = "tasks.*.*"
REPORT_ANY = "reports.*.*.*"
PROGRESS_ANY = "progress.*.*"
RUN_ANY = "runs.*"
WAITING_ANY = "waiting.*.*.*.*"
WAITS_ANY = "waits.*"
QUESTION_ANY = "questions.*"
CANCEL_ANY = "cancel.*"
SCHEDULE_ANY = "schedules.tasks.*.*"
TURN_ANY = "turns.*.*"
FACT_ANY = "facts.*.*"
MESSAGE_ANY = "messages.*.*.*"
OUTPUT_ANY = "output.*.*.*.*"


#: First parts of the subjects of core NATS on which a process of ours listens, but for cards.
_FAMILIES = frozenset(
    {
        "requests",
        "approvals",
        "operations",
        "progress",
        "cancel",
        "pipelines",
        "runs",
    }
)


#: Before the account in which something was said, where both sides say and hear one subject: nats-server refuses two
#: accounts that import it from one another under the same name.
_ELSEWHERE = "from"


def said_in(account: str) -> str:
    """Return the prefix of messages of *account*, for the other accounts that publish the same subject."""
    return f"{_ELSEWHERE}.{account}"


#: The request to cancel a task as it is heard from other accounts.
CANCEL_ELSEWHERE = f"{said_in('*')}.{CANCEL_ANY}"


def requests(supervisor_id: str) -> str:
    """Return where a person's text goes in and its answer comes out (request and reply)."""
    return f"requests.{checked_name(supervisor_id, 'supervisor_id')}"


def pipelines(supervisor_id: str) -> str:
    """Return the subject of requests about pipelines (request and reply)."""
    return f"pipelines.{checked_name(supervisor_id, 'supervisor_id')}"


def analyses(supervisor_id: str) -> str:
    """Return the subject of requests to analyse a response (request and reply)."""
    return f"analyses.{checked_name(supervisor_id, 'supervisor_id')}"


def operations(supervisor_id: str) -> str:
    """Return where requests to the API are handed over by who serves it with other rights (request and reply)."""
    return f"operations.{checked_name(supervisor_id, 'supervisor_id')}"


def operations_left(supervisor_id: str) -> str:
    """Return the subject of ids of handed requests that were given up (core NATS, heard by each supervisor)."""
    return f"{operations(supervisor_id)}.left"


def run_events(session_id: str) -> str:
    """Return the subject of the events of a pipeline run (core NATS, not stored)."""
    return f"runs.{checked_name(session_id, 'session_id')}"


def questions(task_id: str) -> str:
    """Return the subject of notices that a task asks a person (core NATS, not stored)."""
    return f"questions.{checked_name(task_id, 'task_id')}"


def approvals(supervisor_id: str, person: str) -> str:
    """Return where *person*, such as `role:finance`, answers questions (request and reply).

    A server's permissions can hold a program to the persons for whom it answers, by the last part.
    """
    return (
        f"approvals.{checked_name(supervisor_id, 'supervisor_id')}.{user_token(person)}"
    )


def approvals_to(supervisor_id: str) -> str:
    """Return the filter for the answers of all persons."""
    return f"approvals.{checked_name(supervisor_id, 'supervisor_id')}.*"


def answer_proof(task_id: str, slot: str) -> str:
    """Return what an answer to a wait is signed for beside its question; nothing is published there."""
    return f"answers.{task_id}.{slot}"


#: The answers to all waits, which a role may sign.
ANSWERS_ALL = "answers.>"


def turns(owner: str) -> str:
    """Return where turns of *owner* (a user id, or the conversation id of an anonymous turn) are published."""
    return f"turns.{partition_of(owner)}.{user_token(owner)}"


def facts(user_id: str) -> str:
    """Return where facts extracted about *user_id* are published."""
    return f"facts.{partition_of(user_id)}.{user_token(user_id)}"


def messages(conversation_id: str, sender: str) -> str:
    """Return where what *sender* says to the agent of *conversation_id* is published.

    A server's permissions can hold a program to the name that it speaks under, by the last part.
    """
    return f"messages.{partition_of(conversation_id)}.{user_token(conversation_id)}.{user_token(sender)}"


def message_filters() -> list[str]:
    """Return the subjects of MESSAGES: partitions and filler; a publish to another one is refused at once."""
    return [
        *(f"messages.{number}.*.*" for number in range(PARTITIONS)),
        f"{filler(MESSAGES)}.*",
    ]


def partition_filter(stream: str, partition: int) -> str:
    """Return the filter of one of the ordered partitions of TURNS, FACTS or MESSAGES."""
    return f"{stream.lower()}.{partition}.>"


def stream_deleted(stream: str) -> str:
    """Return the subject on which the server announces that *stream* was deleted."""
    return f"$JS.EVENT.ADVISORY.STREAM.DELETED.{stream}"


def stream_notices(stream: str) -> str:
    """Return the filter of the advisories of *stream*: created, changed or deleted."""
    return f"$JS.EVENT.ADVISORY.STREAM.*.{stream}"


def consumer_deleted(stream: str, durable: str) -> str:
    """Return the subject on which the server announces that a consumer of *stream* was deleted."""
    return f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{stream}.{durable}"


def metric_label(subject: str) -> str:
    """Return the kind of a *subject* of core NATS, the same for every task and every person.

    Unlike the subject itself it may label a metric: there are nine of them.
    """
    if subject.startswith(f"$KV.{AGENTS_BUCKET}."):
        return "cards"
    first = subject.partition(".")[0]
    # Whoever asks chooses where the answer goes.
    return first if first in _FAMILIES else "replies"


def place(subject: str) -> str:
    """Return *subject* of a stream without its ids of a task, person or conversation."""
    parts = subject.split(".")
    return ".".join(parts[: {"tasks": 3, "reports": 2}.get(parts[0], 1)])


def holds_unfinished_work(subject: str) -> bool:
    """Return whether messages on *subject* are still to be worked on; the other streams keep finished ones."""
    return subject.partition(".")[0] in {
        "tasks",
        "waiting",
        "reports",
        "turns",
        "facts",
        "messages",
    }


def id_names_task(subject: str) -> bool:
    """Return whether the id of a message on *subject* is made of its task's: other ids tell of persons."""
    return subject.partition(".")[0] in {"tasks", "waiting", "reports"}


def dead(origin: str) -> str:
    """Return where a message that was taken from subject *origin* lies once it is given up.

    The end of a very long one is left out, since the server closes a connection that sends a line of over 4 KiB; the
    dead letter names the whole.
    """
    if len(origin.encode()) <= MAX_SUBJECT:
        return f"dead.{origin}"
    return f"dead.{origin.encode()[:MAX_SUBJECT].decode(errors='ignore').rstrip('.')}"


def task_message_id(task_id: str, generation: int) -> str:
    """Return the deduplication id of an assignment: the same on every retry of the publish."""
    return f"{task_id}:{generation}"


def retry_message_id(task_id: str, generation: int, attempt: int) -> str:
    """Return the deduplication id of the scheduled run number *attempt*."""
    return f"{task_id}:{generation}:a{attempt}"


def wake_message_id(task_id: str, generation: int, attempt: int, slot: str) -> str:
    """Return the deduplication id of run number *attempt*, scheduled since the wait in *slot* is over."""
    return f"{retry_message_id(task_id, generation, attempt)}:{slot}"


def report_message_id(task_id: str, generation: int) -> str:
    """Return the deduplication id of a terminal report."""
    return f"{task_id}:{generation}:report"


def output_message_id(
    task_id: str, generation: int, attempt: int, run: str, first: int
) -> str:
    """Return the deduplication id of the output from event *first* on."""
    return f"{task_id}:{generation}:o{attempt}:{run}:{first}"


def agent_message_id(conversation_id: str, sender: str, message_id: str) -> str:
    """Return the deduplication id of a message to an agent: its own id is unique in its conversation alone."""
    return f"{user_token(conversation_id)}.{user_token(sender)}:{message_id}"
