"""Work in many steps: pipelines and their phases, sessions, analyses and their sections."""

from tasklore.contracts.words import OTHER
from tasklore.runtime.counting.series import LabelledCounters, Series
from tasklore.runtime.counting.words import (
    ANALYSIS_OUTCOMES,
    PHASE_OUTCOMES,
    PIPELINE_OUTCOMES,
    SECTION_AGENT_IDS,
    SECTION_OUTCOMES,
)


class PlanCounts:
    """What supervisors, and workers that read sessions, count of longer work."""

    def __init__(self, series: Series) -> None:
        runs = series.counter(
            "pipeline_runs", "Runs of pipelines that ended.", "outcome"
        )
        self._pipelines = LabelledCounters(runs, PIPELINE_OUTCOMES)
        phases = series.counter(
            "pipeline_phases", "Phases that ended, or were restarted.", "outcome"
        )
        self._phases = LabelledCounters(phases, PHASE_OUTCOMES)
        self._session_hits = series.counter(
            "session_hits", "Entries of sessions read instead of computed."
        )
        analyses = series.counter(
            "analyses",
            "Analyses of responses that are done, or were served.",
            "outcome",
        )
        self._analyses = LabelledCounters(analyses, ANALYSIS_OUTCOMES)
        sections = series.counter(
            "analysis_sections", "Sections of analyses that ended.", "agent", "outcome"
        )
        self._sections = {
            agent: LabelledCounters(sections, SECTION_OUTCOMES, agent)
            for agent in (*sorted(SECTION_AGENT_IDS), OTHER)
        }

    def count_pipeline(self, outcome: str) -> None:
        """Count a run of a pipeline that ended; *outcome* is one of `PIPELINE_OUTCOMES`."""
        self._pipelines[outcome].inc()

    def count_phase(self, outcome: str) -> None:
        """Count a phase that needs no more work, or begins again; *outcome* is one of `PHASE_OUTCOMES`."""
        self._phases[outcome].inc()

    def count_session_hits(self, number: int) -> None:
        """Count *number* entries of sessions that were read instead of computed."""
        self._session_hits.inc(number)

    def count_analysis(self, outcome: str) -> None:
        """Count an analysis that is as far as it gets, or was served; *outcome* is one of `ANALYSIS_OUTCOMES`."""
        self._analyses[outcome].inc()

    def count_section(self, agent: str, outcome: str) -> None:
        """Count what became of a section of *agent*; *outcome* is one of `SECTION_OUTCOMES`."""
        self._sections[agent if agent in SECTION_AGENT_IDS else OTHER][outcome].inc()
