"""Judgement of a Redis or Valkey server as such: reachable, new enough, forgetting nothing, its clock ours."""

from collections.abc import Iterator

from runtime.servers.embedded import OLDEST_REDIS
from runtime.servers.endpoints import REDIS_VARIABLE
from tasklore.doctor.facts import Answer, RedisFacts, Unanswered
from tasklore.doctor.findings import Finding, counted, listed, note, ok, problem, unknown, unreachable, warning
from tasklore.doctor.nats_checks import START, check_fullness, check_skew, check_version

_POLICY_CURE = "set `maxmemory-policy noeviction`: old answers end by their own time to live"
_DISK_CURE = "make room on its disk or mend it; see the log of the server"


def check_redis(redis: RedisFacts | None) -> Iterator[Finding]:
    """Yield what was found about the server itself; *redis* is None when nobody says where it is."""
    if redis is None:
        yield unreachable(
            "redis.reachable",
            "nobody says which Redis or Valkey goes with this NATS",
            f"set {REDIS_VARIABLE}",
        )
        return
    if redis.refusal is not None:
        cure = f"{START}, or correct {REDIS_VARIABLE}"
        yield unreachable("redis.reachable", redis.refusal, cure)
        return
    if isinstance(redis.info, Unanswered):
        said = f"the server says nothing about itself: {redis.info.reason}"
        yield unknown("redis.info", said, "allow this user INFO")
    else:
        yield _check_version(redis.info)
        yield from _check_role(redis.info)
        yield from _check_eviction(redis.info)
        yield from _check_memory(redis.info)
        yield from _check_writes(redis.info)
    for agent_id, number in sorted(redis.left_behind.items()):
        said = f"{counted(number, 'answer')} of {agent_id} came from other code or another version: none is served"
        cure = f"nothing: their time ends; `tasklore ltm forget --stale --agent {agent_id}` drops them at once"
        yield note("redis.left_behind", said, cure)
    yield check_skew("redis.clock", "the server", redis.skew)
    if redis.set_aside:
        runs = counted(len(redis.set_aside), "pipeline run is", "pipeline runs are")
        said = f"{runs} set aside, as supervisors froze or died over them: {listed(list(redis.set_aside))}"
        cure = "read the supervisors' logs, then `tasklore pipeline resume SESSION` or `tasklore session drop SESSION`"
        yield warning("redis.pipelines", said, cure)


def _check_version(info: Answer) -> Finding:
    compatible = str(info.get("redis_version", ""))
    if "valkey_version" in info:
        return check_version("redis.version", "Valkey", str(info["valkey_version"]), OLDEST_REDIS)
    return check_version("redis.version", "Redis", compatible, OLDEST_REDIS)


def _check_role(info: Answer) -> Iterator[Finding]:
    check = "redis.role"
    if info.get("role") == "slave":
        yield problem(check, "this is a replica, which refuses writes", f"set {REDIS_VARIABLE} to the primary")
    if info.get("cluster_enabled"):
        said = "this is a cluster: keys that belong to another of its servers are refused"
        yield problem(check, said, f"set {REDIS_VARIABLE} to a server that is not in cluster mode")
    if info.get("loading"):
        said = "the server still loads its data and refuses commands"
        yield problem(check, said, "wait; how far it is stands in INFO persistence")


def _check_eviction(info: Answer) -> Iterator[Finding]:
    check, policy = "redis.eviction", str(info.get("maxmemory_policy", ""))
    if not policy:
        yield unknown(check, "what the server throws away when it is full is unknown", _POLICY_CURE)
    elif policy == "noeviction":
        yield ok(check, "nothing is thrown away when memory is full (noeviction)")
    elif info.get("maxmemory"):
        said = f"maxmemory-policy {policy} throws the ledger away when memory is full: finished tasks run again"
        yield problem(check, said, _POLICY_CURE)
    else:
        said = f"maxmemory-policy {policy} would throw the ledger away as soon as maxmemory is set"
        yield warning(check, said, _POLICY_CURE)
    if info.get("evicted_keys"):
        said = f"{counted(int(info['evicted_keys']), 'key was', 'keys were')} thrown away since the server started"
        yield warning(check, said, "give it more memory; the count begins anew with its next start")


def _check_memory(info: Answer) -> Iterator[Finding]:
    limit = info.get("maxmemory", 0)
    if limit:
        cure = "raise `maxmemory`, or keep tasks and answers shorter (TASKLORE_LEDGER_KEEP_DAYS, `tasklore ltm forget`)"
        yield check_fullness("redis.memory", "memory", info.get("used_memory", 0), limit, cure)


def _check_writes(info: Answer) -> Iterator[Finding]:
    check = "redis.writes"
    if info.get("aof_enabled") and info.get("aof_last_write_status", "ok") != "ok":
        yield problem(check, "the last write of the append-only file failed: the server refuses writes", _DISK_CURE)
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield problem(check, "the last snapshot failed: the server may refuse writes", _DISK_CURE)
    if info.get("aof_enabled") and info.get("aof_last_bgrewrite_status", "ok") != "ok":
        yield warning(check, "the last rewrite of the append-only file failed: it grows without end", _DISK_CURE)
