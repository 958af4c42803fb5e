"""Measures by name: what each is worth in the base unit of its dimension, powers and rates among them."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal

from tasklore.contracts.quantities.units.measures import (
    BASES,
    BINARY,
    PREFIXES,
    SHORT_TIMES,
    Base,
)

#: Holds every product of two exact factors.
_EXACT = Context(prec=120)
_ONE = Decimal(1)
_ZERO = Decimal(0)
_POWERS = {2: "area", 3: "volume"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A unit that is no money: *code* is how it is kept and *dimension* what it measures.

    A value is worth ``(value + shift) * scale / per`` base units; *scale* is None when several sizes are in use, as of
    a "ton". A *counted* measure is a thing that people also count (cups, turns, barrels).
    """

    code: str
    dimension: str
    scale: Decimal | None
    per: Decimal = _ONE
    shift: Decimal = _ZERO
    is_counted: bool = False

    def power(self, exponent: int) -> "Measure | None":
        """Return the square (2) or cube (3) of a length, the square of a time; None for everything else."""
        if self.dimension == "time" and exponent == 2:
            dimension = "time2"
        elif self.dimension == "length":
            dimension = _POWERS[exponent]
        else:
            return None
        scale = None if self.scale is None else _EXACT.power(self.scale, exponent)
        return Measure(
            code=f"{SHORT_TIMES.get(self.code, self.code)}{exponent}",
            dimension=dimension,
            scale=scale,
        )

    def over(self, other: "Measure") -> "Measure":
        """Return the rate of this measure in each *other*: "km/h"."""
        code = f"{self.code}/{SHORT_TIMES.get(other.code, other.code)}"
        dimension = (
            "speed" if (self.dimension, other.dimension) == ("length", "time") else ""
        )
        dimension = dimension or f"{self.dimension}/{other.dimension}"
        if self.scale is None or other.scale is None:
            return Measure(code=code, dimension=dimension, scale=None)
        scale = _EXACT.multiply(self.scale, other.per)
        per = _EXACT.multiply(self.per, other.scale)
        return Measure(code=code, dimension=dimension, scale=scale, per=per)


def named_exactly(written: str) -> Measure | None:
    """Return the measure that is written just so: a symbol in its own case ("km", "mW", "MB"), or its code."""
    return _SYMBOLS.get(written)


def named(words: str) -> Measure | None:
    """Return the measure called *words*, one space between them: its symbol, or its name in any case."""
    return _SYMBOLS.get(words) or _NAMES.get(words.lower()) or _LOOSE.get(words.lower())


def _rows() -> Iterator[tuple[Measure, Iterator[str], Iterator[str]]]:
    """Yield each measure with its names and its symbols, those with prefixes after those without."""
    for base in BASES:
        measure = _measure(base, base.code, _ONE)
        yield measure, _names(base, ""), iter(_split_names(base.symbols))
    for base in BASES:
        for sign in base.prefixes.split():
            words, power = PREFIXES[sign]
            measure = _measure(
                base, f"{sign}{base.stem or base.code}", _ONE.scaleb(power)
            )
            names = (name for word in words.split() for name in _names(base, word))
            is_short = sign in base.short.split()
            yield measure, names, _sign_names(sign, base) if is_short else iter(())
    for place, (sign, word) in enumerate(BINARY.items(), start=1):
        for code, name, bits in (("B", "byte", 8), ("bit", "bit", 1)):
            measure = Measure(
                code=f"{sign}{code}",
                dimension="information",
                scale=Decimal(bits * 1024**place),
            )
            yield (
                measure,
                iter((f"{word}{name}", f"{word}{name}s")),
                iter((f"{sign}{code}",)),
            )


def _measure(base: Base, code: str, times: Decimal) -> Measure:
    scale = _EXACT.multiply(Decimal(base.scale), times) if base.scale else None
    return Measure(
        code=code,
        dimension=base.dimension,
        scale=scale,
        per=Decimal(base.per),
        shift=Decimal(base.shift),
        is_counted=base.counted,
    )


def _names(base: Base, prefix: str) -> Iterator[str]:
    for name in _split_names(base.names):
        if prefix and len(name) < 3:
            continue
        yield f"{prefix}{name}"
        if not base.plurals:
            yield f"{prefix}{name}s"
    for plural in _split_names(base.plurals):
        yield f"{prefix}{plural}"


def _sign_names(sign: str, base: Base) -> Iterator[str]:
    symbols = (
        written
        for written in _split_names(base.symbols)
        if written.isascii() and written != "L"
    )
    for symbol in {base.stem or base.code, *symbols}:
        yield f"{sign}{symbol}"
        if sign == "µ":
            yield from (f"u{symbol}", f"\u03bc{symbol}")


def _split_names(names: str) -> list[str]:
    return [name.replace("_", " ") for name in names.split()]


_SYMBOLS: dict[str, Measure] = {}
_NAMES: dict[str, Measure] = {}
_CODES: dict[str, Measure] = {}
#: Symbols of two letters and more in any case ("KM", "Kg", "KWH"), where only one measure has them.
_LOOSE: dict[str, Measure] = {}


def _fill() -> None:
    rivals: dict[str, set[str]] = {}
    for measure, names, symbols in _rows():
        known = _CODES.setdefault(measure.code, measure)
        for name in names:
            _NAMES.setdefault(name.lower(), known)
        for symbol in symbols:
            _SYMBOLS.setdefault(symbol, known)
            if len(symbol) > 2 or symbol.lower() in _SAFE_IN_CAPITALS:
                rivals.setdefault(symbol.lower(), set()).add(measure.code)
            if _takes_plural(symbol):
                _SYMBOLS.setdefault(f"{symbol}s", known)
    for symbol, codes in rivals.items():
        if len(codes) == 1:
            _LOOSE[symbol] = _CODES[next(iter(codes))]


def _takes_plural(symbol: str) -> bool:
    """True for "kg" and "km" with their "kgs" and "kms"; not for what is a word with an "s"."""
    is_plain = len(symbol) > 1 and symbol.isalpha() and symbol.islower()
    return is_plain and symbol[0] not in "u\u03bcµ" and symbol not in _NO_PLURAL


#: Short symbols that nothing else is called by, in whatever case.
_SAFE_IN_CAPITALS = frozenset(
    {
        "km",
        "cm",
        "kg",
        "mg",
        "ml",
        "cl",
        "ft",
        "oz",
        "hz",
        "gb",
        "tb",
        "kb",
        "yd",
        "kw",
        "px",
    }
)
#: With an "s" these would be another measure or a word.
_NO_PLURAL = frozenset(
    {
        "ms",
        "us",
        "ns",
        "nm",
        "pm",
        "kts",
        "bar",
        "cal",
        "rad",
        "ha",
        "bu",
        "kt",
        "au",
        "mi",
        "ly",
    }
)
_fill()


def of_code(code: str) -> Measure | None:
    """Return the measure kept as *code*, powers and rates left out."""
    return _CODES.get(code)


def base_code(dimension: str) -> str:
    """Return the code of the base unit of *dimension* ("m", "m/s"); a dimension that is a code itself stays."""
    return _BASE_CODES.get(dimension) or "/".join(
        _BASE_CODES.get(part, part) for part in dimension.split("/")
    )


_BASE_CODES = {measure.dimension: code for code, measure in reversed(_CODES.items()) if measure.scale == 1} | {
    "area": "m2", "volume": "m3", "speed": "m/s", "temperature": "K", "time": "s", "time2": "s2",
}  # fmt: skip
