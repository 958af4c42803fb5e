"""Exact values are usable by themselves: with the standard library and pydantic, and nothing of the rest."""

import os
import subprocess
import sys

from tests.architecture.tree import ROOT

QUANTITIES = "tasklore.contracts.quantities"

#: What pydantic itself is made of.
_PYDANTIC = {
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
}
_READ_EVERYTHING = """
import sys
from datetime import datetime
before = set(sys.modules)
from tasklore.contracts.quantities.amounts import Amount, Duration, Moment, Percent, Quantity
from tasklore.contracts.quantities.numerals import find_amounts, parse_number
from tasklore.contracts.quantities.times import find_durations, find_moments
from tasklore.contracts.quantities.units import unit_named

now = datetime(2026, 11, 23, 9)
assert Amount("50k") == parse_number("fifty thousand") and Percent("20%") and Quantity("5 km") and unit_named("euros")
assert Duration("90 minutes") == Duration("PT1H30M") and Moment("1 March 2026")
assert find_amounts("$5 or 3 km") and find_moments("tomorrow at 9 New York time", now) and find_durations("2 hours")
print(*sorted(set(sys.modules) - before - sys.stdlib_module_names))
"""


def test_quantities_need_nothing_but_the_standard_library_and_pydantic() -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _READ_EVERYTHING]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True
    )
    loaded = {name for name in done.stdout.split() if not name.startswith("_")}
    ours = {name for name in loaded if name.split(".")[0] == "tasklore"}

    # The packages on the way to it hold nothing but what they say of themselves.
    on_the_way = {"tasklore", "tasklore.contracts"}
    quantities = {name for name in ours if name.startswith(QUANTITIES)}
    assert quantities
    assert ours == quantities | on_the_way
    others = {name.split(".")[0] for name in loaded - ours}
    assert others - sys.stdlib_module_names <= {"tzdata", *_PYDANTIC}
