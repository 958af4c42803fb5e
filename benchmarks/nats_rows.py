"""Raw nats-py against ours: throughput of one worker process and latency at low load, in turns on the same servers."""

from dataclasses import dataclass, field
from statistics import median

import nats.errors

from benchmarks.lanes import (
    COMPUTED,
    MISSED,
    OURS,
    RAW,
    RAW_BATCH_ALONE,
    SLOW,
    Lane,
    assignment,
)
from benchmarks.processes import NotMeasuredError
from benchmarks.producer import Producer, Rate
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile, ratio

#: What the table calls each lane.
TITLES = {
    "raw": "raw nats-py",
    "ours": "ours (pydantic, ledger, LTM hit)",
    "computed": "ours, computed (LTM bypassed)",
    "missed": "ours, computed and then remembered (LTM miss)",
}
_HOW = {
    "raw": "publish and gather per batch, uvloop, stdlib json; no validation, LTM, ledger",
    "ours": "one `tasklore worker`",
    "computed": "one `tasklore worker`",
    "missed": "one `tasklore worker`, no question asked twice",
}
#: How many times the CPU of raw nats-py a task may take.
_ASKED_CPU = {"computed": 3.5, "missed": 7.0}
_LANES = (RAW, OURS, COMPUTED, MISSED)


@dataclass
class _Samples:
    """What the runs of one lane gave."""

    rates: list[Rate] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)


async def measure(
    producer: Producer, profile: Profile, only: frozenset[str]
) -> list[Row]:
    """Return a row for each lane named in *only*; one that cannot run says why and does not stop the other."""
    lanes = [lane for lane in _LANES if lane.name in only]
    samples = {lane.name: _Samples() for lane in lanes}
    failures: dict[str, str] = {}
    for turn in range(profile.rounds + 1):
        for lane in lanes:
            if lane.name in failures:
                continue
            try:
                await _take_turn(producer, profile, lane, samples[lane.name], turn)
            except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
                failures[lane.name] = str(error) or "no answer in time"
    return [
        missing(TITLES[lane.name], failures[lane.name])
        if lane.name in failures
        else _row(lane, samples)
        for lane in lanes
    ]


async def _take_turn(
    producer: Producer, profile: Profile, lane: Lane, samples: _Samples, turn: int
) -> None:
    """Prepare on turn 0, measure on every other."""
    if turn == 0:
        await producer.prepare(lane)
        return
    samples.rates.append(
        await producer.measure_rate(lane, profile.warm_up, profile.tasks)
    )
    samples.latencies_ms += await _latencies(producer, lane, profile.questions)


async def _latencies(producer: Producer, lane: Lane, count: int) -> list[float]:
    """Ask *count* questions one after the other, after a tenth as many unmeasured ones."""
    async with producer.worker(lane, RAW_BATCH_ALONE), producer.asking(lane) as asking:
        times = [
            (await asking.ask(producer.next_question(lane)))[0]
            for _ in range(count + count // 10)
        ]
    return times[count // 10 :]


def _row(lane: Lane, samples: dict[str, _Samples]) -> Row:
    ours = samples[lane.name]
    speed = median(rate.tasks_per_s for rate in ours.rates)
    cpu = median(rate.cpu_us for rate in ours.rates)
    p50 = percentile(ours.latencies_ms, 0.5)
    p99 = percentile(ours.latencies_ms, 0.99)
    compared = ""
    raw = samples.get(RAW.name)
    if lane is not RAW and raw is not None and raw.rates and raw.latencies_ms:
        compared = (
            f"tasks/s {ratio(speed, median(rate.tasks_per_s for rate in raw.rates))}, "
            f"CPU {ratio(cpu, median(rate.cpu_us for rate in raw.rates))}, "
            f"p50 {ratio(p50, percentile(raw.latencies_ms, 0.5))} raw"
        )
        if (asked := _ASKED_CPU.get(lane.name)) is not None:
            compared += f"; asked CPU {asked:g}x"
    spread = (
        f"{min(rate.tasks_per_s for rate in ours.rates):,.0f} to "
        f"{max(rate.tasks_per_s for rate in ours.rates):,.0f}/s"
    )
    outcomes = ours.rates[-1].outcomes
    seen = (
        ""
        if set(outcomes) == {"none"}
        else "; " + ", ".join(f"{count} {word}" for word, count in outcomes.items())
    )
    return Row(
        TITLES[lane.name],
        speed,
        cpu,
        p50,
        p99,
        compared=compared,
        how=f"{_HOW[lane.name]}; {spread}{seen}",
    )


async def measure_memory_gain(producer: Producer, profile: Profile) -> list[Row]:
    """Return the rows of a 100 ms task over NATS: computed, and remembered."""
    try:
        misses, hits = await _ask_twice(producer, profile.slow_questions)
    except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
        return [missing("100 ms task over NATS", str(error) or "no answer in time")]
    gain = (
        f"{ratio(percentile(misses, 0.5), percentile(hits, 0.5))} faster than the miss"
    )
    return [
        Row(
            "100 ms task, miss",
            p50_ms=percentile(misses, 0.5),
            p99_ms=percentile(misses, 0.99),
            how="low load",
        ),
        Row(
            "100 ms task, hit",
            p50_ms=percentile(hits, 0.5),
            p99_ms=percentile(hits, 0.99),
            compared=gain,
            how="low load",
        ),
    ]


async def _ask_twice(producer: Producer, count: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of *count* first and second askings, each checked to be a miss and a hit."""
    await producer.prepare(SLOW)
    times: dict[str, list[float]] = {"miss": [], "hit": []}
    async with producer.worker(SLOW), producer.asking(SLOW) as asking:
        # The first question also waits for the worker to start.
        await asking.ask(assignment(SLOW, {"number": count}))
        for number in range(count):
            for expected in ("miss", "hit"):
                elapsed_ms, report = await asking.ask(
                    assignment(SLOW, {"number": number})
                )
                outcome = (report.get("memory") or {}).get("outcome")
                if report["status"] != "completed" or outcome != expected:
                    raise NotMeasuredError(
                        f"{report['status']} with memory {outcome!r} where a {expected} was due"
                    )
                times[expected].append(elapsed_ms)
    return times["miss"], times["hit"]
