"""The four dashboards: is all well, what memory brings, what models cost, and one agent from near by."""

from deploy.grafana.panels import Board, Panel, Query


def _quantiles(series: str, by: str = "") -> tuple[Query, ...]:
    """Return the median and the slowest hundredth of *series*, a rate of buckets, for all of it or *by* a label."""
    kept = f"{by}, le" if by else "le"
    legend = f" {{{{{by}}}}}" if by else ""
    return tuple(
        Query(f"histogram_quantile({share}, sum by ({kept}) ({series}))", f"{word}{legend}")
        for share, word in ((0.5, "half"), (0.99, "99 %"))
    )


def _increase(name: str, by: str) -> Query:
    return Query(f"sum by ({by}) (increase({name}[$__rate_interval]))", f"{{{{{by}}}}}")


_HEALTH = (
    Panel(
        "Versions",
        "More than one is a release under way.",
        [Query("count by (version) (tasklore_build_info)", "{{version}}")],
        is_number=True,
        width=4,
    ),
    Panel(
        "Since the ledger was read",
        "Past a minute: Valkey does not answer.",
        [Query("min(tasklore_ledger_age_seconds)")],
        "s",
        4,
        is_number=True,
    ),
    Panel(
        "Oldest task", "Waiting or running.", [Query("max(tasklore_oldest_task_age_seconds)")], "s", 4, is_number=True
    ),
    Panel(
        "Dead letters", "What lies set aside now.", [Query("max(tasklore_dead_letters)")], "short", 4, is_number=True
    ),
    Panel(
        "Oldest dead letter",
        "A day: seen by nobody.",
        [Query("max(tasklore_dead_letters_oldest_seconds)")],
        "s",
        4,
        is_number=True,
    ),
    Panel(
        "Tasks that ended",
        "By the ledger, ever.",
        [Query("sum(outcome:tasklore_ledger_tasks:max)")],
        "short",
        4,
        is_number=True,
    ),
)
_FLOW = (
    Panel(
        "Tasks that ended",
        "Each second, by outcome.",
        [Query("sum by (outcome) (agent_task_outcome:tasklore_tasks:rate5m)", "{{outcome}}")],
        "ops",
        is_stacked=True,
    ),
    Panel(
        "Tasks that wait or run",
        "By agent.",
        [Query("agent:tasklore_tasks_unfinished:max", "{{agent}}")],
        is_stacked=True,
    ),
    Panel(
        "Work that waits",
        "For one slot, by agent.",
        [Query("agent:tasklore_backlog_slot_seconds:max", "{{agent}}")],
        "s",
        is_stacked=True,
    ),
    Panel(
        "Waiting", "From sent to started.", _quantiles("agent_le:tasklore_task_queue_wait_seconds_bucket:rate5m"), "s"
    ),
    Panel(
        "Running",
        "From started to done; served answers are not in it.",
        _quantiles("agent_task_le:tasklore_task_duration_seconds_bucket:rate5m"),
        "s",
    ),
    Panel("Workers", "Alive, by agent.", [Query("agent:tasklore_workers:max", "{{agent}}")]),
    Panel(
        "Slots",
        "Held, and how many there are.",
        [Query("sum(tasklore_slots_used)", "held"), Query("sum(tasklore_slots)", "all")],
    ),
    Panel("What the ledger counted", "By outcome.", [Query("outcome:tasklore_ledger_tasks:max", "{{outcome}}")]),
    Panel("Pipelines", "Runs that ended.", [_increase("tasklore_pipeline_runs_total", "outcome")], is_stacked=True),
    Panel(
        "Phases of pipelines",
        "Through, or begun again.",
        [_increase("tasklore_pipeline_phases_total", "outcome")],
        is_stacked=True,
    ),
    Panel("Analyses", "Of responses of stories.", [_increase("tasklore_analyses_total", "outcome")], is_stacked=True),
    Panel(
        "Sections of analyses",
        "By outcome.",
        [_increase("tasklore_analysis_sections_total", "outcome")],
        is_stacked=True,
    ),
)
_TROUBLE = (
    Panel(
        "Deliveries",
        "Again: somebody's lease ended, or a run was handed back.",
        [_increase("tasklore_deliveries_total", "redelivered")],
        is_stacked=True,
    ),
    Panel("Set aside", "By reason.", [_increase("tasklore_dead_letters_total", "reason")], is_stacked=True),
    Panel("Further runs", "How the next one waits.", [_increase("tasklore_retries_total", "how")], is_stacked=True),
    Panel(
        "Runs that went wrong",
        "Ended without a word; replaced by another worker's; results that came too late.",
        [
            Query("sum(increase(tasklore_crashed_runs_total[$__rate_interval]))", "crashed"),
            Query("sum(increase(tasklore_replaced_runs_total[$__rate_interval]))", "replaced"),
            Query("sum(increase(tasklore_stale_reports_refused_total[$__rate_interval]))", "too late"),
        ],
    ),
    Panel("Leases", "Renewed or not.", [_increase("tasklore_lease_heartbeats_total", "result")]),
    Panel("Refused by streams", "By reason.", [_increase("tasklore_publish_refused_total", "reason")]),
    Panel(
        "Streams and consumers",
        "Lost ones, and what followed.",
        [
            Query("sum(increase(tasklore_streams_lost_total[$__rate_interval]))", "streams lost"),
            Query("sum(increase(tasklore_tasks_republished_total[$__rate_interval]))", "tasks published anew"),
            Query("sum(increase(tasklore_consumer_missing_total[$__rate_interval]))", "consumer missing"),
            Query("sum(increase(tasklore_orphaned_deliveries_total[$__rate_interval]))", "orphaned deliveries"),
            Query("sum(increase(tasklore_publish_retries_total[$__rate_interval]))", "sent again"),
        ],
    ),
    Panel("Connections lost", "By peer.", [_increase("tasklore_reconnects_total", "peer")]),
    Panel(
        "Event loops",
        "How late the latest is.",
        [Query("topk(5, tasklore_event_loop_lag_seconds)", "{{instance}}")],
        "s",
    ),
    Panel(
        "Memory of processes",
        "The largest five.",
        [Query("topk(5, process_resident_memory_bytes)", "{{instance}}")],
        "bytes",
    ),
    Panel(
        "CPU time",
        "Cores, the busiest five.",
        [Query("topk(5, rate(process_cpu_seconds_total[$__rate_interval]))", "{{instance}}")],
    ),
    Panel(
        "Requests that failed",
        "In the frame, by exception.",
        [_increase("tasklore_broker_received_processed_messages_exceptions_total", "exception_type")],
    ),
)

