"""`tasklore analyses context|show|get|check`: a document as a person reads it, and as the next prompt gets it."""

from collections.abc import Collection, Iterator, Sequence

from pydantic import JsonValue

from tasklore.commands.analyses.documents import (
    ask_story,
    ask_value,
    document_in,
    is_file,
    read_entities,
    read_file,
    read_raw,
)
from tasklore.commands.analyses.findings import SectionStep, section_steps
from tasklore.commands.analyses.follow import awaited_in
from tasklore.commands.exits import OK, USAGE
from tasklore.commands.render.columns import Column, print_records
from tasklore.commands.render.screen import (
    print_error,
    print_json,
    print_paragraph,
    printable,
    say,
)
from tasklore.commands.render.words import duration, one_line
from tasklore.contracts.analysis.document import (
    AnalysisDocument,
    problems_in,
    read_document,
)
from tasklore.contracts.analysis.pieces import UNJUDGED
from tasklore.memory.rendering.prompt_context import within
from tasklore.supervisor.pipelines.analysis.places import value_at

#: Characters of one cause why sections went by rules, and of all of them.
_CAUSE = 200
_CAUSES = 400

SECTIONS = (
    Column[SectionStep]("section", lambda one: one.name, whole=True),
    Column[SectionStep]("by", lambda one: one.by),
    Column[SectionStep](
        "ms", lambda one: "" if one.took_ms is None else f"{one.took_ms:,}", right=True
    ),
    Column[SectionStep]("found", lambda one: one.text),
)


def print_context(
    source: str, budget_tokens: int, number: int | None = None, *, as_json: bool
) -> None:
    """Print the context of the next response, in at most *budget_tokens*.

    Raises:
        InvalidInput: *source* names no analysis document.
        ApiRefused: it names a story, and the API refuses.
        Unreachable: it names a story, and no API answers.
    """
    if is_file(source):
        found = within(read_file(source, number), budget_tokens)
        view = {
            "text": found.text,
            "tokens": found.tokens,
            "left_out": found.left_out,
        }
    else:
        view = ask_story("context", source, response=number, tokens=budget_tokens)
    if as_json:
        print_json(view)
    elif view["text"]:
        print(printable(str(view["text"])))
    else:
        say(f"{budget_tokens} tokens are too few for any of it; allow 60 or more")


def print_document(source: str, number: int | None = None, *, as_json: bool) -> None:
    """Print the response, the sections and the cost of the document *source*; as JSON a file is its document.

    Raises:
        InvalidInput: *source* names no analysis document.
        ApiRefused: it names a story, and the API refuses.
        Unreachable: it names a story, and no API answers.
    """
    if is_file(source):
        document = read_file(source, number)
        if as_json:
            print_json(document.body())
        else:
            print_overview(document)
        return
    view = ask_story("show", source, response=number)
    if as_json:
        print_json(view)
    elif (found := document_in(view)) is not None:
        print_overview(found, awaited_in(view))


def print_overview(document: AnalysisDocument, awaited: Sequence[str] = ()) -> None:
    """Print the response, the sections and the cost of *document*; agents of those *awaited* are at work."""
    meta = document.meta
    print_paragraph(
        f"Response {meta.response_number}, {counts_text(document, awaited)}",
        style="bold",
    )
    print_paragraph(f"updated {meta.updated}, version {printable(document.version)}")
    print_sections(document, awaited=awaited)


def counts_text(
    document: AnalysisDocument | None, awaited: Collection[str] = ()
) -> str:
    """Return the status of an analysis and its counts of agents: "fresh: 9 of 10 agents ok, 1 skipped".

    Sections that went by rules, as a model that is configured did not answer, are none that are ok.
    """
    waiting = len(awaited)
    if document is None:
        return f"0 of {waiting} agents ok, {waiting} at work"
    meta = document.meta
    counts = {
        "failed": meta.agents_failed,
        "skipped": meta.agents_skipped or 0,
        "at work": waiting,
    }
    causes = [
        note.removeprefix(UNJUDGED).lstrip("; ")
        for _, one in document.sections()
        if isinstance(one, dict)
        and (note := str(one.get("note") or "")).startswith(f"{UNJUDGED};")
    ]
    others = "".join(f", {count} {word}" for word, count in counts.items() if count)
    judged = max(0, meta.agents_ok - len(causes))
    run = meta.agents_run + waiting
    if not causes:
        return f"{meta.status}: {judged} of {run} agents ok{others}"
    # Mostly one model answers for all of them.
    why = "; ".join(dict.fromkeys(one_line(cause, _CAUSE) for cause in causes))
    return (
        f"{meta.status}: {judged} of {run} agents ok by a model, {len(causes)} by rules"
        f"{others} ({one_line(why, _CAUSES)})"
    )


