"""Conditions, the `when` of a phase: a small language on entries and inputs, never run as Python.

```
${review:results.violations} and not ${input.dry_run}
len(${analysis:results.files}) > 100 or ${input.depth} in ["deep", "full"]
${fix:results?} == null
```

| part | is |
|---|---|
| value | a reference `${...}`, a number, a text in `"` or `'`, `true`, `false`, `null`, a list `[a, b]`, `len(value)` |
| comparison | `==` `!=` `<` `<=` `>` `>=` between two values of one kind, `in` and `not in` |
| condition | comparisons and values joined by `not`, `and`, `or`, in this order of strength, and parentheses |

A value by itself is true unless it is null, false, 0, an empty text, list or object. `<` and the like take two numbers
or two texts. Anything may be compared with null by `==` and `!=`; other unlike kinds are an error, not false, because
`"10" == 10` is a mistake that would leave a phase out in silence; what can be told without the values is told when the
condition is read. `in` looks for an item of a list, a part of a text or a property of an object. `and` and `or` look at
their right side only when the left has not decided.

Inside quotes, a backslash takes the next character as it is.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, Self

from pydantic import JsonValue

from contracts.errors import InvalidInput
from supervisor.pipelines.declaration.places import Lookup, Reference, called, read_reference, value_at

#: Characters of a condition, and parentheses, lists and `not` inside each other: what is longer belongs into a task.
LONGEST, DEEPEST = 2_000, 32

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<reference>\$\{(?:"[^"]*"|[^}"])*\}) |
    (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])) |
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*') |
    (?P<word>[A-Za-z_]\w*) |
    (?P<mark>==|!=|<=|>=|[<>()\[\],])
    )""",
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_ORDERED: dict[str, Callable[[float | str, float | str], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: What a comparison is, and what has a length, as `called` says it.
_FLAG, _WITH_LENGTH = called(True), frozenset((called(""), called([]), called({})))
_CURE = "write such as: ${review:results.score} >= 3 and not ${input.quick}"


class _Node(NamedTuple):
    """What computes a part of a condition, and what that surely is, as `called` says it; None where nobody knows."""

    value: Callable[[Lookup], JsonValue]
    kind: str | None = None


@dataclass(frozen=True)
class Condition:
    """A condition as it was read; `references` are all that it mentions, in the order of reading."""

    text: str
    references: tuple[Reference, ...]
    _root: Callable[[Lookup], JsonValue]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the condition that *text* says.

        Raises:
            InvalidInput: it says none, or too much; the message names the character and what could stand there.
        """
        if len(text) > LONGEST:
            raise InvalidInput(f"the condition has {len(text)} characters; keep to {LONGEST}")
        reading = _Reading(text)
        root = reading.either(0)
        reading.demand_end()
        return cls(text, tuple(reading.references), root.value)

    def holds(self, lookup: Lookup) -> bool:
        """Return whether it is true of the values that *lookup* gives.

        Raises:
            InvalidInput: unlike values are compared, or a reference leads nowhere; or whatever *lookup* raises.
        """
        return bool(self._root(lookup))


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Reading:
    """A reader of one condition: a method for every strength of joining, each returns what computes its part."""

    def __init__(self, text: str) -> None:
        self.references: list[Reference] = []
        self._text = text
        self._tokens = self._read_tokens()
        self._next = 0

    def either(self, depth: int) -> _Node:
        parts = [self._both(depth)]
        while self._take("or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else _Node(lambda lookup: any(one.value(lookup) for one in parts), _FLAG)

    def demand_end(self) -> None:
        if self._token.kind != "end":
            self._refuse("expected 'and', 'or' or the end")

    def _both(self, depth: int) -> _Node:
        parts = [self._negation(depth)]
        while self._take("and"):
            parts.append(self._negation(depth))
        return parts[0] if len(parts) == 1 else _Node(lambda lookup: all(one.value(lookup) for one in parts), _FLAG)

    def _negation(self, depth: int) -> _Node:
        if self._take("not"):
            inner = self._negation(self._deeper(depth))
            return _Node(lambda lookup: not inner.value(lookup), _FLAG)
        return self._comparison(depth)

    def _comparison(self, depth: int) -> _Node:
        left = self._value(depth)
        sign = self._sign()
        if sign is None:
            return left
        right = self._value(depth)
        if self._sign() is not None:
            self._refuse("three values are compared at once: join two comparisons by 'and'", back=1)
        return _compared(left, sign, right, self._text)

    def _sign(self) -> str | None:
        for sign in ("==", "!=", *_ORDERED, "in"):
            if self._take(sign):
                return sign
        if self._token.text == "not" and self._tokens[self._next + 1].text == "in":
            self._next += 2
            return "not in"
        return None

    def _value(self, depth: int) -> _Node:
        token = self._token
        self._next += 1
        if token.kind == "reference":
            reference = read_reference(token.text[2:-1])
            self.references.append(reference)
            return _Node(lambda lookup: value_at(reference, lookup))
        if token.kind in ("number", "text") or token.text in _CONSTANTS:
            constant = _constant(token)
            return _Node(lambda _: constant, called(constant))
        if token.text == "[":
            return self._list(self._deeper(depth))
        if token.text == "len":
            self._demand("(")
            inner = self._value(self._deeper(depth))
            self._demand(")")
            return _length(inner, self._text)
        if token.text == "(":
            inner = self.either(self._deeper(depth))
            self._demand(")")
            return inner
        self._next -= 1
        raise self._refusal("expected a value")

    def _list(self, depth: int) -> _Node:
        items: list[_Node] = []
        while not self._take("]"):
            if items:
                self._demand(",")
            items.append(self._value(depth))
        return _Node(lambda lookup: [item.value(lookup) for item in items], called([]))

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, text: str) -> bool:
        taken = self._token.kind in ("word", "mark") and self._token.text == text
        self._next += taken
        return taken

    def _demand(self, text: str) -> None:
        if not self._take(text):
            self._refuse(f"expected {text!r}")

    def _deeper(self, depth: int) -> int:
        if depth >= DEEPEST:
            self._refuse(f"nested too deep: keep to {DEEPEST} levels")
        return depth + 1

    def _refuse(self, why: str, back: int = 0) -> NoReturn:
        raise self._refusal(why, back)

    def _refusal(self, why: str, back: int = 0) -> InvalidInput:
        token = self._tokens[self._next - back]
        found = repr(token.text) if token.kind != "end" else "the end"
        return InvalidInput(f"{self._text!r}: {why} at character {token.at + 1}, found {found}; {_CURE}")

    def _read_tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        end = 0
        while self._text[end:].strip():
            found = _TOKEN.match(self._text, end)
            if found is None or found.lastgroup is None:
                at = len(self._text) - len(self._text[end:].lstrip())
                what = "is not closed" if self._text[at] in "$\"'" else "means nothing"
                raise InvalidInput(f"{self._text!r}: {self._text[at]!r} at character {at + 1} {what}; {_CURE}")
            tokens.append(_Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)))
            end = found.end()
        return [*tokens, _Token("end", "", len(self._text))]


def _constant(token: _Token) -> JsonValue:
    if token.kind == "text" and "${" in token.text:
        raise InvalidInput(f"the reference in {token.text} is but a text; write it without the quotes")
    if token.kind == "text":
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
    if token.kind == "number":
        return float(token.text) if set(token.text) & set(".eE") else int(token.text)
    return _CONSTANTS[token.text]


def _length(inner: _Node, text: str) -> _Node:
    def length(lookup: Lookup) -> JsonValue:
        value = inner.value(lookup)
        if isinstance(value, str | list | dict):
            return len(value)
        raise _without_length(text, called(value))

    if inner.kind is not None and inner.kind not in _WITH_LENGTH:
        raise _without_length(text, inner.kind)
    return _Node(length, called(0))


def _without_length(text: str, kind: str) -> InvalidInput:
    return InvalidInput(f"{text!r} asks for len() of {kind}; only texts, lists and objects")


def _compared(left: _Node, sign: str, right: _Node, text: str) -> _Node:
    def compare(lookup: Lookup) -> JsonValue:
        one, other = left.value(lookup), right.value(lookup)
        _demand_alike(called(one), sign, called(other), text)
        if sign in _ORDERED:
            return _ORDERED[sign](one, other)  # type: ignore[arg-type] # two numbers or two texts, as just seen
        if sign in ("in", "not in"):
            return _is_in(one, other) == (sign == "in")
        return _same(one, other) == (sign == "==")

    _demand_alike(left.kind, sign, right.kind, text)
    return _Node(compare, _FLAG)


def _demand_alike(one: str | None, sign: str, other: str | None, text: str) -> None:
    """Refuse to compare what is *one* with what is *other*, None for what is not known yet.

    Raises:
        InvalidInput: whatever the values are, they cannot be compared.
    """
    if sign in ("in", "not in"):
        holds_all = other in (None, "a list")
        fits = holds_all or (other in ("a text", "an object") and one in (None, "a text"))
    elif sign in _ORDERED:
        fits = {one, other} - {None} in (set(), {"a number"}, {"a text"})
    else:
        fits = len({one, other} - {None, "null"}) < 2
    if not fits:
        raise _unlike(text, one or "anything", sign, other or "anything")


def _is_in(one: JsonValue, other: JsonValue) -> bool:
    if isinstance(other, list):
        return any(_same(one, item) for item in other)
    return one in other  # type: ignore[operator] # a text, in a text or an object


def _same(one: JsonValue, other: JsonValue) -> bool:
    # In Python, and not in JSON, true is 1.
    return called(one) == called(other) and one == other


def _unlike(text: str, one: str, sign: str, other: str) -> InvalidInput:
    return InvalidInput(f"{text!r} cannot tell {one} {sign} {other}; make both the same kind")
