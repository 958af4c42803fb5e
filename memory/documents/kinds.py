"""Resource kinds: which documents there are and where in them each sort of statement is kept, read from TOML files.

A kind is data. Those of this package lie in `kinds/` beside this module; a user's folder adds more, and one with the
same `resource_id` takes the place of ours.
"""

import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path as File
from typing import Annotated, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)

from tasklore.contracts.errors import ConfigurationError, InvalidPath, UnknownPath
from tasklore.contracts.faults import complaint_of
from tasklore.memory.documents.items import METADATA, Body
from tasklore.memory.documents.paths import Path, lookup, parse

#: What a resource id is made of: it is part of a Redis key and of a file's name.
_RESOURCE_ID = r"^[A-Za-z0-9_-]{1,64}$"
_SHIPPED = File(__file__).with_name("kinds")


def _read_path(value: object) -> object:
    try:
        path = parse(value) if isinstance(value, str) else value
    except InvalidPath as error:
        raise ValueError(str(error)) from error
    if isinstance(path, Path) and (
        not path.steps or not all(isinstance(step, str) for step in path.steps)
    ):
        raise ValueError(
            f"{str(path)!r} must lead to a list by names alone, as food.likes does"
        )
    return path


class Place(BaseModel):
    """A list in a kind's document, and which statements it keeps.

    `meaning` completes "the user's ..." for a model that reads it. `relation` is one word for what stands here, the
    last name of the path unless given. `opposite` is the relation whose place in the same kind says the contrary, None
    when nothing does. `single` means that one item of a subject holds at a time. `protected` items are replaced or
    ended by the person's own quoted words alone, and the audit lists it. `pinned` items are in every prompt; protected
    ones always are. `sweeps` means that a new item may contradict any other of the document.
    `events` means that an item happens on its day: what takes its place does so at once and for good.
    `also` are relations that are kept here for want of a place of their own; their item then says the whole
    statement. `headings` are what older files call this place, in small letters. `resource_id` is filled in from the
    kind.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    path: Annotated[Path, BeforeValidator(_read_path)]
    relation: str = ""
    meaning: str = Field(min_length=1)
    opposite: str | None = None
    single: bool = False
    protected: bool = False
    pinned: bool = False
    sweeps: bool = False
    events: bool = False
    also: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    resource_id: str = ""


class Kind(BaseModel):
    """One kind of document.

    `template` is the document of a user who has none yet, `_metadata` included; what a file leaves out of it is made
    from its places. `guarded` means that nothing in it is ever changed by a conclusion. `catch_all` is the kind
    of whatever no other one is for. `titles` are further names of it in older files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    resource_id: str = Field(pattern=_RESOURCE_ID)
    title: str = Field(min_length=1)
    titles: tuple[str, ...] = ()
    tags: tuple[str, ...] = Field(min_length=1)
    places: tuple[Place, ...] = Field(min_length=1)
    template: dict[str, JsonValue] = Field(default_factory=dict)
    guarded: bool = False
    catch_all: bool = False

    def place_for(self, relation: str) -> Place | None:
        """Return where statements of *relation* are kept in this kind, None when it keeps none of them."""
        own = (place for place in self.places if place.relation == relation)
        return next(
            chain(own, (place for place in self.places if relation in place.also)), None
        )

    @property
    def rest(self) -> Place:
        """The list for items that fit no other place of this kind; a document has it from the first such item.

        Of a guarded kind it is protected, since its stakes are unknown.
        """
        own = self.place_for("other")
        return own or Place.model_construct(
            path=Path() / str(self.places[0].path.steps[0]) / "other",
            relation="other",
            meaning="what no other place of this document is for",
            protected=self.guarded,
            pinned=self.guarded,
            resource_id=self.resource_id,
        )

    def place_at(self, path: Path) -> Place | None:
        """Return the place that *path* is or lies in, None when it is outside of all."""
        steps = tuple(path.steps)
        return next(
            (
                place
                for place in (*self.places, self.rest)
                if steps[: len(place.path.steps)] == place.path.steps
            ),
            None,
        )

    def complete(self, body: Body) -> Body:
        """Return *body* with every place of the template that it lacks, and `_metadata`; nothing is replaced.

        *body* is left as it is, and its parts are shared with the result; a complete one is returned itself. For
        an edit: a file is written from the stored body.
        """
        content = {
            name: value for name, value in self.template.items() if name != METADATA
        }
        whole = _complete(body, content)
        return (
            whole
            if METADATA in whole
            else {METADATA: deepcopy(self.template[METADATA]), **whole}
        )


@dataclass(frozen=True, slots=True)
class Kinds:
    """Every kind there is, by resource id, in the order in which they were read."""

    by_id: Mapping[str, Kind]
    general: str

    @classmethod
    def load(cls, *folders: File | str) -> "Kinds":
        """Return the kinds of this package and of the `*.toml` files in *folders*; of two with one id the later counts.

        Raises:
            ConfigurationError: a folder or a file cannot be read, or has unfit content.
        """
        by_id: dict[str, Kind] = {}
        for folder in (_SHIPPED, *map(File, folders)):
            by_id |= _read_folder(folder)
        return cls.of(by_id.values())

    @classmethod
    def of(cls, kinds: Iterable[Kind]) -> "Kinds":
        """Return *kinds* together.

        Raises:
            ConfigurationError: not exactly one of them takes everything.
        """
        by_id = {kind.resource_id: kind for kind in kinds}
        general = [kind.resource_id for kind in by_id.values() if kind.catch_all]
        if len(general) != 1:
            raise ConfigurationError(
                f"exactly one kind must say `catch_all = true`, and {general or 'none'} "
                "do; correct their TOML files"
            )
        return cls(by_id, general[0])

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the resource ids in order."""
        return tuple(self.by_id)

    def get(self, resource_id: str) -> Kind | None:
        """Return the kind of *resource_id*, also when it is written as a file's name; None when there is none."""
        return self.by_id.get(resource_of(resource_id))

    def place_for(self, relation: str, resource_id: str | None = None) -> Place | None:
        """Return where statements of *relation* are kept: in *resource_id*, or in the first kind with a place of it.

        None when that document keeps none of them. A place may keep them only for want of another: see `Place.also`.
        """
        if resource_id is not None:
            kind = self.get(resource_id)
            return kind.place_for(relation) if kind is not None else None
        found = [
            place
            for kind in self.by_id.values()
            if (place := kind.place_for(relation)) is not None
        ]
        return min(found, key=lambda place: place.relation != relation, default=None)


