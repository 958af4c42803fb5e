"""Turn Markdown analyses into documents: FILE.md is kept, FILE.json is written beside it, what was not read is listed.

```console
$ python -m examples.migrate_analyses state/agent_analysis.md
```
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from examples.migrate_analyses.markdown import read_markdown
from tasklore.contracts.analysis.document import read_document, upcast
from tasklore.contracts.errors import InvalidInput


def migrate(file: Path, *, force: bool = False) -> list[str]:
    """Write the document of *file* beside it, and return a line for each line of it that was not taken over.

    Raises:
        InvalidInput: it cannot be read, does not say what it is about, or its document is there already.
    """
    target = file.with_suffix(".json")
    if target == file:
        raise InvalidInput(f"{file} is no Markdown file by its name")
    if target.exists() and not force:
        raise InvalidInput(
            f"{target} is there already; move it away, or write over it with --force"
        )
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).replace(microsecond=0)
    body, unread = read_markdown(text, updated=changed.isoformat())
    listed = [
        f"{file}:{one.line} was not read ({one.why}): {one.text}" for one in unread
    ]
    try:
        document = upcast(read_document(body))
    except InvalidInput as error:
        raise InvalidInput("\n".join([*listed, f"{file}: {error}"])) from error
    target.write_bytes(document.minified() + b"\n")
    return listed


def main() -> int:
    """Migrate the files that the command line names; 1 when one was not."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("files", type=Path, nargs="+")
    reader.add_argument(
        "--force", action="store_true", help="write over a document that is there"
    )
    given = reader.parse_args()
    failed = 0
    for file in given.files:
        try:
            for line in migrate(file, force=given.force):
                sys.stdout.write(f"{line}\n")
        except InvalidInput as error:
            sys.stderr.write(f"{error}\n")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
