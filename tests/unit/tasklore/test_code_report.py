"""The agent of the demonstration's pipeline, on a small folder."""

from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.demo.code_report import agent
from tasklore.testing import AgentKit

TREE = {
    "shop/cart.py": '"""The cart."""\nimport json\nfrom shop import prices\n\n\ndef total():\n    """Sum."""\n',
    "shop/prices.py": "import json\n\n\nclass Price:\n    pass\n",
    "notes.txt": "no module\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for name, text in TREE.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    return str(tmp_path)


async def told(task: str, **parameters: Any) -> Any:
    report = await AgentKit(agent, session={}).run(task, parameters)
    assert report.status == "completed", report.error
    return report.result


async def test_a_report_says_what_the_looks_found_and_how_standards_are_kept(
    folder: str,
) -> None:
    modules = await told("measure_modules", folder=folder)
    imports = await told("count_imports", folder=folder)
    functions = await told("count_functions", folder=folder)
    standards = [
        {"id": "s3", "text": "Speak plainly."},
        {"id": "s2", "text": "no module over 6 lines"},
        {"id": "s1", "text": "No module over 400 lines."},
    ]
    verdict = await told("check_standards", modules=modules, standards=standards)

    assert modules == {"lines": {"shop/cart.py": 8, "shop/prices.py": 6}}
    assert imports == {"count": 3, "most": "json"}
    assert functions == {"count": 2, "documented": 1}
    assert verdict == {
        "lines": [
            "s3 is left to people: Speak plainly.",
            "s2 is not kept by 1 modules: no module over 6 lines",
            "s1 is kept: No module over 400 lines.",
        ]
    }
    report = await told(
        "write_report",
        folder=folder,
        modules=modules,
        imports=imports,
        functions=functions,
        verdict=verdict,
    )
    assert report.splitlines()[:2] == [f"# Code of {folder}", ""]
    assert "| longest module | shop/cart.py: 8 lines |" in report
    assert report.endswith("- s1 is kept: No module over 400 lines.")


async def test_without_a_standard_the_check_says_how_to_record_one() -> None:
    kit = AgentKit(agent, session={})
    report = await kit.run(
        "check_standards", {"modules": {"lines": {}}, "standards": []}
    )

    assert report.error is not None
    assert (report.status, report.error.type) == ("failed", "GiveUp")
    assert 'record one: tasklore projects standard project-1 "no module' in (
        report.error.message
    )


async def test_a_folder_without_a_module_is_refused(tmp_path: Path) -> None:
    report = await AgentKit(agent).run("count_imports", {"folder": str(tmp_path)})

    assert report.error is not None
    assert "name a folder of the worker's machine" in report.error.message
