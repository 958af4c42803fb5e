"""The pipeline of the storm: nine phases, two of them side by side, one that corrects another where that is needed."""

from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tests.acceptance.pipeline_storm.agent import agent

#: Which phase asks which task, with what, reading which entries besides.
_PARTS = "${implementation_pass_1:results.parts}"
_NUMBER = "${input.number}"

#: The phase that is left out when nothing is to be corrected.
CORRECTION = "implementation_pass_2"

PIPELINE = Pipeline(
    name="nine_phases",
    domain="webdev",
    inputs={"number": Input(type="number")},
    result="report:results",
    phases=(
        Phase(
            name="context_query",
            agent=agent.agent_id,
            task="look_around",
            parameters={"number": _NUMBER},
        ),
        Phase(
            name="planning",
            agent=agent.agent_id,
            task="plan",
            parameters={"files": "${context_query:results.files}"},
        ),
        Phase(
            name="analysis",
            agent=agent.agent_id,
            task="map_imports",
            parameters={"files": "${context_query:results.files}"},
            reads=("planning:results",),
            writes=("results", "dependencyMap"),
        ),
        Phase(
            name="implementation_pass_1",
            agent=agent.agent_id,
            task="implement",
            parameters={
                "steps": "${planning:results.steps}",
                "needs": "${analysis:dependencyMap}",
                "number": _NUMBER,
            },
        ),
        Phase(
            name="standards_enforcement",
            agent=agent.agent_id,
            task="enforce",
            parameters={"parts": _PARTS, "number": _NUMBER},
            writes=("violations",),
        ),
        Phase(
            name=CORRECTION,
            agent=agent.agent_id,
            task="correct",
            parameters={
                "parts": _PARTS,
                "violations": "${standards_enforcement:violations}",
            },
            when="${standards_enforcement:violations}",
            corrects="implementation_pass_1",
        ),
        Phase(
            name="design_qa",
            agent=agent.agent_id,
            task="check_design",
            parameters={"parts": _PARTS},
        ),
        Phase(
            name="security_check",
            agent=agent.agent_id,
            task="check_security",
            parameters={"parts": _PARTS},
        ),
        Phase(
            name="report",
            agent=agent.agent_id,
            task="report",
            parameters={
                "parts": _PARTS,
                "made_in": "${implementation_pass_1:results.made_in}",
                "design": "${design_qa:results.score}",
                "security": "${security_check:results.score}",
                "violations": "${standards_enforcement:violations}",
            },
        ),
    ),
)

#: The phases that run at the same time.
SIDE_BY_SIDE = ("design_qa", "security_check")
#: Every phase in the order in which they run.
PHASES = tuple(phase.name for phase in PIPELINE.phases)
