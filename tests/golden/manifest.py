"""The manifest of every operation; `python -m tests.golden.manifest > tasklore/commands/manifest.json` writes it."""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pkgutil import iter_modules
from typing import Any

from tasklore.supervisor import operations
from tasklore.supervisor.http.app import begin_app
from tasklore.supervisor.http.manifest import make_manifest
from tasklore.supervisor.http.mount import mount


def make_text() -> str:
    """Return the file as it should be: of each noun, wherever it is served."""
    app = begin_app()
    for module in iter_modules(operations.__path__, f"{operations.__name__}."):
        table = getattr(import_module(module.name), "OPERATIONS", ())
        app.include_router(mount(None, table))
    document: dict[str, Any] = app.openapi()
    document["info"]["version"] = version("tasklore")
    return f"{json.dumps(make_manifest(document), indent=1, ensure_ascii=False)}\n"


if __name__ == "__main__":
    sys.stdout.write(make_text())
