"""The JSON schemas of a card as components of the OpenAPI document, whatever a program wrote into the card.

Any program of the bus may put a card there. One schema that a linter, a generator or a compiler stops at would take
the document from every other agent; so only keywords that are known, with values of their own kind, get in, references
lead to the schema itself alone, and a card has a bounded size.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NoReturn
from urllib.parse import unquote

#: Levels of a schema, and of a value in it: of ours none has ten, and compilers recurse.
_MOST_LEVELS: Final = 24
#: Components of one schema, for the same reason.
_MOST_COMPONENTS: Final = 100
#: Characters of a description.
_LONGEST_DESCRIPTION: Final = 2_000
#: Beyond it a number is infinite for JavaScript.
_LARGEST: Final = 10**300
#: Each object of JavaScript has something by these names: linters take that for a part of the schema.
_OF_EVERY_OBJECT: Final = frozenset(
    (
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
    )
)
#: What a name of a component is made of here; "." is put between the parts of one.
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TYPES = frozenset(
    ("null", "boolean", "object", "array", "number", "string", "integer")
)
#: Keywords by what stands behind them: one schema, several, and several by name.
_ONE = frozenset(
    (
        "items",
        "contains",
        "additionalProperties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
    )
)
_SEVERAL = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("properties", "patternProperties", "dependentSchemas"))
#: Those whose schemas are of the value itself, not of a part of it.
_OF_ITSELF = frozenset(("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"))
#: Those that change what a reference leads to.
_BASES = frozenset(("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"))


class UnusableSchema(Exception):
    """A schema that cannot stand in the document; the message says why, in words of ours alone."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(one, str) for one in value)
        and len(set(value)) == len(value)
    )


def _are_types(value: Any) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _are_names(value) and bool(value) and _TYPES.issuperset(value)


def _are_choices(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_any(_value: Any) -> bool:
    return True


#: The other keywords that get in, and which values of them.
_VALUES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _are_types,
    "enum": _are_choices,
    "const": _is_any,
    "default": _is_any,
    "examples": _are_choices,
    "required": _are_names,
    "description": _is_text,
    **dict.fromkeys(
        ("format", "pattern", "contentMediaType", "contentEncoding"), _is_text
    ),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        _is_number,
    ),
    **dict.fromkeys(
        (
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minContains",
            "maxContains",
            "minProperties",
            "maxProperties",
        ),
        _is_count,
    ),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_flag),
}


_KNOWN = frozenset(("$ref", *_ONE, *_SEVERAL, *_NAMED, *_VALUES))


@dataclass
class Allowance:
    """The characters that are left for one card: of texts, and 16 for whatever else."""

    left: int

    def take(self, text: str = "") -> None:
        """Take one part.

        Raises:
            UnusableSchema: nothing is left.
        """
        self.left -= 16 + len(text)
        if self.left < 0:
            raise UnusableSchema("the card is too large")


def plain_text(text: str) -> str:
    """Return *text* of a card as a description: it ends no comment of generated code, and begins no markup."""
    cut = text[:_LONGEST_DESCRIPTION]
    return cut.replace("*/", "* /").replace("<", "&lt;")


def to_components(
    root: Mapping[str, Any], name: str, template: str, allowance: Allowance
) -> dict[str, Any]:
    """Return the schema *root* and those of its `$defs` that it refers to as components, *name* the first.

    *template* is before the names of components in references.

    Raises:
        UnusableSchema: it cannot stand in the document.
    """
    return _Components(root, name, template, allowance).make()


