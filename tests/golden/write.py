"""Write golden files anew: `python -m tests.golden.write [openapi] [commands] [http] [guides]`, without a word all.

Run it on purpose, and look at what git shows.
"""

import sys
import tempfile
from pathlib import Path

from tests.golden.calling import show_verdicts
from tests.golden.document import make_document
from tests.golden.frozen import FOLDER, write
from tests.golden.giving import write_outputs
from tests.golden.showing import show_commands


def main(words: set[str]) -> None:
    """Write the files that *words* name."""
    with tempfile.TemporaryDirectory() as folder:
        if "openapi" in words:
            write("openapi.json", make_document())
        if "commands" in words:
            (Path(folder) / "commands").mkdir()
            every = show_commands(Path(folder) / "commands")
            for noun, shown in every.items():
                write(f"commands/{noun}.json", shown)
            for file in (FOLDER / "commands").iterdir():
                if file.stem not in every:
                    file.unlink()
        if "http" in words:
            (Path(folder) / "http").mkdir()
            write("http_errors.json", show_verdicts(Path(folder) / "http"))
        if "guides" in words:
            (Path(folder) / "guides").mkdir()
            write_outputs(Path(folder) / "guides")


main(set(sys.argv[1:]) or {"openapi", "commands", "http", "guides"})
