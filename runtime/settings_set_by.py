"""Who sets each setting, and when: a column of docs/reference/settings.md.

`deployment` is the manifests that `tasklore k8s` and `deploy/` write; a setting without an operator is a
constant instead.
"""

_TRUST = (
    "operator: where servers demand a role, and no TASKLORE_SECRETS_DIR holds the file"
)
_RETRIES = "operator: if the services that tasks call recover faster or more slowly"
_DISK = "operator: by the disk, before load; existing streams are edited to it"
_PRIVACY = "operator: by what people were promised about their words"
_LISTENING = "operator: where people say more than one worker learns"
_LOOK = "operator: when a phase says that its files are too many or too large"
_PROXY = "operator: if the API is behind a proxy"
_BROWSER = "operator: where pages of other origins ask the API"
_CALLER = (
    "person at a command line: for a system that is not `tasklore up` in this folder"
)
_OPERATOR_CALLER = (
    "operator at a command line: for commands that need an operator's rights"
)
_MODEL_COST = "operator: if a model is slow, expensive or rate-limited"

#: By setting; the page cannot be made without one of them.
SET_BY = {
    "nats_url": "deployment, always; else `tasklore up`",
    "redis_url": "deployment, always; else `tasklore up`",
    "nats_monitor_url": "operator: for `tasklore doctor` on servers of one's own",
    "role": "deployment: where servers demand one of each process",
    "nats_seed_file": _TRUST,
    "nats_publishers_file": _TRUST,
    "nats_ca_file": _TRUST,
    "redis_ca_file": _TRUST,
    "redis_password_file": _TRUST,
    "secrets_dir": "deployment: where it mounts secrets",
    "secrets_source": "operator: where secrets are kept in a vault",
    "data_dir": "developer: for a second system on one machine",
    "durability": "operator: before the first start, if losing one second of tasks is "
    "unacceptable",
    "provision": "deployment: where only the bootstrap job may create streams",
    "replicas": "deployment: by the number of NATS servers",
    "tasks_max_bytes": _DISK,
    "dead_max_bytes": _DISK,
    "output_max_bytes": _DISK,
    "kept_max_bytes": "operator: where Redis has no `maxmemory`, or serves others as well",
    "supervisor_id": "operator: where several systems share a NATS",
    "limits_file": "operator: when models get limits from a file of the deployment",
    "slots": "deployment, by the kind of worker: fewer where a task is heavy",
    "ack_wait_s": "operator: where tasks block for long in C, or a dead worker has to be noticed sooner",
    "max_attempts": _RETRIES,
    "task_deadline_s": "operator: if no task may wait or run without limit",
    "retry_base_s": _RETRIES,
    "retry_cap_s": _RETRIES,
    "retry_schedule_s": "deployment: a day, if workers have no permission for LATER",
    "grace_s": "deployment: below the termination grace period of its pods",
    "memory_budget_ms": "operator: if Redis has a high latency",
    "memory_keep_days": "operator: where results that persons set go stale sooner or later",
    "ledger_deadline_ms": "operator: if Redis has a high latency",
    "ledger_keep_days": "operator: by the longest time after which a program sends a task again",
    "ledger_report_hours": "operator: by the memory of Redis, and how late programs fetch reports",
    "run_messages_hours": "operator: by what people were promised, where authors are to see what models saw",
    "mask_file": "operator: where words of a kind of one's own may not be kept with messages of runs",
    "listen_items": _LISTENING,
    "listen_users": _LISTENING,
    "listen_idle_s": "operator: where facts have to be there sooner, or questions to a model cost too much",
    "facts_keep_days": _PRIVACY,
    "episodes_keep_days": _PRIVACY,
    "episodes_embedder": "operator: where turns are to be searched by meaning",
    "episodes_embedding_model": "operator: with the embedder `endpoint`",
    "say_learned": "operator: where replies are to say nothing of what was learned",
    "erase_said": "operator: where messages of people may not lie on a disk once they are learned",
    "forget_in_chat": "operator: where only an operator may erase a person",
    "session_value_max_bytes": "operator: by the memory of Redis, where phases write large values",
    "pipeline_lease_s": "operator: if runs of a crashed supervisor have to resume "
    "sooner",
    "pipelines_dir": "author of pipelines: when they are deployed",
    "pipeline_roots": "operator: where pipelines read files",
    "fingerprint_files": _LOOK,
    "fingerprint_max_bytes": _LOOK,
    "fingerprint_s": _LOOK,
    "stall_s": "operator: if a supervisor is ended because its machine pauses",
    "evidence_dir": "deployment: a folder that outlives the pod",
    "analyses_kept": "operator: by the memory of Redis, where stories are long",
    "story_calls": "operator: where ten questions a response cost too much",
    "kinds_dir": "author of documents: when kinds of one's own are deployed",
    "agent_files": "author of agents: when prompts of the shipped ones are replaced",
    "http_host": "deployment: `0.0.0.0` in a container",
    "http_port": "deployment: a port that probes and Prometheus know",
    "api_host": "deployment: `0.0.0.0` in a container, with `api_keys_file`",
    "api_port": "deployment: a port that its service knows",
    "api_keys_file": "deployment: where other machines reach the API",
    "approval_secret": "deployment: for links, the console and tokens of streams",
    "approval_url": _PROXY,
    "webhook_secret": "operator: where somebody wants webhooks",
    "webhook_url": "operator: to be notified of all questions at one URL",
    "webhook_tasks": "operator: to be notified of the ends of all tasks as well",
    "webhook_networks": "operator: where receivers have private addresses",
    "api_body_max_bytes": "operator: where memories and stories come in larger parts",
    "api_rate": "operator: where a program sends more, or too much",
    "api_burst": "operator: where a program sends more, or too much",
    "api_unknown_rate": "operator: where many clients without a key share an address",
    "api_trusted_proxies": _PROXY,
    "api_cors_origins": _BROWSER,
    "api_cors_methods": _BROWSER,
    "api_cors_headers": _BROWSER,
    "api_tls_cert_file": "deployment: if no proxy terminates TLS",
    "api_tls_key_file": "deployment: if no proxy terminates TLS",
    "api_url": _CALLER,
    "api_key": _CALLER,
    "api_ca_file": _CALLER,
    "operations_url": _OPERATOR_CALLER,
    "operations_key": _OPERATOR_CALLER,
    "operations_host": "deployment: `0.0.0.0` in a container, with `api_keys_file`",
    "operations_port": "deployment: a port that its service knows",
    "locale": "operator: by the people who ask",
    "time_zone": "operator: by the people who ask",
    "log_level": "deployment; developer: `debug` while looking for a fault",
    "log_format": "deployment: `json`",
    "tracing": "operator: where spans are collected",
    "llm_base_url": "operator: with a model of one's own",
    "llm_api_key": "operator: with a model",
    "llm_model": "operator: with a model of one's own",
    "llm_temperature": "operator: `none` for a model that refuses any",
    "llm_supervisor_model": "operator: where another model understands people better",
    "llm_finder_model": "operator: where a smaller model finds places well enough",
    "llm_roles": "author of agents: with several providers or models",
    "llm_anthropic_base_url": "operator: behind a proxy or gateway",
    "llm_anthropic_api_key": "operator: with a role of that provider",
    "llm_google_base_url": "operator: behind a proxy or gateway",
    "llm_google_api_key": "operator: with a role of that provider",
    "llm_prices": "operator: with models whose price is not known",
    "llm_max_output_tokens": "operator: when answers are cut off",
    "llm_attempt_deadline_s": _MODEL_COST,
    "llm_max_attempts": _MODEL_COST,
    "llm_max_concurrency": _MODEL_COST,
}
