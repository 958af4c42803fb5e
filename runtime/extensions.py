"""Finds what others wrote for an extension point: an entry point by its name, loaded when it is used."""

from importlib.metadata import entry_points
from typing import Any, TypeVar

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.faults import nearest

#: The groups of entry points, by the extension point that each is of.
MODEL_GROUP = "tasklore.models"
EMBEDDER_GROUP = "tasklore.embedders"
SECRETS_GROUP = "tasklore.secrets"

P = TypeVar("P")


def installed_names(group: str) -> tuple[str, ...]:
    """Return the names that installed distributions declare in *group*."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def make_extension(group: str, name: str, kind: type[P], setting: str) -> P:
    """Return what the entry point *name* of *group* makes: it is called without arguments, and returns a *kind*.

    *setting* is the variable that named it, for messages.

    Raises:
        ConfigurationError: none is installed, it cannot be loaded or made, or lacks a method of *kind*.
    """
    point = next(iter(entry_points(group=group, name=name)), None)
    if point is None:
        raise ConfigurationError(f"{setting}: {absence_of(group, name)}")
    where = f"{setting}: {name!r} ({point.value})"
    try:
        made: Any = point.load()()
    except Exception as error:
        msg = f"{where} cannot be made: {type(error).__name__}: {error}"
        raise ConfigurationError(msg) from error
    if not isinstance(made, kind):
        wanted = {word for word in vars(kind) if not word.startswith("_")}
        missing = sorted(word for word in wanted if not hasattr(made, word))
        raise ConfigurationError(
            f"{where} made a {type(made).__name__} without {', '.join(missing)}; "
            f"write them as tasklore.extensions.{kind.__name__} has them"
        )
    return made


def absence_of(group: str, name: str) -> str:
    """Return the sentence that *name* is not installed, with the names that are."""
    known = installed_names(group)
    return (
        f"no installed distribution has {name!r} in its entry points {group!r}"
        f"{nearest(name, known) or ';'} installed are {', '.join(known) or 'none'}"
    )
