"""The AsyncAPI document has every subject and message."""

import json
from collections.abc import Iterator
from typing import Any

from tasklore.contracts import subjects
from tasklore.contracts.messages import MESSAGES
from tasklore.runtime.documents import CHANNELS, asyncapi


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for word, inner in part.items():
            if word == "$ref":
                yield inner
            else:
                yield from _references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _references(inner)


def test_every_message_is_documented() -> None:
    """Each message of the contract has its schema, the answer to a request too."""
    document = asyncapi()

    assert document["asyncapi"].startswith("3.")
    assert set(MESSAGES) <= set(document["components"]["schemas"])


def test_every_reference_leads_somewhere() -> None:
    """A tool that reads the document finds what it names."""
    document = asyncapi()
    for reference in set(_references(document)):
        found: Any = document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        assert found is not None, reference


def test_addresses_are_the_subjects_of_the_wire() -> None:
    """Filled in, each address is what `tasklore.contracts.subjects` makes of the same names."""
    address = {channel.name: channel.address for channel in CHANNELS}
    names = {
        "agent_id": "A",
        "task_name": "x",
        "supervisor_id": "S",
        "task_id": "t",
        "generation": 2,
        "origin": "o",
    }
    names |= {"session_id": "s"}

    assert address["tasks"].format(**names) == subjects.task("A", "x")
    assert address["reports"].format(**names) == subjects.report("S", "t", 2)
    assert address["dead"].format(**names) == subjects.dead("o")
    assert address["requests"].format(**names) == subjects.requests("S")
    assert address["progress"].format(**names) == subjects.progress("S", "t")
    assert address["cancel"].format(**names) == subjects.cancel("t")
    assert address["pipelines"].format(**names) == subjects.pipelines("S")
    assert address["runs"].format(**names) == subjects.run_events("s")
    assert address["cards"] == "$KV.agents.{agent_id}"
    assert address["workers"] == "$KV.workers.{agent_id}.{worker_id}"
    assert subjects.turns("alice").count(".") == address["turns"].count(".")
    assert subjects.messages("c", "Bob").count(".") == address["messages"].count(".")


def test_documenting_connects_nobody() -> None:
    """The document is made where no server answers, and says the same every time."""
    assert json.dumps(asyncapi()) == json.dumps(asyncapi())
