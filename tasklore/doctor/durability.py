"""What a power cut would take: how often each server writes what it accepted to disk, judged and said in words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tasklore.doctor.facts import Facts, MonitorFacts, NatsFacts, RedisFacts, Unanswered
from tasklore.doctor.findings import Finding, ok, problem, unknown, warning

#: `lazy` is less than any promise of ours; `unknown` could not be told from here.
Durability = Literal["strict", "standard", "lazy", "unknown"]

#: Seconds between two writes to disk that `standard` allows.
STANDARD_S = 1.0
#: Copies that survive the loss of one server, or of what it did not write yet; of two, one is no majority.
SAFE_COPIES = 3

MEANINGS: dict[Durability, str] = {
    "strict": "nothing that was accepted is lost, not even in a power cut",
    "standard": "the crash of a process loses nothing, a power cut at most the last second",
    "lazy": "less than Tasklore promises; a power cut, or the crash of a machine, loses what was accepted: see above",
    "unknown": "what a power cut would lose cannot be told from here: see above",
}

_JETSTREAM_CURE = (
    "set `sync_interval: 1s` (or `always`) in the `jetstream` block of every nats-server and start it again; "
    "`tasklore up` does so for its own"
)
_MONITOR_CURE = (
    "only the HTTP monitoring tells it: start nats-server with `http_port` (-m 8222), then say "
    "--monitor http://HOST:8222 or set TASKLORE_NATS_MONITOR_URL"
)
_AOF_CURE = (
    "`CONFIG SET appendonly yes` and `CONFIG SET appendfsync everysec` (or always) while it runs, then `CONFIG "
    "REWRITE`: switched on by a restart it may begin empty; managed servers have a switch for it"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one server guards against, and the finding that says so."""

    durability: Durability
    finding: Finding


def found_durability(facts: Facts) -> Durability:
    """Return the weakest of both servers: `lazy` before `unknown`, which is no excuse for it."""
    both = {judge_jetstream(facts.nats, facts.monitor).durability, judge_redis(facts.redis).durability}
    order: tuple[Durability, ...] = ("lazy", "unknown", "standard", "strict")
    return next(durability for durability in order if durability in both)


def check_durability(facts: Facts) -> Iterator[Finding]:
    """Yield what was found about each server that answered."""
    if facts.nats.refusal is None:
        yield judge_jetstream(facts.nats, facts.monitor).finding
    if facts.redis is not None and facts.redis.refusal is None:
        yield judge_redis(facts.redis).finding


def judge_jetstream(nats: NatsFacts, monitor: MonitorFacts | None) -> Verdict:
    """Judge the `sync_interval` of JetStream, which stands nowhere but in `/varz`."""
    check = "nats.sync_interval"
    if monitor is None:
        return _untold("how often JetStream writes to disk is unknown (the default of 2 min is too lazy)")
    if isinstance(monitor.varz, Unanswered):
        return _untold(f"how often JetStream writes to disk is unknown: {monitor.url} says {monitor.varz.reason}")
    if not _is_same(nats, monitor):
        return _untold(
            f"how often JetStream writes to disk is unknown: {monitor.url} ({monitor.source}) is another server"
        )
    config = (monitor.varz.get("jetstream") or {}).get("config") or {}
    of_one = f" (of {monitor.varz.get('server_name')} alone; ask its neighbours too)" if nats.others else ""
    # The interval stays in the answer when every write is synced.
    if config.get("sync_always"):
        return Verdict("strict", ok(check, f"JetStream writes every message to disk before it accepts it{of_one}"))
    interval_s = config.get("sync_interval", 0) / 1e9
    if not interval_s:
        return _untold(f"how often JetStream writes to disk is unknown: {monitor.url} does not say it")
    if interval_s <= STANDARD_S:
        return Verdict("standard", ok(check, f"JetStream writes to disk every {interval_s:g} s{of_one}"))
    said = (
        f"JetStream writes to disk only every {interval_s:g} s: a power cut loses accepted tasks of that time{of_one}"
    )
    if _copies(nats) >= SAFE_COPIES:
        said += f"; {_copies(nats)} copies of each stream help when one server is hit"
        return Verdict("lazy", warning(check, said, _JETSTREAM_CURE))
    return Verdict("lazy", problem(check, said, _JETSTREAM_CURE))


def judge_redis(redis: RedisFacts | None) -> Verdict:
    """Judge the append-only file and how often it is written to disk."""
    check = "redis.appendonly"
    if redis is None or redis.refusal is not None or isinstance(redis.info, Unanswered):
        return Verdict(
            "unknown",
            unknown(check, "whether anything is kept on disk is unknown: INFO is refused", "allow this user INFO"),
        )
    settings: Mapping[str, str] = {} if isinstance(redis.settings, Unanswered) else redis.settings
    if not redis.info.get("aof_enabled"):
        return Verdict("lazy", problem(check, _without_file(settings), _AOF_CURE))
    often = settings.get("appendfsync")
    if often is None:
        cure = "ask whoever manages it for `appendfsync`; everysec is what Tasklore calls standard, always is strict"
        return Verdict(
            "unknown",
            unknown(check, "the append-only file is on; how often it reaches the disk is unknown (no CONFIG)", cure),
        )
    if often == "no":
        said = "the append-only file reaches the disk when the kernel likes: a power cut loses up to half a minute"
        return Verdict("lazy", problem(check, said, _AOF_CURE))
    if settings.get("no-appendfsync-on-rewrite") == "yes":
        said = f"the append-only file is written {often}, but not while it is rewritten (no-appendfsync-on-rewrite)"
        return Verdict("lazy", warning(check, said, "set `no-appendfsync-on-rewrite no`"))
    if often == "always":
        return Verdict("strict", ok(check, "every change reaches the disk before it is answered (appendfsync always)"))
    return Verdict("standard", ok(check, "changes reach the disk every second (appendfsync everysec)"))


def _untold(said: str) -> Verdict:
    return Verdict("unknown", unknown("nats.sync_interval", said, _MONITOR_CURE))


def _is_same(nats: NatsFacts, monitor: MonitorFacts) -> bool:
    """Return whether the monitor belongs to the server that we asked, or to a neighbour in its cluster."""
    if isinstance(nats.server, Unanswered) or isinstance(monitor.varz, Unanswered):
        return True
    cluster = (monitor.varz.get("cluster") or {}).get("name")
    is_neighbour = bool(cluster) and cluster == nats.server.get("cluster")
    return monitor.varz.get("server_id") == nats.server.get("id") or is_neighbour


def _copies(nats: NatsFacts) -> int:
    infos = [info for name in nats.streams if (info := nats.stream(name)) is not None]
    return min((info["config"].get("num_replicas", 1) for info in infos), default=1)


def _without_file(settings: Mapping[str, str]) -> str:
    said = "the append-only file is off: "
    if "save" not in settings:
        return said + "a restart loses ledger and memory, at least since the last snapshot"
    if not settings["save"]:
        return said + "nothing is kept on disk, and a restart loses ledger and memory"
    return said + f"a crash loses ledger and memory since the last snapshot (save {settings['save']})"
