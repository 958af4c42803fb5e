"""The graph of a pipeline: dependencies, order, corrections and circles."""

from typing import Any

import pytest

from contracts.errors import InvalidInput, InvalidPipeline
from contracts.pipelines import Phase, Pipeline
from supervisor.pipelines.declaration.graph import Graph, result_keys


def a_phase(name: str, **fields: Any) -> Phase:
    """Return a phase of which only *fields* matter."""
    return Phase(**{"name": name, "agent": "A", "task": "t", **fields})


def graph_of(*phases: Phase) -> Graph:
    """Return the graph of a pipeline of *phases*."""
    return Graph.of(Pipeline(name="p", phases=phases))


#: As in the report on a corrective pass: the review is of the first pass, everything later of the second.
CORRECTIVE = (
    a_phase("analysis"),
    a_phase("pass_1", reads=("analysis:results",), writes=("results", "files")),
    a_phase("review", parameters={"files": "${pass_1:files}"}),
    a_phase("notes", after=("review",)),
    a_phase("pass_2", corrects="pass_1", parameters={"found": "${review:results}"}, writes=("results", "files")),
    a_phase("qa", parameters={"files": "${pass_1:files}"}),
    a_phase("report", reads=("qa:results",)),
)


def test_a_phase_depends_on_those_it_reads_runs_after_and_corrects() -> None:
    """In parameters, `reads`, `when`, `after` and `corrects` alike, each once."""
    graph = graph_of(
        a_phase("last", after=("a", "b"), reads=("b:results",), when="${c:results} and ${d:results?}", corrects="e"),
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


def test_the_order_is_the_declared_one_where_it_may_be() -> None:
    """A reader of the file finds the phases where they are expected."""
    assert graph_of(*(a_phase(name) for name in "cab")).order == ("c", "a", "b")
    assert graph_of(a_phase("z", after=("y",)), a_phase("x"), a_phase("y")).order == ("x", "y", "z")


def test_who_reads_what_is_corrected_waits_for_the_correction() -> None:
    """But not those that the correction itself rests on, and not those that only rest on these."""
    graph = graph_of(*CORRECTIVE)

    assert graph.dependencies["qa"] == ("pass_1", "pass_2")
    assert graph.dependencies["review"] == ("pass_1",)
    assert graph.dependencies["notes"] == ("review",)
    assert graph.dependencies["pass_2"] == ("pass_1", "review")
    assert graph.dependents(["pass_2"]) == ("qa", "report")
    assert graph.reason("qa", "pass_2") == "reads 'pass_1:files', which 'pass_2' corrects"


def test_a_reader_finds_the_first_pass_or_what_replaced_it() -> None:
    """Before the correction the first, afterwards the second; the end of the run is afterwards."""
    graph = graph_of(*CORRECTIVE)

    assert graph.replacements("pass_1", "qa") == ("pass_2",)
    assert graph.replacements("pass_1", "review") == ()
    assert graph.replacements("pass_1", "pass_2") == ()
    assert graph.replacements("pass_1", None) == ("pass_2",)
    assert graph.replacements("analysis", "qa") == ()


def test_a_correction_of_a_correction_is_waited_for_as_well() -> None:
    """The third pass replaces the second, which replaced the first."""
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


def test_two_corrections_that_read_each_others_first_pass_do_not_wait_for_each_other() -> None:
    """The one whose first pass is declared first goes first."""
    graph = graph_of(
        a_phase("p1"),
        a_phase("q1"),
        a_phase("p2", corrects="p1", reads=("q1:results",)),
        a_phase("q2", corrects="q1", reads=("p1:results",)),
    )

    assert graph.dependencies["q2"] == ("p1", "q1", "p2")
    assert graph.dependencies["p2"] == ("p1", "q1")


def test_a_circle_is_named_whole() -> None:
    """With what each step of it is, so that one can be taken away."""
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


def test_a_phase_that_reads_itself_or_what_is_not_there_waits_for_nobody() -> None:
    """The checks report both; here they would be a circle, and a lookup that fails."""
    assert graph_of(a_phase("a", reads=("a:results", "b:results"), after=("c", "a"))).dependencies == {"a": ()}


def test_a_reference_that_cannot_be_read_is_refused() -> None:
    """With its phase and its place."""
    with pytest.raises(InvalidInput, match="phase a: when"):
        graph_of(a_phase("a", when="${b"))


def test_dependents_and_ancestors_follow_the_graph_to_its_end() -> None:
    """Dependents come in order, without those that were asked about."""
    graph = graph_of(*CORRECTIVE)

    assert graph.dependents(["analysis"]) == ("pass_1", "review", "notes", "pass_2", "qa", "report")
    assert graph.dependents(["review", "pass_2"]) == ("notes", "qa", "report")
    assert graph.dependents([]) == ()
    assert graph.ancestors("qa") == {"analysis", "pass_1", "review", "pass_2"}
    assert graph.ancestors("analysis") == frozenset()
    assert graph.sinks == ("notes", "report")


def test_the_result_is_what_the_last_phases_write_unless_one_is_named() -> None:
    """All of their entries, by their keys."""
    phases = (a_phase("a"), a_phase("b", after=("a",), writes=("x", "y")), a_phase("c"), a_phase("d", writes=()))
    pipeline = Pipeline(name="p", phases=phases)

    assert result_keys(pipeline, Graph.of(pipeline)) == ("b:x", "b:y", "c:results")

    named = Pipeline(name="p", phases=phases, result="a:results")
    assert result_keys(named, Graph.of(named)) == ("a:results",)


def test_five_hundred_phases_in_a_row_are_no_trouble() -> None:
    """Nothing here goes as deep as the graph."""
    row = [a_phase("p0"), *(a_phase(f"p{n}", after=(f"p{n - 1}",)) for n in range(1, 500))]
    graph = graph_of(*reversed(row))

    assert graph.order == tuple(f"p{n}" for n in range(500))
    assert len(graph.ancestors("p499")) == len(graph.dependents(["p0"])) == 499
    with pytest.raises(InvalidPipeline, match="p0 -> p499 -> p498"):
        graph_of(*[a_phase("p0", after=("p499",)), *row[1:]])
