"""Python files of a user's: where one stands in a package, and running one that stands in none."""

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def place_in_package(path: Path) -> tuple[Path, str]:
    """Return the folder that must be importable, and the module path of the file from there."""
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def name_of_its_own(path: Path) -> str:
    """Return a unique module name for the file, which may be called as a module that is needed (`json.py`)."""
    return (
        f"{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    )


def make_importable(folder: Path) -> None:
    """Let modules in *folder* be found, after all others: a `memory.py` there must not hide a package of ours."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()


def execute(name: str, path: Path) -> ModuleType:
    """Return the file *path*, run as the module *name*.

    Raises:
        ImportError: it is no Python file.
        BaseException: whatever it raises.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(
            f"{str(path)!r} cannot be loaded as Python; give a file that ends in .py"
        )
    module = importlib.util.module_from_spec(spec)
    # Annotations are looked up there while the file runs.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
