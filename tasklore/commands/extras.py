"""Packages that only some roles need: which extra installs them, and how the other roles do without."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: Packages by the extra of ours that installs them.
_EXTRAS = {"typer": "cli", "rich": "cli", "fastapi": "api", "uvicorn": "api"}


def advice_for(error: BaseException) -> str | None:
    """Return how to install the package that *error*, or one in its group, misses; None when no extra has it."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(advice_for, error.exceptions)), None)
    package = (
        (error.name or "").partition(".")[0]
        if isinstance(error, ModuleNotFoundError)
        else ""
    )
    if package not in _EXTRAS:
        return None
    return f'this needs {package}, which is not installed: pip install "tasklore[{_EXTRAS[package]}]"'


@contextmanager
def without(package: str) -> Iterator[None]:
    """Let libraries imported in this block find *package* missing: they use it where it happens to be installed.

    structlog imports rich for tracebacks, and faststream uvicorn for its version: neither is worth the start of a
    command or a worker.
    """
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # how Python marks a module that must not be imported
    try:
        yield
    finally:
        del sys.modules[package]
