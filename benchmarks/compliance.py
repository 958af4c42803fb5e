"""Run published test tables against paths and edits: `python -m benchmarks.compliance --data FOLDER`.

The folder holds `json_patch.json` (json-patch/json-patch-tests, Apache-2.0) and `jsonpath_compliance.json`
(jsonpath-standard/jsonpath-compliance-test-suite, BSD-2-Clause), each a list of cases; neither is part of Tasklore.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from rich.console import Console
from rich.table import Table

from tasklore.contracts.errors import InvalidPath, UnknownPath
from tasklore.memory.documents.edits import apply_changes, inverse
from tasklore.memory.documents.paths import lookup, parse, resolve
from tests.json_patch import NotAPatch, apply_patch, equal

PATCH_SOURCE = "json-patch/json-patch-tests (Apache-2.0)"
JSONPATH_SOURCE = "jsonpath-standard/jsonpath-compliance-test-suite (BSD-2-Clause)"

#: What stands in quotes in a selector; what is left of a valid one tells whether it is a singular query.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SEVERAL = re.compile(r"[*?:,]|\.\.")


@dataclass(frozen=True)
class Verdict:
    """How one case came out: `wrong` says what, None when it is as it should be."""

    source: str
    group: str
    case: str
    wrong: str | None


def main() -> None:
    """Read the folder, print the table and every case that failed; end with 1 when one did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=File, required=True, help="folder with the two files of cases"
    )
    folder: File = parser.parse_args().data
    verdicts = [
        *patch_verdicts(json.loads((folder / "json_patch.json").read_text())),
        *path_verdicts(json.loads((folder / "jsonpath_compliance.json").read_text())),
    ]
    console = Console()
    console.print(table_of(verdicts))
    wrong = [verdict for verdict in verdicts if verdict.wrong is not None]
    for verdict in wrong:
        console.print(f"{verdict.group}: {verdict.case}: {verdict.wrong}", markup=False)
    sys.exit(1 if wrong else 0)


def table_of(verdicts: list[Verdict]) -> Table:
    """Return cases, passed and failed for each group."""
    table = Table("cases", "number", "passed", "failed", "source")
    for source, group in dict.fromkeys(
        (verdict.source, verdict.group) for verdict in verdicts
    ):
        wrong = [
            verdict.wrong
            for verdict in verdicts
            if (verdict.source, verdict.group) == (source, group)
        ]
        passed = wrong.count(None)
        table.add_row(
            group, str(len(wrong)), str(passed), str(len(wrong) - passed), source
        )
    return table


def patch_verdicts(cases: list[dict[str, Any]]) -> Iterator[Verdict]:
    """Judge each case of RFC 6902, and whether what was done can be taken back to the byte."""
    for case in cases:
        if case.get("disabled"):
            continue
        name = case.get("comment") or json.dumps(case["patch"])
        yield Verdict(
            PATCH_SOURCE,
            "error" if "error" in case else "patch",
            name,
            patch_fault(case),
        )


def patch_fault(case: dict[str, Any]) -> str | None:
    """Say what is wrong with how a patch comes out, None when nothing is."""
    body = case["doc"]
    given = deepcopy(case["doc"])
    try:
        patched = apply_patch(body, case["patch"])
    except NotAPatch as error:
        return None if "error" in case else f"refused: {error}"
    if json.dumps(body) != json.dumps(given):
        return "altered the document it was given"
    if "error" in case:
        return f"should be refused ({case['error']})"
    if "expected" in case and not equal(patched.body, case["expected"]):
        return (
            f"gave {json.dumps(patched.body)}, expected {json.dumps(case['expected'])}"
        )
    undone = apply_changes(patched.body, inverse(patched.changes))
    return (
        None
        if json.dumps(undone) == json.dumps(given)
        else f"taken back it is {json.dumps(undone)}"
    )


def path_verdicts(cases: list[dict[str, Any]]) -> Iterator[Verdict]:
    """Judge each selector of RFC 9535."""
    for case in cases:
        selector = case["selector"]
        if case.get("invalid_selector"):
            yield Verdict(
                JSONPATH_SOURCE,
                "invalid, refused",
                case["name"],
                _unless_refused(selector),
            )
        elif _SEVERAL.search(_QUOTED.sub("", selector)):
            yield Verdict(
                JSONPATH_SOURCE,
                "not singular, refused as such",
                case["name"],
                _unless_several(selector),
            )
        else:
            yield Verdict(
                JSONPATH_SOURCE,
                "singular, looked up",
                case["name"],
                singular_fault(case),
            )


def _unless_refused(selector: str) -> str | None:
    try:
        path = parse(selector)
    except InvalidPath:
        return None
    return f"{selector!r} was read as {path}"


def _unless_several(selector: str) -> str | None:
    try:
        path = parse(selector)
    except InvalidPath as error:
        return (
            None
            if "selects any number of places" in str(error)
            else f"{selector!r}: {error}"
        )
    return f"{selector!r} was read as {path}"


def singular_fault(case: dict[str, Any]) -> str | None:
    """Say what is wrong with how a singular query is read and looked up, None when nothing is."""
    try:
        path = parse(case["selector"])
    except InvalidPath as error:
        return f"refused: {error}"
    if parse(str(path)) != path:
        return f"{path} is read back as {parse(str(path))}"
    try:
        found = [lookup(case["document"], path)]
        places = [resolve(case["document"], path)]
    except UnknownPath:
        found = []
        places = []
    if json.dumps(found) != json.dumps(case["result"]):
        return f"found {found!r}, expected {case['result']!r}"
    if "result_paths" in case and places != [
        parse(place) for place in case["result_paths"]
    ]:
        return f"stands at {places}, expected {case['result_paths']}"
    return None


if __name__ == "__main__":
    main()
