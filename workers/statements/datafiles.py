"""The data files that language is read with: shipped ones, and a user's folder whose files replace or add to them."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from contracts.errors import ConfigurationError

SHIPPED = Path(__file__).parent / "data"

#: Bytes of one file: twenty times the largest shipped one; more was put there by mistake.
_MOST_BYTES = 1024 * 1024

Table = Mapping[str, object]


@cache
def read_tables(*folders: Path) -> Mapping[str, Table]:
    """Return every data file by its name without `.toml`: the shipped ones, then those of *folders* in their order.

    A file of a later folder takes the place of one of the same name.

    Raises:
        ConfigurationError: a folder or file cannot be read; the message names it and the cure.
    """
    files: dict[str, Path] = {}
    for folder in (SHIPPED, *folders):
        if not folder.is_dir():
            raise ConfigurationError(f"{str(folder)!r} is no folder; name one with .toml files, or none")
        files.update((file.stem, file) for file in sorted(folder.glob("*.toml")))
    return {name: _read(file) for name, file in files.items()}


def _read(file: Path) -> Table:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ConfigurationError(f"{str(file)!r} is larger than {_MOST_BYTES} bytes; split it")
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{str(file)!r} cannot be read: {error}; write it as TOML in UTF-8") from error


def table_at(table: Table, *names: str) -> Mapping[str, object]:
    """Return the table below *names*, empty when it is not there.

    Raises:
        ConfigurationError: something else than a table is there.
    """
    for name in names:
        inner = table.get(name, {})
        if not isinstance(inner, Mapping):
            raise ConfigurationError(f"{'.'.join(names)!r} must be a table of a data file, not {inner!r}")
        table = inner
    return table


def strings_at(table: Table, *names: str) -> tuple[str, ...]:
    """Return the list of strings at *names*, empty when it is not there; one string is a list of one.

    Raises:
        ConfigurationError: something else is there.
    """
    value = table_at(table, *names[:-1]).get(names[-1], [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise ConfigurationError(f"{'.'.join(names)!r} must be a list of strings of a data file, not {value!r}")
    return tuple(listed)


def words_at(table: Table, *names: str) -> Mapping[str, str]:
    """Return the table of strings at *names*, empty when it is not there.

    Raises:
        ConfigurationError: something else is there.
    """
    found = table_at(table, *names)
    return {word: strings_at(found, word)[0] for word in found}
