"""The manifest of every operation; `python -m tests.golden.manifest > tasklore/commands/manifest.json` writes it."""

import json
import sys
from importlib.metadata import version

from tasklore.supervisor.http.manifest import make_manifest
from tests.golden.document import make_document


def make_text() -> str:
    """Return the file as it should be."""
    document = make_document()
    document["info"]["version"] = version("tasklore")
    return f"{json.dumps(make_manifest(document), indent=1, ensure_ascii=False)}\n"


if __name__ == "__main__":
    sys.stdout.write(make_text())
