"""The graph of a pipeline: dependencies, order, corrections and cycles."""

import pytest

from tasklore.contracts.errors import InvalidInput, InvalidPipeline
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.graph import Graph, result_keys
from tests.unit.supervisor.pipelines.fake_system import a_phase


def graph_of(*phases: Phase) -> Graph:
    return Graph.of(Pipeline(name="p", phases=phases))


#: As in the report on a corrective pass: the review is of the first pass, everything later of the second.
CORRECTIVE = (
    a_phase("analysis"),
    a_phase("pass_1", reads=("analysis:results",), writes=("results", "files")),
    a_phase("review", parameters={"files": "${pass_1:files}"}),
    a_phase("notes", after=("review",)),
    a_phase(
        "pass_2",
        corrects="pass_1",
        parameters={"found": "${review:results}"},
        writes=("results", "files"),
    ),
    a_phase("qa", parameters={"files": "${pass_1:files}"}),
    a_phase("report", reads=("qa:results",)),
)


def test_a_phase_depends_on_those_it_reads_runs_after_and_corrects() -> None:
    graph = graph_of(
        a_phase(
            "last",
            after=("a", "b"),
            reads=("b:results",),
            when="${c:results} and ${d:results?}",
            corrects="e",
        ),
        a_phase("d", parameters={"x": ["${a:results.files}"]}),
        *(a_phase(name) for name in "abce"),
    )
    assert graph.order == ("a", "d", "b", "c", "e", "last")
    assert graph.dependencies["last"] == ("a", "d", "b", "c", "e")
    assert graph.dependencies["d"] == ("a",)
    assert graph.sinks == ("last",)
    assert graph.reason("last", "a") == "runs after 'a'"
    assert graph.reason("last", "b") == "reads 'b:results'"
    assert graph.reason("last", "e") == "corrects 'e'"


def test_the_declared_order_is_kept_where_possible() -> None:
    assert graph_of(*(a_phase(name) for name in "cab")).order == ("c", "a", "b")
    assert graph_of(a_phase("z", after=("y",)), a_phase("x"), a_phase("y")).order == (
        "x",
        "y",
        "z",
    )


def test_a_reader_of_a_corrected_phase_waits_for_the_correction() -> None:
    graph = graph_of(*CORRECTIVE)
    assert graph.dependencies["qa"] == ("pass_1", "pass_2")
    assert graph.dependencies["review"] == ("pass_1",)
    assert graph.dependencies["notes"] == ("review",)
    assert graph.dependencies["pass_2"] == ("pass_1", "review")
    assert graph.dependents(["pass_2"]) == ("qa", "report")
    assert (
        graph.reason("qa", "pass_2") == "reads 'pass_1:files', which 'pass_2' corrects"
    )


def test_replacements_depend_on_the_reader() -> None:
    graph = graph_of(*CORRECTIVE)
    assert graph.replacements("pass_1", "qa") == ("pass_2",)
    assert graph.replacements("pass_1", "review") == ()
    assert graph.replacements("pass_1", "pass_2") == ()
    assert graph.replacements("pass_1", None) == ("pass_2",)
    assert graph.replacements("analysis", "qa") == ()


def test_a_correction_of_a_correction_is_waited_for() -> None:
    graph = graph_of(
        a_phase("one"),
        a_phase("two", corrects="one"),
        a_phase("three", corrects="two"),
        a_phase("reader", reads=("one:results",)),
    )
    assert graph.dependencies["reader"] == ("one", "two", "three")
    assert graph.replacements("one", "reader") == ("two", "three")
    assert graph.replacements("one", "three") == ("two",)
    assert graph.replacements("one", "two") == ()


def test_two_corrections_of_each_others_input_make_no_cycle() -> None:
    graph = graph_of(
        a_phase("p1"),
        a_phase("q1"),
        a_phase("p2", corrects="p1", reads=("q1:results",)),
        a_phase("q2", corrects="q1", reads=("p1:results",)),
    )
    assert graph.dependencies["q2"] == ("p1", "q1", "p2")
    assert graph.dependencies["p2"] == ("p1", "q1")


def test_a_cycle_is_described_in_full() -> None:
    with pytest.raises(InvalidPipeline) as caught:
        graph_of(
            a_phase("start"),
            a_phase("a", after=("start", "c")),
            a_phase("b", reads=("a:results",)),
            a_phase("c", corrects="b"),
            a_phase("d", after=("a",)),
        )
    (problem,) = caught.value.problems
    assert "a -> c -> b -> a" in problem
    assert "'a' runs after 'c', 'c' corrects 'b', 'b' reads 'a:results'" in problem


def test_an_unreadable_reference_is_refused() -> None:
    with pytest.raises(InvalidInput, match="phase a: when"):
        graph_of(a_phase("a", when="${b"))


def test_dependents_and_ancestors_are_transitive() -> None:
    graph = graph_of(*CORRECTIVE)
    assert graph.dependents(["analysis"]) == (
        "pass_1",
        "review",
        "notes",
        "pass_2",
        "qa",
        "report",
    )
    assert graph.dependents(["review", "pass_2"]) == ("notes", "qa", "report")
    assert graph.dependents([]) == ()
    assert graph.ancestors("qa") == {"analysis", "pass_1", "review", "pass_2"}
    assert graph.ancestors("analysis") == frozenset()
    assert graph.sinks == ("notes", "report")


def test_the_result_is_of_the_last_phases_unless_named() -> None:
    phases = (
        a_phase("a"),
        a_phase("b", after=("a",), writes=("x", "y")),
        a_phase("c"),
        a_phase("d", writes=()),
    )
    pipeline = Pipeline(name="p", phases=phases)
    assert result_keys(pipeline, Graph.of(pipeline)) == ("b:x", "b:y", "c:results")
    named = Pipeline(name="p", phases=phases, result="a:results")
    assert result_keys(named, Graph.of(named)) == ("a:results",)


def test_five_hundred_phases_in_a_row() -> None:
    row = [
        a_phase("p0"),
        *(a_phase(f"p{n}", after=(f"p{n - 1}",)) for n in range(1, 500)),
    ]
    graph = graph_of(*reversed(row))
    assert graph.order == tuple(f"p{n}" for n in range(500))
    assert len(graph.ancestors("p499")) == len(graph.dependents(["p0"])) == 499
    with pytest.raises(InvalidPipeline, match="p0 -> p499 -> p498"):
        graph_of(*[a_phase("p0", after=("p499",)), *row[1:]])
