"""`tasklore analysis`: a document as a person looks at it, and as the next prompt gets it."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from contracts.analysis.document import AnalysisDocument, problems_in, read_document
from memory.rendering.prompt_context import within
from tasklore.analysis.findings import Finding, findings
from tasklore.analysis.paths import value_at
from tasklore.analysis.sources import document_of, entities_of, raw_of
from tasklore.exits import OK, USAGE
from tasklore.render.screen import complain, print_json, print_paragraph, print_table, printable, say
from tasklore.render.words import duration


def print_context(source: str, budget_tokens: int, number: int | None = None, *, as_json: bool) -> None:
    """Print the context of the next response, in at most *budget_tokens*.

    Raises:
        InvalidInput: *source* names no analysis document.
        Unreachable: it names a story, and no system runs here.
    """
    context = within(document_of(source, number), budget_tokens)
    if as_json:
        print_json({"text": context.text, "tokens": context.tokens, "left_out": context.left_out})
    elif context.text:
        print(context.text)
    else:
        say(f"{budget_tokens} tokens are too few for any of it; allow 60 or more")


def print_document(source: str, number: int | None = None, *, as_json: bool) -> None:
    """Print what *source* is about: its response, what each agent found, what that took and saved.

    Raises:
        InvalidInput: *source* names no analysis document.
        Unreachable: it names a story, and no system runs here.
    """
    document = document_of(source, number)
    if as_json:
        print_json(document.body())
        return
    tell_document(document)


def tell_document(document: AnalysisDocument) -> None:
    """Print which response *document* is about, what each agent found, and what that took and saved."""
    meta = document.meta
    print_paragraph(f"Response {meta.response_number}, {counts_text(document)}", style="bold")
    print_paragraph(f"updated {meta.updated}, version {printable(document.version)}")
    print_findings(findings(document))
    for line in closing_lines(document):
        print_paragraph(line)


def counts_text(document: AnalysisDocument | None, sections: Sequence[str] = ()) -> str:
    """Return how the analysis stands, and how many agents came through: "fresh: 9 of 10 agents ok, 1 skipped".

    Those of *sections* that are not there are at work; without a *document* they all are.
    """
    at_work = len(at_work_of(document, sections))
    if document is None:
        return f"0 of {at_work} agents ok, {at_work} at work"
    meta = document.meta
    counts = {"failed": meta.agents_failed, "skipped": meta.agents_skipped or 0, "at work": at_work}
    others = "".join(f", {count} {word}" for word, count in counts.items() if count)
    return f"{meta.status}: {meta.agents_ok} of {meta.agents_run + at_work} agents ok{others}"


def at_work_of(document: AnalysisDocument | None, sections: Sequence[str]) -> list[str]:
    """Return which of *sections* are not in *document*: their agents have not come through."""
    return [one.section for one in findings(document, sections) if not one.is_there]


def print_findings(found: Sequence[Finding]) -> None:
    """Print a table of what each agent found, or why it did not."""
    rows = [(one.section, one.by, "" if one.took_ms is None else f"{one.took_ms:,}", one.told) for one in found]
    if rows:
        print()
        print_table(("section", "by", "ms", "found"), rows, right=("ms",), whole=("section",))
        print()


def closing_lines(document: AnalysisDocument) -> Iterator[str]:
    """Yield what the analysis took, and what it saved."""
    stats = document.stats
    if stats.total_ms is not None:
        groups = (("background", stats.background_ms), ("immediate", stats.immediate_ms))
        parts = ", ".join(f"{duration(ms)} {name}" for name, ms in groups if ms is not None)
        yield f"It took {parts}." if parts else f"It took {duration(stats.total_ms)}."
    if stats.total_cost_usd:
        roi = f"; what it saves costs {stats.roi:g} times as much" if stats.roi is not None else ""
        spent = f" for {stats.total_tokens:,} tokens of models" if stats.total_tokens else ""
        yield f"It cost {dollars(stats.total_cost_usd)}{spent}{roi}."
    if (saved := stats.total_reduction) is not None:
        yield f"{saved.before:,} tokens became {saved.after:,}, {saved.percent} % less."


def dollars(amount: float) -> str:
    """Return an amount of US dollars with as many decimals as it needs, two at least and six at most."""
    whole, _, decimals = f"{amount:.6f}".partition(".")
    return f"${whole}.{decimals.rstrip('0').ljust(2, '0')}"


def print_value(source: str, path: str, number: int | None = None) -> None:
    """Print what stands at *path* as JSON, a text as it is.

    Raises:
        InvalidInput: *source* names no analysis document, or it has nothing at *path*.
        Unreachable: it names a story, and no system runs here.
    """
    value = value_at(document_of(source, number).body(), path, entities_of(source))
    if isinstance(value, str):
        print(printable(value))
    else:
        print_json(value)


def check_aloud(file: str, *, as_json: bool) -> int:
    """Print what is wrong with *file*, each problem with its place, and return the exit code.

    Raises:
        InvalidInput: it cannot be read, or is no JSON.
    """
    raw = raw_of(file)
    problems = problems_in(raw)
    notes = () if problems else tuple(_notes(read_document(raw)))
    if as_json:
        listed: list[JsonValue] = [{"place": one.place, "what": one.what} for one in problems]
        print_json({"problems": listed, "notes": list(notes)})
        return USAGE if problems else OK
    for one in problems:
        complain(f"{file}: {printable(str(one))}")
    for note in notes:
        say(f"{file}: {note}")
    if not problems:
        print(f"{file}: an analysis document, version {printable(read_document(raw).version)}; nothing is wrong.")
    return USAGE if problems else OK


def _notes(document: AnalysisDocument) -> Iterator[str]:
    """Yield what does not add up and is no error: sums that are not those of their parts."""
    total = document.stats.total_reduction
    found = document.immediate
    sections = (found.fact_extraction, found.memory_extraction, found.thread_extraction)
    parts = [one.reduction for one in sections if one is not None and one.reduction is not None]
    if total is None or not parts:
        return
    for key in ("before", "after"):
        said, summed = getattr(total, key), sum(getattr(part, key) for part in parts)
        if said != summed:
            yield f"stats.total_reduction.{key} is {said}, and its parts sum to {summed}"
