"""Planning: what runs next, what a resume runs again, and what a change makes stale."""

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import Pipeline
from tasklore.supervisor.pipelines.declaration.graph import Graph
from tasklore.supervisor.pipelines.planning import (
    Changes,
    NextSteps,
    ResumePlan,
    matches,
    next_steps,
    resume_plan,
    stale_phases,
)
from tests.unit.supervisor.pipelines.fake_system import a_phase

#: query -> analysis -> (style, security) -> report, and a phase of its own.
PIPELINE = Pipeline(
    name="health",
    phases=(
        a_phase("query", reads_files=("src/**/*.py", "README.md")),
        a_phase(
            "analysis",
            parameters={"x": "${query:results.files}"},
            writes=("results", "graph"),
        ),
        a_phase("style", reads=("analysis:results",), standards=("style", "docs")),
        a_phase(
            "security",
            reads=("analysis:graph",),
            design=("security",),
            when="${query:results.deep}",
        ),
        a_phase("report", reads=("style:results", "security:results?")),
        a_phase("alone"),
    ),
)
GRAPH = Graph.of(PIPELINE)
ALL_KEYS = {
    f"{phase.name}:{data_type}"
    for phase in PIPELINE.phases
    for data_type in phase.writes
}
DONE = dict.fromkeys(GRAPH.order, "done")


def resumed(
    statuses: dict[str, str], gone: set[str] = frozenset(), **restart: str
) -> ResumePlan:  # type: ignore[assignment]
    """Return the plan for the pipeline with *statuses* and without the entries *gone*."""
    return resume_plan(PIPELINE, GRAPH, statuses, ALL_KEYS - gone, restart)


def test_a_phase_is_ready_once_everything_before_it_has_ended() -> None:
    assert next_steps(GRAPH, {}) == NextSteps(("query", "alone"), (), (), None)
    assert next_steps(GRAPH, {"query": "running", "alone": "done"}) == NextSteps(
        (), ("query",), (), None
    )
    through = {"query": "done", "alone": "done", "analysis": "done"}
    assert next_steps(GRAPH, through).ready == ("style", "security")
    assert next_steps(
        GRAPH, {**through, "style": "done", "security": "skipped"}
    ).ready == ("report",)


def test_a_resume_runs_failed_phases_and_their_dependents() -> None:
    plan = resumed(
        {
            "query": "done",
            "analysis": "done",
            "style": "failed",
            "security": "done",
            "alone": "done",
        }
    )
    assert plan.again == {"style": "it failed", "report": "it had not begun"}
    assert plan.reused == ("query", "analysis", "security", "alone")
    assert plan.missing == ()


def test_dependents_of_a_phase_that_runs_again_run_again() -> None:
    plan = resumed({**DONE, "security": "skipped", "analysis": "running"})
    assert list(plan.again) == ["analysis", "style", "security", "report"]
    assert plan.again["analysis"] == "it had not ended"
    assert (
        plan.again["security"] == "it reads 'analysis:graph', and 'analysis' runs again"
    )
    assert plan.reused == ("query", "alone")


def test_a_missing_entry_that_is_needed_makes_its_phase_run_again() -> None:
    plan = resumed(
        {**DONE, "style": "failed", "report": "pending"}, {"analysis:results"}
    )
    assert list(plan.again) == ["analysis", "style", "security", "report"]
    assert (
        plan.again["analysis"]
        == "its entry 'analysis:results' is gone, and 'style' needs it"
    )
    assert plan.missing == ("analysis:results",)
    assert plan.reused == ("query", "alone")


def test_a_missing_entry_that_nobody_needs_runs_nothing() -> None:
    plan = resumed(
        {**DONE, "style": "failed", "report": "pending"},
        {"analysis:graph", "query:results"},
    )
    assert list(plan.again) == ["style", "report"]
    assert plan.missing == ()