@dataclass
class _Components:
    root: Mapping[str, Any]
    name: str
    template: str
    allowance: Allowance
    #: Component by reference, as the schema spells it.
    known: dict[str, str] = field(default_factory=dict)
    #: References whose components are to be made.
    waiting: list[str] = field(default_factory=list)
    #: The components that each component is, or is a choice of: not those of its parts.
    is_also: dict[str, set[str]] = field(default_factory=dict)

    def make(self) -> dict[str, Any]:
        self.known["#"] = self.name
        self.waiting.append("#")
        made: dict[str, Any] = {}
        while self.waiting:
            reference = self.waiting.pop()
            name = self.known[reference]
            if len(self.known) > _MOST_COMPONENTS:
                raise UnusableSchema("it defines too much")
            self.is_also[name] = set()
            made[name] = self._schema(self._find(reference), name, 0)
        _refuse_circles(self.is_also)
        return made

    def _find(self, reference: str) -> Any:
        if reference == "#":
            return self.root
        _, keyword, name = reference.split("/")
        definitions = self.root.get(keyword)
        if not isinstance(definitions, dict) or name not in definitions:
            raise UnusableSchema("it refers to what it does not define")
        return definitions[name]

    def _refer(self, reference: Any, owner: str | None) -> str:
        """Return *reference* as one to a component; *owner* is the component of its target."""
        if not isinstance(reference, str):
            raise UnusableSchema("a `$ref` is not a text")
        self.allowance.take(reference)
        parts = unquote(reference).split("/")
        is_own = reference == "#" or (
            len(parts) == 3 and parts[0] == "#" and parts[1] in ("$defs", "definitions")
        )
        if not is_own or "~" in reference:
            raise UnusableSchema("it refers to what it does not define")
        place = "/".join(parts)
        if place not in self.known:
            self.known[place] = self._name(parts[2])
            self.waiting.append(place)
        if owner is not None:
            self.is_also[owner].add(self.known[place])
        return f"{self.template}{self.known[place]}"

    def _name(self, definition: str) -> str:
        if _SAFE_NAME.fullmatch(definition) is not None:
            found = f"{self.name}.{definition}"
            if found not in self.known.values():
                return found
        return f"{self.name}.{len(self.known)}."

    def _schema(self, part: Any, owner: str | None, level: int) -> Any:
        """Return *part* as it may stand in a component; *owner* is the component that it is all of, if it is."""
        self.allowance.take()
        if isinstance(part, bool):
            return part
        if not isinstance(part, dict):
            raise UnusableSchema("a part of it is not a schema")
        if level > _MOST_LEVELS:
            raise UnusableSchema("it is too deep")
        if bases := _BASES & part.keys():
            raise UnusableSchema(f"it has `{min(bases)}`")
        return {
            keyword: self._read(
                keyword, value, owner if keyword in _OF_ITSELF else None, level
            )
            for keyword, value in part.items()
            if keyword in _KNOWN
        }

    def _read(self, keyword: str, value: Any, owner: str | None, level: int) -> Any:
        """Return the *value* of a known keyword as it may stand in a component."""
        if keyword == "$ref":
            return self._refer(value, owner)
        if keyword in _ONE:
            return self._schema(value, owner, level + 1)
        if keyword in _SEVERAL:
            if not _are_choices(value):
                _refuse_kind(keyword)
            return [self._schema(one, owner, level + 1) for one in value]
        if keyword in _NAMED:
            if not isinstance(value, dict):
                _refuse_kind(keyword)
            self._demand_names(value)
            return {
                name: self._schema(one, owner, level + 1) for name, one in value.items()
            }
        self._demand_value(value, level)
        if not _VALUES[keyword](value):
            _refuse_kind(keyword)
        return plain_text(value) if keyword == "description" else value

    def _demand_value(self, value: Any, level: int) -> None:
        self.allowance.take(value if isinstance(value, str) else "")
        if level > _MOST_LEVELS:
            raise UnusableSchema("it is too deep")
        if isinstance(value, list):
            for one in value:
                self._demand_value(one, level + 1)
        elif isinstance(value, dict):
            self._demand_names(value)
            for one in value.values():
                self._demand_value(one, level + 1)
        elif _is_number(value) and not (
            math.isfinite(value) if isinstance(value, float) else abs(value) < _LARGEST
        ):
            raise UnusableSchema("it has a number that not every program can read")

    def _demand_names(self, named: Mapping[str, Any]) -> None:
        for name in named:
            self.allowance.take(name)
            if name in _OF_EVERY_OBJECT:
                raise UnusableSchema(f"each object of JavaScript has a `{name}`")


def _refuse_kind(keyword: str) -> NoReturn:
    raise UnusableSchema(f"`{keyword}` has a value of another kind")


def _refuse_circles(is_also: Mapping[str, set[str]]) -> None:
    """Refuse components that are themselves, or a choice of themselves: no compiler gets to their end."""
    try:
        TopologicalSorter(is_also).prepare()
    except CycleError as error:
        raise UnusableSchema("it refers to itself in a circle") from error