def resource_of(file: str) -> str:
    """Return the resource id that *file* names, with or without `.json`."""
    return file.removesuffix(".json")


def stand_in(resource_id: str) -> Kind:
    """Return a kind for a document of which nothing is known: all goes to one list, and its only tag is its name.

    Raises:
        ConfigurationError: *resource_id* cannot be one.
    """
    name = resource_id.removeprefix("resource_").removeprefix("user_") or resource_id
    place = {"path": f'["{name}"].other', "relation": "other", "meaning": "notes"}
    raw = {
        "resource_id": resource_id,
        "title": name.replace("_", " ").capitalize(),
        "tags": [name],
        "places": [place],
    }
    return _read_kind(cast("dict[str, object]", raw), File(f"{resource_id}.toml"))


def _read_folder(folder: File) -> dict[str, Kind]:
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".toml")
        texts = [(file, file.read_text("utf-8")) for file in files]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the kinds of documents in {str(folder)!r} cannot be read ({error}); name a folder of UTF-8 TOML files"
        ) from error
    by_id: dict[str, Kind] = {}
    for file, text in texts:
        try:
            kind = _read_kind(tomllib.loads(text), file)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(
                f"{file} is not valid TOML: {error}; fix that line"
            ) from error
        if kind.resource_id in by_id:
            raise ConfigurationError(
                f"{file}: resource_id {kind.resource_id!r} is in another file of that folder too; keep one"
            )
        by_id[kind.resource_id] = kind
    return by_id


def _read_kind(raw: Mapping[str, object], file: File) -> Kind:
    try:
        kind = Kind.model_validate(raw)
    except ValidationError as error:
        problems = "; ".join(_problem(found) for found in error.errors())
        raise ConfigurationError(f"{file}: {problems}") from error
    places = tuple(
        place.model_copy(
            update={
                "resource_id": kind.resource_id,
                "relation": place.relation or str(place.path.last),
                "pinned": place.pinned or place.protected,
            }
        )
        for place in kind.places
    )
    kind = kind.model_copy(update={"places": places, "template": _template(kind, file)})
    for index, place in enumerate(places):
        _check(kind, place, f"{file}: places.{index}")
    return kind


def _problem(found: Mapping[str, object]) -> str:
    at = ".".join(str(step) for step in cast("tuple[str | int, ...]", found["loc"]))
    cure = {
        "missing": "add it",
        "extra_forbidden": "no such field; remove it or correct its name",
    }.get(str(found["type"]))
    return f"{at}: {cure or complaint_of(found)}"


def _template(kind: Kind, file: File) -> Body:
    """Return the template of *kind*: as its file spells it or, when it spells none, one list for each place."""
    metadata: Body = {
        "resource_id": kind.resource_id,
        "tags": list(kind.tags),
        "last_updated": None,
        "revision": 0,
    }
    if METADATA in kind.template:
        raise ConfigurationError(
            f"{file}: template.{METADATA} is made from resource_id and tags; take it out"
        )
    content = dict(kind.template)
    if not content:
        for place in kind.places:
            where = content
            for step in place.path.steps[:-1]:
                inner = where.setdefault(cast("str", step), {})
                if not isinstance(inner, dict):
                    raise ConfigurationError(
                        f"{file}: the place {str(place.path)!r} lies inside of another one; give it a path of its own"
                    )
                where = inner
            where[cast("str", place.path.last)] = []
    return {METADATA: metadata, **content}


def _check(kind: Kind, place: Place, where: str) -> None:
    """Refuse a place that its kind does not have, or that says the contrary of nothing.

    Raises:
        ConfigurationError: always when something is wrong; it names the field and the cure.
    """
    try:
        value = lookup(kind.template, place.path)
    except UnknownPath as error:
        raise ConfigurationError(
            f"{where}.path: {str(place.path)!r} is not in the template; add `{place.path.last} = []` there"
        ) from error
    if not isinstance(value, list):
        raise ConfigurationError(
            f"{where}.path: {str(place.path)!r} must be a list in the template"
        )
    if place.path.steps[0] == METADATA:
        raise ConfigurationError(
            f"{where}.path: {METADATA} cannot hold items; choose another name"
        )
    if place.opposite is not None and place.opposite not in {
        other.relation for other in kind.places
    }:
        raise ConfigurationError(
            f"{where}.opposite: {kind.resource_id!r} has no place of {place.opposite!r}; add one or leave it out"
        )


def _complete(body: Body, template: Body) -> Body:
    """Return *body* with what *template* has beyond it; where they differ in kind, *body* stays."""
    added: Body = {}
    for name, wanted in template.items():
        held = body.get(name)
        if name not in body:
            added[name] = deepcopy(wanted)
        elif (
            isinstance(held, dict)
            and isinstance(wanted, dict)
            and (whole := _complete(held, wanted)) is not held
        ):
            added[name] = whole
    return body | added if added else body