def print_sections(
    document: AnalysisDocument,
    sections: Sequence[str] = (),
    awaited: Collection[str] = (),
) -> None:
    """Print a table of the sections, and the time, cost and tokens of the analysis."""
    if steps := section_steps(document, (*sections, *awaited), awaited=awaited):
        print()
        print_records(SECTIONS, steps)
        print()
    stats = document.stats
    if stats.total_ms is not None:
        groups = (
            ("background", stats.background_ms),
            ("immediate", stats.immediate_ms),
        )
        parts = ", ".join(
            f"{duration(ms)} {name}" for name, ms in groups if ms is not None
        )
        print_paragraph(f"It took {parts or duration(stats.total_ms)}.")
    if stats.total_cost_usd:
        roi = (
            f"; what it saves costs {stats.roi:g} times as much"
            if stats.roi is not None
            else ""
        )
        spent = (
            f" for {stats.total_tokens:,} tokens of models"
            if stats.total_tokens
            else ""
        )
        print_paragraph(f"It cost {dollars(stats.total_cost_usd)}{spent}{roi}.")
    if (saved := stats.total_reduction) is not None:
        print_paragraph(
            f"{saved.before:,} tokens became {saved.after:,}, {saved.percent} % less."
        )


def dollars(amount: float) -> str:
    """Return an amount of US dollars with as many decimals as it needs, two at least and six at most."""
    whole, _, decimals = f"{amount:.6f}".partition(".")
    return f"${whole}.{decimals.rstrip('0').ljust(2, '0')}"


def print_value(source: str, path: str, number: int | None = None) -> None:
    """Print the value at *path* as JSON, a text as it is.

    Raises:
        InvalidInput: *source* names no analysis document, or it has nothing at *path*.
        ApiRefused: it names a story, and the API refuses.
        Unreachable: it names a story, and no API answers.
    """
    value: object
    if is_file(source):
        document = read_file(source, number)
        value = value_at(document.body(), path, read_entities(source))
    else:
        value = ask_value("get", source, path=path, response=number)
    if isinstance(value, str):
        print(printable(value))
    else:
        print_json(value)


def print_check(file: str, *, as_json: bool) -> int:
    """Print the problems of *file*, each with its place, and return the exit code.

    Raises:
        InvalidInput: it cannot be read, or is no JSON.
    """
    raw = read_raw(file)
    problems = problems_in(raw)
    notes = () if problems else tuple(_notes(read_document(raw)))
    if as_json:
        listed: list[JsonValue] = [
            {"place": one.place, "what": one.what} for one in problems
        ]
        print_json({"problems": listed, "notes": list(notes)})
        return USAGE if problems else OK
    for one in problems:
        print_error(f"{file}: {printable(str(one))}")
    for note in notes:
        say(f"{file}: {note}")
    if not problems:
        print(
            f"{file}: an analysis document, version {printable(read_document(raw).version)}; nothing is wrong."
        )
    return USAGE if problems else OK


def _notes(document: AnalysisDocument) -> Iterator[str]:
    """Yield each sum that differs from that of its parts, which is no error."""
    total = document.stats.total_reduction
    found = document.immediate
    sections = (found.fact_extraction, found.memory_extraction, found.thread_extraction)
    parts = [
        one.reduction
        for one in sections
        if one is not None and one.reduction is not None
    ]
    for key in ("before", "after") if total is not None and parts else ():
        stated = getattr(total, key)
        summed = sum(getattr(part, key) for part in parts)
        if stated != summed:
            yield f"stats.total_reduction.{key} is {stated}, and its parts sum to {summed}"
