"""The manifest in the package, read once; what makes it is `tasklore.supervisor.http.manifest`."""

import json
import re
from functools import cache
from pathlib import Path
from typing import cast

from tasklore.contracts.manifest import FieldEntry, Manifest, OperationEntry

FILE = Path(__file__).parents[1] / "manifest.json"
#: Seconds that a command waits for an end unless told otherwise.
WAIT_S = 30.0
#: Fields that say how long the server waits for an end, each with its unit in seconds.
WAITS = {"wait": 1.0, "wait_s": 1.0, "wait_seconds": 1.0, "wait_ms": 0.001}


@cache
def load_manifest() -> Manifest:
    """Return the operations of the version that is installed."""
    return cast("Manifest", json.loads(FILE.read_bytes()))


def operations_of(noun: str) -> list[OperationEntry]:
    """Return the operations of *noun*, in the order of the manifest."""
    return [one for one in load_manifest()["operations"] if one["noun"] == noun]


def find_shortcut(name: str) -> OperationEntry | None:
    """Return the operation that is the command *name* at the top, None when none is."""
    for one in load_manifest()["operations"]:
        if one["shortcut"] == name:
            return one
    return None


def find_options(name: str) -> dict[str, OperationEntry]:
    """Return what the command *name* at the top does with one of its options, by that option."""
    found = {}
    for one in load_manifest()["operations"]:
        command, _, option = one["shortcut"].partition(" ")
        if option and command == name:
            found[option] = one
    return found


def client_version() -> str:
    """Return the version whose operations these are."""
    return load_manifest()["version"]


def spell_name(field: FieldEntry) -> str:
    """Return *field* as a person types it: `--time-zone`, or the name of the argument."""
    return field["metavar"] if field["positional"] else field["option"]


def spell_command(entry: OperationEntry) -> str:
    """Return the words of the command of *entry*: its own at the top, else its noun and its verb."""
    return entry["shortcut"] or f"{entry['noun']} {entry['verb']}"


def name_options(text: str, entry: OperationEntry, own: str = "") -> str:
    """Return *text* with each field of *entry* that it names in backquotes spelled as it is typed.

    What the text of a field says of its *own* name is about a field of an answer.
    """
    options = {
        field["name"]: spell_name(field)
        for field in entry["fields"]
        if field["name"] != own and field["kind"] != "lines"
    }
    return re.sub(r"`(\w+)`", lambda found: options.get(found[1], found[0]), text)


def param_name(field: FieldEntry) -> str:
    """Return the name of *field* among the values of a command, where common options have names too."""
    return f"field_{field['name'].lower().replace('-', '_')}"
