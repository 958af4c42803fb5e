"""The table of all functions: complete for a process that imports nothing else, and of one mind with its Lua."""

import json
import re
import subprocess
import sys
from pathlib import Path

from memory.queues.scripts import PARKED
from memory.scripts import read
from tests.architecture.tree import ROOT

MEMORY = ROOT / "memory"
#: Alone in its process, since this one may have imported any module that registers a function.
TABLE = "import json, memory.functions as f; print(json.dumps(f.LIBRARIES))"
EVERY_MODULE = """
import importlib, pathlib, memory.functions
for file in sorted(pathlib.Path("memory").rglob("*.py")):
    importlib.import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))
"""


def libraries(before: str = "") -> dict[str, str]:
    """Return the table of a process of its own that ran *before*."""
    command = [sys.executable, "-c", f"{before}\n{TABLE}"]
    found: dict[str, str] = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    return found


def included() -> set[Path]:
    """Return the files that are parts of others, and no function of their own."""
    return {
        (file.parent / f"{name}.lua").resolve()
        for file in MEMORY.rglob("*.lua")
        for name in re.findall(r"^-- include (\S+)$", file.read_text("utf-8"), re.MULTILINE)
    }


def test_importing_the_table_registers_every_function() -> None:
    """Each `.lua` file that is no part of others, and all that any module of `memory` registers."""
    table = libraries()
    own = [file for file in MEMORY.rglob("*.lua") if file not in included()]
    assert len(own) > 80
    assert [file.name for file in own if not any(read(file) in library for library in table.values())] == []
    assert libraries(EVERY_MODULE) == table


def test_lua_and_python_agree_on_the_number_that_parks_a_row() -> None:
    """Both add it to the number of a row that left the order."""
    (exponent,) = re.findall(r"^local PARKED = 2 \^ (\d+)$", read(MEMORY / "queues" / "close_rows.lua"), re.MULTILINE)
    assert 2 ** int(exponent) == PARKED
