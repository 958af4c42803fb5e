"""What lies in a folder: files, languages and sizes."""

from collections import defaultdict
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from examples.repository_health.shapes import Language, Overview
from examples.repository_health.sources import LARGEST
from examples.repository_health.walk import demand_going_on, root_of, walk
from tasklore import Agent, Context, Field, Parameters
from tasklore.contracts.errors import InvalidInput

#: Python files that are analysed, and bytes of their paths together: the list has to fit into a message twice over.
MOST_PYTHON_FILES = 5_000
MOST_PATH_BYTES = 300_000

#: Languages by the end of a file's name.
LANGUAGES = {
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".cs": "C#", ".css": "CSS", ".go": "Go", ".h": "C", ".hpp": "C++",
    ".html": "HTML", ".ini": "INI", ".java": "Java", ".js": "JavaScript", ".json": "JSON", ".jsx": "JavaScript",
    ".kt": "Kotlin", ".lua": "Lua", ".md": "Markdown", ".php": "PHP", ".py": "Python", ".pyi": "Python", ".rb": "Ruby",
    ".rs": "Rust", ".rst": "reStructuredText", ".scss": "CSS", ".sh": "Shell", ".sql": "SQL", ".svg": "SVG",
    ".swift": "Swift", ".toml": "TOML", ".ts": "TypeScript", ".tsx": "TypeScript", ".txt": "Text", ".xml": "XML",
    ".yaml": "YAML", ".yml": "YAML",
}  # fmt: skip
OTHER = "other"
#: Bytes whose lines are counted: what is more takes longer than anybody waits for a number of lines.
_MOST_COUNTED = 256 * 1024 * 1024

agent = Agent(
    "RepositoryContextAgent",
    description="Looks around in a folder of the worker's machine.",
)


class FolderQuery(Parameters):
    """Where to look, and patterns of names to leave out beside those that tools make."""

    folder: str = Field(description="Where it is on the worker's machine.")
    skip: tuple[str, ...] = Field(
        (), description="Patterns of names to leave out, such as 'generated_*'."
    )


class Surroundings(BaseModel):
    """What lies there, and its Python files by path relative to the folder."""

    overview: Overview
    python_files: list[str]


@agent.task(remember=False, in_words=False)
def look_around(place: FolderQuery, context: Context) -> Surroundings:
    """List what lies in a folder of source code: files, languages, lines and bytes."""
    root = root_of(place.folder)
    found = walk(root, place.skip, context)
    python, is_cut = _python_files(found.files)
    if not python:
        raise InvalidInput(
            f"folder {place.folder!r} holds no Python file; give the folder of a Python project"
        )
    return Surroundings(
        overview=Overview(
            folder=str(root),
            files=len(found.files),
            bytes=sum(found.files.values()),
            languages=_languages(root, found.files, context),
            links=found.links,
            skipped_folders=found.skipped,
            is_cut=found.is_cut or is_cut,
        ),
        python_files=python,
    )


def _python_files(files: dict[str, int]) -> tuple[list[str], bool]:
    """Return the Python files, as many as one message carries, and whether there are more."""
    chosen: list[str] = []
    room = MOST_PATH_BYTES
    for path in files:
        if not path.endswith(".py"):
            continue
        room -= len(path.encode())
        if room < 0 or len(chosen) >= MOST_PYTHON_FILES:
            return chosen, True
        chosen.append(path)
    return chosen, False


def _languages(root: Path, files: dict[str, int], context: Context) -> list[Language]:
    """Return the languages of *files*, the one with the most bytes first."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    room = _MOST_COUNTED
    for path, size in files.items():
        demand_going_on(context)
        language = LANGUAGES.get(PurePosixPath(path).suffix.lower(), OTHER)
        count = counts[language]
        count[0] += 1
        count[1] += size
        if language != OTHER and size <= min(LARGEST, room):
            room -= size
            count[2] += _lines_in(root / path)
    ordered = sorted(counts.items(), key=lambda item: (-item[1][1], item[0]))
    return [
        Language(language=name, files=many, bytes=size, lines=lines)
        for name, (many, size, lines) in ordered
    ]


def _lines_in(file: Path) -> int:
    try:
        text = file.read_bytes()
    except OSError:
        return 0
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
