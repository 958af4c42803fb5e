"""The example with a language model: what the model invents is found, and mended by a second pass."""

import json
from pathlib import Path
from typing import Any

from tests.acceptance.system import System
from tests.llm_double import ScriptedLlm

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "code_review"

CODE = "def ratio(part, whole):\n    return part / whole\n"
TRUE = {
    "line": 2,
    "quote": "part / whole",
    "problem": "fails for a whole of 0",
    "severity": "bug",
}
INVENTED = {
    "line": 1,
    "quote": "def ratio(part, whole=0):",
    "problem": "divides by 0 by default",
    "severity": "bug",
}
MENDED = {
    "line": 1,
    "quote": "def ratio(part, whole):",
    "problem": "says no types",
    "severity": "style",
}


async def test_a_second_pass_takes_the_place_of_the_first(
    own_system: System, tmp_path: Path, scripted_llm: ScriptedLlm
) -> None:
    """The report is written of the second review alone, and the first is hidden in the session."""
    worker = own_system.worker(
        str(EXAMPLE / "agents.py"),
        llm_base_url=scripted_llm.base_url,
        llm_api_key="sk-of-a-test",
    )
    own_system.supervisor(evidence_dir=tmp_path / "evidence").ready()
    worker.ready()
    scripted_llm.queue(
        {"reasoning": "It divides.", "findings": [TRUE, INVENTED]},
        {"reasoning": "Line 1 has no default.", "findings": [MENDED]},
        {"reasoning": "One bug.", "sentence": "It fails for a whole of 0."},
    )

    outcome = run(own_system, tmp_path, "--keep", "--session", "reviewed")

    assert outcome["state"] == "completed", outcome["error"]
    assert [phase["status"] for phase in outcome["phases"]] == ["done"] * 4
    assert "It fails for a whole of 0. (2 findings in 2 lines)" in outcome["result"]
    assert (
        "| 1 | style | says no types | `def ratio(part, whole):` |" in outcome["result"]
    )
    assert "divides by 0 by default" not in outcome["result"]
    assert "does not stand there" in scripted_llm.requests[1].user


def run(system: System, folder: Path, *options: str) -> Any:
    """Return the outcome of a run over CODE."""
    (folder / "ratio.py").write_text(CODE, "utf-8")
    done = system.command(
        *(
            "pipelines",
            "run",
            str(EXAMPLE / "review.toml"),
            "--input",
            "name=ratio.py",
            "--input",
            "code=@ratio.py",
        ),
        *(*options, "--json"),
        cwd=folder,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)
