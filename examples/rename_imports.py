"""Rewrite the imports of 0.2 in a folder of one's own agents to those of 0.3: `python rename_imports.py FOLDER`."""

import re
import sys
from pathlib import Path

RENAMES = {
    r"workers(?= import| as )": "tasklore",
    r"workers\.testing(?= import| as )": "tasklore.testing",
    r"quantities\b": "tasklore.contracts.quantities",
    r"(?=(?:contracts|memory|runtime|supervisor|workers)[.\s])": "tasklore.",
}


def rename(line: str) -> str:
    """Return *line* with the name that it imports from Tasklore as it is called now."""
    for old, new in RENAMES.items():
        renamed = re.sub(rf"^(\s*(?:from|import) ){old}", rf"\g<1>{new}", line)
        if renamed != line:
            return renamed
    return line


if __name__ == "__main__":
    for file in Path(sys.argv[1]).rglob("*.py"):
        if "site-packages" in file.parts:  # of an environment: others' code
            continue
        lines = file.read_text("utf-8").splitlines(keepends=True)
        file.write_text("".join(map(rename, lines)), "utf-8")
