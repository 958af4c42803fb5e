"""The file of API keys: a name, a hash, roles and a user for each; never a key itself.

```json
{"keys": [{"name": "shop", "sha256": "9f86d0...", "roles": ["ask"], "user": "alice"}]}
```

A key is 256 random bits, so that a plain hash reveals nothing. The file is read again when it changes: a key is revoked
by removing its line.
"""

import hashlib
import hmac
import json
import operator
import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.callers import Caller, Role
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import Name

log = structlog.get_logger(__name__)

#: The beginning of every key, by which scanners for leaked secrets recognise one.
_PREFIX = "tlk_"
_KEY_BYTES = 32
#: Seconds between looks at whether the file has changed.
_LOOK_S = 1.0
#: Keys of one file; each request is compared with all of them.
_MOST_KEYS = 1000


class KeyEntry(BaseModel):
    """One key: `sha256` is the hash of it in hexadecimal, `user` None may act for any user.

    `approves` are the roles, such as `finance`, in which its holder answers questions of tasks. Tasks sent with it are
    of `tenant`; with None they may name any.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    roles: Annotated[tuple[Role, ...], Field(min_length=1)]
    user: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    approves: tuple[Name, ...] = Field(default=(), exclude_if=operator.not_)
    tenant: Annotated[str | None, Field(min_length=1, max_length=200)] = None

    @property
    def caller(self) -> Caller:
        """The caller that shows this key."""
        return Caller(
            name=self.name,
            roles=frozenset(self.roles),
            user=self.user,
            approves=frozenset(self.approves),
            tenant=self.tenant,
        )


class KeyList(BaseModel):
    """All keys of a file."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    keys: Annotated[tuple[KeyEntry, ...], Field(max_length=_MOST_KEYS)] = ()


def hash_of(key: str) -> str:
    """Return the hash of *key* as the file holds it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> KeyList:
    """Return the keys in *path*.

    Raises:
        ConfigurationError: it cannot be read, or is no file of keys.
    """
    try:
        found = KeyList.model_validate_json(path.read_bytes())
    except OSError as error:
        msg = f"cannot read the API keys in {str(path)!r}: {error.strerror}; make one with `tasklore api-key NAME`"
        raise ConfigurationError(msg) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ConfigurationError(
            f"{str(path)!r} holds no API keys: {fault_of(first, 'the file')}"
        ) from error
    names = [entry.name for entry in found.keys]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"{str(path)!r} has two keys of one name; rename one, rates are counted by name"
        )
    return found


def make_key(
    path: Path,
    name: str,
    roles: tuple[Role, ...],
    user: str | None,
    approves: tuple[str, ...] = (),
    tenant: str | None = None,
) -> str:
    """Add a new key to *path*, a new file if need be, and return the key, which is kept nowhere.

    Raises:
        InvalidInput: the name is taken, or unusable.
        ConfigurationError: the file cannot be read or written.
    """
    known = read_keys(path).keys if path.exists() else ()
    if name in {entry.name for entry in known}:
        raise InvalidInput(
            f"there is a key named {name!r} in {str(path)!r}; remove it there, or choose another name"
        )
    key = _PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    try:
        entry = KeyEntry(
            name=name,
            sha256=hash_of(key),
            roles=roles,
            user=user,
            approves=approves,
            tenant=tenant,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidInput(fault_of(first)) from error
    path = path.resolve()
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
            "w",
            encoding="utf-8",
        ) as file:
            json.dump(
                KeyList(keys=(*known, entry)).model_dump(exclude_none=True),
                file,
                indent=1,
            )
        if path.exists():
            # A supervisor under another user may read it, and still has to.
            found = path.stat()
            os.chown(draft, found.st_uid, found.st_gid)
            draft.chmod(stat.S_IMODE(found.st_mode))
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigurationError(
            f"cannot write {str(path)!r}: {error.strerror or error}"
        ) from error
    return key


class KeyRing:
    """The keys of a file, read again when it changes.

    Raises:
        ConfigurationError: it cannot be read, or is no file of keys.
    """

    def __init__(
        self, path: Path, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._monotonic = monotonic
        self._seen = _stamp(path)
        self._take(read_keys(path))
        self._look_at = monotonic() + _LOOK_S

    @classmethod
    def of(cls, path: Path | None) -> "KeyRing | None":
        """Return the keys in *path*, None where none are required.

        Raises:
            ConfigurationError: it cannot be read, or is no file of keys.
        """
        return None if path is None else cls(path)

    def find(self, key: str) -> KeyEntry | None:
        """Return the entry of *key*, or None, in a time that reveals nothing of the keys there are."""
        self._reload()
        digest = hash_of(key)
        found = None
        for entry in self._keys:
            if hmac.compare_digest(entry.sha256, digest):
                found = entry
        return found

    def named(self, name: str) -> KeyEntry | None:
        """Return the entry called *name*, None where it was removed."""
        self._reload()
        return self._by_name.get(name)

    def find_holder(self, name: str) -> Caller | None:
        """Return the caller that shows the key called *name*, None where it was removed."""
        entry = self.named(name)
        return None if entry is None else entry.caller

    def _take(self, found: KeyList) -> None:
        self._keys = found.keys
        self._by_name = {entry.name: entry for entry in found.keys}

    def _reload(self) -> None:
        """Read the file again when it has changed; a broken one changes nothing."""
        now = self._monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_S
        stamp = _stamp(self._path)
        if stamp == self._seen:
            return
        self._seen = stamp
        if stamp is None:
            # Removing the file revokes every key in it.
            self._take(KeyList())
            log.warning(
                "api_keys_gone",
                file=str(self._path),
                cure="no key is known until the file is there again",
            )
            return
        try:
            self._take(read_keys(self._path))
        except ConfigurationError as error:
            log.warning("api_keys_not_reloaded", error=str(error))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
