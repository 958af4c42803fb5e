"""Limits on models and on runs: those that hold, a change of them, and their earlier versions."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema

from tasklore.contracts.admission.limits import (
    AtLimit,
    Every,
    Limit,
    Limits,
    read_limits,
)
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import VersionConflict
from tasklore.contracts.faults import nearest
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.budgets.store import Budgets, StoredLimits
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import not_found
from tasklore.supervisor.operations.table import Operations, Shows, operation

_SIZES = ("requests", "tokens", "usd", "at_once", "at_most")
_VALUE = '"" is all, "*" counts each separately.'
#: How the name of a caller begins that is no key: see `--direct`.
_OPERATOR = "operator:"

LimitName = Annotated[
    str, Field(pattern=NAME_PATTERN, description="A limit, by its name.")
]


def _read_digits(given: object) -> object:
    """Return the number of a text of digits, as a command sends one; any other value stays."""
    is_number = isinstance(given, str) and re.fullmatch(r"[0-9]{1,17}", given)
    return int(str(given)) if is_number else given


#: The version that a change is over.
Version = Annotated[
    int | None,
    Field(
        ge=0,
        le=2**53,
        strict=True,
        description="Expected current version (optimistic locking); a newer one is not "
        "overwritten.",
    ),
    BeforeValidator(_read_digits),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 2**53},
                {"type": "string", "pattern": "^[0-9]{1,17}$"},
                {"type": "null"},
            ]
        }
    ),
]
DryRun = Annotated[bool, Field(strict=True, description="Only show what would change.")]


@dataclass(frozen=True, kw_only=True)
class LimitServices:
    """The store of limits."""

    budgets: Budgets


class LimitsVersion(View):
    """The current limits; version 0 has none."""

    is_without_defaults: ClassVar[bool] = True

    version: int
    who: str
    when: str
    limits: Limits


class LimitChange(View):
    """A limit that differs: without `before` it is a new one, without `after` it is gone."""

    name: str
    before: Limit | None
    after: Limit | None


class SettingChange(View):
    """A setting beside the limits that differs, such as `time_zone`, or the `order` of the limits."""

    name: str
    before: JsonValue
    after: JsonValue


class LimitsDifference(View):
    """What differs between two versions."""

    limits: tuple[LimitChange, ...]
    settings: tuple[SettingChange, ...]


class EarlierLimits(LimitsVersion):
    """A version and its difference from the one before; None when that one is not kept any more."""

    difference: LimitsDifference | None


class ChangedLimits(EarlierLimits):
    """The current version, and the change: `concerns` many things.

    Of a dry run the `version` is the current one, and `limits` are those that would
    apply.
    """

    concerns: int
    dry_run: bool


class LimitsHistory(View):
    """A page of versions, the newest first; `after` is what to ask for the next page with, None at the end."""

    is_without_defaults: ClassVar[bool] = True

    versions: tuple[EarlierLimits, ...]
    after: str | None


def _read_toml(given: object) -> object:
    """Return what a text says in TOML; anything else stays."""
    if not isinstance(given, str):
        return given
    try:
        return tomllib.loads(given)
    except RecursionError as error:
        raise ValueError(
            "is nested too deeply; write limits as `limits show` does"
        ) from error


class NewLimits(Form):
    """All limits, replacing those of `version`: that of the last `GET /v1/limits`, or the current one."""

    limits: Annotated[
        Limits,
        BeforeValidator(_read_toml),
        Field(
            description="All of them, in TOML or JSON.",
            json_schema_extra={"x-cli": {"kind": "file", "metavar": "FILE"}},
        ),
    ]
    version: Version = None
    dry_run: DryRun = False


class LimitEdit(Form):
    """Fields of one limit: those left out stay as they are, and a size takes the place of another."""

    model: Annotated[
        str | None, Field(description=f"Of this model, or gpt-*; {_VALUE}")
    ] = None
    tenant: Annotated[str | None, Field(description=f"For this tenant; {_VALUE}")] = (
        None
    )
    user: Annotated[str | None, Field(description=f"For this user; {_VALUE}")] = None
    agent: Annotated[
        str | None, Field(description=f"For tasks of this agent; {_VALUE}")
    ] = None
    task: Annotated[
        str | None, Field(description=f"For tasks of this name; {_VALUE}")
    ] = None
    requests: Annotated[
        int | None, Field(description="Maximum number of requests.")
    ] = None
    tokens: Annotated[int | None, Field(description="Maximum number of tokens.")] = None
    usd: Annotated[
        Decimal | None,
        Field(
            description="Maximum amount in US dollars.",
            json_schema_extra={"x-cli": {"metavar": "AMOUNT"}},
        ),
    ] = None
    at_once: Annotated[
        int | None, Field(description="Maximum number of concurrent requests.")
    ] = None
    at_most: Annotated[
        int | None, Field(description="Maximum number of concurrent tasks.")
    ] = None
    every: Annotated[
        Every | None,
        Field(
            description="Window of the limit; a tree is a task and all tasks that it "
            "calls."
        ),
    ] = None
    at_limit: Annotated[
        AtLimit | None,
        Field(
            description="What a call over the limit does: wait without a slot, ask "
            "the next model, or be refused."
        ),
    ] = None
    version: Version = None


class Restoration(Form):
    """Over which version an earlier one is set again."""

    version: Version = None
    dry_run: DryRun = False


@operation(
    "limits",
    "show",
    "GET /v1/limits",
    roles=("read",),
    shows=Shows(picture="limits", example="limits show"),
)
async def show_limits(services: LimitServices, caller: Caller) -> LimitsVersion:
    """Show the current limits, their version, who set it and when."""
    caller.demand_unbound()
    return LimitsVersion.model_validate(await services.budgets.read())


@operation(
    "limits",
    "apply",
    "PUT /v1/limits",
    roles=("admin",),
    problems=(409,),
    shows=Shows(
        arguments=("limits",),
        confirm="Change the limits?",
        picture="limits_change",
        example="limits apply limits.toml",
    ),
)
async def apply_limits(
    services: LimitServices, caller: Caller, new: NewLimits
) -> ChangedLimits:
    """Replace all limits.

    Unchanged limits create no new version.

    Raises:
        VersionConflict: they were changed meanwhile.
    """
    caller.demand_unbound()
    stored = await _read_over(services, new.version)
    return await _store(services, caller, stored, new.limits, is_tried=new.dry_run)


@operation(
    "limits",
    "set",
    "PATCH /v1/limits/named/{name}",
    roles=("admin",),
    problems=(409,),
    shows=Shows(
        picture="limits_change",
        example="limits set openai --model 'gpt-*' --tokens 200000 --every minute\n"
        "limits set run --agent Research --usd 0.50 --every tree --at-limit refuse\n"
        "limits set tenants --tenant '*' --agent Research --at-most 2",
    ),
)
async def set_limit(
    services: LimitServices, caller: Caller, name: LimitName, edit: LimitEdit
) -> ChangedLimits:
    """Add a limit, or change the given fields of an existing one.

    Raises:
        InvalidInput: together its fields do not fit.
        VersionConflict: the limits were changed meanwhile.
    """
    caller.demand_unbound()
    stored = await _read_over(services, edit.version)
    raw = {one.name: one.model_dump(exclude_none=True) for one in stored.limits.limits}
    raw[name] = _edit(raw.get(name, {"name": name}), edit)
    others = stored.limits.model_dump(exclude={"limits"})
    after = read_limits({**others, "limits": list(raw.values())})
    return await _store(services, caller, stored, after)


@operation(
    "limits",
    "remove",
    "DELETE /v1/limits/named/{name}",
    roles=("admin",),
    problems=(404, 409),
    shows=Shows(picture="limits_change", example="limits remove acme"),
)
async def remove_limit(
    services: LimitServices,
    caller: Caller,
    name: LimitName,
    *,
    version: Version = None,
) -> ChangedLimits:
    """Remove a limit; its recorded spending is kept.

    Raises:
        Refused: 404, there is none; names the nearest.
        VersionConflict: the limits were changed meanwhile.
    """
    caller.demand_unbound()
    stored = await _read_over(services, version)
    names = [one.name for one in stored.limits.limits]
    if name not in names:
        cure = nearest(name, names) or "; GET /v1/limits lists them"
        raise not_found(f"there is no limit {name!r}{cure}")
    kept = tuple(one for one in stored.limits.limits if one.name != name)
    after = stored.limits.model_copy(update={"limits": kept})
    return await _store(services, caller, stored, after)


@operation(
    "limits",
    "history",
    "GET /v1/limits/versions",
    roles=("read",),
    shows=Shows(
        rows="versions", picture="limits_history", example="limits history --limit 5"
    ),
)
async def list_limit_versions(
    services: LimitServices,
    caller: Caller,
    *,
    after: Annotated[
        str,
        Field(
            pattern=r"^\d{0,16}$",
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 100,
) -> LimitsHistory:
    """List the versions of the limits, the newest first: who, when, and what changed; the last 100 are kept."""
    caller.demand_unbound()
    kept = await services.budgets.history()
    before = {one.version + 1: one.limits for one in kept} | {1: Limits()}
    found = [one for one in kept if not after or one.version < int(after)]
    versions = tuple(
        EarlierLimits(
            **vars(one),
            difference=(
                _differ(before[one.version], one.limits)
                if one.version in before
                else None
            ),
        )
        for one in found[:limit]
    )
    is_end = len(found) <= limit
    return LimitsHistory(
        versions=versions, after=None if is_end else str(versions[-1].version)
    )


@operation(
    "limits",
    "restore",
    "POST /v1/limits/versions/{earlier}/restore",
    roles=("admin",),
    problems=(404, 409),
    shows=Shows(
        confirm="Change the limits?",
        picture="limits_change",
        example="limits restore 3",
    ),
)
async def restore_limits(
    services: LimitServices,
    caller: Caller,
    earlier: Annotated[
        int,
        Field(
            ge=1,
            le=2**53,
            description="A version of the history.",
            json_schema_extra={"x-cli": {"metavar": "VERSION"}},
        ),
    ],
    wanted: Restoration,
) -> ChangedLimits:
    """Set the limits of an earlier version again, as a new version.

    Raises:
        Refused: 404, that version is not kept.
        VersionConflict: the limits were changed meanwhile.
    """
    caller.demand_unbound()
    stored = await _read_over(services, wanted.version)
    found = await _demand_version(services, earlier)
    return await _store(services, caller, stored, found.limits, is_tried=wanted.dry_run)


OPERATIONS: Operations[LimitServices] = (
    show_limits,
    apply_limits,
    set_limit,
    remove_limit,
    list_limit_versions,
    restore_limits,
)


async def _read_over(services: LimitServices, version: int | None) -> StoredLimits:
    """Return the limits that hold.

    Raises:
        VersionConflict: they are not those of *version*.
    """
    stored = await services.budgets.read()
    if version is not None and version != stored.version:
        raise VersionConflict(
            f"version {stored.version} of the limits holds, not {version}: read them again, then repeat the change"
        )
    return stored


async def _demand_version(services: LimitServices, version: int) -> StoredLimits:
    """Return a version.

    Raises:
        Refused: 404, it is not kept.
    """
    kept = await services.budgets.history()
    for one in kept:
        if one.version == version:
            return one
    has = (
        f"those from {kept[-1].version} to {kept[0].version} are" if kept else "none is"
    )
    raise not_found(
        f"version {version} is not kept; {has}: GET /v1/limits/versions lists them"
    )


async def _store(
    services: LimitServices,
    caller: Caller,
    stored: StoredLimits,
    after: Limits,
    *,
    is_tried: bool = False,
) -> ChangedLimits:
    """Store *after* over the version that was read, unless nothing differs or it is only tried."""
    difference = _differ(stored.limits, after)
    concerns = len(difference.limits) + len(difference.settings)
    holding = stored
    if concerns and not is_tried:
        version = await services.budgets.change(
            after, _name_of(caller), over=stored.version
        )
        # Another one may hold by now.
        holding = await _demand_version(services, version)
    return ChangedLimits(
        version=holding.version,
        who=holding.who,
        when=holding.when,
        limits=after,
        difference=difference,
        concerns=concerns,
        dry_run=is_tried,
    )


def _name_of(caller: Caller) -> str:
    """Return who changes limits, as versions name them."""
    name = caller.name
    return name if name.startswith(_OPERATOR) else f"key:{name}"


def _edit(limit: Mapping[str, Any], edit: LimitEdit) -> dict[str, Any]:
    """Return the fields of *limit* with what *edit* says."""
    given = edit.model_dump(exclude_none=True, exclude={"version"})
    left = dict(limit)
    if not given.keys().isdisjoint(_SIZES):
        left = {name: value for name, value in limit.items() if name not in _SIZES}
    if given.keys() & {"at_once", "at_most"}:
        left.pop("every", None)
    return left | given


def _differ(before: Limits, after: Limits) -> LimitsDifference:
    old, new = ({one.name: one for one in each.limits} for each in (before, after))
    limits = tuple(
        LimitChange(name=name, before=old.get(name), after=new.get(name))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    )
    return LimitsDifference(
        limits=limits, settings=tuple(_differ_beside(before, after))
    )


def _differ_beside(before: Limits, after: Limits) -> Iterator[SettingChange]:
    had = _settings_of(before, among=after)
    has = _settings_of(after, among=before)
    for name in has:
        if had[name] != has[name]:
            yield SettingChange(name=name, before=had[name], after=has[name])


def _settings_of(limits: Limits, *, among: Limits) -> dict[str, Any]:
    """Return the settings beside the limits, and the order of those that are *among* others too."""
    settings = limits.model_dump(mode="json", exclude={"limits", "shares"})
    shares = limits.shares.model_dump(mode="json", exclude_defaults=True)
    others = {one.name for one in among.limits}
    order = [one.name for one in limits.limits if one.name in others]
    return {**settings, "shares": shares, "order": order}


def make_services(
    parts: SupervisorDependencies | OperatorDependencies,
) -> LimitServices:
    """Return the services of operations of limits, in either process."""
    return LimitServices(budgets=Budgets(parts.redis))


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(make_services, OPERATIONS),
    operator=serve(make_services, OPERATIONS),
)
