"""The end of an analysis for people: what each agent found, what was saved, the context; or a line of many."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from contracts.analysis.document import AnalysisDocument
from contracts.analysis.stories import StoryBase
from memory.rendering.prompt_context import Context, within
from memory.rendering.tokens import counter
from tasklore.analysis.findings import DONE, Finding, findings
from tasklore.analysis.views import at_work_of, closing_lines, counts_text, dollars, print_findings
from tasklore.analysis.watch import Analysed
from tasklore.render.screen import print_paragraph, styled
from tasklore.render.words import count_of, duration

#: How one of many responses went: no agent failed, one did, or not all were through in time.
_WHOLE, _PARTIAL, _UNFINISHED = "whole", "partial", "unfinished"

#: Whoever sets one of these has a model asked.
_MODEL = ("TASKLORE_LLM_BASE_URL", "TASKLORE_LLM_API_KEY")
#: Who found what no model did.
_RULES = "rules"


def tell(analysed: Analysed, budget_tokens: int) -> None:
    """Print what was found in one response, and the context of the next in at most *budget_tokens*."""
    document, sections = analysed.document, analysed.sections
    served = "served from memory" if analysed.is_served else f"in {duration(analysed.took_ms)}"
    print_paragraph(f"{analysed.response.source}, {counts_text(document, sections)}, {served}", style="bold")
    if document is None:
        return
    print_findings(findings(document, sections))
    for line in closing_lines(document):
        print_paragraph(line)
    tell_context(within(document, budget_tokens), budget_tokens)


def tell_context(context: Context, budget_tokens: int) -> None:
    """Print the context, behind how much of its budget it takes."""
    if not context.text:
        print_paragraph(f"{budget_tokens} tokens are too few for a context; allow 60 or more.")
        return
    print_paragraph(f"The context of the next response takes {context.tokens} of {budget_tokens} tokens:")
    print(f"\n{context.text}")


class Lines:
    """Tells of many responses in a line each, their sources padded to *width*; a reason is told once."""

    def __init__(self, width: int, budget_tokens: int) -> None:
        self._width = width
        self._budget_tokens = budget_tokens
        self._told: set[str] = set()
        #: When what responses before have changed was written last.
        self._changed_at: datetime | None = None

    def tell(self, analysed: Analysed) -> None:
        """Print how a response went, and below it what failed for a reason that was not told before."""
        print("  ".join(self._cells(analysed)), flush=True)
        reasons = [f"{one.section} {one.told}" for one in missed(analysed)]
        for reason in reasons:
            if reason not in self._told:
                self._told.add(reason)
                print_paragraph(reason, "  ", style="red")
        if analysed.document is not None:
            at = _time_of(analysed.document)
            self._changed_at = max(self._changed_at or at, at)

    def _cells(self, analysed: Analysed) -> Iterator[str]:
        document = analysed.document
        word = (_WHOLE if analysed.is_whole else _PARTIAL) if analysed.is_done else _UNFINISHED
        yield analysed.response.source.ljust(self._width)
        yield styled(word.ljust(len(_UNFINISHED)), "green" if word == _WHOLE else "yellow")
        if document is None:
            return
        at_work = len(at_work_of(document, analysed.sections))
        yield f"{document.meta.agents_ok:>2} of {document.meta.agents_run + at_work} ok"
        yield f"{'served' if analysed.is_served else duration(analysed.took_ms):>8}"
        yield f"{within(document, self._budget_tokens).tokens:>5} tokens of context"
        if at_work:
            yield f"{at_work} at work"
        if analysed.is_served and self._changed_at is not None and _time_of(document) < self._changed_at:
            yield "the story before it changed, --refresh looks again"


def _time_of(document: AnalysisDocument) -> datetime:
    """Return when *document* was written; one that does not say where on Earth means UTC."""
    at = datetime.fromisoformat(document.meta.updated)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def tell_sum(done: Sequence[Analysed], base: StoryBase, took_ms: int, budget_tokens: int) -> None:
    """Print what came of *done* together."""
    documents = [one.document for one in done if one.document is not None]
    failed, late = len([one for each in done for one in missed(each)]), sum(not one.is_done for one in done)
    words = [f"{count_of(len(done), 'response')} in {duration(took_ms)}"]
    words += [count_of(sum(document.meta.agents_ok for document in documents), "section")]
    words += [f"{failed} missing"] if failed else []
    words += [f"{late} unfinished"] if late else []
    cost = sum(document.stats.total_cost_usd or 0 for document in documents)
    words += [dollars(cost)] if cost else []
    print_paragraph(f"\n{', '.join(words)}.")
    if documents:
        longest = max(within(document, budget_tokens).tokens for document in documents)
        print_paragraph(f"{source_tokens(base):,} tokens of files -> at most {longest} tokens of context.")


def missed(analysed: Analysed) -> Iterator[Finding]:
    """Yield the sections that were asked for and are not there."""
    return (one for one in findings(analysed.document) if one.is_missed)


def rules_text(done: Sequence[Analysed]) -> str | None:
    """Return what is said when a model is set up here and rules answered all the same, None when nothing is amiss.

    Whether the worker knows of the model cannot be seen from here, nor which agent had nothing to ask it.
    """
    found = [one for each in done for one in findings(each.document) if one.status == DONE and one.by]
    if (
        not found
        or any(one.by != _RULES for one in found)
        or not any(os.environ.get(name, "none") not in ("", "none") for name in _MODEL)
    ):
        return None
    return "a model is set up here, and rules found all of this; see that the worker is told of it, its log says more"


def source_tokens(base: StoryBase) -> int:
    """Return how many tokens a prompt would take that is given everything *base* says, responses left out."""
    count = counter()
    texts = [memory.text or memory.summary for memory in base.memories]
    texts += [f"{thread.title}\n{thread.text}" for thread in base.threads]
    texts += [f"{fact.subject}: {fact.fact}" for fact in base.knowledge]
    entities = sum(entity.tokens or count(entity.text) for entity in base.entities)
    return entities + sum(map(count, texts))
