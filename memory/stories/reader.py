"""How what Redis holds of a story is asked for and understood: one look at all of it, each value read once.

A value that cannot be read stops only whoever asked for it, and its error says which key it is and how to mend it.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from tasklore.contracts.analysis.stories import Changes, StoryChange, StoryResponse
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import complaint_of
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.stories import scripts
from tasklore.memory.stories.view import unknown

#: What is asked of a hash instead of fields: everything, the names of its fields, how many these are.
ALL = -1
NAMES = -2
COUNT = -3
Wanted = Sequence[str | int] | int

#: Changes that are kept as they were read, some kB each: those of a story of three thousand responses.
_REMEMBERED = 16_384
#: Changes from which on reading them is left to a thread: unread ones take the loop some ten ms.
_MANY = 200
#: Bytes of a beginning from which on the same holds.
_LARGE = 64 * 1024

_Value = TypeVar("_Value")


async def look(
    exchange: CommandBatch, story_id: str, wanted: Mapping[str, Wanted]
) -> list[Any]:
    """Return what each key of *wanted* holds of the fields asked for, all at one moment.

    Raises:
        UnknownStory: there is no such story.
        MemoryUnavailable: no answer in time.
    """
    found = (await exchange.run([look_command(story_id, wanted)]))[0]
    if found is None:
        raise unknown(story_id)
    # The first is the story itself, asked only whether it is there.
    return list(found[1:])


def look_command(story_id: str, wanted: Mapping[str, Wanted]) -> Command:
    """Return the command of `look`; its reply begins with what is asked of the story itself, which is nothing."""
    words: list[str | int] = [COUNT]
    for fields in wanted.values():
        words += [fields] if isinstance(fields, int) else [len(fields), *fields]
    return (
        "FCALL_RO",
        scripts.READ,
        1 + len(wanted),
        keys.story(story_id).base,
        *wanted,
        *words,
    )


def pairs_in(reply: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield name and value of each field in the reply to `ALL`."""
    for name, value in zip(reply[::2], reply[1::2], strict=True):
        yield name.decode(), value


def numbers_in(names: Sequence[bytes]) -> tuple[int, ...]:
    """Return the numbers of responses among the names of fields, in their order."""
    return tuple(sorted(int(name) for name in names if name.isdigit()))


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def spelled(kind: Any, value: Any) -> bytes:
    """Return *value*, of the type *kind*, as it is stored."""
    return _reader(kind).dump_json(value)


def digest_of(response: StoryResponse) -> str:
    """Return a digest of a response: text and chapter count."""
    return hashlib.blake2b(
        response.model_dump_json().encode(), digest_size=16
    ).hexdigest()


def read_of(kind: type[_Value], raw: bytes, key: str, field: str, cure: str) -> _Value:
    """Return the value of the type *kind* that *raw* spells.

    Raises:
        InvalidInput: it spells none; the message names *key* and *field*, and *cure*.
    """
    try:
        value: _Value = _reader(cast("Any", kind)).validate_json(raw)
    except ValidationError as error:
        raise unreadable(key, field, cure, error) from error
    return value


def unreadable(key: str, field: str, cure: str, why: Exception) -> InvalidInput:
    """Return the error that names the value that cannot be read any more, and the cure."""
    if isinstance(why, ValidationError):
        first = why.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return InvalidInput(
            f"{key} cannot be read at {field!r}: {place + ': ' if place else ''}{complaint_of(first)}; {cure}"
        )
    return InvalidInput(f"{key} cannot be read at {field!r}: {why}; {cure}")


def is_much(
    told: Iterable[Sequence[bytes]], fields: Iterable[bytes | None] = ()
) -> bool:
    """Return whether reading these changes, and a beginning of these *fields*, would hold up everybody else."""
    return (
        sum(map(len, told)) > 2 * _MANY
        or sum(len(field or b"") for field in fields) > _LARGE
    )


async def changes_of(story_id: str, told: Mapping[str, Sequence[bytes]]) -> Changes:
    """Return what `changes_in` does, without holding up everybody else while there is much to be read."""
    if is_much(told.values()):
        return await asyncio.to_thread(changes_in, story_id, told)
    return changes_in(story_id, told)


def changes_in(
    story_id: str, told: Mapping[str, Sequence[bytes]], spared: int | None = None
) -> Changes:
    """Return what responses changed, out of the reply to `ALL` by section.

    What response *spared* changed may be unreadable: it is analysed just now, and then replaced.

    Raises:
        InvalidInput: what another changed is.
    """
    found: dict[int, dict[str, StoryChange]] = {}
    for section, reply in told.items():
        for name, raw in pairs_in(reply):
            try:
                change = _change(raw)
            except ValidationError as error:
                if name == str(spared):
                    continue
                cure = f"analyse response {name} of story {story_id!r} again, with --refresh"
                raise unreadable(
                    keys.story_changes(story_id, section), name, cure, error
                ) from error
            found.setdefault(int(name), {})[section] = change
    return found


@lru_cache(maxsize=_REMEMBERED)
def _change(raw: bytes) -> StoryChange:
    return StoryChange.model_validate_json(raw)


def section_in(raw: bytes, section: str) -> JsonValue:
    """Return what stands under *section* in the analysis document *raw*, None when nothing does.

    Raises:
        ValueError: it is no document.
    """
    body = json.loads(raw)
    if not isinstance(body, dict):
        msg = "it is not an object"
        raise TypeError(msg)
    groups = (body.get(group) for group in ("background", "immediate"))
    found: JsonValue = next(
        (
            group[section]
            for group in groups
            if isinstance(group, dict) and section in group
        ),
        None,
    )
    return found
