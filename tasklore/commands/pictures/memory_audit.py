"""How good a memory is: the share of each finding, and the entries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasklore.commands.pictures.memory_conflicts import draw_conflict
from tasklore.commands.render.memory_lines import draw_entry, fold_line
from tasklore.commands.render.screen import printable, styled
from tasklore.commands.render.words import count_of

Entries = Sequence[Mapping[str, Any]]


def draw(view: Mapping[str, Any]) -> str:
    """Return the shares, and where each finding is; entries that were never read are only counted."""
    if not view["entries"]:
        return f"Nothing is stored about {printable(view['user'])} yet."
    return "\n".join(_lines(view))


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    yield f"{count_of(view['entries'], 'entry')} in {count_of(view['documents'], 'document')}"
    for name, rate in view["rates"].items():
        share = "not known" if rate is None else f"{rate:.1%}"
        yield f"  {share:>9}  {name.replace('_', ' ')}"
    for group in view["duplicates"]:
        yield from _group("said more than once", group)
    for conflict in view["conflicts"]:
        yield ""
        yield from draw_conflict(conflict)
    stale = "stale: past their last day, or so old that they should be asked for again"
    yield from _group(stale, view["stale"])
    yield from _group("out of place: no rule finds them there", view["orphans"])
    yield from _group("with a date that cannot be read", view["unreadable"])
    changed = view["changed_protected"]
    if changed:
        cure = "protected, and changed within 30 days: `tasklore memory undo` takes one back"
        yield f"\n{styled(cure, 'bold')}"
    for one in changed:
        reason = f"{fold_line(one['fact'])} ({fold_line(one['words'])})"
        yield f"  {styled(printable(one['plan_id'][-12:]), 'dim')} {reason}"
    if view["alike"]:
        title = "perhaps the same (proposed by embeddings; nothing is merged)"
        yield f"\n{styled(title, 'bold')}"
    for first, second in view["alike"] or ():
        yield f"  {draw_entry(first)}\n    and {draw_entry(second)}"


def _group(title: str, entries: Entries) -> Iterator[str]:
    if entries:
        yield f"\n{styled(title, 'bold')}"
        for entry in entries:
            yield f"  {draw_entry(entry)}"
