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
from typing import Any, Self

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.declaration.references import (
    Lookup,
    Reference,
    kind_of,
    read_reference,
    value_at,
)

#: Characters of a condition, and levels of its tree: what is longer belongs into a task.
LONGEST = 2_000
DEEPEST = 32

#: A reference or a text, which Python's parser sees as underscores; what else may stand there; and any other character.
_PIECE = re.compile(
    r"""(?P<reference>\$\{(?:"[^"]*"|[^}"])*\})|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"|(?P<plain>[A-Za-z0-9_.<>=!()\[\],\s-])|(?P<other>.)",
    re.DOTALL,
)
#: Characters that begin a reference or a text.
_OPENING = "$\"'"
_CONSTANTS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", lambda one, other: _is_same(one, other)),
    ast.NotEq: ("!=", lambda one, other: not _is_same(one, other)),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda one, other: _is_in(one, other)),
    ast.NotIn: ("not in", lambda one, other: not _is_in(one, other)),
}
_CURE = "write such as: ${review:results.score} >= 3 and not ${input.quick}"

#: Computes a part of a condition.
_Part = Callable[[Lookup], JsonValue]


@dataclass(frozen=True)
class Condition:
    """A parsed condition; `references` are all that it mentions, in the order of reading."""

    text: str
    references: tuple[Reference, ...]
    _root: _Part

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse *text*.

        Raises:
            InvalidInput: it is no condition, or too long; the message names the character.
        """
        if len(text) > LONGEST:
            raise InvalidInput(
                f"the condition has {len(text)} characters; keep to {LONGEST}"
            )
        parser = _Parser(text)
        root = parser.parse()
        return cls(
            text,
            tuple(one for one in parser.leaves.values() if isinstance(one, Reference)),
            root,
        )

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

    def parse(self) -> _Part:
        source = _PIECE.sub(self.replace, self._text).lstrip()
        self._margin = len(self._text) - len(source)
        try:
            tree = ast.parse(source, mode="eval")
        except SyntaxError as error:
            raise self.refusal(
                error.msg, (error.offset or len(source) + 1) - 1
            ) from error
        except (RecursionError, MemoryError) as error:
            raise self.refusal("nested too deep", 0) from error
        return self.node(tree.body, 0)

    def replace(self, piece: re.Match[str]) -> str:
        found = piece[0]
        at = piece.start()
        if piece["reference"]:
            self.leaves[at] = read_reference(found[2:-1])
        elif piece["text"]:
            if "${" in found:
                raise InvalidInput(
                    f"the reference in {found} is but a text; write it without the quotes"
                )
            self.leaves[at] = re.sub(r"\\(.)", r"\1", found[1:-1], flags=re.DOTALL)
        elif piece["other"]:
            self._margin = 0
            why = "is not closed" if found in _OPENING else "means nothing"
            raise self.refusal(f"{found!r} {why}", at)
        else:
            return " " if found.isspace() else found
        return "_" * len(found)

    def node(self, node: ast.expr, depth: int) -> _Part:
        if depth > DEEPEST:
            raise self.refusal(
                f"nested too deep: keep to {DEEPEST} levels", node.col_offset
            )
        match node:
            case ast.BoolOp(op=op, values=values):
                parts = [self.node(one, depth + 1) for one in values]
                join = any if isinstance(op, ast.Or) else all
                return lambda lookup: join(one(lookup) for one in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.node(operand, depth + 1)
                return lambda lookup: not inner(lookup)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if (
                type(op) in _COMPARE
            ):
                one = self.node(left, depth + 1)
                other = self.node(right, depth + 1)
                return lambda lookup: self.compare(one(lookup), type(op), other(lookup))
            case ast.Compare(comparators=[_, third, *_]):
                raise self.refusal("join two comparisons by 'and'", third.col_offset)
            case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
                measured = self.node(argument, depth + 1)
                return lambda lookup: self.length(measured(lookup))
            case ast.List(elts=elements):
                items = [self.node(one, depth + 1) for one in elements]
                return lambda lookup: [one(lookup) for one in items]
        leaf = self.leaf(node)
        return (
            (lambda lookup: value_at(leaf, lookup))
            if isinstance(leaf, Reference)
            else (lambda _: leaf)
        )

    def leaf(self, node: ast.expr) -> Reference | JsonValue:
        match node:
            case ast.Name(col_offset=at) if at + self._margin in self.leaves:
                return self.leaves[at + self._margin]
            case ast.Name(id=name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case ast.Constant(value=int() | float() as number) if not isinstance(
                number, bool
            ):
                return number
            case ast.UnaryOp(
                op=ast.USub(), operand=ast.Constant(value=int() | float() as number)
            ):
                return -number
        written = self._text[node.col_offset + self._margin :][:40]
        raise self.refusal(f"{written!r} begins with no value", node.col_offset)

    def compare(self, one: JsonValue, sign: type[ast.cmpop], other: JsonValue) -> bool:
        word, holds = _COMPARE[sign]
        left = kind_of(one)
        right = kind_of(other)
        if sign in (ast.In, ast.NotIn):
            fits = right == "a list" or (
                right in ("a text", "an object") and left == "a text"
            )
        elif sign in (ast.Eq, ast.NotEq):
            fits = left == right or "null" in (left, right)
        else:
            fits = left == right and left in ("a number", "a text")
        if not fits:
            raise InvalidInput(
                f"{self._text!r} cannot tell {left} {word} {right}; make both the same kind"
            )
        return holds(one, other)

    def length(self, value: JsonValue) -> int:
        if not isinstance(value, str | list | dict):
            raise InvalidInput(
                f"{self._text!r} asks for len() of {kind_of(value)}; only texts, lists and objects"
            )
        return len(value)

    def refusal(self, why: str, at: int) -> InvalidInput:
        return InvalidInput(
            f"{self._text!r}: {why} at character {at + self._margin + 1}; {_CURE}"
        )


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    # In Python, and not in JSON, true is 1.
    return kind_of(one) == kind_of(other) and one == other


def _is_in(one: Any, other: Any) -> bool:
    return (
        any(_is_same(one, item) for item in other)
        if isinstance(other, list)
        else one in other
    )
