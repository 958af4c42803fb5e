"""What every panel has in common: where its numbers come from, how it looks, how wide it is."""

from collections.abc import Sequence
from dataclasses import dataclass

# Installed where dashboards are built, see requirements/monitoring.txt.
from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    timeseries,
)
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import DataSourceRef

#: The data source that provisioning/datasources declares.
SOURCE = DataSourceRef(type_val="prometheus", uid="tasklore-prometheus")
#: Columns of a dashboard are 24; rows are of 30 pixels.
_HEIGHT = 8


@dataclass(frozen=True, slots=True)
class Query:
    """One question to Prometheus; *legend* may name labels as `{{agent}}`."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: *unit* in Grafana's words (`s`, `ops`, `percentunit`, `short`); *tells* is what to read from it.

    One number, the last one, when *is_number*; lines over each other when *is_stacked*.
    """

    title: str
    tells: str
    queries: Sequence[Query]
    unit: str = "short"
    width: int = 8
    is_number: bool = False
    is_stacked: bool = False

    def build(self) -> "stat.Panel | timeseries.Panel":
        """Return it as the SDK has it."""
        return self._number() if self.is_number else self._lines()

    def _number(self) -> stat.Panel:
        panel = stat.Panel().title(self.title).description(self.tells).unit(self.unit).datasource(SOURCE)
        panel = panel.height(_HEIGHT // 2).span(self.width).color_mode(BigValueColorMode.NONE).no_value("none")
        for query in self._targets():
            panel = panel.with_target(query.instant())
        return panel

    def _lines(self) -> timeseries.Panel:
        panel = timeseries.Panel().title(self.title).description(self.tells).unit(self.unit).datasource(SOURCE)
        panel = panel.height(_HEIGHT).span(self.width).min(0).fill_opacity(10)
        panel = panel.legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        panel = panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        if self.is_stacked:
            panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
        for query in self._targets():
            panel = panel.with_target(query)
        return panel

    def _targets(self) -> list[prometheus.Dataquery]:
        return [
            prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(chr(ord("A") + number))
            for number, query in enumerate(self.queries)
        ]


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard: rows of panels by title; *variable* is a label that can be chosen, "" for none."""

    uid: str
    title: str
    tells: str
    rows: Sequence[tuple[str, Sequence[Panel]]]
    variable: str = ""
    variable_query: str = ""

    def build(self) -> dashboard.Dashboard:
        """Return it as the SDK has it."""
        board = dashboard.Dashboard(self.title).uid(self.uid).description(self.tells).tags(["tasklore"]).readonly()
        board = board.refresh("30s").time("now-3h", "now").timezone("browser")
        if self.variable:
            chosen = dashboard.QueryVariable(self.variable).datasource(SOURCE).query(self.variable_query)
            board = board.with_variable(chosen.label(self.variable))
        for title, panels in self.rows:
            board = board.with_row(dashboard.Row(title))
            for panel in panels:
                board = board.with_panel(panel.build())
        return board
