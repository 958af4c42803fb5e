"""Checks of the settings themselves: only combinations that break a promise, whatever the servers do."""

import os
from collections.abc import Iterator, Mapping

from tasklore.commands.doctor.rules import Diagnosis, FindingRule, apply_rules, ok
from tasklore.commands.doctor.server_checks import Durability
from tasklore.runtime.messaging.streams import DUPLICATE_WINDOW
from tasklore.runtime.models.prices import is_priced
from tasklore.runtime.models.settings import MEDIUM_MODEL, OPENAI_URL, SMALL_MODEL
from tasklore.runtime.servers.endpoints import masked_url
from tasklore.runtime.settings import Settings
from tasklore.runtime.variables import removed_variables

#: Seconds below which `ack_wait` ends while one C call holds the interpreter: 5.6 s were measured for a regex.
SHORT_ACK_WAIT_S = 6.0
_DAY_S = 24 * 3600.0

_RULES: tuple[FindingRule[Settings], ...] = (
    FindingRule(
        "settings.ack_wait",
        mark="warning",
        holds=lambda settings: settings.ack_wait_s < SHORT_ACK_WAIT_S,
        found=(
            "TASKLORE_ACK_WAIT_S is {ack_wait_s:g} s: a task that holds the "
            "interpreter longer runs twice, and so does one "
            "on a machine that pauses"
        ),
        cure="leave it at 30 s, or at least above the longest such call",
    ),
    FindingRule(
        "settings.ledger",
        mark="problem",
        holds=lambda settings: list_longer_absences(settings),
        found=(
            "TASKLORE_LEDGER_KEEP_DAYS means {keep_s:g} s, no more than {longer}: "
            "a task that comes back after that is "
            "taken for a new one"
        ),
        cure="keep the ledger for days",
    ),
)


def check_settings(
    settings: Settings, unknown: Mapping[str, str | None], found: Durability
) -> Iterator[Diagnosis]:
    """Yield the unsafe *settings*; *unknown* are variables that name none, with the nearest that does."""
    findings = list(
        apply_rules(
            _RULES,
            settings,
            ack_wait_s=settings.ack_wait_s,
            keep_s=settings.ledger_keep_days * _DAY_S,
            longer=" and ".join(list_longer_absences(settings)),
        )
    )
    if settings.durability == "strict" and found in ("standard", "lazy"):
        problem = f"TASKLORE_DURABILITY is strict, and the servers give less ({found})"
        cure = (
            "it is obeyed by the servers of `tasklore up` alone; set "
            "`sync_interval: always` and `appendfsync always`"
        )
        findings.append(
            Diagnosis(
                check="settings.durability", mark="warning", found=problem, cure=cure
            )
        )
    llm = settings.llm()
    if llm.base_url and not settings.names_model:
        findings.append(
            Diagnosis(
                check="settings.llm_model",
                mark="warning",
                found=(
                    f"TASKLORE_LLM_BASE_URL is {masked_url(llm.base_url)} and no model is "
                    f"named: its server is asked for {MEDIUM_MODEL} and {SMALL_MODEL}"
                ),
                cure="set TASKLORE_LLM_MODEL to a model that this server has",
            )
        )
    for model in (
        sorted({role.model for role in llm.roles.values()}) if llm.configured else ()
    ):
        if not is_priced(model, llm.base_url or OPENAI_URL, llm.prices):
            problem = (
                f"the price of {model!r} is not known: reports name no cost for "
                "it, and no alert of cost counts it"
            )
            cure = (
                f"set TASKLORE_LLM_PRICES={model}=INPUT/OUTPUT/CACHED, in US "
                "dollars per million tokens (0/0 is free)"
            )
            findings.append(
                Diagnosis(
                    check="settings.llm_prices",
                    mark="warning",
                    found=problem,
                    cure=cure,
                )
            )
    for variable, nearest in unknown.items():
        cure = (
            f"write {nearest}"
            if nearest
            else "remove it; `tasklore config` lists all there are"
        )
        findings.append(
            Diagnosis(
                check="settings.unknown",
                mark="warning",
                found=f"{variable} names no setting and does nothing",
                cure=cure,
            )
        )
    findings += [
        Diagnosis(
            check="settings.removed",
            mark="warning",
            found=f"{variable} is no longer a setting",
            cure=f"remove it; it is {instead}",
        )
        for variable, instead in removed_variables(os.environ).items()
    ]
    yield from findings or [
        ok("settings.safe", "no setting of this environment breaks a promise")
    ]


def list_longer_absences(settings: Settings) -> list[str]:
    """Return for how long a task may be out of sight, with names, where the ledger forgets it meanwhile."""
    absences = {
        "TASKLORE_ACK_WAIT_S": settings.ack_wait_s,
        "TASKLORE_RETRY_CAP_S": settings.retry_cap_s,
        "the window in which a stream recognises a repeat": DUPLICATE_WINDOW / 1e9,
    }
    keep_s = settings.ledger_keep_days * _DAY_S
    return [
        f"{name} ({seconds:g} s)"
        for name, seconds in absences.items()
        if seconds >= keep_s
    ]