_API = (
    Panel(
        "Requests",
        "Each second, by route.",
        [Query("sum by (route) (rate(tasklore_http_requests_total[$__rate_interval]))", "{{route}}")],
        "reqps",
        is_stacked=True,
    ),
    Panel(
        "Refused or failed",
        "By status; 499: whoever asked went away.",
        [
            Query(
                'sum by (status) (increase(tasklore_http_requests_total{status!~"2.."}[$__rate_interval]))',
                "{{status}}",
            )
        ],
        is_stacked=True,
    ),
    Panel(
        "Time to answer",
        "Tasks that are waited for included.",
        _quantiles("rate(tasklore_http_request_duration_seconds_bucket[$__rate_interval])"),
        "s",
    ),
)

OVERVIEW = Board(
    "tasklore-overview",
    "Tasklore: overview",
    "Is all well, how much is done, how long does it take, what waits?",
    (("Health", _HEALTH), ("Work", _FLOW), ("HTTP API", _API), ("Trouble", _TROUBLE)),
)

_RECALLED = (
    Panel(
        "Answers of the memory",
        "By outcome.",
        [Query("sum by (outcome) (agent_outcome:tasklore_memory_lookups:rate5m)", "{{outcome}}")],
        "ops",
        is_stacked=True,
    ),
    Panel(
        "Answered from memory",
        "Of what may be remembered: hits, of hits and misses.",
        [
            Query(
                'sum by (agent) (agent_outcome:tasklore_memory_lookups:rate5m{outcome="hit"}) / '
                'sum by (agent) (agent_outcome:tasklore_memory_lookups:rate5m{outcome=~"hit|miss"})',
                "{{agent}}",
            )
        ],
        "percentunit",
    ),
    Panel(
        "Time of computing spared",
        "Seconds of work each second.",
        [Query("sum(rate(tasklore_memory_saved_seconds_total[$__rate_interval]))", "spared")],
        "short",
    ),
    Panel(
        "Asking the memory",
        "One batch.",
        _quantiles("rate(tasklore_memory_lookup_duration_seconds_bucket[$__rate_interval])"),
        "s",
    ),
    Panel(
        "Entries of sessions",
        "Read instead of computed.",
        [Query("sum(increase(tasklore_session_hits_total[$__rate_interval]))", "read")],
    ),
)
_LEARNED = (
    Panel(
        "What waits",
        "Turns, facts, messages to agents.",
        [Query(f"max(tasklore_{queue}_pending)", queue) for queue in ("turns", "facts", "messages")],
    ),
    Panel(
        "The oldest of them",
        "Since it was said.",
        [Query(f"max(tasklore_oldest_{one}_age_seconds)", one) for one in ("turn", "fact", "message")],
        "s",
    ),
    Panel("Turns", "By outcome.", [_increase("tasklore_turns_total", "outcome")], is_stacked=True),
    Panel("Facts", "By outcome.", [_increase("tasklore_facts_total", "outcome")], is_stacked=True),
    Panel("Messages to agents", "By outcome.", [_increase("tasklore_messages_total", "outcome")], is_stacked=True),
    Panel(
        "Edits of documents",
        "By operation and outcome.",
        [
            Query(
                "sum by (operation, outcome) (increase(tasklore_document_edits_total[$__rate_interval]))",
                "{{operation}} {{outcome}}",
            )
        ],
        is_stacked=True,
    ),
    Panel(
        "Proposals refused",
        "The ten most frequent reasons.",
        [Query("topk(10, sum by (reason) (increase(tasklore_edits_refused_total[$__rate_interval])))", "{{reason}}")],
        is_stacked=True,
    ),
    Panel(
        "Done again",
        "Edits after somebody else's, turns and facts that raised.",
        [
            Query("sum(increase(tasklore_stale_drafts_total[$__rate_interval]))", "drafts"),
            _increase("tasklore_listen_retries_total", "queue"),
        ],
    ),
)
MEMORY = Board(
    "tasklore-memory",
    "Tasklore: memory",
    "What is answered from memory, what that spares, and what is learned of what people say.",
    (("Long-term memory", _RECALLED), ("Documents", _LEARNED)),
)

