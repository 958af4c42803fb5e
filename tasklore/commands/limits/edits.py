"""`tasklore limits set|remove|apply|restore`: each makes a new version of all limits."""

import getpass
from collections.abc import Mapping
from pathlib import Path

from tasklore.commands.limits.views import open_budgets, spell_changes
from tasklore.commands.render.screen import confirm
from tasklore.contracts.admission.limits import Limits, read_limits
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import nearest
from tasklore.memory.budgets.store import Budgets, StoredLimits, read_limits_file


async def set_limit(
    name: str,
    options: Mapping[str, str | None],
    sizes: Mapping[str, int | str | None],
    who: str | None,
) -> None:
    """Set the limit *name*; None among *options* and *sizes* changes nothing. A size takes the place of another.

    Raises:
        InvalidInput: a field does not fit.
        VersionConflict: somebody changed the limits meanwhile.
        Unreachable: Redis does not answer.
    """
    async with open_budgets() as budgets:
        stored = await budgets.read()
        raw = {
            one.name: one.model_dump(exclude_none=True) for one in stored.limits.limits
        }
        made = raw.setdefault(name, {"name": name})
        if given := {size: value for size, value in sizes.items() if value is not None}:
            made = {
                field: value for field, value in made.items() if field not in sizes
            } | given
            if "at_once" in given or "at_most" in given:
                made.pop("every", None)
        raw[name] = made | {
            field: value for field, value in options.items() if value is not None
        }
        after = read_limits(
            stored.limits.model_dump(exclude={"limits"})
            | {"limits": list(raw.values())}
        )
        await _store(budgets, stored, after, who, is_sure=True)


async def remove_limit(name: str, who: str | None) -> None:
    """Remove the limit *name*.

    Raises:
        InvalidInput: there is none; the message names the nearest.
        VersionConflict, Unreachable: as `set_limit`.
    """
    async with open_budgets() as budgets:
        stored = await budgets.read()
        names = [limit.name for limit in stored.limits.limits]
        if name not in names:
            cure = (
                nearest(name, names) or "; `tasklore limits show` lists those there are"
            )
            raise InvalidInput(f"there is no limit {name!r}{cure}")
        kept = tuple(limit for limit in stored.limits.limits if limit.name != name)
        await _store(
            budgets,
            stored,
            stored.limits.model_copy(update={"limits": kept}),
            who,
            is_sure=True,
        )


async def apply_limits(path: Path, who: str | None, *, is_sure: bool) -> None:
    """Replace all limits by those in the file at *path*; a person is asked unless *is_sure*.

    Raises:
        InvalidInput: the file cannot be read, or a field does not fit.
        Aborted: the person declined, or there is none to ask.
        VersionConflict, Unreachable: as `set_limit`.
    """
    after = read_limits_file(path)
    async with open_budgets() as budgets:
        await _store(budgets, await budgets.read(), after, who, is_sure=is_sure)


async def restore_version(version: int, who: str | None, *, is_sure: bool) -> None:
    """Set the limits of *version* again; a person is asked unless *is_sure*.

    Raises:
        InvalidInput: that version is not kept.
        Aborted, VersionConflict, Unreachable: as `apply_limits`.
    """
    async with open_budgets() as budgets:
        stored = await budgets.read()
        versions = await budgets.history()
        found = next((one for one in versions if one.version == version), None)
        if found is None:
            has = (
                f"those from {versions[-1].version} to {versions[0].version} are"
                if versions
                else "none is"
            )
            raise InvalidInput(
                f"version {version} is not kept; {has} (`tasklore limits history`)"
            )
        await _store(budgets, stored, found.limits, who, is_sure=is_sure)


async def _store(
    budgets: Budgets,
    stored: StoredLimits,
    after: Limits,
    who: str | None,
    *,
    is_sure: bool,
) -> None:
    """Print what changes, and store it over the version that was read."""
    changes = list(spell_changes(stored.limits, after))
    if not changes:
        print("Nothing changes.")
        return
    print("\n".join(changes), flush=True)
    if not is_sure:
        confirm(
            "Change the limits?",
            unasked="nothing was changed; say --yes to mean it",
            declined="nothing was changed",
        )
    version = await budgets.change(after, who or getpass.getuser(), over=stored.version)
    print(f"Version {version} holds within a second.")
