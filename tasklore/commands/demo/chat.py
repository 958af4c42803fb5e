"""The second part of `tasklore demo`: a chat, the memory of it, a search in it, and an undone edit."""

from datetime import UTC, datetime

from nats.aio.client import Client

from tasklore.commands.memory.history import record_lines
from tasklore.commands.memory.stores import UserMemory
from tasklore.commands.memory.tell import make_turn, outcome_of, publish_turn
from tasklore.commands.memory.views import match_lines, search
from tasklore.commands.render.screen import print_paragraph, printable, styled
from tasklore.memory.documents.items import Item, leaf_values
from tasklore.memory.documents.plans import Snapshot

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


async def chat(client: Client, memory: UserMemory) -> bool:
    """Play the chat and print it; return whether all went well."""
    print_paragraph(
        f"{USER} chats, and nobody waits for what is remembered of it\n\n", style="bold"
    )
    _print_documents("before", await memory.documents.snapshot(USER))
    settled = [await _say(client, memory, text) for text in TURNS]
    found = await search(memory, USER, QUESTION, limit=3)
    print_paragraph(
        f"> tasklore memory search {QUESTION!r} --user {USER}", style="bold"
    )
    for line in match_lines(found):
        print_paragraph(line, "  ")
    print()
    after = await memory.documents.snapshot(USER)
    _print_documents("after", after)
    undone = await memory.documents.undo(USER, at=datetime.now(UTC))
    print(
        f"{styled('>', 'cyan')} {styled(f'tasklore memory undo --user {USER}', 'bold')}"
    )
    for line in record_lines(undone):
        print_paragraph(line, "  ")
    print()
    restored = await memory.documents.snapshot(USER)
    is_found = any("in May" in one.text for one in found.memories)
    return (
        all(settled)
        and is_found
        and _texts_by_place(after) != _texts_by_place(restored)
    )


async def _say(client: Client, memory: UserMemory, text: str) -> bool:
    turn = make_turn(text, USER, "demo")
    await publish_turn(client, turn)
    print_paragraph(f"> {text}", style="bold")
    outcome = await outcome_of(memory, turn, _TIMEOUT_S)
    for plan in sorted(outcome.plans, key=lambda plan: plan.number):
        for line in record_lines(plan):
            print_paragraph(line, "  ")
    print()
    return outcome.is_settled


def _print_documents(when: str, snapshot: Snapshot) -> None:
    texts_by_place = _texts_by_place(snapshot)
    print(f"  {styled(f'documents {when}', 'dim')}")
    for place, texts in texts_by_place.items():
        print_paragraph(f"{place}: {printable(', '.join(texts))}", "    ")
    print("" if texts_by_place else "    nothing\n")


def _texts_by_place(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the texts at each place of the documents."""
    places: dict[str, list[str]] = {}
    for document in snapshot.documents.values():
        for path, value in leaf_values(document.body):
            item = Item.read(value)
            places.setdefault(str(path.parent), []).append(
                item.display if item is not None else str(value)
            )
    return places
