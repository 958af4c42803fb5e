"""Other libraries on the same sentences, each in one process with pins of its own."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.peer_rows import install, program
from benchmarks.processes import ROOT, NotMeasuredError
from benchmarks.tables.scores import Case, Score, judged, values_of

REQUIREMENTS = ROOT / "benchmarks" / "peers" / "words.txt"
_MODULE = "benchmarks.peers.words_app"
_PATIENCE_S = 600.0


def measured(
    asked: Mapping[str, tuple[str, list[Case]]],
) -> dict[str, dict[str, Score]]:
    """Return the scores of each library on each table; *asked* names for each table its question and its cases.

    Raises:
        NotMeasuredError: the libraries cannot be installed, or do not answer in ten minutes.
    """
    install(REQUIREMENTS)
    question = {
        title: (name, [case.text for case in cases])
        for title, (name, cases) in asked.items()
    }
    told = json.loads(_run(program(REQUIREMENTS, "python"), json.dumps(question)))
    return {
        system: {
            title: judged(
                asked[title][1], map(values_of, answers["values"]), answers["ns"]
            )
            for title, answers in tables.items()
        }
        for system, tables in told.items()
    }


def _run(python: Path, question: str) -> str:
    try:
        done = subprocess.run(
            (str(python), "-m", _MODULE),
            input=question,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    except subprocess.TimeoutExpired as error:
        raise NotMeasuredError(
            f"the other libraries did not answer within {_PATIENCE_S:.0f} s"
        ) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NotMeasuredError(f"the other libraries failed: {last[-160:]}")
    return done.stdout
