"""A search for words through the files of servers, in every spelling that they may have there."""

import asyncio
import base64
import json
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

#: Seconds that the servers may take on a busy machine.
PATIENCE_S = 60.0
#: Letters of what can be searched for.
_SHORTEST = 10
#: Bytes before and after a find that are shown with it.
_AROUND = 200


def spellings(secret: str) -> list[bytes]:
    """Return every way in which *secret*, of ten letters or more, may stand in a file.

    Of a shorter one some are so short that they turn up in random bytes.
    """
    assert len(secret) >= _SHORTEST, f"{secret!r} would be found everywhere"
    escaped = json.dumps(secret)[1:-1]
    ways = {
        secret.encode(),
        escaped.encode(),
        json.dumps(escaped)[1:-1].encode(),
        quote(secret, safe="").encode(),
    }
    for text in (secret.encode(), escaped.encode()):
        # Base64 of a longer text that holds it, for each of the three places where it may begin.
        for before in range(3):
            spelled = base64.b64encode(b"\0" * before + text)
            ways.add(spelled[4 if before else 0 : -4])
    return sorted(ways)


def files_with(folder: Path, secret: str) -> list[str]:
    """Return which files beneath *folder* hold *secret* in any spelling."""
    return [str(file) for file, _, _ in _found_in(folder, secret)]


def _found_in(folder: Path, secret: str) -> list[tuple[Path, int, bytes]]:
    """Return each file that holds *secret*, where it does first, and what stands around it there."""
    found = []
    ways = spellings(secret)
    for file in folder.rglob("*"):
        try:
            content = file.read_bytes() if file.is_file() else b""
        except FileNotFoundError:
            continue
        places = [place for way in ways if (place := content.find(way)) >= 0]
        if places:
            at = min(places)
            found.append((file, at, content[max(0, at - _AROUND) : at + _AROUND]))
    return found


async def until_away(folders: Sequence[Path], *secrets: str) -> None:
    """Return when no file holds any of *secrets*, all of which one look has to miss.

    The server looks through its files once in its sync interval, 1 s here.
    """
    gives_up_at = time.monotonic() + PATIENCE_S
    while found := [
        (secret, *one)
        for secret in secrets
        for folder in folders
        for one in _found_in(folder, secret)
    ]:
        assert time.monotonic() < gives_up_at, "\n".join(
            f"{secret!r} is still in {file} at {at}: {around!r}"
            for secret, file, at, around in found
        )
        await asyncio.sleep(0.1)
