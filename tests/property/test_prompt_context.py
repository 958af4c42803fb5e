"""Whatever the analysis holds, its context keeps the budget, and what matters most is in it."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.memory.rendering.prompt_context import CLOSE, OPEN, condense, within
from tasklore.memory.rendering.quoting import plain
from tasklore.memory.rendering.tokens import estimate
from tests.random_analyses import KINDS, hostile, realistic

#: What begins a line of a context.
LABELS = (
    "**Scene**: ", "**Characters**: ", "**Memories**: ", "**Relationships**: ", "**Threads**: ", "**Knowledge**: ",
    "**Contradictions**: ", "**Context for N+1**:", "- ", "(",
)  # fmt: skip

#: What is only seen of parts that need not be kept.
OTHERS = (
    *(f"**Scene**: {kind}" for kind in KINDS),
    "Tension",
    "Mentioned: ",
    "Memories",
    "Knowledge",
    "\n- ",
    "\U0001f4cd",
)


@given(hostile(), st.integers(0, 900))
def test_the_budget_is_never_exceeded(body: dict[str, Any], budget: int) -> None:
    document = read_document(body)
    context = within(document, budget, estimate)

    assert estimate(context.text) == context.tokens <= budget
    assert (context.text == condense(document)) == (context.left_out == 0)
    assert (f"({context.left_out} more left out)" in context.text) == bool(
        context.text and context.left_out
    )


@given(hostile(), st.integers(0, 2_000))
def test_no_text_leaves_its_line_or_closes_the_frame(
    body: dict[str, Any], budget: int
) -> None:
    """The frame stands once, at both ends, and every line between is one of ours."""
    text = within(read_document(body), budget, estimate).text
    if not text:
        return
    lines = text.removeprefix(f"{OPEN}\n").removesuffix(f"\n{CLOSE}").split("\n")

    assert text.startswith(OPEN)
    assert text.endswith(CLOSE)
    assert text.count("<") == text.count(">") == 3
    assert [line for line in lines if line and not line.startswith(LABELS)] == []
    assert text.count("**") % 2 == 0
    assert sum(line.count("**") for line in lines) == 2 * sum(
        line.startswith("**") for line in lines
    )


def test_what_must_be_kept_is_kept_within_350_tokens() -> None:
    """Alerts, critical threads and who is in the scene: of those in 300 realistic analyses, 95 of 100 at least."""
    kept = [
        plain(fact) in text
        for seed in range(300)
        for document in [read_document(realistic(random.Random(seed)))]
        for text in [within(document, 350, estimate).text]
        for fact in _must_keep(document)
    ]

    assert len(kept) > 1_500
    assert sum(kept) / len(kept) >= 0.95


@given(st.integers(0, 2**32), st.integers(60, 200))
def test_nothing_else_takes_the_room_of_what_must_be_kept(
    seed: int, budget: int
) -> None:
    """While any of it is missing, nothing else is shown, however small."""
    document = read_document(realistic(random.Random(seed)))
    text = within(document, budget, estimate).text

    if text and not all(plain(fact) in text for fact in _must_keep(document)):
        assert [word for word in OTHERS if word in text] == []


def _must_keep(document: AnalysisDocument) -> list[str]:
    found = document.background.response_analysis
    threads = document.background.plot_threads
    assert found is not None
    assert found.alerts is not None
    assert found.characters is not None
    assert threads is not None
    alerts = [alert for alert in (found.alerts.variety, found.alerts.pacing) if alert]
    critical = [
        thread.id
        for thread in (*threads.new, *threads.mentioned)
        if thread.status == "critical"
    ]
    return [*alerts, *critical, *found.characters.in_scene]
