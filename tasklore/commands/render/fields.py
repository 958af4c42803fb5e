"""JSON views as objects with attributes, for pictures that read many fields."""

from collections.abc import Iterable, Mapping
from typing import Any


class Fields:
    """The fields of a JSON view by their names; one that is left out is None."""

    def __init__(self, view: Mapping[str, Any]) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        """Return the value of the field *name*, with attributes where it has fields of its own."""
        return _open(self._view.get(name))

    def pairs(self, name: str) -> Iterable[tuple[str, Any]]:
        """Return the names and values in the field *name*, of which the names are data."""
        return (self._view.get(name) or {}).items()


def _open(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Fields(value)
    if isinstance(value, list):
        return [_open(one) for one in value]
    return value
