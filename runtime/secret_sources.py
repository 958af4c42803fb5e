"""Where secrets come from: a directory with a file for each, and a source of an extension, which goes first.

Standard library only, unless there is such a source: clients of the API read this, and load nothing heavier.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tasklore.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from tasklore.contracts.extensions import SecretSource

#: A directory with a file for each secret, called as its variable in small letters.
SECRETS_VARIABLE = "TASKLORE_SECRETS_DIR"
#: The name of an entry point of `tasklore.secrets`.
SOURCE_VARIABLE = "TASKLORE_SECRETS_SOURCE"


class SecretDirectory:
    """Secrets as files of one directory, as Kubernetes and Docker mount them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str, /) -> str | None:
        """Return the content of the file *name*, in small letters or large ones, without white space at its ends.

        None where there is none, or nothing in it.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        if not name or Path(name).name != name:
            return None
        path = self._folder / name
        try:
            if not path.is_file():
                path = self._folder / name.upper()
            return path.read_text("utf-8").strip() or None if path.is_file() else None
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"cannot read {str(path)!r} ({type(error).__name__}); correct it"
            ) from error


def read_secret(environ: Mapping[str, str], name: str) -> str | None:
    """Return the secret *name* from the source that *environ* names, else from its directory; None: in neither.

    Raises:
        ConfigurationError: the source is not installed or cannot be asked, or the file cannot be read.
    """
    if source := environ.get(SOURCE_VARIABLE):
        found = _ask(source, name)
        if found is not None:
            return found
    directory = environ.get(SECRETS_VARIABLE)
    return SecretDirectory(Path(directory)).read(name) if directory else None


def _ask(source: str, name: str) -> str | None:
    try:
        found = _source(source).read(name)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{SOURCE_VARIABLE}: {source!r} cannot be asked for {name!r}: {type(error).__name__}: {error}"
        ) from error
    if found is not None and not isinstance(found, str):
        raise ConfigurationError(
            f"{SOURCE_VARIABLE}: {source!r} returned a {type(found).__name__} for {name!r}; return text or None"
        )
    return (found or "").strip() or None


@lru_cache(maxsize=8)
def _source(name: str) -> "SecretSource":
    """Return the source called *name*, one in a process."""
    # Not before one is named: they cost a client of the API more than the rest of its start.
    from tasklore.contracts.extensions import SecretSource
    from tasklore.runtime.extensions import SECRETS_GROUP, make_extension

    return make_extension(
        SECRETS_GROUP,
        name,
        kind=SecretSource,  # type: ignore[type-abstract] # looked at, never made
        setting=SOURCE_VARIABLE,
    )
