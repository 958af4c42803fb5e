"""The closed words that series are labelled with, and the buckets of histograms: every allowed label is listed here."""

from typing import Any, get_args

from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.words import OTHER

#: Seconds; from what a remembered answer takes to half an hour.
TASK_BUCKETS = (0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 60, 300, 900, 1800)
#: Seconds; recalling has 0.05 in all.
LOOKUP_BUCKETS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1)
#: Seconds; a language model takes its time.
LLM_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
#: Tokens, as the GenAI conventions have them, up to the longest context.
TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576)
#: Seconds; what is waited for takes as long as its task.
HTTP_BUCKETS = (0.005, 0.025, 0.1, 0.5, 2.5, 10, 60)
#: Tasks with series of their own; names may come from strangers, so that any further one is counted as `other`.
MAX_TASKS = 47
#: Why a message can end in DEAD; others may be counted too.
DEAD_REASONS = (
    "attempts",
    "code_error",
    "gave_up",
    "crashes",
    "deadline",
    "unreadable",
    "unproven",
)
#: Why a stream can refuse a message: it is full, nobody stores its subject, or anything else.
REFUSALS = ("full", "no_stream", "other")
PEERS = ("nats", "redis")
#: Why the HTTP API closes a connection; see docs/reference/http.md.
CONNECTION_REFUSALS = ("over_limit", "evicted", "timed_out", "invalid_http")
#: Where a task waits for its next run, or for what it waits in LATER.
RETRY_WAYS = ("nak", "schedule", "wait", "place")
#: What can become of a turn, of a fact, and of an edit that a plan wants; see `tasklore.workers.listening`.
TURN_OUTCOMES = ("learned", "nothing", "anonymous", "needs_model", "failed")
FACT_OUTCOMES = ("applied", "known", "rejected", "conflict", "needs_model", "failed")
#: How the run of a pipeline, and one phase of it, can end.
PIPELINE_OUTCOMES = ("completed", "failed", "cancelled")
PHASE_OUTCOMES = ("done", "failed", "skipped", "restarted")
#: What can become of an analysis of a story's response, and of each of its sections.
ANALYSIS_OUTCOMES = ("fresh", "partial", "served")
SECTION_OUTCOMES = ("ok", "failed", "late", "skipped")
#: Agents of our own that find sections; those of stories are counted as `other`, as their number has no end.
SECTION_AGENT_IDS = frozenset(seat.agent_id for seat in SECTION_AGENTS)
#: What can become of a message to an agent: new in its inbox, or there already.
MESSAGE_OUTCOMES = ("delivered", "known")
EDIT_OPERATIONS = ("insert", "update", "delete")
#: What can become of an edit in a plan: stored, or refused with the whole of its plan.
EDIT_OUTCOMES = ("applied", "refused")
EDIT_REFUSALS = (
    # What documents refuse, whoever asks for it.
    *(
        "path",
        "missing",
        "protected",
        "type",
        "size",
        "depth",
        "overlap",
        "file",
        "value",
    ),
    # What the memory worker's arbiter refuses before that.
    *(
        "place",
        "evidence",
        "merge",
        "mention",
        "sweep",
        "rank",
        "guarded",
        "older",
        "breath",
        "unsaid",
        "model",
    ),
    # What the switchboard refuses to hear in a turn.
    *(
        "kind",
        "support",
        "shape",
        "confidence",
        "quoted",
        "question",
        "greeting",
        "others",
        "number",
        "name",
    ),
    *("polarity", "known", "too_many"),
)


def words_of(closed: Any) -> tuple[str, ...]:
    """Return the words of a `Literal` that a writer may use."""
    return tuple(word for word in get_args(closed) if word != OTHER)