_MODELS = (
    Panel(
        "Dollars an hour",
        "By list price, by role.",
        [Query("sum by (role) (rate(tasklore_llm_cost_usd_total[1h])) * 3600", "{{role}}")],
        "currencyUSD",
        is_stacked=True,
    ),
    Panel(
        "Tokens",
        "Each second, by kind.",
        [Query("sum by (type) (rate(tasklore_llm_tokens_total[$__rate_interval]))", "{{type}}")],
        "short",
        is_stacked=True,
    ),
    Panel(
        "Tokens by model",
        "Each second.",
        [Query("sum by (model) (rate(tasklore_llm_tokens_total[$__rate_interval]))", "{{model}}")],
        "short",
        is_stacked=True,
    ),
    Panel(
        "Attempts",
        "Each second, by role.",
        [Query("sum by (role) (rate(tasklore_llm_request_duration_seconds_count[$__rate_interval]))", "{{role}}")],
        "ops",
        is_stacked=True,
    ),
    Panel(
        "Time of an attempt",
        "By model.",
        _quantiles("rate(tasklore_llm_request_duration_seconds_bucket[$__rate_interval])", "model"),
        "s",
    ),
    Panel(
        "Attempts that failed", "By class of error.", [_increase("tasklore_llm_errors_total", "class")], is_stacked=True
    ),
    Panel("Share that failed", "Of ten minutes.", [Query("tasklore:llm_errors:ratio10m", "failed")], "percentunit"),
)
MODELS = Board(
    "tasklore-models",
    "Tasklore: language models",
    "Tokens, money, time and errors of whatever asks a model.",
    (("Models", _MODELS),),
)

_AGENT = (
    Panel(
        "Tasks that ended",
        "By task and outcome.",
        [
            Query(
                'sum by (task, outcome) (agent_task_outcome:tasklore_tasks:rate5m{agent="$agent"}) > 0',
                "{{task}} {{outcome}}",
            )
        ],
        "ops",
        is_stacked=True,
    ),
    Panel(
        "Waits or runs",
        "And who is there for it.",
        [
            Query('agent:tasklore_tasks_unfinished:max{agent="$agent"}', "tasks"),
            Query('agent:tasklore_workers:max{agent="$agent"}', "workers"),
        ],
    ),
    Panel(
        "Work that waits",
        "For one slot.",
        [Query('agent:tasklore_backlog_slot_seconds:max{agent="$agent"}', "work")],
        "s",
    ),
    Panel(
        "Waiting",
        "From sent to started.",
        _quantiles('agent_le:tasklore_task_queue_wait_seconds_bucket:rate5m{agent="$agent"}'),
        "s",
    ),
    Panel(
        "Running",
        "From started to done, by task.",
        _quantiles('agent_task_le:tasklore_task_duration_seconds_bucket:rate5m{agent="$agent"}', "task"),
        "s",
    ),
    Panel(
        "Memory",
        "By outcome.",
        [Query('sum by (outcome) (agent_outcome:tasklore_memory_lookups:rate5m{agent="$agent"}) > 0', "{{outcome}}")],
        "ops",
        is_stacked=True,
    ),
    Panel(
        "Sections",
        "Of analyses, by outcome.",
        [
            Query(
                'sum by (outcome) (increase(tasklore_analysis_sections_total{agent="$agent"}[$__rate_interval]))',
                "{{outcome}}",
            )
        ],
    ),
)
AGENT = Board(
    "tasklore-agent",
    "Tasklore: one agent",
    "What one agent does, what waits for it, how long it takes.",
    (("Agent", _AGENT),),
    variable="agent",
    variable_query="label_values(tasklore_tasks_unfinished, agent)",
)

BOARDS = (OVERVIEW, MEMORY, MODELS, AGENT)
