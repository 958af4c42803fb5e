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


def spellings(secret: str) -> list[bytes]:
    """Return every way in which *secret*, of at least ten letters, may stand in a file.

    Of a shorter one some are so short that they turn up in random bytes.
    """
    escaped = json.dumps(secret)[1:-1]
    ways = {secret.encode(), escaped.encode(), json.dumps(escaped)[1:-1].encode(), quote(secret, safe="").encode()}
    for text in (secret.encode(), escaped.encode()):
        # Base64 of a longer text that holds it, for each of the three places where it may begin.
        for before in range(3):
            spelled = base64.b64encode(b"\0" * before + text)
            ways.add(spelled[4 if before else 0 : -4])
    return sorted(ways)


def files_with(folder: Path, secret: str) -> list[str]:
    """Return which files beneath *folder* hold *secret* in any spelling."""
    found = []
    for file in folder.rglob("*"):
        try:
            content = file.read_bytes() if file.is_file() else b""
        except FileNotFoundError:
            continue
        found += [str(file) for spelling in spellings(secret) if spelling in content][:1]
    return found


async def until_away(folders: Sequence[Path], secret: str) -> None:
    """Return when no file holds *secret*: the server looks through its files once in its sync interval, 1 s here."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while found := [name for folder in folders for name in files_with(folder, secret)]:
        assert time.monotonic() < gives_up_at, f"{secret!r} is still in {found}"
        await asyncio.sleep(0.1)
