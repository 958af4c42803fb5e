"""Judgement of the settings themselves: only combinations that break a promise, whatever the servers do."""

from collections.abc import Iterator, Mapping

from runtime.messaging.streams import DUPLICATE_WINDOW
from runtime.models.prices import is_priced
from runtime.models.settings import OPENAI_URL
from runtime.settings import Settings
from tasklore.doctor.durability import Durability
from tasklore.doctor.findings import Finding, ok, problem, warning

#: Seconds below which `ack_wait` ends while one C call holds the interpreter: 5.6 s were measured for a regex.
SHORT_ACK_WAIT_S = 6.0
_DAY_S = 24 * 3600.0


def check_settings(settings: Settings, strangers: Mapping[str, str | None], found: Durability) -> Iterator[Finding]:
    """Yield what is unsafe in *settings*; *strangers* are variables that name none, with the nearest that does."""
    findings = [
        *_check_leases(settings),
        *_check_ledger(settings),
        *_check_wish(settings, found),
        *_check_prices(settings),
    ]
    for variable, nearest in strangers.items():
        cure = f"write {nearest}" if nearest else "remove it; `tasklore config` lists all there are"
        findings.append(warning("settings.unknown", f"{variable} names no setting and does nothing", cure))
    yield from findings or [ok("settings.safe", "no setting of this environment breaks a promise")]


def _check_leases(settings: Settings) -> Iterator[Finding]:
    if settings.ack_wait_s < SHORT_ACK_WAIT_S:
        said = (
            f"TASKLORE_ACK_WAIT_S is {settings.ack_wait_s:g} s: a task that holds the interpreter longer runs twice, "
            "and so does one on a machine that pauses"
        )
        yield warning("settings.ack_wait", said, "leave it at 30 s, or at least above the longest such call")


def _check_ledger(settings: Settings) -> Iterator[Finding]:
    keep_s = settings.ledger_keep_days * _DAY_S
    absences = {
        "TASKLORE_ACK_WAIT_S": settings.ack_wait_s,
        "TASKLORE_RETRY_CAP_S": settings.retry_cap_s,
        "the window in which a stream recognises a repeat": DUPLICATE_WINDOW / 1e9,
    }
    longer = [f"{name} ({seconds:g} s)" for name, seconds in absences.items() if seconds >= keep_s]
    if longer:
        said = (
            f"TASKLORE_LEDGER_KEEP_DAYS means {keep_s:g} s, no more than {' and '.join(longer)}: a task that comes "
            "back after that is taken for a new one"
        )
        yield problem("settings.ledger", said, "keep the ledger for days")


def _check_wish(settings: Settings, found: Durability) -> Iterator[Finding]:
    if settings.durability == "strict" and found in ("standard", "lazy"):
        said = f"TASKLORE_DURABILITY is strict, and the servers give less ({found})"
        cure = (
            "it is obeyed by the servers of `tasklore up` alone; set `sync_interval: always` and `appendfsync always`"
        )
        yield warning("settings.durability", said, cure)


def _check_prices(settings: Settings) -> Iterator[Finding]:
    told = settings.llm()
    if not told.configured:
        return
    for model in sorted({role.model for role in told.roles.values()}):
        if not is_priced(model, told.base_url or OPENAI_URL, told.prices):
            said = f"the price of {model!r} is not known: reports name no cost for it, and no alert of cost counts it"
            cure = (
                f"set TASKLORE_LLM_PRICES={model}=INPUT/OUTPUT/CACHED, in US dollars per million tokens (0/0 is free)"
            )
            yield warning("settings.llm_prices", said, cure)
