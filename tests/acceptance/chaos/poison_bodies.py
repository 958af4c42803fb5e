"""Spoiled messages: a valid one, taken apart in every way that a broken or hostile program might."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

from tests.acceptance.chaos.poison_oddities import (
    NO_MESSAGES,
    ODD_TEXTS,
    ODD_VALUES,
    VERSIONS,
)

Json = dict[str, Any]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

#: The largest body that the server takes together with small headers.
ALMOST_MAX_PAYLOAD = 1024 * 1024 - 512


class Spoiler:
    """Makes spoiled bodies out of valid messages; the same *seed* makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._ways: tuple[Callable[[Json], bytes], ...] = (
            self._truncated,
            self._odd_value,
            self._odd_value,
            self._odd_value,
            self._odd_text,
            self._odd_text,
            self._missing,
            self._strange,
            self._version,
            self._flipped,
            self._flipped,
            self._doubled,
            self._nothing,
            self._deep,
            _valid,
        )

    def spoiled(self, message: Json) -> bytes:
        """Return *message*, spoiled in one of the ways; now and then it is left as it is."""
        # A hundred of a megabyte are enough for one run of ten thousand.
        way = (
            self.large
            if self.random.random() < 0.01
            else self.random.choice(self._ways)
        )
        return way(message)

    def _truncated(self, message: Json) -> bytes:
        body = _valid(message)
        return body[: self.random.randrange(len(body))]

    def _odd_value(self, message: Json) -> bytes:
        holder, key = self._somewhere(changed := json.loads(_valid(message)))
        holder[key] = self._odd(key)
        return json.dumps(changed).encode()

    def _odd_text(self, message: Json) -> bytes:
        holder, key = self._somewhere(changed := json.loads(_valid(message)))
        holder[key] = "@here@"
        return (
            json.dumps(changed)
            .encode()
            .replace(b'"@here@"', self.random.choice(ODD_TEXTS))
        )

    def _missing(self, message: Json) -> bytes:
        holder, key = self._somewhere(changed := json.loads(_valid(message)))
        del holder[key]
        return json.dumps(changed).encode()

    def _strange(self, message: Json) -> bytes:
        changed = json.loads(_valid(message))
        holder, _ = self._somewhere(changed)
        if isinstance(holder, dict):
            for _ in range(self.random.choice((1, 5, 2_000))):
                holder[f"odd-{self.random.random()}"] = self.random.choice(ODD_VALUES)
        return json.dumps(changed).encode()

    def _version(self, message: Json) -> bytes:
        return json.dumps(
            message | {"schema_version": self.random.choice(VERSIONS)}
        ).encode()

    def _flipped(self, message: Json) -> bytes:
        body = bytearray(_valid(message))
        for _ in range(self.random.choice((1, 1, 3, 20))):
            body[self.random.randrange(len(body))] = self.random.randrange(256)
        return bytes(body)

    def _doubled(self, message: Json) -> bytes:
        """Name a field twice, which JSON allows and readers understand differently."""
        body = _valid(message)
        key = self.random.choice(list(message))
        return body[:-1] + b"," + json.dumps({key: self._odd(key)}).encode()[1:]

    def _nothing(self, _message: Json) -> bytes:
        return self.random.choice(NO_MESSAGES)

    def _deep(self, message: Json) -> bytes:
        depth = self.random.choice((100, 500, 2_000, 50_000))
        changed = json.loads(_valid(message))
        holder, key = self._somewhere(changed)
        holder[key] = "@here@"
        return (
            json.dumps(changed)
            .encode()
            .replace(b'"@here@"', b"[" * depth + b"]" * depth)
        )

    def large(self, message: Json) -> bytes:
        """Fill a body up to what the server takes, above what the contract does."""
        room = ALMOST_MAX_PAYLOAD - len(_valid(message)) - 64
        filling = self.random.choice(
            ("x" * room, ["y"] * (room // 5), "\u00e4" * (room // 6))
        )
        changed = json.loads(_valid(message))
        holder, key = self._somewhere(changed)
        holder[key] = filling
        return json.dumps(changed).encode()[:ALMOST_MAX_PAYLOAD]

    def _odd(self, key: Any) -> Any:
        """Return what may stand under *key*; two messages never share a task id, or one report would do for both."""
        value = self.random.choice(ODD_VALUES)
        while key == "task_id" and isinstance(value, str) and _NAME.fullmatch(value):
            value = self.random.choice(ODD_VALUES)
        return value

    def _somewhere(self, found: Any) -> tuple[Any, Any]:
        """Return a place in *found*: what holds it, and its key; outer ones are as likely as inner ones."""
        places: list[tuple[Any, Any]] = []
        waiting = [found]
        while waiting:
            holder = waiting.pop()
            for key, value in list(
                holder.items() if isinstance(holder, dict) else enumerate(holder)
            ):
                places.append((holder, key))
                if isinstance(value, (dict, list)):
                    waiting.append(value)
        return self.random.choice(places)


def _valid(message: Json) -> bytes:
    return json.dumps(message).encode()
