"""Judgement of the processes of a system by their health pages."""

from collections.abc import Iterator

from tasklore.doctor.facts import Facts, Page, ProcessFacts, Unanswered
from tasklore.doctor.findings import Finding, counted, listed, note, ok, problem, unreachable, warning

_WELL = 200
_FAILING = 503


def check_processes(facts: Facts) -> Iterator[Finding]:
    """Yield what was found about the supervisor and the workers whose addresses are known."""
    well = []
    for process in facts.processes:
        findings = [*_check_process(process), *_check_models(process)]
        yield from findings
        well += [process.name] if not findings and isinstance(process.alive, Page) else []
    away = [
        f"{process.name} at {process.url} ({process.alive.reason})"
        for process in facts.processes
        if isinstance(process.alive, Unanswered) and not process.is_named
    ]
    if away:
        said = f"alive on NATS, with a health page that cannot be seen from here: {listed(away)}"
        yield warning(
            "processes.reachable", said, "run the doctor where they run; TASKLORE_HTTP_HOST opens their pages"
        )
    if well:
        yield ok("processes.health", f"alive and ready: {listed(well)}")
    if facts.unexamined:
        yield note(
            "processes.health", f"{counted(facts.unexamined, 'further worker was', 'further workers were')} not asked"
        )


def _check_process(process: ProcessFacts) -> Iterator[Finding]:
    alive, ready = process.alive, process.ready
    where = f"{process.name} at {process.url}"
    if isinstance(alive, Unanswered):
        if process.is_named:
            said = f"{where} does not answer: {alive.reason}"
            cure = "look at what `tasklore up` says, which starts it again when it died; a frozen one has to be killed"
            yield unreachable("processes.reachable", said, cure)
    elif alive.status == _FAILING:
        said = f"{where} is stuck: {_failing(alive)}"
        yield problem("processes.health", said, "restart it; a task that blocks the interpreter belongs into a process")
    elif alive.status != _WELL:
        said = f"something else answers at {process.url}, where {process.name} should (status {alive.status})"
        yield warning("processes.health", said, "run the doctor where that process runs")
    elif isinstance(ready, Unanswered):
        yield warning("processes.ready", f"{where} does not say whether it is ready: {ready.reason}", "ask it again")
    elif ready.status != _WELL:
        said = f"{where} is alive and takes no work: {_failing(ready)}"
        yield warning(
            "processes.ready", said, "mend what its checks name; it starts or leaves when nothing else is wrong"
        )


def _check_models(process: ProcessFacts) -> Iterator[Finding]:
    checks = process.alive.body.get("checks") if isinstance(process.alive, Page) else None
    about = checks.get("models") if isinstance(checks, dict) else None
    if isinstance(about, dict) and about.get("detail"):
        cure = "tasks wait until their deadline; look at the provider's page of its state and at the limits of the key"
        yield warning("processes.models", f"{process.name} at {process.url}: {about['detail']}", cure)


def _failing(page: Page) -> str:
    checks = page.body.get("checks")
    failing = [
        f"{name}: {about.get('detail', '')}"
        for name, about in (checks.items() if isinstance(checks, dict) else ())
        if isinstance(about, dict) and not about.get("ok")
    ]
    return "; ".join(failing) or f"status {page.status}"
