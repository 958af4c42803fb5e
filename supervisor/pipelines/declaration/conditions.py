"""Conditions: `when` and `repeat_until` of a phase, comparisons of entries and inputs that are never run as Python.

A value by itself is true unless it is null, false, 0, an empty text, list or object. `<` and the like take two numbers
or two texts. `==` and `!=` compare with null, or two values of one kind; other unlike kinds are an error, not false,
because `"10" == 10` is a mistake that would leave a phase out in silence. `in` looks for an item of a list, a part of a
text or a property of an object. Inside quotes, a backslash takes the next character as it is.
"""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

from pydantic import JsonValue

from contracts.errors import InvalidInput
from supervisor.pipelines.declaration.references import Lookup, Reference, kind_of, read_reference, value_at

#: Characters of a condition, and levels of its tree: what is longer belongs into a task.
LONGEST, DEEPEST = 2_000, 32

#: A reference or a text, which Python's parser sees as underscores; what else may stand there; and any other character.
_PIECE = re.compile(
    r"""(?P<reference>\$\{(?:"[^"]*"|[^}"])*\})|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"|(?P<plain>[A-Za-z0-9_.<>=!()\[\],\s-])|(?P<other>.)",
    re.DOTALL,
)
#: Characters that begin a reference or a text.
_OPENING = "$\"'"
_CONSTANTS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_ORDERED: dict[str, Callable[[float | str, float | str], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLAG, _NUMBER, _LIST = "true or false", "a number", "a list"
_WITH_LENGTH = {_LIST, "a text", "an object", None}
_CURE = "write such as: ${review:results.score} >= 3 and not ${input.quick}"


class _Node(NamedTuple):
    """A part of a condition: its value for a lookup, and its kind as `kind_of` names it, None when not known yet."""

    value: Callable[[Lookup], JsonValue]
    kind: str | None = None


@dataclass(frozen=True)
class Condition:
    """A parsed condition; `references` are all that it mentions, in the order of reading."""

    text: str
    references: tuple[Reference, ...]
    _root: Callable[[Lookup], JsonValue]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse *text*; kinds that can never be compared are refused here already.

        Raises:
            InvalidInput: it is no condition, or too long; the message names the character.
        """
        if len(text) > LONGEST:
            raise InvalidInput(f"the condition has {len(text)} characters; keep to {LONGEST}")
        parser = _Parser(text)
        root = parser.parse()
        references = tuple(leaf for leaf in parser.leaves.values() if isinstance(leaf, Reference))
        return cls(text, references, root.value)

    def holds(self, lookup: Lookup) -> bool:
        """Return whether the condition is true of the values that *lookup* gives.

        Raises:
            InvalidInput: unlike values are compared, or a reference leads nowhere; or whatever *lookup* raises.
        """
        return bool(self._root(lookup))


class _Parser:
    """Parses one condition; `leaves` are its references and texts by the character where each begins."""

    def __init__(self, text: str) -> None:
        self.leaves: dict[int, Reference | str] = {}
        self._text = text

    def parse(self) -> _Node:
        source = _PIECE.sub(self._replace, self._text).lstrip()
        self._margin = len(self._text) - len(source)
        try:
            tree = ast.parse(source, mode="eval")
        except SyntaxError as error:
            raise self._refusal(error.msg, (error.offset or len(source) + 1) - 1) from error
        except (RecursionError, MemoryError) as error:
            raise self._refusal("nested too deep", 0) from error
        return self._node(tree.body, 0)

    def _replace(self, piece: re.Match[str]) -> str:
        found, at = piece[0], piece.start()
        if piece["reference"]:
            self.leaves[at] = read_reference(found[2:-1])
        elif piece["text"]:
            if "${" in found:
                raise InvalidInput(f"the reference in {found} is but a text; write it without the quotes")
            self.leaves[at] = re.sub(r"\\(.)", r"\1", found[1:-1], flags=re.DOTALL)
        elif piece["other"]:
            self._margin = 0
            why = "is not closed" if found in _OPENING else "means nothing"
            raise self._refusal(f"{found!r} {why}", at)
        else:
            return " " if found.isspace() else found
        return "_" * len(found)

    def _node(self, node: ast.expr, depth: int) -> _Node:
        if depth > DEEPEST:
            raise self._refusal(f"nested too deep: keep to {DEEPEST} levels", node.col_offset)
        match node:
            case ast.BoolOp(op=op, values=values):
                parts = [self._node(one, depth + 1) for one in values]
                joined = any if isinstance(op, ast.Or) else all
                return _Node(lambda lookup: joined(one.value(lookup) for one in parts), _FLAG)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._node(operand, depth + 1)
                return _Node(lambda lookup: not inner.value(lookup), _FLAG)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SIGNS:
                return self._compare(self._node(left, depth + 1), _SIGNS[type(op)], self._node(right, depth + 1))
            case ast.Compare(comparators=[_, other, *_]):
                raise self._refusal("join two comparisons by 'and'", other.col_offset)
            case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
                return self._length(self._node(argument, depth + 1))
            case ast.List(elts=elements):
                items = [self._node(one, depth + 1) for one in elements]
                return _Node(lambda lookup: [one.value(lookup) for one in items], _LIST)
        return self._leaf(node)

    def _leaf(self, node: ast.expr) -> _Node:
        leaf: Reference | JsonValue = None
        match node:
            case ast.Name(col_offset=at) if at + self._margin in self.leaves:
                leaf = self.leaves[at + self._margin]
            case ast.Name(id=name) if name in _CONSTANTS:
                leaf = _CONSTANTS[name]
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                leaf = number
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                leaf = -number
            case _:
                written = self._text[node.col_offset + self._margin :][:40]
                raise self._refusal(f"{written!r} begins with no value", node.col_offset)
        if isinstance(leaf, Reference):
            return _Node(lambda lookup: value_at(leaf, lookup))
        return _Node(lambda _: leaf, kind_of(leaf))

    def _compare(self, left: _Node, sign: str, right: _Node) -> _Node:
        def compare(lookup: Lookup) -> JsonValue:
            one, other = left.value(lookup), right.value(lookup)
            self._demand_comparable(kind_of(one), sign, kind_of(other))
            if sign in _ORDERED:
                return _ORDERED[sign](one, other)  # type: ignore[arg-type] # two numbers or two texts, as just seen
            if sign in ("==", "!="):
                return _is_same(one, other) == (sign == "==")
            holds = any(_is_same(one, item) for item in other) if isinstance(other, list) else one in other  # type: ignore[operator] # a text, in a text or an object
            return holds == (sign == "in")

        self._demand_comparable(left.kind, sign, right.kind)
        return _Node(compare, _FLAG)

    def _demand_comparable(self, one: str | None, sign: str, other: str | None) -> None:
        """Refuse to compare values of kind *one* and *other*, None for a kind that is not known yet."""
        if sign in ("in", "not in"):
            fits = other in (None, _LIST) or (other in ("a text", "an object") and one in (None, "a text"))
        elif sign in _ORDERED:
            fits = {one, other} - {None} in (set(), {_NUMBER}, {"a text"})
        else:
            fits = len({one, other} - {None, "null"}) < 2
        if not fits:
            unlike = f"{one or 'anything'} {sign} {other or 'anything'}"
            raise InvalidInput(f"{self._text!r} cannot tell {unlike}; make both the same kind")

    def _length(self, inner: _Node) -> _Node:
        def demand_length(kind: str | None) -> None:
            if kind not in _WITH_LENGTH:
                raise InvalidInput(f"{self._text!r} asks for len() of {kind}; only texts, lists and objects")

        def length(lookup: Lookup) -> JsonValue:
            value = inner.value(lookup)
            demand_length(kind_of(value))
            return len(value)  # type: ignore[arg-type] # as just seen

        demand_length(inner.kind)
        return _Node(length, _NUMBER)

    def _refusal(self, why: str, at: int) -> InvalidInput:
        return InvalidInput(f"{self._text!r}: {why} at character {at + self._margin + 1}; {_CURE}")


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    # In Python, and not in JSON, true is 1.
    return kind_of(one) == kind_of(other) and one == other
