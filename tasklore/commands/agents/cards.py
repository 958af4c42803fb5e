"""`tasklore agents`: cards and live workers, as tables and as JSON."""

from collections import Counter
from typing import Any

from tasklore.commands.places import leading_with_the_cure, open_nats
from tasklore.commands.render.screen import (
    print_json,
    print_paragraph,
    print_table,
    printable,
    styled,
)
from tasklore.commands.stores import card_of
from tasklore.contracts.messages import AgentCard, TaskCard, WorkerPresence
from tasklore.runtime.messaging.presences import live_workers
from tasklore.supervisor.cards import read_cards


async def print_agents(*, as_json: bool) -> None:
    """Print a line for every agent."""
    async with open_nats("tasklore-cards") as client:
        with leading_with_the_cure():
            cards = await read_cards(client)
            workers = await live_workers(client)
    if as_json:
        print_json([_as_document(card, workers) for card in cards])
    elif not cards:
        print("No agent was started yet; start one with `tasklore worker`.")
    else:
        alive = Counter(worker.agent_id for worker in workers)
        tasks = {
            card.agent_id: ", ".join(task.name for task in card.tasks)
            or "none, it listens"
            for card in cards
        }
        rows = [
            (
                card.agent_id,
                f"v{card.version}",
                str(alive[card.agent_id]),
                tasks[card.agent_id],
            )
            for card in cards
        ]
        print_table(("AGENT", "VERSION", "WORKERS", "TASKS"), rows, right=("WORKERS",))


async def print_agent(agent_id: str, *, as_json: bool) -> None:
    """Print everything that is known of one agent."""
    async with open_nats("tasklore-cards") as client:
        card = await card_of(client, agent_id)
        workers = await live_workers(client)
    if as_json:
        print_json(_as_document(card, workers))
        return
    print(f"{styled(card.agent_id, 'bold')} v{card.version}")
    if card.description:
        print_paragraph(printable(card.description), "  ")
    if card.keywords:
        print_paragraph(f"keywords: {printable(', '.join(card.keywords))}", "  ")
    for task in card.tasks:
        _print_task(task)
    alive = [worker for worker in workers if worker.agent_id == agent_id]
    waiting = "its tasks wait" if card.tasks else "what it listens to waits"
    print(
        f"\n{styled('workers', 'bold')}"
        if alive
        else f"\nNo worker of it is alive; {waiting} for one."
    )
    for worker in alive:
        where = f"  {worker.http}" if worker.http else ""
        print(f"  {worker.worker_id}  {worker.slots} slots{where}")


def _print_task(task: TaskCard) -> None:
    print(f"\n{styled(task.name, 'bold')} v{task.version}, remembered: {task.remember}")
    if task.description:
        print_paragraph(printable(task.description), "  ")
    listed = task.parameters.get("required")
    required = listed if isinstance(listed, list) else []
    properties = task.parameters.get("properties")
    for name, field in properties.items() if isinstance(properties, dict) else ():
        schema = field if isinstance(field, dict) else {}
        about = schema.get("description")
        default = (
            "required" if name in required else f"default {schema.get('default')!r}"
        )
        print(
            f"  {styled(printable(name), 'cyan')} ({default})"
            + (f": {printable(str(about))}" if about else "")
        )
    for example in task.examples:
        print_paragraph(f"e.g. {printable(example)}", "  ")


def _as_document(card: AgentCard, workers: list[WorkerPresence]) -> dict[str, Any]:
    alive = [
        worker.model_dump(mode="json")
        for worker in workers
        if worker.agent_id == card.agent_id
    ]
    return {"card": card.model_dump(mode="json"), "workers": alive}
