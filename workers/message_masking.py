"""Masking of the messages of runs before they are kept: secrets of the deployment, texts that look like one, patterns.

A secret that is not known here, in words like any others, is not found: so only a right of its own reads messages.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr
from pydantic_core import from_json, to_json

from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.masker import MASK, Masker, is_secret_name
from tasklore.runtime.settings import Settings

#: Characters of a value from which on it is looked for: a shorter one is in every second word.
_SOUGHT = 6
#: Bytes of a file that may be a secret.
_LARGEST_FILE = 16 * 1024
#: A name and its value, in JSON and as people write them; the value is masked where the name is that of a secret.
_NAMED = re.compile(
    r"""(?<![\w-])(?P<name>[A-Za-z][\w-]{1,63}+)(?P<between>["']?\s{0,4}[:=]\s{0,4})"""
    r"""(?P<value>"(?:[^"\\]|\\.){1,4096}+"|'[^'\n]{1,4096}'|[^\s"',;&}\]]{3,4096}+)"""
)


#: The name of a secret has one of these in it, in small letters.
_IN_NAMES = (
    *("pass", "pwd", "secret", "credential", "authorization", "key", "token"),
    *("cookie", "jwt"),
)
#: Values that are no secret, whatever they are called.
_NOTHING = frozenset({"null", "true", "false", "None", "True", "False"})


class MessageMasker:
    """Masks texts; `secrets` are looked for as they stand, `patterns` of the deployment beside those that are known."""

    def __init__(
        self, secrets: Sequence[str] = (), patterns: Sequence[re.Pattern[str]] = ()
    ) -> None:
        self._masker = Masker.of({"secrets": list(secrets)}, frozenset({"secrets"}))
        self._patterns = tuple(patterns)

    def mask(self, text: str) -> str:
        """Return *text*, any or JSON, without secrets."""
        return self._mask_text(self._mask_values(text))

    def _mask_values(self, text: str) -> str:
        """Mask in JSON what stands below the name of a secret, however deep; other texts stay as they are."""
        if not text.startswith(("{", "[")):
            return text
        try:
            value = from_json(text)
        except ValueError:
            return text
        shown, is_hidden = self._masker.mask(value)
        return to_json(shown).decode() if is_hidden else text

    def _mask_text(self, text: str) -> str:
        text = self._masker.mask_text(text)
        lowered = text.lower()
        if any(word in lowered for word in _IN_NAMES):
            text = _NAMED.sub(_without_value, text)
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return text


def _without_value(found: re.Match[str]) -> str:
    value = found["value"]
    is_nothing = value in _NOTHING or value.strip("\"'") == MASK
    if is_nothing or not is_secret_name(found["name"]):
        return found[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{found['name']}{found['between']}{quote}{MASK}{quote}"


def make_masker(settings: Settings, environ: Mapping[str, str]) -> MessageMasker:
    """Return what masks the messages of this process.

    It knows the secrets among the settings, files of secrets, passwords in addresses, and the values of variables that
    are called as secrets are, an author's own too.

    Raises:
        ConfigurationError: a line of the file of patterns is no regular expression, or a file cannot be read.
    """
    found = {text for text in _secrets_of(settings, environ) if len(text) >= _SOUGHT}
    return MessageMasker(sorted(found), read_patterns(settings.mask_file))


def _secrets_of(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    found = [
        value.get_secret_value()
        for name in Settings.model_fields
        if isinstance(value := getattr(settings, name), SecretStr)
    ]
    files = [settings.nats_seed_file, settings.redis_password_file]
    if settings.secrets_dir is not None and settings.secrets_dir.is_dir():
        files += sorted(settings.secrets_dir.iterdir())
    for file in files:
        if file is not None and file.is_file() and file.stat().st_size <= _LARGEST_FILE:
            found += [_read(file).strip()]
    addresses = [settings.nats_url or "", settings.redis_url or "", *environ.values()]
    found += [word for address in addresses for word in _password_in(address)]
    return found + [value for name, value in environ.items() if is_secret_name(name)]


def _password_in(address: str) -> list[str]:
    if "://" not in address:
        return []
    try:
        password = urlsplit(address).password
    except ValueError:
        return []
    return [] if password is None else [password, unquote(password)]


def read_patterns(file: Path | None) -> list[re.Pattern[str]]:
    """Return the patterns in *file*, one a line; blank lines and those that begin with `#` are none.

    Raises:
        ConfigurationError: a line is no regular expression, or the file cannot be read.
    """
    if file is None:
        return []
    patterns = []
    for number, line in enumerate(_read(file).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            patterns.append(re.compile(line))
        except re.error as error:
            raise ConfigurationError(
                f"line {number} of {str(file)!r} is no regular expression ({error}); correct it"
            ) from error
    return patterns


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {str(file)!r} ({type(error).__name__}); correct it"
        ) from error
