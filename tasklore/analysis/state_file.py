"""The document that is left in the folder of a story: always that of the latest response that was analysed there."""

from pathlib import Path

from contracts.analysis.document import AnalysisDocument
from contracts.errors import InvalidInput
from memory.stories.analysis_file import read_file, write_file
from tasklore.analysis.sources import STATE_FILE


def leave_in(folder: Path, document: AnalysisDocument) -> int | None:
    """Write *document* into *folder*; return the number of the later response whose document stays there, else None.

    Raises:
        InvalidInput: it cannot be written.
    """
    path = folder / STATE_FILE
    there = _number_in(path)
    if there is not None and there > document.meta.response_number:
        return there
    write_file(path, document)
    return None


def _number_in(path: Path) -> int | None:
    """Return the response that the document at *path* is about, None when there is none that can be read."""
    try:
        return read_file(path).meta.response_number
    except InvalidInput:
        return None
