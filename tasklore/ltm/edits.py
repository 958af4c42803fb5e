"""`tasklore ltm set|forget|import|export`: changing what is remembered."""

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import typer

from contracts.errors import InvalidInput
from contracts.identifiers import user_token
from memory.keys import parse_ltm
from runtime.settings import Settings
from tasklore.exits import Refused
from tasklore.ltm.files import Imported, ImportForm, export_text, import_text
from tasklore.ltm.result_fit import demand_fitting
from tasklore.render.durations import parse_span
from tasklore.render.screen import patience, print_json, printable, say
from tasklore.stores import all_cards, card_of, in_force, long_term_memory, nats_client, whole_key


class Wish(NamedTuple):
    """What to forget, as it was typed; None is no condition."""

    question: str | None
    key: str | None
    task: str | None
    agent: str | None
    older_than: str | None
    user: str | None
    stale: bool
    everything: bool


async def set_answer(key: str, file: str) -> None:
    """Store the JSON in *file* as the answer at *key*.

    Raises:
        InvalidInput: the file is no JSON, the key means no answer, or its task does not return such a result.
        Unreachable: Redis does not answer.
    """
    result = _read_result(file)
    keep_days = Settings.load().memory_keep_days
    async with long_term_memory() as memory:
        if parse_ltm(key) is None and ":" not in key:
            raise InvalidInput(f"{key!r} is no key; copy one from `tasklore ltm list --json`")
        whole = await whole_key(memory, key)
        if (parts := parse_ltm(whole)) is not None:
            async with nats_client() as client:
                demand_fitting(json.loads(result), await card_of(client, parts.agent_id), parts.task_name)
        keep = timedelta(days=keep_days) if keep_days is not None else None
        await memory.put(whole, result, ttl=keep, now_ms=_now_ms())
    print(f"Remembered at {printable(whole)}")


async def forget_answers(wish: Wish, *, is_sure: bool) -> None:
    """Forget what fits *wish* and print how many answers that were.

    Raises:
        InvalidInput: no condition is given, or two that contradict.
        Refused: everything was meant, and nobody confirmed it.
        Unreachable: Redis does not answer.
    """
    if wish.question is not None and wish.key is not None:
        raise InvalidInput("two keys are given; forget them one after the other")
    key = wish.question or wish.key
    conditions = (key, wish.task, wish.agent, wish.older_than, wish.user, wish.stale)
    if wish.everything and any(conditions):
        raise InvalidInput("--all means everything; leave it out to forget what fits the other options")
    if not wish.everything and not any(conditions):
        raise InvalidInput("say what to forget: KEY, --task, --agent, --older-than, --user, --stale, or --all")
    before_ms = None
    if wish.older_than is not None:
        before_ms = _now_ms() - int(parse_span(wish.older_than, "--older-than").total_seconds() * 1000)
    if wish.everything and not is_sure:
        _confirm()
    current = None
    if wish.stale:
        async with nats_client() as client:
            current = in_force(await all_cards(client))
    async with long_term_memory() as memory, patience("forgetting"):
        count = await memory.forget(
            await whole_key(memory, key) if key is not None else None,
            agent_id=wish.agent,
            task=wish.task,
            created_before_ms=before_ms,
            user_token=user_token(wish.user) if wish.user is not None else None,
            in_force=current,
            everything=wish.everything,
        )
    print("Nothing fits; nothing was forgotten." if not count else f"Forgot {_counted(count, 'answer')}.")


async def import_answers(file: Path, agent_id: str, *, as_json: bool) -> None:
    """Import the memory file *file* for *agent_id* and print what became of it."""
    text = _read_bytes(file)
    keep_days = Settings.load().memory_keep_days
    keep = timedelta(days=keep_days) if keep_days is not None else None
    async with nats_client() as client:
        card = await card_of(client, agent_id)
    forms = {task.name: ImportForm.of_card(card, task, keep) for task in card.tasks}
    async with long_term_memory() as memory, patience("importing"):
        done = await import_text(memory, agent_id, text, forms, now_ms=_now_ms())
    if as_json:
        print_json(_as_document(done))
    else:
        _tell(done)


async def export_answers(agent_id: str, file: Path | None) -> None:
    """Write the shared memory of *agent_id* to *file*, None is stdout."""
    async with nats_client() as client:
        card = await card_of(client, agent_id)
    async with long_term_memory() as memory, patience("exporting"):
        done = await export_text(memory.entries(agent_id=agent_id), card)
    if file is None:
        print(done.text)
    else:
        _write(file, f"{done.text}\n")
    left = f"; left out {_counted(done.others, 'answer')} of other versions" if done.others else ""
    say(f"exported {_counted(done.entries, 'answer')} of version {done.version}{left}")


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise Refused("--all forgets everything; say --yes to mean it")
    if not typer.confirm("Forget everything that every agent remembers?", err=True):
        raise Refused("nothing was forgotten")


def _tell(done: Imported) -> None:
    known = f", {done.known:,} known already" if done.known else ""
    print(f"Imported {_counted(done.stored, 'answer')}{known}.")
    if done.quarantined:
        count = _counted(len(done.quarantined), "entry", "entries")
        print(f"Put {count} in quarantine, never served: five values in a list may be the rest of more.")
        for key in done.quarantined:
            print(f"  {printable(key)}")
    if done.refused:
        print(f"Refused {_counted(len(done.refused), 'entry', 'entries')}:")
        for key, reason in done.refused.items():
            print(f"  {printable(key)}: {printable(reason)}")


def _as_document(done: Imported) -> dict[str, object]:
    return {
        "stored": done.stored,
        "known": done.known,
        "quarantined": list(done.quarantined),
        "refused": done.refused,
    }


def _read_result(file: str) -> bytes:
    text = sys.stdin.buffer.read() if file == "-" else _read_bytes(Path(file))
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file!r} is not JSON: {error}") from error
    return text.strip()


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {str(file)!r}: {error.strerror or error}") from error


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot write {str(file)!r}: {error.strerror or error}") from error


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
