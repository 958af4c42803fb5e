"""The end of an analysis for people: what each agent found, what was saved, the context; or a line of many."""

from collections.abc import Iterator, Sequence

from contracts.stories import StoryBase
from memory.rendering.prompt_context import Context, within
from memory.rendering.tokens import counter
from tasklore.analysis_findings import Finding, findings
from tasklore.analysis_views import closing_lines, counts_text, dollars, print_findings
from tasklore.analysis_watching import Analysed
from tasklore.pipeline_lines import counted, took_text
from tasklore.screen import print_paragraph, styled

#: How one of many responses went: no agent failed, one did, or not all were through in time.
_WHOLE, _PARTIAL, _UNFINISHED = "whole", "partial", "unfinished"


def tell(analysed: Analysed, budget_tokens: int) -> None:
    """Print what was found in one response, and the context of the next in at most *budget_tokens*."""
    document = analysed.document
    if document is None:
        return
    served = "served from memory" if analysed.is_served else f"in {took_text(analysed.took_ms)}"
    print_paragraph(f"{analysed.response.source}, {counts_text(document)}, {served}", style="bold")
    print_findings(findings(document))
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

    def tell(self, analysed: Analysed) -> None:
        """Print how a response went, and below it what failed for a reason that was not told before."""
        print("  ".join(self._cells(analysed)), flush=True)
        reasons = [f"{one.section} {one.told}" for one in missed(analysed)]
        for reason in reasons:
            if reason not in self._told:
                self._told.add(reason)
                print_paragraph(reason, "  ", style="red")

    def _cells(self, analysed: Analysed) -> Iterator[str]:
        document = analysed.document
        word = (_WHOLE if analysed.is_whole else _PARTIAL) if analysed.is_done else _UNFINISHED
        yield analysed.response.source.ljust(self._width)
        yield styled(word.ljust(len(_UNFINISHED)), "green" if word == _WHOLE else "yellow")
        if document is not None:
            yield f"{document.meta.agents_ok:>2} of {document.meta.agents_run} ok"
            yield f"{'served' if analysed.is_served else took_text(analysed.took_ms):>8}"
            yield f"{within(document, self._budget_tokens).tokens:>5} tokens of context"


def tell_sum(done: Sequence[Analysed], base: StoryBase, took_ms: int, budget_tokens: int) -> None:
    """Print what came of *done* together."""
    documents = [one.document for one in done if one.document is not None]
    failed, late = len([one for each in done for one in missed(each)]), sum(not one.is_done for one in done)
    words = [f"{counted(len(done), 'response')} in {took_text(took_ms)}"]
    words += [f"{sum(document.meta.agents_ok for document in documents)} findings"]
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


def source_tokens(base: StoryBase) -> int:
    """Return how many tokens a prompt would take that is given everything *base* says, responses left out."""
    count = counter()
    texts = [memory.text or memory.summary for memory in base.memories]
    texts += [f"{thread.title}\n{thread.text}" for thread in base.threads]
    texts += [f"{fact.subject}: {fact.fact}" for fact in base.knowledge]
    entities = sum(entity.tokens or count(entity.text) for entity in base.entities)
    return entities + sum(map(count, texts))
