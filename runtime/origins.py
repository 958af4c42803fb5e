"""Origins, methods and headers as settings name them, for pages in browsers that ask from elsewhere (CORS)."""

import re

#: Any origin, method or header.
ANY = "*"
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"|(?!(?:https?|file|data)://)[a-z][a-z0-9+.-]*://[a-z0-9._-]+"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_HEADER = re.compile(r"[!#$%&'+.^_`|~0-9A-Za-z-]+")


def origins_in(text: str) -> tuple[str, ...]:
    """Return the origins that *text* lists with commas between them, as browsers send them, or `*` alone.

    Raises:
        ValueError: one of them is none; says which, and how it is written.
    """
    found = _words_in(text)
    if ANY in found and len(found) > 1:
        raise ValueError("'*' stands for every origin; write it alone, or leave it out")
    for word in found:
        match = _ORIGIN.fullmatch(word)
        if word == ANY:
            continue
        if match is None:
            raise ValueError(
                f"{word!r} is not a valid origin; write only scheme, lower-case host "
                "and port, such as https://app.example.com or http://localhost:3000"
            )
        if match["port"] is not None and match["port"] == _DEFAULT_PORTS.get(
            match["scheme"]
        ):
            raise ValueError(
                f"browsers send {word!r} without its port; write {word.rpartition(':')[0]!r}"
            )
    return found


def methods_in(text: str) -> tuple[str, ...]:
    """Return the methods of HTTP that *text* lists; `*` are all that the API has.

    Raises:
        ValueError: one of them is none of the API's.
    """
    found = _words_in(text)
    for word in found:
        if word not in (*_METHODS, ANY):
            raise ValueError(
                f"{word!r} is not an allowed method; write some of "
                f"{', '.join(_METHODS)} separated by commas, or '*'"
            )
    return _METHODS if ANY in found else found


def headers_in(text: str) -> tuple[str, ...]:
    """Return the names of headers that *text* lists; `*` is any.

    Raises:
        ValueError: one of them is no name of a header.
    """
    found = _words_in(text)
    for word in found:
        if word != ANY and _HEADER.fullmatch(word) is None:
            raise ValueError(
                f"{word!r} is not a valid header name; write comma-separated names such "
                "as Authorization, or '*'"
            )
    return found


def _words_in(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in text.split(","))))
