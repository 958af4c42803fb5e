"""Judgement of a NATS server as such: reachable, new enough, roomy enough, its clock ours."""

import math
import re
from collections.abc import Iterator

from contracts import subjects
from runtime.servers.embedded import MAX_PAYLOAD, OLDEST_NATS
from runtime.servers.endpoints import NATS_VARIABLE
from tasklore.doctor.facts import Answer, MonitorFacts, NatsFacts, Skew, Unanswered
from tasklore.doctor.findings import Finding, ok, problem, unknown, unreachable, warning

#: Seconds between two clocks from which deadlines and ages are visibly wrong, and from which tasks expire for it.
SKEW_WARNING_S, SKEW_PROBLEM_S = 1.0, 5.0
#: Parts of a limit from which somebody should make room, and from which it will be hit before anybody does.
FULL_WARNING, FULL_PROBLEM = 0.80, 0.95

#: What to do about a server that does not answer, before the variable that may name another one.
START = "start it, or restart it when it hangs (`tasklore up` runs one on this machine)"


def check_nats(nats: NatsFacts, monitor: MonitorFacts | None) -> Iterator[Finding]:
    """Yield what was found about the server itself."""
    if nats.refusal is not None:
        yield unreachable("nats.reachable", nats.refusal, f"{START}, or correct {NATS_VARIABLE}")
        return
    yield check_version("nats.version", "nats-server", nats.version, OLDEST_NATS)
    yield _check_jetstream(nats)
    yield _check_payload(nats)
    yield check_skew("nats.clock", "NATS", nats.skew)
    yield from _check_storage(nats, monitor)


def check_version(check: str, program: str, version: str, oldest: tuple[int, int]) -> Finding:
    """Say whether *version* of *program* is *oldest* or newer."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    needed = ".".join(map(str, oldest))
    if not numbers:
        return unknown(check, f"{program} does not tell its version", f"make sure that it is {needed} or newer")
    if numbers < oldest:
        return problem(check, f"{program} {version} is too old", f"install {program} {needed} or newer")
    return ok(check, f"{program} {version}")


def check_skew(check: str, server: str, skew: Skew | None) -> Finding:
    """Say how far the clock of *server* is from ours; what the round trip leaves open speaks for it."""
    if skew is None:
        return unknown(check, f"{server} does not tell its time", "allow this user to ask for it")
    apart_s = abs(skew.ahead_s) - skew.error_s
    said = f"the clock of {server} is {abs(skew.ahead_s):.1f} s {'ahead of' if skew.ahead_s > 0 else 'behind'} ours"
    said += f" (give or take {skew.error_s:.1f} s)" if skew.error_s >= 0.05 else ""
    cure = "let both machines keep time by NTP (chrony, systemd-timesyncd)"
    if apart_s > SKEW_PROBLEM_S:
        return problem(check, f"{said}: deadlines end tasks too early or too late", cure)
    if apart_s > SKEW_WARNING_S:
        return warning(check, said, cure)
    if skew.error_s > SKEW_PROBLEM_S:
        return unknown(check, f"{server} answers too slowly to compare clocks", "run the doctor nearer to it")
    within_ms = math.ceil(1000 * max(abs(skew.ahead_s), skew.error_s))
    return ok(check, f"the clock of {server} agrees with ours within {within_ms:,} ms")


def check_fullness(check: str, what: str, used: float, limit: float, cure: str) -> Finding:
    """Say how much of *limit* bytes *what* has taken."""
    part = used / limit
    said = f"{what} holds {said_bytes(used)} of {said_bytes(limit)} ({part:.0%})"
    if part >= FULL_PROBLEM:
        return problem(check, said, cure)
    return warning(check, said, cure) if part >= FULL_WARNING else ok(check, said)


def said_bytes(number: float) -> str:
    """Return *number* of bytes in the largest unit that leaves a number above one."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:,.3g} TiB"


def _check_jetstream(nats: NatsFacts) -> Finding:
    check = "nats.jetstream"
    if isinstance(nats.account, Unanswered):
        cure = "start nats-server with -js or a `jetstream` block, and enable it for this account"
        return problem(check, f"JetStream does not serve us: {nats.account.reason}", cure)
    return ok(check, f"JetStream keeps {nats.account.get('streams', 0)} streams")


def _check_payload(nats: NatsFacts) -> Finding:
    check = "nats.max_payload"
    said = f"a message may have {said_bytes(nats.max_payload)}"
    if nats.max_payload < MAX_PAYLOAD:
        promised = said_bytes(subjects.MAX_BODY)
        cure = "set `max_payload: 1MB` in the configuration of nats-server"
        return problem(check, f"{said}; a body of {promised}, which the wire promises, does not fit", cure)
    return ok(check, said)


def _check_storage(nats: NatsFacts, monitor: MonitorFacts | None) -> Iterator[Finding]:
    cure = "purge or delete what is not needed (`nats stream report`), or allow JetStream more"
    if not isinstance(nats.account, Unanswered):
        limit = (nats.account.get("limits") or {}).get("max_storage", -1)
        if limit > 0:
            yield check_fullness("nats.account_storage", "the account", nats.account.get("storage", 0), limit, cure)
    jetstream = _jetstream_of(monitor)
    limit = (jetstream.get("config") or {}).get("max_storage", 0)
    if limit > 0:
        used = (jetstream.get("stats") or {}).get("storage", 0)
        yield check_fullness("nats.storage", "JetStream", used, limit, f"{cure} (`max_file_store`)")


def _jetstream_of(monitor: MonitorFacts | None) -> Answer:
    if monitor is None or isinstance(monitor.varz, Unanswered):
        return {}
    return monitor.varz.get("jetstream") or {}