def test_an_optional_entry_is_needed_if_it_was_there() -> None:
    assert resumed({**DONE, "report": "failed"}, {"security:results"}).missing == (
        "security:results",
    )
    assert (
        resumed(
            {**DONE, "security": "skipped", "report": "failed"}, {"security:results"}
        ).missing
        == ()
    )


def test_the_result_of_a_finished_run_is_needed() -> None:
    assert resumed(DONE).again == {}
    assert resumed(DONE, {"query:results", "style:results"}).again == {}
    plan = resumed(DONE, {"alone:results"})
    assert plan.again == {
        "alone": "its entry 'alone:results' is gone, and the result needs it"
    }


def test_a_rerun_begins_at_the_named_phase() -> None:
    plan = resumed(DONE, style="asked for")
    assert plan.again == {
        "style": "asked for",
        "report": "it reads 'style:results', and 'style' runs again",
    }
    with pytest.raises(InvalidInput, match="did you mean 'style'"):
        resumed(DONE, stile="asked for")


CORRECTIVE = Pipeline(
    name="pass",
    phases=(
        a_phase("one"),
        a_phase("review", reads=("one:results",)),
        a_phase("two", corrects="one", reads=("review:results",)),
        a_phase("qa", reads=("one:results",)),
    ),
)


def corrected(
    statuses: dict[str, str], live: set[str], pipeline: Pipeline = CORRECTIVE
) -> ResumePlan:
    """Return the plan for a pipeline with a corrective pass."""
    return resume_plan(pipeline, Graph.of(pipeline), statuses, live)


def test_after_a_correction_its_entry_is_needed() -> None:
    statuses = {"one": "done", "review": "done", "two": "done", "qa": "failed"}
    assert list(corrected(statuses, {"two:results", "qa:results"}).again) == ["qa"]
    plan = corrected(statuses, {"one:results", "review:results"})
    assert list(plan.again) == ["two", "qa"]
    assert plan.missing == ("two:results",)


def test_a_correction_that_runs_again_needs_what_it_reads_alone() -> None:
    statuses = {"one": "done", "review": "done", "two": "failed"}
    assert corrected(statuses, {"review:results"}).missing == ()
    assert corrected(statuses, {"one:results"}).missing == ("review:results",)


def test_a_skipped_correction_needs_the_first_pass() -> None:
    phases = list(CORRECTIVE.phases)
    phases[2] = a_phase("two", corrects="one", when="${review:results.bad}")
    pipeline = Pipeline(name="pass", phases=tuple(phases))
    plan = corrected(
        {"one": "done", "review": "done", "two": "failed"}, {"review:results"}, pipeline
    )
    assert plan.missing == ("one:results",)
    left_out = {"one": "done", "review": "done", "two": "skipped", "qa": "failed"}
    assert corrected(left_out, {"review:results"}, pipeline).missing == ("one:results",)
    assert corrected(left_out, {"one:results"}, pipeline).missing == ()


@pytest.mark.parametrize(
    ("changes", "stale"),
    [
        (Changes(), {}),
        (Changes(files=("src/a/b.txt", "lib/a.py")), {}),
        (Changes(standards=("naming",), design=("style",)), {}),
        (
            Changes(standards=("docs",)),
            {
                "style": "reads the standards tagged 'docs', which changed",
                "report": "reads 'style:results', which is stale",
            },
        ),
        (
            Changes(design=("security",)),
            {
                "security": "reads the decisions on design tagged 'security', which changed",
                "report": "reads 'security:results', which is stale",
            },
        ),
        (
            Changes(phases=("report", "alone")),
            {"report": "was named", "alone": "was named"},
        ),
        (
            Changes(keys=("style:results",)),
            {
                "style": "its entry 'style:results' was named",
                "report": "reads 'style:results', which is stale",
            },
        ),
        (
            Changes(files=("src/a/b.py",)),
            {
                "query": "reads the file 'src/a/b.py', which changed (src/**/*.py)",
                "analysis": "reads 'query:results', which is stale",
                "style": "reads 'analysis:results', which is stale",
                "security": "reads 'query:results', which is stale",
                "report": "reads 'style:results', which is stale",
            },
        ),
    ],
)
def test_a_change_makes_its_readers_and_their_dependents_stale(
    changes: Changes, stale: dict[str, str]
) -> None:
    assert stale_phases(PIPELINE, GRAPH, changes, DONE) == stale
    assert stale_phases(PIPELINE, GRAPH, changes) == stale


