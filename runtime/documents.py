"""The wire as an AsyncAPI 3 document: every subject with its message, for programs and people outside.

It comes from a broker of its own that is never connected: a documented subscriber on a started broker would take the
messages of the pull engine. `python -m tasklore.runtime.documents` prints what docs/reference/asyncapi.json holds.
"""

import json
import sys
from typing import Any, NamedTuple

from faststream.nats import NatsBroker
from faststream.specification import AsyncAPI

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import PARTITIONS
from tasklore.contracts.messages import (
    AgentCard,
    AgentMessage,
    AnalysisReply,
    AnalysisRequest,
    AnswerOutcome,
    Cancellation,
    ChatTurn,
    CompletionReport,
    DeadLetter,
    ExtractedFacts,
    Message,
    PersonReply,
    PersonRequest,
    PipelineEvent,
    PipelineReply,
    PipelineRequest,
    Progress,
    QuestionAnswer,
    QuestionNotice,
    TaskAssignment,
    TaskOutput,
    WorkerPresence,
)

#: The version of the wire as a whole, not of the package: it changes when a reader has to.
WIRE_VERSION = "1.0.0"


class Channel(NamedTuple):
    """One subject: its *address* with names in braces, the message on it, and whether Tasklore takes or sends it."""

    name: str
    address: str
    message: type[Message]
    is_taken: bool
    description: str


def _template(subject: str) -> str:
    """Return *subject* with its parts after the first, which stand for themselves, in braces."""
    first, *rest = subject.split(".")
    return ".".join([first, *(f"{{{part}}}" for part in rest)])


_WHOSE = "{partition}.{user_token}"
_CARDS = subjects.CARD_NOTICES.replace("*", "{agent_id}")

#: Every subject on which a message of ours travels, in the order of docs/reference/wire.md.
CHANNELS = (
    Channel(
        "tasks",
        address=subjects.TASKS_ALL.replace(">", "{agent_id}.{task_name}"),
        message=TaskAssignment,
        is_taken=True,
        description=f"A task for an agent, in stream {subjects.TASKS}; headers {subjects.MESSAGE_ID_HEADER}, "
        f"{subjects.GENERATION_HEADER} and {subjects.ATTEMPT_HEADER}.",
    ),
    Channel(
        "waiting",
        address=subjects.WAITING_ALL.replace(
            ">", "{agent_id}.{priority}.{tenant_token}.{task_name}"
        ),
        message=TaskAssignment,
        is_taken=False,
        description=f"A task that waits for its turn, in stream {subjects.WAITING}, as it goes to its agent then.",
    ),
    Channel(
        "reports",
        address=subjects.REPORTS_ALL.replace(
            ">", "{supervisor_id}.{task_id}.{generation}"
        ),
        message=CompletionReport,
        is_taken=False,
        description=f"The one terminal report of a generation of a task, in stream {subjects.REPORTS} for an hour.",
    ),
    Channel(
        "turns",
        address=subjects.TURNS_ALL.replace(">", _WHOSE),
        message=ChatTurn,
        is_taken=False,
        description=f"One thing said in a conversation, in stream {subjects.TURNS}; {PARTITIONS} partitions by user.",
    ),
    Channel(
        "facts",
        address=subjects.FACTS_ALL.replace(">", _WHOSE),
        message=ExtractedFacts,
        is_taken=True,
        description=f"What one turn told about a user, in stream {subjects.FACTS}; {PARTITIONS} partitions by user.",
    ),
    Channel(
        "messages",
        address=subjects.MESSAGES_ALL.replace(
            ">", "{partition}.{conversation_token}.{sender_token}"
        ),
        message=AgentMessage,
        is_taken=True,
        description=(
            f"Something said to an agent, in stream {subjects.MESSAGES}; "
            f"{PARTITIONS} partitions by conversation."
        ),
    ),
    Channel(
        "dead",
        address=subjects.DEAD_ALL.replace(">", "{origin}"),
        message=DeadLetter,
        is_taken=False,
        description=(
            f"A message that was given up, in stream {subjects.DEAD} for 30 days; "
            f"{{origin}} is its whole old subject."
        ),
    ),
    Channel(
        "requests",
        address=_template(subjects.requests("supervisor_id")),
        message=PersonRequest,
        is_taken=True,
        description=(
            "A person's words; the answer, a PersonReply, goes to the reply "
            "subject of the message. Not stored."
        ),
    ),
    Channel(
        "progress",
        address=_template(subjects.progress("supervisor_id", "task_id")),
        message=Progress,
        is_taken=False,
        description="How far a running task is. Not stored.",
    ),
    Channel(
        "output",
        address=subjects.OUTPUT_ALL.replace(
            ">", "{supervisor_id}.{task_id}.{generation}.{attempt}"
        ),
        message=TaskOutput,
        is_taken=False,
        description=f"What one run of a task emits, in stream {subjects.OUTPUT} for an hour.",
    ),
    Channel(
        "cancel",
        address=_template(subjects.cancel("task_id")),
        message=Cancellation,
        is_taken=True,
        description="The request to stop a task. Not stored.",
    ),
    Channel(
        "pipelines",
        address=_template(subjects.pipelines("supervisor_id")),
        message=PipelineRequest,
        is_taken=True,
        description="What is wished of a pipeline; the answer, a PipelineReply, goes to the reply subject. Not stored.",
    ),
    Channel(
        "runs",
        address=_template(subjects.run_events("session_id")),
        message=PipelineEvent,
        is_taken=False,
        description="One step of a run of a pipeline. Not stored.",
    ),
    Channel(
        "questions",
        address=_template(subjects.questions("task_id")),
        message=QuestionNotice,
        is_taken=False,
        description="A task asks a person, or still does. Not stored.",
    ),
    Channel(
        "approvals",
        address=_template(subjects.approvals("supervisor_id", "user")).rpartition(".")[
            0
        ]
        + ".{person_token}",
        message=QuestionAnswer,
        is_taken=True,
        description=(
            "A person's answer to a question; the outcome, an AnswerOutcome, goes "
            "to the reply subject. Not stored."
        ),
    ),
    Channel(
        "analyses",
        address=_template(subjects.analyses("supervisor_id")),
        message=AnalysisRequest,
        is_taken=True,
        description=(
            "The request to have a response of a story analysed; the answer, an "
            "AnalysisReply, goes to the reply subject. "
            "Not stored."
        ),
    ),
    Channel(
        "cards",
        address=_CARDS,
        message=AgentCard,
        is_taken=False,
        description=(
            f"What an agent offers, in the key-value bucket "
            f"{subjects.AGENTS_BUCKET}; kept when its workers are gone."
        ),
    ),
    Channel(
        "workers",
        address=_CARDS.replace(subjects.AGENTS_BUCKET, subjects.WORKERS_BUCKET)
        + ".{worker_id}",
        message=WorkerPresence,
        is_taken=False,
        description=(
            f"A worker that is alive, in the key-value bucket "
            f"{subjects.WORKERS_BUCKET}; gone after 15 s of silence."
        ),
    ),
)


