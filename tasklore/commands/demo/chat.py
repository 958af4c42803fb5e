"""The second part of `tasklore demo`: a chat, the memory of it, a search in it, and an undone edit."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

from tasklore.commands.operations.entries import operations_of
from tasklore.commands.operations.exchange import Exchange
from tasklore.commands.operations.target import Target
from tasklore.commands.operations.values import make_request
from tasklore.commands.pictures import memory_matches
from tasklore.commands.render.memory_lines import list_changes, paint_change
from tasklore.commands.render.screen import print_paragraph, printable, styled

Json = Mapping[str, Any]

AGENTS = (
    "tasklore.workers.agents.switchboard",
    "tasklore.workers.agents.memory_worker",
)

USER = "ana"

#: The third turn contradicts the first one; of the last one only the words are kept, unless a model reads them.
TURNS = (
    "I love scrambled eggs, pasta carbonara and oat milk.",
    "I have asthma, and I get up at 6:30.",
    "By the way, I'm vegan now.",
    "We finally found a house by the lake, and the movers come in May.",
)
#: Asked in the end: no statement that is learned without a model answers it, but the turn itself does.
QUESTION = "When do the movers come?"

#: Seconds for the outcome of a turn: some milliseconds, on a busy machine more.
_TIMEOUT_S = 20.0


async def chat(target: Target) -> bool:
    """Play the chat at the API at *target* and print it; return whether all went well."""
    print_paragraph(
        f"{USER} chats, and memory is updated in the background\n\n", style="bold"
    )

    def ask(verb: str, **values: str) -> Awaitable[Json]:
        return asyncio.to_thread(call, target, "memory", verb, user=USER, **values)

    _print_documents("before", await ask("show"))
    settled = [_print_turn(await _say(target, text)) for text in TURNS]
    found = await ask("search", q=QUESTION, limit="3")
    print_paragraph(f"> tasklore memory search {USER} {QUESTION!r}", style="bold")
    for line in memory_matches.draw(found).splitlines():
        print_paragraph(line, "  ")
    print()
    after = await ask("show")
    _print_documents("after", after)
    undone = await ask("undo")
    print(f"{styled('>', 'cyan')} {styled(f'tasklore memory undo {USER}', 'bold')}")
    history = await ask("history", limit="1")
    for change in list_changes(history["plans"][0]):
        print_paragraph(paint_change(change), "  ")
    print()
    restored = await ask("show")
    is_found = any("in May" in one["text"] for one in found["memories"])
    is_undone = history["plans"][0]["plan_id"] == undone["plan_id"]
    return (
        all(settled)
        and is_found
        and is_undone
        and _texts_by_place(after) != _texts_by_place(restored)
    )


def call(target: Target, noun: str, verb: str, **values: Any) -> Json:
    """Return the view of an operation at *target*, at its end.

    Raises:
        ApiRefused, Unreachable, TaskloreError: as `Exchange.ask`.
    """
    entry = next(one for one in operations_of(noun) if one["verb"] == verb)
    exchange = Exchange(target, entry, lambda _answer: None)
    answer = exchange.ask(make_request(entry, values), waits_s=_TIMEOUT_S)
    view: Json = exchange.follow(answer, _TIMEOUT_S).view
    return view


async def _say(target: Target, text: str) -> Json:
    print_paragraph(f"> {text}", style="bold")
    said = {"user": USER, "text": text.split(" "), "conversation": "demo"}
    return await asyncio.to_thread(call, target, "memory", "tell", **said)


def _print_turn(outcome: Json) -> bool:
    for plan in sorted(outcome["plans"], key=lambda plan: int(plan["number"])):
        for change in list_changes(plan):
            print_paragraph(paint_change(change), "  ")
    print()
    return bool(outcome["settled"])


def _print_documents(when: str, memory: Json) -> None:
    texts_by_place = _texts_by_place(memory)
    print(f"  {styled(f'documents {when}', 'dim')}")
    for place, texts in texts_by_place.items():
        print_paragraph(f"{place}: {printable(', '.join(texts))}", "    ")
    print("" if texts_by_place else "    nothing\n")


def _texts_by_place(memory: Json) -> dict[str, list[str]]:
    """Return the texts at each place of the documents."""
    places: dict[str, list[str]] = {}
    for document in memory["documents"]:
        for entry in document["entries"]:
            # A list is one place.
            places.setdefault(entry["path"].rpartition("[")[0], []).append(
                entry["text"]
            )
    return places
