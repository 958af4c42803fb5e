"""The table of all functions: complete for a process that imports nothing else, and of one mind with its Lua."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tasklore.memory.queues.scripts import PARKED
from tasklore.memory.scripts import read
from tests.architecture.tree import ROOT

MEMORY = ROOT / "memory"
#: In a process of its own, since this one may have imported any module that registers a function.
TABLES = """
import importlib, json, pathlib, tasklore.memory.functions as functions
table = dict(functions.LIBRARIES)
for file in sorted(pathlib.Path("memory").rglob("*.py")):
    name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    importlib.import_module(f"tasklore.{name}")
print(json.dumps([table, functions.LIBRARIES]))
"""


def included() -> set[Path]:
    """Return the files that are parts of others, and no function of their own."""
    return {
        (file.parent / f"{name}.lua").resolve()
        for file in MEMORY.rglob("*.lua")
        for name in re.findall(
            r"^-- include (\S+)$", file.read_text("utf-8"), re.MULTILINE
        )
    }


def test_importing_the_table_registers_every_function() -> None:
    """Each `.lua` file that is no part of others, and all that any module of `memory` registers."""
    ran = subprocess.run(
        [sys.executable, "-c", TABLES], cwd=ROOT, capture_output=True, check=True
    )
    table, whole = json.loads(ran.stdout)
    own = [file for file in MEMORY.rglob("*.lua") if file not in included()]
    assert len(own) > 80
    assert [
        file.name
        for file in own
        if not any(read(file) in library for library in table.values())
    ] == []
    assert whole == table


def test_lua_and_python_agree_on_the_number_that_parks_a_row() -> None:
    """Both add it to the number of a row that left the order."""
    (exponent,) = re.findall(
        r"^local PARKED = 2 \^ (\d+)$",
        read(MEMORY / "queues" / "close_rows.lua"),
        re.MULTILINE,
    )
    assert 2 ** int(exponent) == PARKED