def asyncapi() -> dict[str, Any]:
    """Return the document; nothing is connected or started."""
    broker = NatsBroker(
        "nats://localhost:4222",
        description="Any NATS server from 2.14 with JetStream.",
        logger=None,
    )
    for channel in CHANNELS:
        _document(broker, channel)
    specification = AsyncAPI(
        broker,
        title="Tasklore",
        version=WIRE_VERSION,
        description="Tasks, reports and questions on NATS; docs/reference/wire.md has the rules around these messages.",
        license={"name": "MIT"},
    )
    document: dict[str, Any] = json.loads(specification.to_specification().to_json())
    _put_in_order(document)
    _describe_answer(document, "requests", "answers", PersonReply)
    _describe_answer(document, "pipelines", "pipeline_answers", PipelineReply)
    _describe_answer(document, "approvals", "approval_outcomes", AnswerOutcome)
    _describe_answer(document, "analyses", "analysis_answers", AnalysisReply)
    return document


def as_text(document: dict[str, Any]) -> str:
    """Return *document* as the file docs/reference/asyncapi.json holds it."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _document(broker: NatsBroker, channel: Channel) -> None:
    if not channel.is_taken:
        broker.publisher(
            channel.address,
            title=channel.name,
            description=channel.description,
            schema=channel.message,
        )
        return

    async def take(message: Any) -> None:
        """Never called."""

    take.__annotations__["message"] = channel.message
    broker.subscriber(
        channel.address, title=channel.name, description=channel.description
    )(take)


def _put_in_order(document: dict[str, Any]) -> None:
    """Make the document the same every time, and leave out a header that only FastStream's own clients would send."""
    order = [channel.name for channel in CHANNELS]
    document["channels"] = {name: document["channels"][name] for name in order}
    document["operations"] = {name: document["operations"][name] for name in order}
    components = document["components"]
    messages = sorted(
        components["messages"].items(),
        key=lambda item: order.index(item[0].partition(":")[0]),
    )
    components["messages"] = {
        name: {
            part: value for part, value in message.items() if part != "correlationId"
        }
        for name, message in messages
    }
    components["schemas"] = dict(sorted(components["schemas"].items()))


def _describe_answer(
    document: dict[str, Any], operation: str, name: str, answer: type[Message]
) -> None:
    """Add what FastStream leaves out: a request is answered on the reply subject of its message."""
    schema = answer.model_json_schema(ref_template="#/components/schemas/{model}")
    components = document["components"]
    schemas = (
        components["schemas"] | schema.pop("$defs", {}) | {answer.__name__: schema}
    )
    components["schemas"] = dict(sorted(schemas.items()))
    components["messages"][f"{name}:Message"] = {
        "title": f"{name}:Message",
        "payload": {"$ref": f"#/components/schemas/{answer.__name__}"},
    }
    document["channels"][name] = {
        "address": None,
        "description": "The reply subject that the request names.",
        "messages": {"Message": {"$ref": f"#/components/messages/{name}:Message"}},
    }
    document["operations"][operation]["reply"] = {
        "address": {"location": "$message.header#/reply"},
        "channel": {"$ref": f"#/channels/{name}"},
    }


if __name__ == "__main__":
    sys.stdout.write(as_text(asyncapi()))
