"""The files that are made from code: `make generated` writes each anew, and a test names those that are stale.

In their order: a later one may be made from what an earlier one holds. Rendered overlays (`deploy/golden`) need
kustomize, and are `python -m deploy.checks.golden`; the frozen schemas of messages change on purpose alone.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from deploy import client_source, manifests, reference_pages
from deploy.privileges.__main__ import generated as rights
from deploy.privileges.roles import Cast
from tasklore.commands import manual
from tasklore.commands.analyses import keys as analysis_keys
from tasklore.commands.operations.entries import load_manifest
from tasklore.runtime import documents, metrics_table, settings_table
from tests.architecture import pictures, redis_keys
from tests.architecture.tree import ROOT
from tests.golden import frozen, manifest
from tests.golden.document import make_document

_REFERENCE = ROOT / "docs" / "reference"

_frozen_document = cache(lambda: frozen.as_text(make_document()))


def _read_document() -> dict[str, Any]:
    """Return the document as its golden file holds it, in the order of its names."""
    document: dict[str, Any] = json.loads(_frozen_document())
    return document


def _write_source(make: Callable[[Mapping[str, Any]], str]) -> str:
    return client_source.format_source(make(_read_document()))


def _write_manual() -> str:
    # The commands are those of the manifest, which may have been written just now.
    load_manifest.cache_clear()
    return manual.page()


FILES: dict[Path, Callable[[], str]] = {
    ROOT / "tests/golden/openapi.json": _frozen_document,
    ROOT / "tasklore/commands/manifest.json": manifest.make_text,
    client_source.CLIENT / "models.py": partial(
        _write_source, client_source.write_models
    ),
    client_source.CLIENT / "nouns.py": partial(
        _write_source, client_source.write_nouns
    ),
    _REFERENCE / "cli.md": _write_manual,
    _REFERENCE / "operations.md": lambda: reference_pages.operations_page(
        make_document() | {"info": {"version": ""}}
    ),
    _REFERENCE / "python-client.md": lambda: reference_pages.client_page(
        _write_source(client_source.write_nouns)
    ),
    _REFERENCE / "analysis-keys.md": analysis_keys.page,
    _REFERENCE / "asyncapi.json": lambda: documents.as_text(documents.asyncapi()),
    _REFERENCE / "metrics.md": metrics_table.page,
    _REFERENCE / "redis-keys.md": redis_keys.page,
    _REFERENCE / "settings.md": settings_table.reference_page,
    pictures.PAGE: pictures.drawn,
    **{
        ROOT / "deploy" / path: partial(lambda path: rights(Cast())[path], path)
        for path in rights(Cast())
    },
    **{
        (manifests.BASE / name).resolve(): partial(
            lambda name: manifests.generated()[name], name
        )
        for name in manifests.generated()
    },
}


def main() -> None:
    """Write the files that are stale, and name them."""
    for path, make in FILES.items():
        text = make()
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"written: {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
