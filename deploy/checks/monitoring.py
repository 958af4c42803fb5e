"""Rules, alerts and dashboards name only exported series; every alert has a test, a runbook and a reason.

What Prometheus itself thinks of them is asked by `make monitoring-check`, which needs its Debian packages.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import yaml

from deploy.checks import tools
from deploy.checks.problem import CannotCheck, CheckProblem, at, listed
from deploy.checks.tools import ROOT
from tasklore.runtime.metrics_table import exported

_PROMETHEUS = ROOT / "deploy" / "prometheus"
_DASHBOARDS = ROOT / "deploy" / "grafana" / "dashboards"
_RUNBOOKS = ROOT / "deploy" / "runbooks"
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
#: `$__rate_interval` and `$__interval`, which Grafana fills in; other variables stand in quotation marks.
_VARIABLE = re.compile(r"\$__\w+")
#: Run beside promql-parser, which is installed for deployment alone: reads and writes JSON.
_PARSE = """
import json, sys
import promql_parser
wrong = []
for place, query in json.load(sys.stdin):
    try:
        promql_parser.parse(query)
    except ValueError as error:
        wrong.append([place, str(error)])
json.dump(wrong, sys.stdout)
"""
_SEVERITIES = {"critical", "warning"}


class Query(NamedTuple):
    """A query, and where it stands."""

    place: str
    expr: str


def problems() -> list[CheckProblem]:
    """Return missing tests and runbooks, and series that are queried and not exported."""
    return [
        *_unknown_names([*rule_queries(), *panel_queries(), *scaler_queries()]),
        *_unfinished_alerts(),
    ]


def dashboard_problems() -> list[CheckProblem]:
    """Return each query of a dashboard that PromQL does not parse; the variables of Grafana stand for a minute."""
    queries = [
        [one.place, _VARIABLE.sub("1m", one.expr)]
        for one in panel_queries()
        if not _is_lookup(one.expr)
    ]
    done = tools.run("python", "-c", _PARSE, text=json.dumps(queries))
    if "ModuleNotFoundError" in done.stderr:
        raise CannotCheck(
            "promql-parser of requirements/monitoring.txt is not installed; make deploy-check"
        )
    if done.returncode != 0:
        return [
            CheckProblem(
                "deploy/grafana",
                done.stderr.strip()[-300:],
                "see deploy/checks/monitoring.py",
            )
        ]
    return [
        CheckProblem(place, f"cannot be parsed: {why}", "correct its query")
        for place, why in json.loads(done.stdout)
    ]


def _is_lookup(expr: str) -> bool:
    """Return whether *expr* is a query of Grafana itself, which looks up the values of a label."""
    return expr.startswith("label_values(")


def rule_queries() -> Iterator[Query]:
    """Yield what rules and alerts ask."""
    for rule in _rules():
        yield Query(
            f"rule {at(rule, 'record') or at(rule, 'alert')}", str(at(rule, "expr"))
        )


def panel_queries() -> Iterator[Query]:
    """Yield what panels, and the variables of dashboards, ask."""
    for file in sorted(_DASHBOARDS.glob("*.json")):
        board = json.loads(file.read_text(encoding="utf-8"))
        for panel in listed(board, "panels"):
            for target in listed(panel, "targets"):
                yield Query(
                    f"{file.name}, {at(panel, 'title')}", str(at(target, "expr"))
                )
        for variable in listed(board, "templating", "list"):
            yield Query(f"{file.name}, a variable", str(at(variable, "query")))


def scaler_queries() -> Iterator[Query]:
    """Yield what scalers ask Prometheus."""
    for file in sorted((ROOT / "k8s" / "base").glob("*.yaml")):
        for manifest in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            for trigger in listed(manifest, "spec", "triggers"):
                if at(trigger, "type") == "prometheus":
                    yield Query(
                        f"{file.name}, a trigger", str(at(trigger, "metadata", "query"))
                    )


def names_in(expr: str) -> set[str]:
    """Return the series of ours, and the recorded ones, that *expr* names."""
    bare = _QUOTED.sub("", expr)
    return {
        name
        for name in _NAME.findall(bare)
        if ":" in name or name.startswith(("tasklore_", "process_"))
    }


def _rules() -> Iterator[object]:
    for file in sorted((_PROMETHEUS / "rules").glob("*.yml")):
        for group in listed(yaml.safe_load(file.read_text(encoding="utf-8")), "groups"):
            yield from listed(group, "rules")


def _unknown_names(asked: Iterable[Query]) -> Iterator[CheckProblem]:
    known = exported() | {str(at(rule, "record")) for rule in _rules()}
    for place, expr in asked:
        for name in sorted(names_in(expr) - known):
            yield CheckProblem(
                place,
                f"asks for {name}, which nothing exports or records",
                "see docs/reference/metrics.md",
            )


def _unfinished_alerts() -> Iterator[CheckProblem]:
    tests = [
        test
        for file in sorted((_PROMETHEUS / "tests").glob("*.yml"))
        for one in listed(yaml.safe_load(file.read_text(encoding="utf-8")), "tests")
        for test in listed(one, "alert_rule_test")
    ]
    for rule in _rules():
        name = at(rule, "alert")
        if name is None:
            continue
        fires = {
            bool(listed(test, "exp_alerts"))
            for test in tests
            if at(test, "alertname") == name
        }
        if fires != {True, False}:
            yield CheckProblem(
                f"alert {name}",
                "has no test that fires it, or none that does not",
                "see deploy/prometheus/tests",
            )
        if at(rule, "labels", "severity") not in _SEVERITIES or not at(
            rule, "annotations", "summary"
        ):
            yield CheckProblem(
                f"alert {name}",
                "has no severity or no summary",
                "critical wakes somebody, warning does not",
            )
        runbook = f"deploy/runbooks/{name}.md"
        if (
            not str(at(rule, "annotations", "runbook_url")).endswith(runbook)
            or not (ROOT / runbook).is_file()
        ):
            yield CheckProblem(
                f"alert {name}",
                "has no runbook",
                f"write {runbook} and name it as runbook_url",
            )
    alerts = {str(at(rule, "alert")) for rule in _rules()}
    for file in sorted(_RUNBOOKS.glob("*.md")):
        if file.stem not in alerts:
            yield CheckProblem(
                f"deploy/runbooks/{file.name}", "is of no alert", "delete it"
            )
