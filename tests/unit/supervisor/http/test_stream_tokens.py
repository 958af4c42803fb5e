"""Tokens that open one stream: what is signed, for whom, and until when."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.admission.stream_tokens import (
    LIFE_S,
    StreamTokens,
    take_token,
)

SECRET = "0123456789abcdef0123456789abcdef"
PATH = "/v1/tasks/a/output"


class Desk:
    """Tokens of the keys `ann` and `bob`, by a clock that a test moves."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "keys.json"
        self.at = 1_000_000.5
        for name in ("ann", "bob"):
            make_key(self.file, name, ("ask",), name)

    def tokens(self, secret: str = SECRET) -> StreamTokens:
        """Return those of one supervisor, which reads the file as it is now."""
        return StreamTokens(secret, KeyRing(self.file), lambda: self.at)

    def remove(self, name: str) -> None:
        """Remove a key from the file."""
        found = json.loads(self.file.read_text())
        found["keys"] = [one for one in found["keys"] if one["name"] != name]
        self.file.write_text(json.dumps(found))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_token_opens_its_stream_at_every_supervisor_until_its_end(desk: Desk) -> None:
    token, expires = desk.tokens().make(PATH, "ann", "1.1.5")
    assert expires == 1_000_000 + LIFE_S
    for _ in range(3):
        found = desk.tokens().read(token, PATH)
        assert found is not None
        grant, entry = found
        assert (grant.after, entry.name, entry.user) == ("1.1.5", "ann", "ann")
    desk.at = expires
    assert desk.tokens().read(token, PATH) is not None
    desk.at = expires + 0.1
    assert desk.tokens().read(token, PATH) is None


def test_a_token_opens_nothing_else(desk: Desk) -> None:
    token, _ = desk.tokens().make(PATH, "ann")
    for path in ("/v1/tasks/b/output", "/v1/tasks/a", "/v1/requests/a/events", ""):
        assert desk.tokens().read(token, path) is None
    assert desk.tokens("another secret, of 32 characters").read(token, PATH) is None


def test_a_removed_key_ends_its_tokens_and_one_of_the_same_name_revives_none(
    desk: Desk,
) -> None:
    token, _ = desk.tokens().make(PATH, "ann")
    desk.remove("ann")
    assert desk.tokens().read(token, PATH) is None
    with pytest.raises(LookupError):
        desk.tokens().make(PATH, "ann")
    make_key(desk.file, "ann", ("ask",), "ann")
    assert desk.tokens().read(token, PATH) is None


def test_no_altered_token_opens_anything(desk: Desk) -> None:
    token, _ = desk.tokens().make(PATH, "ann")
    body, _, signature = token.partition(".")
    told = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))

    def spelled(**changes: Any) -> str:
        text = json.dumps({**told, **changes}, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    assert spelled() == body
    for forged in (
        f"{spelled(key='bob')}.{signature}",
        f"{spelled(expires=9_999_999_999)}.{signature}",
        f"{spelled(after='1.1.1')}.{signature}",
        f"{spelled(more=1)}.{signature}",
        f"{body}.{signature[:-1]}",
        f"{body}.{signature}A",
        f"{body}.",
        body,
        f"{body}.ü",
        ".",
        "",
        "ü.ü",
        "a" * 10_000,
    ):
        assert desk.tokens().read(forged, PATH) is None
    assert desk.tokens().read(f"{spelled(path='/v1/x')}.{signature}", "/v1/x") is None


@pytest.mark.parametrize(
    ("method", "path", "query", "token", "rest"),
    [
        ("GET", PATH, "stream_token=a.b", "a.b", ""),
        ("GET", PATH, "x=1&stream_token=a.b&y=%20", "a.b", "x=1&y=+"),
        ("GET", PATH, "stream_token=a&stream_token=a", None, ""),
        ("GET", PATH, "stream_token=", "", ""),
        ("DELETE", PATH, "stream_token=a", None, "stream_token=a"),
        ("GET", "/v1/tasks/a", "stream_token=a", None, "stream_token=a"),
        ("GET", f"{PATH}/", "stream_token=a", None, "stream_token=a"),
        ("GET", "/v1/tasks/a/b/output", "stream_token=a", None, "stream_token=a"),
        ("GET", PATH, "", None, ""),
    ],
)
def test_a_token_is_taken_out_of_the_query_of_a_stream(
    method: str, path: str, query: str, token: str | None, rest: str
) -> None:
    scope: dict[str, Any] = {"method": method, "path": path}
    scope["query_string"] = query.encode()
    assert take_token(scope) == token
    assert scope["query_string"] == rest.encode()
