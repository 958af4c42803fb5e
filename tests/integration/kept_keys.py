"""A file of keys that a test takes keys from and puts back, as an operator does."""

import json
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tasklore.contracts.callers import Role
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key


@dataclass
class KeyFile:
    """The file at *path*; `headers` show the keys that were made, by their names."""

    path: Path
    headers: dict[str, dict[str, str]] = field(default_factory=dict)

    def make(
        self,
        name: str,
        *roles: Role,
        user: str | None = None,
        tenant: str | None = None,
    ) -> None:
        key = make_key(self.path, name, roles, user, tenant=tenant)
        self.headers[name] = {"Authorization": f"Bearer {key}"}

    def open(self) -> KeyRing:
        """Return its keys, read anew at each look where the file has changed."""
        moments = count(step=10)
        return KeyRing(self.path, lambda: float(next(moments)))

    def remove(self, name: str) -> dict[str, Any]:
        """Take a key out, and return its entry."""
        found = self._read()
        [entry] = [one for one in found if one["name"] == name]
        self._write([one for one in found if one["name"] != name])
        return entry

    def put_back(self, entry: dict[str, Any], **changes: Any) -> None:
        """Put an entry back, with *changes*."""
        others = [one for one in self._read() if one["name"] != entry["name"]]
        self._write([*others, {**entry, **changes}])

    def _read(self) -> list[dict[str, Any]]:
        return list(json.loads(self.path.read_text())["keys"])

    def _write(self, entries: list[dict[str, Any]]) -> None:
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps({"keys": entries}))
        draft.replace(self.path)
