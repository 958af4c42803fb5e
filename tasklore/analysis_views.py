"""`tasklore analysis`: a document as a person looks at it, and as the next prompt gets it; no server is asked."""

import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from contracts.analysis import AnalysisDocument, problems_in, read_document
from contracts.errors import InvalidInput
from memory.rendering.prompt_context import within
from tasklore.analysis_paths import value_at
from tasklore.document_files import read_file
from tasklore.exits import OK, USAGE
from tasklore.screen import complain, print_json, print_table, printable, say


def print_context(file: str, budget_tokens: int, *, as_json: bool) -> None:
    """Print the context of the next response, in at most *budget_tokens*.

    Raises:
        InvalidInput: *file* holds no analysis document.
    """
    context = within(_document(file), budget_tokens)
    if as_json:
        print_json({"text": context.text, "tokens": context.tokens, "left_out": context.left_out})
    elif context.text:
        print(context.text)
    else:
        say(f"{budget_tokens} tokens are too few for any of it; allow 60 or more")


def print_document(file: str, *, as_json: bool) -> None:
    """Print what *file* is about: its response, what each agent left, what that took and saved.

    Raises:
        InvalidInput: *file* holds no analysis document.
    """
    document = _document(file)
    if as_json:
        print_json(document.body())
        return
    meta = document.meta
    skipped = "" if meta.agents_skipped is None else f", {meta.agents_skipped} skipped"
    version = printable(document.version)
    print(f"Response {meta.response_number}, {meta.status}, updated {meta.updated} (version {version})")
    print(f"{meta.agents_run} agents: {meta.agents_ok} ok, {meta.agents_failed} failed{skipped}")
    rows = [_row(name, section) for name, section in document.sections()]
    if rows:
        print()
        print_table(("agent", "ms", "by", "status", "holds"), rows, right=("ms",))
    saved = document.stats.total_reduction
    if saved is not None:
        print(f"\n{saved.before} tokens became {saved.after}, {saved.percent} % less.")


def print_value(file: str, path: str) -> None:
    """Print what stands at *path* as JSON, a text as it is.

    Raises:
        InvalidInput: *file* holds no analysis document, or it has nothing at *path*.
    """
    value = value_at(_document(file).body(), path)
    if isinstance(value, str):
        print(printable(value))
    else:
        print_json(value)


def check_aloud(file: str, *, as_json: bool) -> int:
    """Print what is wrong with *file*, each problem with its place, and return the exit code.

    Raises:
        InvalidInput: it cannot be read, or is no JSON.
    """
    raw = _read(file)
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


def _document(file: str) -> AnalysisDocument:
    try:
        return read_document(_read(file))
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else read_file(Path(file))


def _row(name: str, section: JsonValue) -> tuple[str, ...]:
    """Return the cells of one agent: what it took, who it was, how it went, and how much of what it left."""
    found = section if isinstance(section, dict) else {}
    held = (f"{len(value)} {key}" for key, value in found.items() if isinstance(value, list | dict) and value)
    told = ("" if found.get(key) is None else str(found[key]) for key in ("dur", "by", "status"))
    return tuple(printable(cell) for cell in (name, *told, ", ".join(held)))


def _notes(document: AnalysisDocument) -> Iterator[str]:
    """Yield what does not add up and is no error: sums that are not those of their parts."""
    total = document.stats.total_reduction
    found = document.immediate
    sections = (found.fact_extraction, found.memory_extraction, found.thread_extraction)
    parts = [one.reduction for one in sections if one is not None and one.reduction is not None]
    if total is None or not parts:
        return
    for key in ("before", "after"):
        told, summed = getattr(total, key), sum(getattr(part, key) for part in parts)
        if told != summed:
            yield f"stats.total_reduction.{key} is {told}, and its parts sum to {summed}"
