"""Checks of our streams and buckets: there, as they were declared, in enough copies, and with room left."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tasklore.commands.doctor.facts import Answer, Facts, NatsFacts, Unanswered
from tasklore.commands.doctor.rules import Diagnosis, Mark, check_fullness, ok
from tasklore.commands.doctor.server_checks import SAFE_COPIES
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.words import count_of, join_names
from tasklore.contracts import subjects
from tasklore.runtime.messaging.outbox import PATIENCE_S
from tasklore.runtime.messaging.streams import (
    StreamSizes,
    differences,
    stands_on_remains,
    stream_configurations,
)
from tasklore.runtime.settings import Settings

#: The streams that hold our buckets, and the names that people know those by.
_BUCKETS = {
    subjects.bucket_stream(bucket): bucket
    for bucket in (subjects.AGENTS_BUCKET, subjects.WORKERS_BUCKET)
}


def declare_streams(settings: Settings) -> list[dict[str, Any]]:
    """Return the streams and buckets as the processes of *settings* declare them."""
    return stream_configurations(StreamSizes.of(settings))


def check_streams(facts: Facts, settings: Settings) -> Iterator[Diagnosis]:
    """Yield the findings about every stream and bucket; none when NATS or JetStream does not serve us."""
    nats = facts.nats
    if nats.refusal is not None or isinstance(nats.account, Unanswered):
        return
    declared = declare_streams(settings)
    yield from _check_existence(nats, [one["name"] for one in declared], settings)
    found = {
        one["name"]: info
        for one in declared
        if (info := nats.stream(one["name"])) is not None
    }
    present = [one for one in declared if one["name"] in found]
    yield from _check_drift(present, found)
    yield from _check_windows(present, found)
    for name in (name for name, info in found.items() if stands_on_remains(info)):
        problem = (
            "its last message is older than the stream: it was created while its predecessor was being deleted, and"
            " stores no message"
        )
        cure = f"`nats stream rm -f {name}`, and start a supervisor or worker, which declares it"
        yield Diagnosis(
            check="nats.streams",
            mark="problem",
            found=f"{_names([name])}: {problem}",
            cure=cure,
        )
    yield from _check_copies(nats, found)
    yield from _check_contents(nats, facts.now)


def _check_existence(
    nats: NatsFacts, names: Sequence[str], settings: Settings
) -> Iterator[Diagnosis]:
    check = "nats.streams"
    silent = {
        name: info.reason
        for name in names
        if isinstance(info := nats.streams.get(name), Unanswered)
    }
    if silent:
        first = next(iter(silent.values()))
        cure = "see `nats stream report` and the log of nats-server; this user may be forbidden to ask (STREAM.INFO)"
        yield Diagnosis(
            check=check,
            mark="problem",
            found=f"without an answer about {_names(silent)}: {first}",
            cure=cure,
        )
    missing = [name for name in names if nats.streams.get(name) is None]
    if missing:
        cure = "run the bootstrap job, since TASKLORE_PROVISION=never leaves them to it"
        if settings.provision == "auto":
            cure = "start a supervisor or worker, which declares them"
        what = (
            "every stream and bucket" if len(missing) == len(names) else _names(missing)
        )
        yield Diagnosis(
            check=check, mark="problem", found=f"missing: {what}", cure=cure
        )
    elif not silent:
        yield ok(check, f"all {len(names)} streams and buckets are there")


def _check_drift(
    declared: list[dict[str, Any]], found: Mapping[str, Answer]
) -> Iterator[Diagnosis]:
    # A setting that differs in all of them is one finding, not eight.
    alike: dict[tuple[str, str], list[str]] = {}
    for one in declared:
        name = one["name"]
        # The window of the others is checked by what it means, see `_check_windows`.
        apart = {"name"} if name in _BUCKETS else {"name", "duplicate_window"}
        for key in sorted(one.keys() - apart):
            for line in differences(
                {"name": name, key: one[key]}, found[name]["config"]
            ):
                alike.setdefault((key, line.removeprefix(f"{name}: ")), []).append(name)
    for (key, difference), names in sorted(alike.items()):
        if key == "max_bytes":
            cure = "restart a supervisor or worker, which adjusts it, or correct the setting"
            yield Diagnosis(
                check="nats.drift",
                mark="warning",
                found=f"{_names(names)}: {difference}",
                cure=cure,
            )
            continue
        cure = f"`nats stream edit {names[0]}`; delete it only if nothing in it is needed: it is recreated"
        if key == "num_replicas":
            cure = f"set TASKLORE_REPLICAS={found[names[0]]['config'].get(key)} if that is meant, else {cure}"
        problem = (
            f"{_names(names)}: {difference}; processes with these settings do not start"
        )
        yield Diagnosis(check="nats.drift", mark="problem", found=problem, cure=cure)


def _check_windows(
    declared: list[dict[str, Any]], found: Mapping[str, Answer]
) -> Iterator[Diagnosis]:
    for one in declared:
        name = one["name"]
        window_s = found[one["name"]]["config"].get("duplicate_window", 0) / 1e9
        declared_s = one["duplicate_window"] / 1e9
        if name in _BUCKETS or window_s == declared_s:
            continue
        problem = f"{name}: duplicate_window is {window_s:g} s, wanted {declared_s:g} s; processes do not start"
        if window_s <= PATIENCE_S:
            problem += (
                f", and what they repeat for up to {PATIENCE_S:g} s may be stored twice"
            )
        cure = f"`nats stream edit {name} --dupe-window={declared_s:.0f}s`"
        yield Diagnosis(
            check="nats.duplicate_window", mark="problem", found=problem, cure=cure
        )


def _check_copies(nats: NatsFacts, found: Mapping[str, Answer]) -> Iterator[Diagnosis]:
    copies = {
        name: int(info["config"].get("num_replicas", 1)) for name, info in found.items()
    }
    clusters = {name: info.get("cluster") or {} for name, info in found.items()}
    few = (
        [name for name, number in copies.items() if number < SAFE_COPIES]
        if nats.others
        else []
    )
    lost = [
        name
        for name, cluster in clusters.items()
        if copies[name] > 1 and not cluster.get("leader")
    ]
    late = sorted(
        f"{_names([name])} on {copy['name']}"
        for name, cluster in clusters.items()
        for copy in cluster.get("replicas") or []
        if copy.get("offline") or not copy.get("current")
    )
    scarce = (
        f"fewer than {SAFE_COPIES} copies in a cluster of several servers: "
        f"{_names(few)}; when the server of one is "
    )
    scarce += "lost, so is what it held, and with two of them it stops"
    rows: tuple[tuple[list[str], Mark, str, str], ...] = (
        (
            few,
            "warning",
            scarce,
            f"set TASKLORE_REPLICAS={SAFE_COPIES} and `nats stream edit STREAM --replicas={SAFE_COPIES}` for each",
        ),
        (
            lost,
            "problem",
            f"without a leader, and taking nothing: {_names(lost)}",
            "start the servers that are down",
        ),
        (
            late,
            "warning",
            f"copies that are down or lagging: {join_names(late)}",
            "start those servers, or give them time to catch up (`nats server report jetstream`)",
        ),
    )
    yield from (
        Diagnosis(check="nats.replicas", mark=mark, found=problem, cure=cure)
        for names, mark, problem, cure in rows
        if names
    )
    if nats.others and not (few or lost or late):
        yield ok(
            "nats.replicas",
            f"{SAFE_COPIES} or more copies of each stream, all of them current",
        )


def _check_contents(nats: NatsFacts, now: datetime) -> Iterator[Diagnosis]:
    tasks = nats.stream(subjects.TASKS)
    dead = nats.stream(subjects.DEAD)
    limit = -1 if tasks is None else tasks["config"].get("max_bytes", -1)
    if tasks is not None and limit > 0:
        what = f"{subjects.TASKS}, with {count_of(tasks['state']['messages'], 'task')},"
        cure = "start more workers, or raise TASKLORE_TASKS_MAX_BYTES and restart one"
        yield check_fullness(
            "nats.tasks",
            what=what,
            used=tasks["state"]["bytes"],
            limit=limit,
            cure=cure,
        )
    if dead is not None and not dead["state"]["messages"]:
        yield ok("nats.dead", "no dead letter waits")
    elif dead is not None:
        age_s = (
            now - datetime.fromisoformat(dead["state"]["first_ts"])
        ).total_seconds()
        number = count_of(
            dead["state"]["messages"], "dead letter waits", "dead letters wait"
        )
        cure = "look at them and send them again or drop them (`tasklore dead-letters`); after 30 d they are gone"
        found = f"{number}, the oldest for {read_aloud(max(0, int(age_s * 1000)))}"
        yield Diagnosis(check="nats.dead", mark="warning", found=found, cure=cure)
    if nats.schedules:
        found = f"{count_of(nats.schedules, 'schedule')} in {subjects.LATER} for another run"
        yield Diagnosis(check="nats.later", mark="note", found=found)


def _names(names: Iterable[str]) -> str:
    """Return the streams *names* as a person knows them."""
    return join_names(
        [f"bucket {_BUCKETS[name]}" if name in _BUCKETS else name for name in names],
        at_most=9,
    )
