"""What is shipped for monitoring asks for what there is; and the checks notice when it does not."""

from pathlib import Path

import pytest

from deploy.checks import monitoring


def test_what_is_shipped_pleases_the_checks() -> None:
    """Names, tests, severities, runbooks."""
    assert monitoring.problems() == []


def test_every_dashboard_and_rule_is_read() -> None:
    """So that the test above cannot pass by finding nothing."""
    assert len(list(monitoring.rule_queries())) > 20
    assert len({asked.place.partition(",")[0] for asked in monitoring.panel_queries()}) == 4
    assert len(list(monitoring.scaler_queries())) == 2


@pytest.mark.parametrize(
    ("expr", "names"),
    [
        ('sum by (agent) (rate(tasklore_tasks_total{agent="tasklore_x"}[5m]))', {"tasklore_tasks_total"}),
        ("agent:tasklore_tasks_unfinished:max > 0", {"agent:tasklore_tasks_unfinished:max"}),
        ("up == 0", set()),
    ],
)
def test_names_are_found_in_queries(expr: str, names: set[str]) -> None:
    """Not in quoted words, and recorded ones as a whole."""
    assert monitoring.names_in(expr) == names


def test_a_misspelled_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing exports it, and so it would be silent for ever."""
    (tmp_path / "rules").mkdir()
    rule = "{alert: Odd, expr: tasklore_taks_total > 1, labels: {severity: loud}, annotations: {}}"
    (tmp_path / "rules" / "odd.yml").write_text(f"groups: [{{name: odd, rules: [{rule}]}}]")
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
