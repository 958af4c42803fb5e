"""Turn a folder of Markdown memories into JSON documents: each `resource_*.md` is kept, its `.json` written beside it.

What could not be read as headings and bullets is listed; it is in the document as it is written.

```console
$ python -m examples.migrate_memories ./resources
$ tasklore memory diff ana food
$ tasklore memory import ana ./resources/resource_user_food_prefs.json
```
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from examples.migrate_memories.older_markdown import read
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.files import json_files
from tasklore.memory.documents.items import METADATA
from tasklore.memory.documents.kinds import Kinds

#: The names of older files.
OLDER = "resource_*.md"


def migrate(file: Path, kinds: Kinds, *, force: bool = False) -> list[str]:
    """Write the document of *file* beside it, and return a line for each text that was kept without being understood.

    Raises:
        InvalidInput: it cannot be read, or its document is there already.
    """
    target = file.with_suffix(".json")
    if target.exists() and not force:
        raise InvalidInput(
            f"{target} is there already; move it away, or write over it with --force"
        )
    try:
        text = file.read_bytes().decode("utf-8-sig")
        changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
    made = read(text, kinds, name=file.name, added=changed)
    metadata = made.body.get(METADATA)
    named = metadata if isinstance(metadata, dict) else {}
    body = {
        **made.body,
        METADATA: {**named, "resource_id": made.resource_id},
    }
    target.write_bytes(json_files.write(body))
    return [
        f"{file}:{one.line} is kept at {one.kept_at} as it is written ({one.why}): {one.text}"
        for one in made.unparsed
    ]


def list_files(folder: Path) -> list[Path]:
    """Return the older memories in *folder*.

    Raises:
        InvalidInput: there are none, or no such folder.
    """
    files = sorted(folder.glob(OLDER)) if folder.is_dir() else []
    if not files:
        raise InvalidInput(
            f"there is no {OLDER} in {folder}; name the folder with the older files"
        )
    return files


def main() -> int:
    """Migrate the files of the folder that the command line names; 1 when one was not."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("folder", type=Path)
    reader.add_argument(
        "--kinds", type=Path, help="a folder with kinds of documents of your own"
    )
    reader.add_argument(
        "--force", action="store_true", help="write over a document that is there"
    )
    given = reader.parse_args()
    failed = 0
    try:
        kinds = Kinds.load(*([given.kinds] if given.kinds else []))
        files = list_files(given.folder)
    except InvalidInput as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for file in files:
        try:
            for line in migrate(file, kinds, force=given.force):
                sys.stdout.write(f"{line}\n")
        except InvalidInput as error:
            sys.stderr.write(f"{error}\n")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
