"""Checks of dashboards and alerts."""

from pathlib import Path

import pytest

from deploy.checks import monitoring


def test_shipped_monitoring_passes_the_checks() -> None:
    assert monitoring.problems() == []


def test_every_dashboard_and_rule_is_read() -> None:
    assert len(list(monitoring.rule_queries())) > 20
    assert (
        len({asked.place.partition(",")[0] for asked in monitoring.panel_queries()})
        == 4
    )
    assert len(list(monitoring.scaler_queries())) == 2


def test_a_broken_rule_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules").mkdir()
    rule = "{alert: Odd, expr: tasklore_taks_total > 1, labels: {severity: loud}, annotations: {}}"
    (tmp_path / "rules" / "odd.yml").write_text(
        f"groups: [{{name: odd, rules: [{rule}]}}]"
    )
    monkeypatch.setattr(monitoring, "_PROMETHEUS", tmp_path)
    told = "\n".join(map(str, monitoring.problems()))
    for complaint in (
        "tasklore_taks_total",
        "no test that fires it",
        "no severity",
        "has no runbook",
        "is of no alert",
    ):
        assert complaint in told
