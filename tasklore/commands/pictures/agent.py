"""An agent: its tasks with their parameters and examples, and its live workers."""

from collections.abc import Iterator
from typing import Any

from tasklore.commands.render.screen import styled

Json = dict[str, Any]


def draw(view: Json) -> str:
    """Return the lines of *view*, as `agents show` has it."""
    return "\n".join(_lines(view))


def _lines(view: Json) -> Iterator[str]:
    yield f"{styled(str(view['agent_id']), 'bold')} v{view['version']}"
    yield from _paragraph(view["description"])
    if view["keywords"]:
        yield from _paragraph(f"keywords: {', '.join(view['keywords'])}")
    for task in view["tasks"]:
        yield from _task_lines(task)
    yield ""
    yield from _worker_lines(view)


def _task_lines(task: Json) -> Iterator[str]:
    yield ""
    yield f"{styled(str(task['name']), 'bold')} v{task['version']}, remembered: {task['remember']}"
    yield from _paragraph(task["description"])
    listed = task["parameters"].get("required")
    required = listed if isinstance(listed, list) else []
    properties = task["parameters"].get("properties")
    for name, field in properties.items() if isinstance(properties, dict) else ():
        schema = field if isinstance(field, dict) else {}
        about = schema.get("description")
        default = (
            "required" if name in required else f"default {schema.get('default')!r}"
        )
        told = f": {about}" if about else ""
        yield f"  {styled(name, 'cyan')} ({default}){told}"
    for example in task["examples"]:
        yield from _paragraph(f"e.g. {example}")


def _worker_lines(view: Json) -> Iterator[str]:
    count = view["live_workers"]
    if count is None:
        yield "Whether a worker of it is alive is not known now."
    elif count == 0:
        waiting = "its tasks wait" if view["tasks"] else "what it listens to waits"
        yield f"No worker of it is alive; {waiting} for one."
    elif not view["workers"]:
        yield f"{styled('workers', 'bold')}: {count}"
    else:
        yield styled("workers", "bold")
        for worker in view["workers"]:
            where = f"  {worker['http']}" if worker["http"] else ""
            yield f"  {worker['worker_id']}  {worker['slots']} slots{where}"


def _paragraph(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"  {line}"
