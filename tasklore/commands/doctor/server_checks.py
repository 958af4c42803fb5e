"""Checks of NATS and of Redis or Valkey as servers: reachable, new enough, roomy enough, durable, their clocks ours."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from tasklore.commands.doctor.facts import (
    Answer,
    Facts,
    MonitorFacts,
    NatsFacts,
    RedisFacts,
    Skew,
    Unanswered,
)
from tasklore.commands.doctor.rules import (
    Diagnosis,
    FindingRule,
    Mark,
    apply_rules,
    check_fullness,
    format_bytes,
    ok,
    unreachable,
)
from tasklore.commands.render.words import count_of, join_names
from tasklore.contracts import subjects
from tasklore.runtime.servers.embedded import MAX_PAYLOAD, OLDEST_NATS, OLDEST_REDIS
from tasklore.runtime.servers.endpoints import NATS_VARIABLE, REDIS_VARIABLE

#: `lazy` is less than any promise of ours; `unknown` could not be told from here.
Durability = Literal["strict", "standard", "lazy", "unknown"]

#: Seconds between two clocks from which deadlines and ages are visibly wrong, and from which tasks expire for it.
SKEW_WARNING_S = 1.0
SKEW_PROBLEM_S = 5.0
#: Seconds between two writes to disk that `standard` allows.
STANDARD_S = 1.0
#: Copies that survive the loss of one server, or of what it did not write yet; of two, one is no majority.
SAFE_COPIES = 3

MEANINGS: dict[Durability, str] = {
    "strict": "nothing that was accepted is lost, not even in a power failure",
    "standard": "the crash of a process loses nothing, a power failure at most the "
    "last second",
    "lazy": "less than Tasklore promises; a power failure, or the crash of a machine, "
    "loses accepted tasks: see above",
    "unknown": "what a power failure would lose cannot be determined from here: see "
    "above",
}

#: The cure for a server that does not answer, before the variable that may name another one.
_START = (
    "start it, or restart it when it hangs (`tasklore up` runs one on this machine)"
)
_JETSTREAM_CURE = (
    "set `sync_interval: 1s` (or `always`) in the `jetstream` block of every nats-server and start it again; "
    "`tasklore up` does so for its own"
)
_MONITOR_CURE = (
    "only the HTTP monitoring shows it: start nats-server with `http_port` (-m 8222), "
    "then use --monitor http://HOST:8222 or set TASKLORE_NATS_MONITOR_URL"
)
_AOF_CURE = (
    "`CONFIG SET appendonly yes` and `CONFIG SET appendfsync everysec` (or always) while it runs, then `CONFIG "
    "REWRITE`: switched on by a restart it may begin empty; managed servers have a switch for it"
)
_POLICY_CURE = (
    "set `maxmemory-policy noeviction`: old answers end by their own time to live"
)
_DISK_CURE = "free disk space or repair the disk; see the log of the server"

_REDIS_RULES: tuple[FindingRule[Answer], ...] = (
    FindingRule(
        "redis.role",
        mark="problem",
        holds=lambda info: info.get("role") == "slave",
        found="this is a replica, which refuses writes",
        cure=f"set {REDIS_VARIABLE} to the primary",
    ),
    FindingRule(
        "redis.role",
        mark="problem",
        holds=lambda info: info.get("cluster_enabled"),
        found="this is a cluster: keys that belong to another of its servers are refused",
        cure=f"set {REDIS_VARIABLE} to a server that is not in cluster mode",
    ),
    FindingRule(
        "redis.role",
        mark="problem",
        holds=lambda info: info.get("loading"),
        found="the server is still loading its data and refuses commands",
        cure="wait; INFO persistence shows the progress",
    ),
    FindingRule(
        "redis.eviction",
        mark="unknown",
        holds=lambda info: not info.get("maxmemory_policy"),
        found="what the server evicts when memory is full is unknown",
        cure=_POLICY_CURE,
    ),
    FindingRule(
        "redis.eviction",
        "ok",
        lambda info: info.get("maxmemory_policy") == "noeviction",
        "nothing is evicted when memory is full (noeviction)",
    ),
    FindingRule(
        "redis.eviction",
        mark="problem",
        holds=lambda info: (
            info.get("maxmemory_policy") not in (None, "", "noeviction")
            and info.get("maxmemory")
        ),
        found=(
            "maxmemory-policy {maxmemory_policy} evicts the ledger when memory is "
            "full: finished tasks run again"
        ),
        cure=_POLICY_CURE,
    ),
    FindingRule(
        "redis.eviction",
        mark="warning",
        holds=lambda info: (
            info.get("maxmemory_policy") not in (None, "", "noeviction")
            and not info.get("maxmemory")
        ),
        found="maxmemory-policy {maxmemory_policy} would evict the ledger as soon as "
        "maxmemory is set",
        cure=_POLICY_CURE,
    ),
    FindingRule(
        "redis.eviction",
        mark="warning",
        holds=lambda info: info.get("evicted_keys"),
        found="{evicted} evicted since the server started",
        cure="give it more memory; the count restarts with the server",
    ),
    FindingRule(
        "redis.writes",
        mark="problem",
        holds=lambda info: (
            info.get("aof_enabled") and info.get("aof_last_write_status", "ok") != "ok"
        ),
        found="the last write of the append-only file failed: the server refuses writes",
        cure=_DISK_CURE,
    ),
    FindingRule(
        "redis.writes",
        mark="problem",
        holds=lambda info: info.get("rdb_last_bgsave_status", "ok") != "ok",
        found="the last snapshot failed: the server may refuse writes",
        cure=_DISK_CURE,
    ),
    FindingRule(
        "redis.writes",
        mark="warning",
        holds=lambda info: (
            info.get("aof_enabled")
            and info.get("aof_last_bgrewrite_status", "ok") != "ok"
        ),
        found="the last rewrite of the append-only file failed: it grows without end",
        cure=_DISK_CURE,
    ),
)


def check_nats(nats: NatsFacts, monitor: MonitorFacts | None) -> Iterator[Diagnosis]:
    """Yield the findings about the NATS server itself."""
    if nats.refusal is not None:
        yield unreachable(
            "nats.reachable", nats.refusal, f"{_START}, or correct {NATS_VARIABLE}"
        )
        return
    yield _check_version("nats.version", "nats-server", nats.version, OLDEST_NATS)
    if isinstance(nats.account, Unanswered):
        cure = "start nats-server with -js or a `jetstream` block, and enable it for this account"
        yield Diagnosis(
            check="nats.jetstream",
            mark="problem",
            found=f"JetStream does not serve us: {nats.account.reason}",
            cure=cure,
        )
    else:
        yield ok(
            "nats.jetstream",
            f"JetStream keeps {nats.account.get('streams', 0)} streams",
        )
    found = f"a message may have {format_bytes(nats.max_payload)}"
    if nats.max_payload < MAX_PAYLOAD:
        found += f"; a body of {format_bytes(subjects.MAX_BODY)}, which the wire promises, does not fit"
        cure = "set `max_payload: 1MB` in the configuration of nats-server"
        yield Diagnosis(
            check="nats.max_payload", mark="problem", found=found, cure=cure
        )
    else:
        yield ok("nats.max_payload", found)
    yield _check_skew("nats.clock", "NATS", nats.skew)
    yield from _check_health(monitor)
    yield from _check_storage(nats, monitor)
    yield find_jetstream_durability(nats, monitor)[1]


def check_redis(redis: RedisFacts | None) -> Iterator[Diagnosis]:
    """Yield the findings about the Redis or Valkey server itself; *redis* is None when its address is not known."""
    if redis is None:
        found = "the Redis or Valkey of this system is not known"
        yield unreachable("redis.reachable", found, f"set {REDIS_VARIABLE}")
        return
    if redis.refusal is not None:
        yield unreachable(
            "redis.reachable", redis.refusal, f"{_START}, or correct {REDIS_VARIABLE}"
        )
        return
    info = redis.info
    if isinstance(info, Unanswered):
        found = f"the server says nothing about itself: {info.reason}"
        yield Diagnosis(
            check="redis.info", mark="unknown", found=found, cure="allow this user INFO"
        )
    else:
        program, version = (
            ("Valkey", "valkey_version")
            if "valkey_version" in info
            else ("Redis", "redis_version")
        )
        yield _check_version(
            "redis.version", program, str(info.get(version, "")), OLDEST_REDIS
        )
        evicted = count_of(int(info.get("evicted_keys") or 0), "key was", "keys were")
        yield from apply_rules(
            _REDIS_RULES,
            info,
            maxmemory_policy=info.get("maxmemory_policy"),
            evicted=evicted,
        )
        if limit := info.get("maxmemory", 0):
            cure = "raise `maxmemory`, or keep tasks and answers shorter (TASKLORE_LEDGER_KEEP_DAYS, `tasklore results "
            cure += "forget`)"
            yield check_fullness(
                "redis.memory",
                what="memory",
                used=info.get("used_memory", 0),
                limit=limit,
                cure=cure,
            )
    for agent_id, number in sorted(redis.left_behind.items()):
        found = f"{count_of(number, 'answer')} of {agent_id} from other code or another version: none is served"
        cure = f"nothing: they expire; `tasklore results forget --stale --agent {agent_id}` deletes them at once"
        yield Diagnosis(check="redis.left_behind", mark="note", found=found, cure=cure)
    yield _check_skew("redis.clock", "the server", redis.skew)
    if redis.set_aside:
        runs = count_of(len(redis.set_aside), "pipeline run is", "pipeline runs are")
        found = (
            f"{runs} quarantined, as supervisors hung or crashed while running "
            f"them: {join_names(redis.set_aside)}"
        )
        cure = (
            "read the supervisors' logs, then `tasklore pipelines resume SESSION` "
            "or `tasklore sessions drop SESSION`"
        )
        yield Diagnosis(check="redis.pipelines", mark="warning", found=found, cure=cure)
    yield find_redis_durability(redis)[1]


def find_durability(facts: Facts) -> Durability:
    """Return the weakest of both servers: `lazy` before `unknown`, which is no excuse for it."""
    both = {
        find_jetstream_durability(facts.nats, facts.monitor)[0],
        find_redis_durability(facts.redis)[0],
    }
    order: tuple[Durability, ...] = ("lazy", "unknown", "standard", "strict")
    return next(durability for durability in order if durability in both)


def find_jetstream_durability(
    nats: NatsFacts, monitor: MonitorFacts | None
) -> tuple[Durability, Diagnosis]:
    """Return what the `sync_interval` of JetStream, known to `/varz` alone, guards against, and the finding."""
    check = "nats.sync_interval"
    unsure = "how often JetStream writes to disk is unknown"

    def unknown(why: str) -> tuple[Durability, Diagnosis]:
        return "unknown", Diagnosis(
            check=check, mark="unknown", found=f"{unsure}{why}", cure=_MONITOR_CURE
        )

    if monitor is None:
        return unknown(" (the default of 2 min is too long)")
    if isinstance(monitor.varz, Unanswered):
        return unknown(f": {monitor.url} says {monitor.varz.reason}")
    cluster = (monitor.varz.get("cluster") or {}).get("name")
    server = (
        {"id": monitor.varz.get("server_id")}
        if isinstance(nats.server, Unanswered)
        else nats.server
    )
    # A neighbour in the cluster is configured alike.
    is_neighbour = bool(cluster) and cluster == server.get("cluster")
    if monitor.varz.get("server_id") != server.get("id") and not is_neighbour:
        return unknown(f": {monitor.url} ({monitor.source}) is another server")
    config = (monitor.varz.get("jetstream") or {}).get("config") or {}
    of_one = (
        f" (of {monitor.varz.get('server_name')} alone; ask its neighbours too)"
        if nats.others
        else ""
    )
    # The interval stays in the answer when every write is synced.
    if config.get("sync_always"):
        return "strict", ok(
            check,
            f"JetStream writes every message to disk before it accepts it{of_one}",
        )
    interval_s = config.get("sync_interval", 0) / 1e9
    if not interval_s:
        return unknown(f": {monitor.url} does not say it")
    if interval_s <= STANDARD_S:
        return "standard", ok(
            check, f"JetStream writes to disk every {interval_s:g} s{of_one}"
        )
    found = (
        f"JetStream writes to disk only every {interval_s:g} s: a power failure loses "
        f"accepted tasks of that time{of_one}"
    )
    infos = [info for name in nats.streams if (info := nats.stream(name)) is not None]
    copies = min((info["config"].get("num_replicas", 1) for info in infos), default=1)
    if copies >= SAFE_COPIES:
        found += f"; {copies} copies of each stream help when one server is hit"
        return "lazy", Diagnosis(
            check=check, mark="warning", found=found, cure=_JETSTREAM_CURE
        )
    return "lazy", Diagnosis(
        check=check, mark="problem", found=found, cure=_JETSTREAM_CURE
    )


def find_redis_durability(redis: RedisFacts | None) -> tuple[Durability, Diagnosis]:
    """Return what the append-only file, and how often it is written to disk, guards against, and the finding."""
    check = "redis.appendonly"

    def finding(
        durability: Durability, mark: Mark, found: str, cure: str | None
    ) -> tuple[Durability, Diagnosis]:
        return durability, Diagnosis(check=check, mark=mark, found=found, cure=cure)

    if redis is None or redis.refusal is not None or isinstance(redis.info, Unanswered):
        found = "whether anything is kept on disk is unknown: INFO is refused"
        return finding("unknown", "unknown", found, "allow this user INFO")
    settings: Mapping[str, str] = (
        {} if isinstance(redis.settings, Unanswered) else redis.settings
    )
    if not redis.info.get("aof_enabled"):
        found = "the append-only file is off: "
        if "save" not in settings:
            found += (
                "a restart loses ledger and memory, at least since the last snapshot"
            )
        elif not settings["save"]:
            found += "nothing is kept on disk, and a restart loses ledger and memory"
        else:
            found += f"a crash loses ledger and memory since the last snapshot (save {settings['save']})"
        return finding("lazy", "problem", found, _AOF_CURE)
    often = settings.get("appendfsync")
    if often is None:
        cure = "ask whoever manages it for `appendfsync`; everysec is what Tasklore calls standard, always is strict"
        found = "the append-only file is on; how often it reaches the disk is unknown (no CONFIG)"
        return finding("unknown", "unknown", found, cure)
    if often == "no":
        found = (
            "appendfsync is no: the operating system decides when the append-only "
            "file is flushed; a power failure loses up to 30 s"
        )
        return finding("lazy", "problem", found, _AOF_CURE)
    if settings.get("no-appendfsync-on-rewrite") == "yes":
        found = f"the append-only file is written {often}, but not while it is rewritten (no-appendfsync-on-rewrite)"
        return finding("lazy", "warning", found, "set `no-appendfsync-on-rewrite no`")
    if often == "always":
        return "strict", ok(
            check,
            "every change reaches the disk before it is answered (appendfsync always)",
        )
    return "standard", ok(
        check, "changes reach the disk every second (appendfsync everysec)"
    )


def _check_version(
    check: str, program: str, version: str, oldest: tuple[int, int]
) -> Diagnosis:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    needed = ".".join(map(str, oldest))
    if not numbers:
        cure = f"make sure that it is {needed} or newer"
        return Diagnosis(
            check=check,
            mark="unknown",
            found=f"{program} does not tell its version",
            cure=cure,
        )
    if numbers < oldest:
        return Diagnosis(
            check=check,
            mark="problem",
            found=f"{program} {version} is too old",
            cure=f"install {program} {needed} or newer",
        )
    return ok(check, f"{program} {version}")


def _check_skew(check: str, server: str, skew: Skew | None) -> Diagnosis:
    """Return how far the clock of *server* is from ours; what the round trip leaves open speaks for it."""
    if skew is None:
        return Diagnosis(
            check=check,
            mark="unknown",
            found=f"{server} does not tell its time",
            cure="allow this user to ask for it",
        )
    apart_s = abs(skew.ahead_s) - skew.error_s
    found = f"the clock of {server} is {abs(skew.ahead_s):.1f} s {'ahead of' if skew.ahead_s > 0 else 'behind'} ours"
    found += f" (give or take {skew.error_s:.1f} s)" if skew.error_s >= 0.05 else ""
    cure = "synchronise both machines by NTP (chrony, systemd-timesyncd)"
    if apart_s > SKEW_PROBLEM_S:
        return Diagnosis(
            check=check,
            mark="problem",
            found=f"{found}: deadlines end tasks too early or too late",
            cure=cure,
        )
    if apart_s > SKEW_WARNING_S:
        return Diagnosis(check=check, mark="warning", found=found, cure=cure)
    if skew.error_s > SKEW_PROBLEM_S:
        found = f"{server} answers too slowly to compare clocks"
        return Diagnosis(
            check=check, mark="unknown", found=found, cure="run the doctor nearer to it"
        )
    within_ms = math.ceil(1000 * max(abs(skew.ahead_s), skew.error_s))
    return ok(check, f"the clock of {server} agrees with ours within {within_ms:,} ms")


def _check_health(monitor: MonitorFacts | None) -> Iterator[Diagnosis]:
    if monitor is None or monitor.unwell is None:
        return
    cure = (
        "after a full disk a stream stores nothing until nats-server is restarted, "
        "even if there is space again: free some and restart it; else see its log"
    )
    yield Diagnosis(
        check="nats.health",
        mark="problem",
        found=f"nats-server says of itself: {monitor.unwell}",
        cure=cure,
    )


def _check_storage(
    nats: NatsFacts, monitor: MonitorFacts | None
) -> Iterator[Diagnosis]:
    cure = "purge or delete what is not needed (`nats stream report`), or allow JetStream more"
    account = {} if isinstance(nats.account, Unanswered) else nats.account
    limit = (account.get("limits") or {}).get("max_storage", -1)
    if limit > 0:
        yield check_fullness(
            "nats.account_storage",
            what="the account",
            used=account.get("storage", 0),
            limit=limit,
            cure=cure,
        )
    varz = (
        {} if monitor is None or isinstance(monitor.varz, Unanswered) else monitor.varz
    )
    jetstream = varz.get("jetstream") or {}
    limit = (jetstream.get("config") or {}).get("max_storage", 0)
    if limit > 0:
        used = (jetstream.get("stats") or {}).get("storage", 0)
        yield check_fullness(
            "nats.storage",
            what="JetStream",
            used=used,
            limit=limit,
            cure=f"{cure} (`max_file_store`)",
        )
