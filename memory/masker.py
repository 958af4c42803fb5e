"""Masking of secrets in evidence: values of secret inputs, values by names, and texts that look like keys.

It masks rather too much: a masked value has only to be given anew, or computed again. Values may be hostile. So nothing
here recurses, what is nested too deeply is masked as a whole, and the time of every pattern grows with the text alone:
no pattern gives back a long match, and no match begins inside one that was tried already.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic import JsonValue

from tasklore.memory.sessions.entries import MAX_LEVELS

#: What stands in the place of a secret.
MASK = "***"
#: Characters from which on a secret input is looked for inside other texts: a shorter one is in every second word.
_SOUGHT = 4
#: Levels of lists and objects that are looked into: those of any entry and what is around it. What writes the file
#: counts levels by its own stack, which ends at some 1,000.
MOST_LEVELS = MAX_LEVELS + 8
#: Characters of a text that are searched at once, some 20 ms: other threads wait for as long, leases among them.
_PIECE = 64 * 1024
#: Characters behind a piece that a secret which begins in it may need to be told: more than any pattern's bounds.
_REACH = 4096
#: Characters of a name that are looked at: nobody calls a secret by a longer one.
_LONGEST_NAME = 1024
#: Bits of an integer that is spelled in decimal digits: Python refuses more than 4,300 of those.
_WIDEST = 8192

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: Words of a name whose value is a secret wherever they stand in it; "passwordHash" is one, "max_tokens" is none.
_SECRET_WORDS = {
    *(
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "secrets",
        "credential",
        "credentials",
    ),
    *("authorization", "apikey"),
}
#: Words that name a secret only at the end: "token" is one, "currentTokenUsage" and "token_count" are none.
_SECRET_ENDS = {"token", "cookie", "jwt"}
_SECRET_PAIRS = {
    ("api", "key"),
    ("private", "key"),
    ("access", "key"),
    ("secret", "key"),
    ("signing", "key"),
}
#: What looks like a secret in any text: keys of well-known services, bearer tokens, private keys, URLs with one.
_LOOKS = re.compile(
    r"-----BEGIN [A-Z ]{0,64}PRIVATE KEY-----"
    r"|\bsk-[A-Za-z0-9_-]{16,}+"
    r"|\b(?:gh[pousr]|github_pat|glpat|xox[abprs])[_-][A-Za-z0-9_-]{16,}+"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|(?i:\bbearer\s{1,64}+)[A-Za-z0-9._~+/=-]{8,}+"
    r"|(?<=://)[^\s/@:]{0,1024}+:[^\s/@]{1,2048}+(?=@)"
)
#: A match of it has one of these in it, small letters for large ones: to look for them costs a twentieth.
_IN_LOOKS = (
    *("-----begin ", "sk-", "akia", "asia", "bearer", "://"),
    *("ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "glpat", "xox"),
)
#: The end of a private key, looked for behind its beginning.
_KEY_END = re.compile(r"-----END [A-Z ]{0,64}PRIVATE KEY-----")
#: A JWT, when all of its parts are there; what only begins like one is passed at once, or each "eyJ" in it would have
#: the rest read again.
_JWT = re.compile(
    r"\beyJ[A-Za-z0-9_-]{8,}+(?P<parts>\.[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]*+)?"
)


@dataclass(slots=True)
class Masker:
    """Masks the secrets of one run; `secrets` are values of its secret inputs as texts, the longest first."""

    secrets: tuple[str, ...] = ()
    _known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Keep the secrets for a look at once: there may be many, and many numbers."""
        self._known = frozenset(self.secrets)

    @classmethod
    def of(cls, values: Mapping[str, JsonValue], secret: frozenset[str]) -> "Masker":
        """Return one that knows each text and number in those of *values* whose names are in *secret*.

        It knows a text also as errors and addresses quote it: escaped as in Python, in JSON and in URLs.
        """
        texts = {
            text
            for name in secret
            for text in _texts(values.get(name))
            if len(text) >= _SOUGHT
        }
        known = {form for text in texts for form in _forms(text)}
        return cls(tuple(sorted(known, key=len, reverse=True)))

    def mask(self, value: JsonValue) -> tuple[JsonValue, bool]:
        """Return *value* without secrets, and whether there was one; deeper than `MOST_LEVELS` all is taken for one."""
        shown: list[JsonValue] = [None]
        is_hidden = False
        # Each with whether a name above it is that of a secret, its level, and where it is to stand.
        todo: list[tuple[JsonValue, bool, int, Any, Any]] = [
            (value, False, 0, shown, 0)
        ]
        while todo:
            part, is_secret, level, around, place = todo.pop()
            if not isinstance(part, list | dict):
                around[place] = self._mask_leaf(part, is_secret)
                is_hidden |= around[place] != part
            elif level >= MOST_LEVELS:
                around[place] = MASK
                is_hidden = True
            elif isinstance(part, list):
                around[place] = parts = [None] * len(part)
                todo += [
                    (one, is_secret, level + 1, parts, n) for n, one in enumerate(part)
                ]
            else:
                pairs: dict[str, JsonValue] = {}
                around[place] = pairs
                for name, one in part.items():
                    # A name may be one as well, as in a map from key to owner.
                    pairs[said := self.mask_text(name)] = None
                    is_hidden |= said != name
                    todo.append(
                        (one, is_secret or is_secret_name(name), level + 1, pairs, said)
                    )
        return shown[0], is_hidden

    def mask_text(self, text: str) -> str:
        """Return *text* without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        lowered = text.lower()
        if any(word in lowered for word in _IN_LOOKS):
            text = _without(_LOOKS, text)
        return _without(_JWT, text) if "eyJ" in text else text

    def _mask_leaf(self, value: JsonValue, is_secret: bool) -> JsonValue:
        """Mask a text or a number, all of it when it *is_secret* by a name above it; references stay."""
        if value is None or value == "" or isinstance(value, bool):
            return value
        text = (
            value
            if isinstance(value, str)
            else _spell(value)
            if isinstance(value, int | float)
            else ""
        )
        if is_secret:
            return value if text.startswith("${") and text.endswith("}") else MASK
        if isinstance(value, str):
            return self.mask_text(value)
        return MASK if text in self._known else value


def _without(looks: re.Pattern[str], text: str) -> str:
    """Return *text* with a mask for each match of *looks*, searched in pieces."""
    kept = list[str]()
    shown_to = 0
    at = 0
    while at < len(text):
        edge = at + _PIECE
        found = looks.search(text, at, edge + _REACH)
        if found is None:
            at = edge
            continue
        if looks is _JWT or found.end() == edge + _REACH:
            # It may go on behind the piece; a match takes all that it can, so that nothing of it is read once more.
            found = looks.match(text, found.start()) or found
        at = found.end()
        if looks is _JWT and found["parts"] is None:
            continue
        if found[0].startswith("-----BEGIN"):
            end = _KEY_END.search(text, at)
            at = end.end() if end else len(text)
        kept += [text[shown_to : found.start()], MASK]
        shown_to = at
    return "".join(kept) + text[shown_to:]


def is_secret_name(name: str) -> bool:
    """Return whether *name* is that of a secret: "api_key", "dbPassword", "Authorization"."""
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST_NAME:])]
    if not words:
        return False
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or words[-1] in _SECRET_ENDS
        or not _SECRET_PAIRS.isdisjoint(pairwise(words))
    )


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield each text in *value*, and each number as a text."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list | dict):
            todo += part.values() if isinstance(part, dict) else part
        elif isinstance(part, int | float) and not isinstance(part, bool):
            yield _spell(part)


def _spell(number: float) -> str:
    """Return *number* as a text; 5 and 5.0, which JSON does not tell apart, are spelled alike."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    # An int of thousands of digits is refused by str, as its time grows with their square.
    return (
        hex(number)
        if isinstance(number, int) and number.bit_length() > _WIDEST
        else str(number)
    )


def _forms(text: str) -> set[str]:
    """Return *text* as it stands by itself, in Python's and in JSON's quotes, and in URLs."""
    quoted = {
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
    }
    # What holds both kinds of quotes has one of them escaped, whichever stands around.
    quoted |= {repr(text + mark)[1:-2].removesuffix("\\") for mark in "'\""}
    encoded = {
        form(text, safe=safe, errors="replace")
        for form in (quote, quote_plus)
        for safe in ("", "/")
    }
    return {text} | quoted | encoded
