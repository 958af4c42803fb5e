"""Secrets, taken out of what is kept as evidence: by the inputs that are declared secret, by names, and by their look.

It masks rather too much: what is masked has only to be given anew, or computed again.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pydantic import JsonValue

#: What stands in the place of a secret.
MASK = "***"
#: Characters from which on a secret input is looked for inside other texts: a shorter one is in every second word.
_SOUGHT = 4

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: Words of a name whose value is a secret wherever they stand in it; "passwordHash" is one, "max_tokens" is none.
_SECRET_WORDS = {
    *("password", "passwords", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials"),
    *("authorization", "apikey"),
}
#: Words that name a secret only at the end: "token" is one, "currentTokenUsage" and "token_count" are none.
_SECRET_ENDS = {"token", "cookie", "jwt"}
_SECRET_PAIRS = {("api", "key"), ("private", "key"), ("access", "key"), ("secret", "key"), ("signing", "key")}
#: What looks like a secret in any text: keys of well-known services, bearer tokens, private keys, JWTs, URLs with one.
_LOOKS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\b(?:gh[pousr]|github_pat|glpat|xox[abprs])[_-][A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"
    r"|(?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)",
    re.DOTALL,
)


@dataclass(slots=True)
class Masker:
    """Masks one run's secrets; `secrets` are values of its secret inputs."""

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, JsonValue], secret: frozenset[str]) -> "Masker":
        """Return one that knows each text in those of *values* whose names are in *secret*."""
        known = {text for name in secret for text in _texts(values.get(name)) if len(text) >= _SOUGHT}
        return cls(tuple(sorted(known, key=len, reverse=True)))

    def mask(self, value: JsonValue) -> tuple[JsonValue, bool]:
        """Return *value* without secrets, and whether there was one."""
        if isinstance(value, str):
            text = self.mask_text(value)
            return text, text != value
        if isinstance(value, list):
            parts = [self.mask(part) for part in value]
            return [part for part, _ in parts], any(hidden for _, hidden in parts)
        if isinstance(value, dict):
            pairs = {name: self._named(name, part) for name, part in value.items()}
            # A name may be one as well, as in a map from key to owner.
            names = {name: self.mask_text(name) for name in pairs}
            hidden = any(one for _, one in pairs.values()) or any(name != shown for name, shown in names.items())
            return {names[name]: part for name, (part, _) in pairs.items()}, hidden
        return value, False

    def mask_text(self, text: str) -> str:
        """Return *text* without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return _LOOKS.sub(MASK, text)

    def _named(self, name: str, value: JsonValue) -> tuple[JsonValue, bool]:
        return hidden(value) if is_secret_name(name) else self.mask(value)


def hidden(value: JsonValue) -> tuple[JsonValue, bool]:
    """Return *value* with a mask for each text and number in it, and whether there was one; references stay."""
    if isinstance(value, str):
        is_reference = value.startswith("${") and value.endswith("}")
        return (value, False) if not value or is_reference else (MASK, True)
    if isinstance(value, bool) or value is None:
        return value, False
    if isinstance(value, list):
        parts = [hidden(part) for part in value]
        return [part for part, _ in parts], any(one for _, one in parts)
    if isinstance(value, dict):
        pairs = {name: hidden(part) for name, part in value.items()}
        return {name: part for name, (part, _) in pairs.items()}, any(one for _, one in pairs.values())
    return MASK, True


def is_secret_name(name: str) -> bool:
    """Return whether what is called *name* is taken for a secret: "api_key", "dbPassword", "Authorization"."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return False
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or words[-1] in _SECRET_ENDS
        or not _SECRET_PAIRS.isdisjoint(pairwise(words))
    )


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
