"""`tasklore ltm set|forget|import|export`: changing the long-term memory."""

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from tasklore.commands.places import open_nats
from tasklore.commands.render.durations import parse_span
from tasklore.commands.render.screen import (
    confirm,
    patience,
    print_json,
    printable,
    say,
)
from tasklore.commands.render.words import count_of
from tasklore.commands.stores import (
    all_cards,
    card_of,
    in_force,
    long_term_memory,
    whole_key,
)
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_token
from tasklore.memory.keys import parse_ltm
from tasklore.memory.long_term import seed_file
from tasklore.memory.long_term.memory_files import (
    ImportForm,
    export_entries,
    import_file,
)
from tasklore.runtime.settings import Settings
from tasklore.supervisor.operations.result_fit import demand_fitting


class Filter(NamedTuple):
    """The answers to forget, as options say; None is no condition."""

    question: str | None
    key: str | None
    task: str | None
    agent: str | None
    older_than: str | None
    user: str | None
    stale: bool
    everything: bool

    def check(self) -> None:
        """Return when something is meant.

        Raises:
            InvalidInput: no condition is given, or two that contradict.
        """
        if self.question is not None and self.key is not None:
            raise InvalidInput("two keys are given; forget them one after the other")
        conditions = any(
            (
                self.question or self.key,
                self.task,
                self.agent,
                self.older_than,
                self.user,
                self.stale,
            )
        )
        if self.everything and conditions:
            raise InvalidInput(
                "--all means everything; leave it out to forget what fits the other options"
            )
        if not self.everything and not conditions:
            raise InvalidInput(
                "say what to forget: KEY, --task, --agent, --older-than, --user, --stale, or --all"
            )


async def set_answer(key: str, file: str) -> None:
    """Store the JSON in *file* as the answer at *key*.

    Raises:
        InvalidInput: the file is no JSON, *key* means no answer, or its task does not return such a result.
    """
    text = sys.stdin.buffer.read() if file == "-" else _read_bytes(Path(file))
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file!r} is not JSON: {error}") from error
    result = text.strip()
    async with long_term_memory() as memory:
        if parse_ltm(key) is None and ":" not in key:
            raise InvalidInput(
                f"{key!r} is no key; copy one from `tasklore ltm list --json`"
            )
        whole = await whole_key(memory, key)
        if (parts := parse_ltm(whole)) is not None:
            async with open_nats("tasklore-cards") as client:
                demand_fitting(
                    json.loads(result),
                    await card_of(client, parts.agent_id),
                    parts.task_name,
                )
        await memory.put(whole, result, ttl=_keep(), now_ms=time.time_ns() // 1_000_000)
    print(f"Remembered at {printable(whole)}")


async def forget_answers(wanted: Filter, *, is_sure: bool) -> None:
    """Forget the answers that fit *wanted* and print how many those were."""
    wanted.check()
    before_ms = None
    if wanted.older_than is not None:
        span_ms = int(
            parse_span(wanted.older_than, "--older-than").total_seconds() * 1000
        )
        before_ms = time.time_ns() // 1_000_000 - span_ms
    if wanted.everything and not is_sure:
        confirm(
            "Forget everything that every agent remembers?",
            unasked="--all forgets everything; say --yes to mean it",
            declined="nothing was forgotten",
        )
    current = None
    if wanted.stale:
        async with open_nats("tasklore-cards") as client:
            current = in_force(await all_cards(client))
    key = wanted.question or wanted.key
    async with long_term_memory() as memory, patience("forgetting"):
        number = await memory.forget(
            await whole_key(memory, key) if key is not None else None,
            agent_id=wanted.agent,
            task=wanted.task,
            created_before_ms=before_ms,
            user_token=user_token(wanted.user) if wanted.user is not None else None,
            in_force=current,
            everything=wanted.everything,
        )
    print(
        "Nothing fits; nothing was forgotten."
        if not number
        else f"Forgot {count_of(number, 'answer')}."
    )


async def import_answers(file: Path, agent_id: str, *, as_json: bool) -> None:
    """Import the memory file *file* for *agent_id* and print how many answers were stored, known and refused."""
    text = _read_bytes(file)
    keep = _keep()
    async with open_nats("tasklore-cards") as client:
        card = await card_of(client, agent_id)
    forms = {task.name: ImportForm.of_card(card, task, keep) for task in card.tasks}
    async with long_term_memory() as memory, patience("importing"):
        read = seed_file.read(text, {name: form.form for name, form in forms.items()})
        done = await import_file(
            memory, agent_id, read, forms, now_ms=time.time_ns() // 1_000_000
        )
    if as_json:
        quarantined = list(done.quarantined)
        print_json(
            {
                "stored": done.stored,
                "known": done.known,
                "quarantined": quarantined,
                "refused": done.refused,
            }
        )
        return
    known = f", {done.known:,} known already" if done.known else ""
    print(f"Imported {count_of(done.stored, 'answer')}{known}.")
    if done.quarantined:
        number = count_of(len(done.quarantined), "entry")
        print(
            f"Put {number} in quarantine, never served: five values in a list may be the rest of more."
        )
        for key in done.quarantined:
            print(f"  {printable(key)}")
    if done.refused:
        print(f"Refused {count_of(len(done.refused), 'entry', 'entries')}:")
        for key, reason in done.refused.items():
            print(f"  {printable(key)}: {printable(reason)}")


async def export_answers(agent_id: str, file: Path | None) -> None:
    """Write the shared memory of *agent_id* to *file*, None is stdout."""
    async with open_nats("tasklore-cards") as client:
        card = await card_of(client, agent_id)
    async with long_term_memory() as memory, patience("exporting"):
        found = await export_entries(lambda: memory.entries(agent_id=agent_id), card)
        entries = [entry async for entry in found]
    text = seed_file.write(entries)
    if file is None:
        print(text)
    else:
        write_text(file, f"{text}\n")
    say(f"exported {count_of(len(entries), 'answer')}")


def write_text(file: Path, text: str) -> None:
    """Write *text* to *file*.

    Raises:
        InvalidInput: it cannot be written.
    """
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidInput(
            f"cannot write {str(file)!r}: {error.strerror or error}"
        ) from error


def _keep() -> timedelta | None:
    days = Settings.load().memory_keep_days
    return None if days is None else timedelta(days=days)


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"cannot read {str(file)!r}: {error.strerror or error}"
        ) from error


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")
