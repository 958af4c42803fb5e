"""Judgement of our streams and buckets: there, as they were declared, in enough copies, and with room left."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from contracts import subjects
from runtime.messaging.streams import Sizes, differences, stands_on_remains, stream_configurations
from runtime.settings import Settings
from tasklore.doctor.durability import SAFE_COPIES
from tasklore.doctor.facts import Answer, Facts, NatsFacts, Unanswered
from tasklore.doctor.findings import Finding, counted, listed, note, ok, problem, warning
from tasklore.doctor.nats_checks import check_fullness
from tasklore.render.durations import read_aloud

#: Settings of a stream that follow a setting of ours, which may be what has to change.
_VARIABLES: dict[str, str] = {"num_replicas": "TASKLORE_REPLICAS"}
#: The streams that hold our buckets, and the names that people know those by.
_BUCKETS = {subjects.bucket_stream(bucket): bucket for bucket in (subjects.AGENTS_BUCKET, subjects.WORKERS_BUCKET)}


def wanted_streams(settings: Settings) -> list[dict[str, Any]]:
    """Return the streams and buckets as the processes of *settings* declare them."""
    return stream_configurations(Sizes(settings.tasks_max_bytes, settings.replicas, settings.dead_max_bytes))


def check_streams(facts: Facts, settings: Settings) -> Iterator[Finding]:
    """Yield what was found about every stream and bucket; nothing when NATS or JetStream does not serve us."""
    nats = facts.nats
    if nats.refusal is not None or isinstance(nats.account, Unanswered):
        return
    wanted = wanted_streams(settings)
    yield from _check_existence(nats, [one["name"] for one in wanted], settings)
    found = {one["name"]: info for one in wanted if (info := nats.stream(one["name"])) is not None}
    yield from _check_drift([one for one in wanted if one["name"] in found], found)
    yield from _check_windows([one for one in wanted if one["name"] in found], found, settings)
    yield from _check_remains(found)
    yield from _check_copies(nats, found)
    yield from _check_contents(nats, facts.now)


def _check_existence(nats: NatsFacts, names: Sequence[str], settings: Settings) -> Iterator[Finding]:
    check = "nats.streams"
    silent = {name: info.reason for name in names if isinstance(info := nats.streams.get(name), Unanswered)}
    if silent:
        first = next(iter(silent.values()))
        cure = "see `nats stream report` and the log of nats-server; this user may be forbidden to ask (STREAM.INFO)"
        yield problem(check, f"without an answer about {_said_all(list(silent))}: {first}", cure)
    missing = [_said(name) for name in names if nats.streams.get(name) is None]
    there = [name for name in names if nats.stream(name) is not None]
    if missing:
        cure = (
            "start a supervisor or worker, which declares them"
            if settings.provision == "auto"
            else "run the bootstrap job, since TASKLORE_PROVISION=never leaves them to it"
        )
        what = "every stream and bucket" if len(missing) == len(names) else listed(missing, len(names))
        yield problem(check, f"missing: {what}", cure)
    if len(there) == len(names):
        yield ok(check, f"all {len(names)} streams and buckets are there")


def _check_drift(wanted: list[dict[str, Any]], found: Mapping[str, Answer]) -> Iterator[Finding]:
    # A setting that holds for all of them is one finding, not eight.
    alike: dict[tuple[str, str], list[str]] = {}
    for one in wanted:
        name = one["name"]
        # The window of the others is judged by what it means, see below.
        judged_apart = {"name"} if name in _BUCKETS else {"name", "duplicate_window"}
        for key in sorted(one.keys() - judged_apart):
            for line in differences({"name": name, key: one[key]}, found[name]["config"]):
                alike.setdefault((key, line.removeprefix(f"{name}: ")), []).append(name)
    for (key, difference), names in sorted(alike.items()):
        if key == "max_bytes":
            cure = "restart a supervisor or worker, which adjusts it, or correct the setting"
            yield warning("nats.drift", f"{_said_all(names)}: {difference}", cure)
            continue
        cure = f"`nats stream edit {names[0]}`; delete it only when it holds nothing worth keeping: it is declared anew"
        if key in _VARIABLES:
            cure = f"set {_VARIABLES[key]}={found[names[0]]['config'].get(key)} if that is meant, else {cure}"
        said = f"{_said_all(names)}: {difference}; processes with these settings do not start"
        yield problem("nats.drift", said, cure)


def _check_windows(wanted: list[dict[str, Any]], found: Mapping[str, Answer], settings: Settings) -> Iterator[Finding]:
    for one in wanted:
        name, window_s = one["name"], found[one["name"]]["config"].get("duplicate_window", 0) / 1e9
        wanted_s = one["duplicate_window"] / 1e9
        if name in _BUCKETS or window_s == wanted_s:
            continue
        cure = f"`nats stream edit {name} --dupe-window={wanted_s:.0f}s`"
        said = f"{name}: duplicate_window is {window_s:g} s, wanted {wanted_s:g} s; processes do not start"
        if window_s <= settings.publish_deadline_s:
            said += (
                f", and what they repeat for up to {settings.publish_deadline_s:g} s (TASKLORE_PUBLISH_DEADLINE_S) "
                "may be stored twice"
            )
        yield problem("nats.duplicate_window", said, cure)


def _check_remains(found: Mapping[str, Answer]) -> Iterator[Finding]:
    cure = "`nats stream rm -f {}`, and start a supervisor or worker, which declares it"
    for name in (name for name, info in found.items() if stands_on_remains(info)):
        said = "its last message is older than itself: it was made while one was being deleted, and takes none"
        yield problem("nats.streams", f"{_said(name)}: {said}", cure.format(name))


def _check_copies(nats: NatsFacts, found: Mapping[str, Answer]) -> Iterator[Finding]:
    check = "nats.replicas"
    few = [name for name, info in found.items() if _copies(info) < SAFE_COPIES]
    if nats.others and few:
        said = f"fewer than {SAFE_COPIES} copies in a cluster of several servers: {_said_all(few)}; "
        said += "when the server of one is lost, so is what it held, and with two of them it stops"
        cure = f"set TASKLORE_REPLICAS={SAFE_COPIES} and `nats stream edit STREAM --replicas={SAFE_COPIES}` for each"
        yield warning(check, said, cure)
    lost = [name for name, info in found.items() if _copies(info) > 1 and not _cluster(info).get("leader")]
    if lost:
        yield problem(
            check, f"without a leader, and taking nothing: {_said_all(lost)}", "start the servers that are away"
        )
    late = sorted(
        {f"{_said(name)} on {copy['name']}" for name, info in found.items() for copy in _copies_behind(_cluster(info))}
    )
    if late:
        cure = "start those servers, or give them time to catch up (`nats server report jetstream`)"
        yield warning(check, f"copies that are away or behind: {listed(late)}", cure)
    if nats.others and not (few or lost or late):
        yield ok(check, f"{SAFE_COPIES} or more copies of each stream, all of them current")


def _check_contents(nats: NatsFacts, now: datetime) -> Iterator[Finding]:
    tasks, dead = nats.stream(subjects.TASKS), nats.stream(subjects.DEAD)
    if tasks is not None:
        state, limit = tasks["state"], tasks["config"].get("max_bytes", -1)
        what = f"{subjects.TASKS}, with {counted(state['messages'], 'task')},"
        cure = "start more workers, or raise TASKLORE_TASKS_MAX_BYTES and restart one"
        if limit > 0:
            yield check_fullness("nats.tasks", what, state["bytes"], limit, cure)
    if dead is not None:
        yield _check_dead(dead["state"], now)
    if nats.schedules:
        yield note("nats.later", f"{counted(nats.schedules, 'schedule')} in {subjects.LATER} for another run")


def _check_dead(state: Answer, now: datetime) -> Finding:
    check, number = "nats.dead", state["messages"]
    if not number:
        return ok(check, "no dead letter waits")
    age = now - datetime.fromisoformat(state["first_ts"])
    said = f"{counted(number, 'dead letter waits', 'dead letters wait')}, the oldest for {_aloud(age.total_seconds())}"
    cure = "look at them and send them again or drop them (`tasklore dlq`); after 30 d they are gone"
    return warning(check, said, cure)


def _aloud(seconds: float) -> str:
    return read_aloud(max(0, int(seconds * 1000)))


def _copies(info: Answer) -> int:
    return int(info["config"].get("num_replicas", 1))


def _cluster(info: Answer) -> Answer:
    return info.get("cluster") or {}


def _copies_behind(cluster: Answer) -> list[Answer]:
    return [copy for copy in cluster.get("replicas") or [] if copy.get("offline") or not copy.get("current")]


def _said(name: str) -> str:
    """Return the stream *name* as a person knows it."""
    return f"bucket {_BUCKETS[name]}" if name in _BUCKETS else name


def _said_all(names: Sequence[str]) -> str:
    return listed([_said(name) for name in names], at_most=9)