def test_a_phase_that_never_began_is_not_stale() -> None:
    changes = Changes(files=("README.md",))
    begun = {"query": "done", "analysis": "failed", "alone": "running"}
    assert list(stale_phases(PIPELINE, GRAPH, changes, begun)) == ["query", "analysis"]
    assert list(
        stale_phases(PIPELINE, GRAPH, changes, {"query": "done", "security": "skipped"})
    ) == [
        "query",
        "security",
    ]
    assert (
        stale_phases(
            PIPELINE, GRAPH, Changes(design=("security",)), {"security": "skipped"}
        )
        == {}
    )
    assert stale_phases(
        PIPELINE, GRAPH, Changes(phases=("alone",)), {"alone": "running"}
    ) == {"alone": "was named"}


def test_a_change_of_an_unknown_phase_is_refused() -> None:
    for changes in (Changes(phases=("analysys",)), Changes(keys=("analysys:results",))):
        with pytest.raises(InvalidInput, match="did you mean 'analysis'"):
            stale_phases(PIPELINE, GRAPH, changes)
    with pytest.raises(InvalidInput, match="naming rule"):
        stale_phases(PIPELINE, GRAPH, Changes(keys=("analysis",)))


@pytest.mark.parametrize(
    ("glob", "fitting", "others"),
    [
        (
            "README.md",
            ["README.md"],
            ["docs/README.md", "README.mdx", "readme.md", "READMExmd"],
        ),
        ("*.py", ["a.py", ".py", ".hidden.py"], ["a/b.py", "a.pyc", "a.py/x"]),
        (
            "**/*.py",
            ["a.py", "a/b.py", "a/b/c.py", ".git/x.py"],
            ["a.txt", "a.py/b", "/a.py"],
        ),
        (
            "src/**/*.py",
            ["src/a.py", "src/x/y/a.py"],
            ["a.py", "lib/src/a.py", "srcx/a.py", "src.py"],
        ),
        ("src/**", ["src/a", "src/a/b.c"], ["src", "lib/a"]),
        ("**/**/a", ["a", "x/a", "x/y/a"], ["b"]),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c"], ["a/c", "a/b/x"]),
        (
            "**/test_*/[ab]?.py",
            ["test_/a1.py", "x/test_y/bz.py"],
            ["x/test_y/cz.py", "x/test_y/a.py", "testx/a1.py"],
        ),
        ("[!a].py", ["b.py", "!.py"], ["a.py", "/.py"]),
        ("[]-a].py", ["].py", "a.py", "^.py"], ["b.py", "-.py"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a+(b)^$.{1}", ["a+(b)^$.{1}"], ["aab"]),
        ("**a", ["a", "xa"], ["x/a"]),
        ("*a*a*a*a*a*b", ["aaaaab"], ["a" * 60]),
        (
            "**/" * 5 + "*?" * 18 + "*~",
            ["x" * 18 + "~"],
            ["x" * 60, "a/" * 9 + "x" * 60],
        ),
        ("[!]", ["[!]"], ["!", "a"]),
        ("[]", ["[]"], ["", "a"]),
        ("a\n*", ["a\nb"], ["a"]),
    ],
)
def test_patterns_of_files(glob: str, fitting: list[str], others: list[str]) -> None:
    assert [path for path in fitting if not matches(glob, path)] == []
    assert [path for path in others if matches(glob, path)] == []
