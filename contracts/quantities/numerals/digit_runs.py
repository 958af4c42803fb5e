"""What a run of digits with separators means: grouping, decimals, a list, or two things at once."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

DecimalMark = Literal[".", ","]

#: Digits kept exactly; a longer run is an identifier or a mistake, never a quantity.
LONGEST_RUN = 60

_WESTERN_COMMA = re.compile(r"[1-9]\d{0,2}(?:,\d{3})++")
_INDIAN_COMMA = re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}")
_WESTERN_DOT = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})++")
_QUOTED = re.compile(r"\d{1,3}(?:['_]\d{3})++(?:[.,]\d++)?")
_LOST_DIGIT = re.compile(r"[1-9]\d?(?:,\d{2})++")


class RunNumber(NamedTuple):
    """One number of a run: its place inside the run and its readings (two when it is ambiguous)."""

    start: int
    end: int
    readings: tuple[Decimal, ...]


def read_run(
    run: str, decimal_mark: DecimalMark | None = None, *, has_unit: bool = False
) -> tuple[RunNumber, ...]:
    """Read digits joined by ``.``, ``,``, ``'`` or ``_``; empty when the run is no quantity (a version, an address).

    Args:
        run: ASCII digits and separators, a digit last.
        decimal_mark: the mark that the writer is known to use; None leaves "1.500" with two readings. It only decides
            between readings: "1.234.567" can be but one number, whatever was declared.
        has_unit: a currency or another unit stands beside the run, so "12,50" is one number rather than a list of two.
    """
    if sum(map(str.isdigit, run)) > LONGEST_RUN:
        return ()
    readings = _one_number(run, decimal_mark, has_unit=has_unit)
    if not readings and decimal_mark is not None:
        undeclared = _one_number(run, None, has_unit=has_unit)
        readings = undeclared if len(undeclared) == 1 else ()
    if readings:
        return (RunNumber(0, len(run), readings),)
    if "," not in run or "'" in run or "_" in run:
        return ()
    return tuple(_read_list(run, decimal_mark))


@lru_cache(2048)
def pieces_of(
    run: str, decimal_mark: DecimalMark | None, has_unit: bool
) -> tuple[RunNumber, ...]:
    """Return what `read_run` does, from memory where the same digits were read before; an exponent may end them."""
    digits, mark, power = run.lower().partition("e")
    pieces = read_run(digits, decimal_mark, has_unit=has_unit)
    if not mark or not pieces:
        return pieces
    exponent = int(power) if len(power) <= 5 else LONGEST_RUN + 1
    # "1.500e3" is scientific, hence a decimal point
    last = pieces[-1]
    raised = RunNumber(last.start, len(run), (last.readings[0].scaleb(exponent),))
    return (*pieces[:-1], raised) if abs(exponent) <= LONGEST_RUN else ()


def _read_list(run: str, decimal_mark: DecimalMark | None) -> Iterator[RunNumber]:
    parts = run.split(",")
    if any(len(part) > 1 and part[0] == "0" and part[1] != "." for part in parts[1:]):
        yield RunNumber(0, len(run), _broken_grouping(run))
        return
    place = 0
    for part in parts:
        if readings := _one_number(part, decimal_mark, has_unit=False):
            yield RunNumber(place, place + len(part), readings)
        place += len(part) + 1


def _one_number(
    run: str, mark: DecimalMark | None, *, has_unit: bool
) -> tuple[Decimal, ...]:
    if "'" in run or "_" in run:
        return (
            (_decimal(run, "'_", run.rstrip("0123456789")[-1]),)
            if _QUOTED.fullmatch(run)
            else ()
        )
    dots = run.count(".")
    commas = run.count(",")
    if dots and commas:
        return _two_marks(run, mark)
    if dots:
        return _with_dots(run, dots, mark)
    if commas:
        return _with_commas(run, commas, mark, has_unit=has_unit)
    return (Decimal(run),)


def _with_dots(run: str, dots: int, mark: DecimalMark | None) -> tuple[Decimal, ...]:
    groups = _WESTERN_DOT.fullmatch(run) is not None
    if dots > 1:
        return (_decimal(run, "."),) if groups and mark != "." else ()
    if groups and mark is None:
        return (Decimal(run), _decimal(run, "."))
    return (_decimal(run, "."),) if groups and mark == "," else (Decimal(run),)


def _with_commas(
    run: str, commas: int, mark: DecimalMark | None, *, has_unit: bool
) -> tuple[Decimal, ...]:
    if mark == ",":
        return (_decimal(run, "", ","),) if commas == 1 else ()
    if _WESTERN_COMMA.fullmatch(run) or _INDIAN_COMMA.fullmatch(run):
        return (_decimal(run, ","),)
    tail = run.rpartition(",")[2]
    # "5,00", "0,5" and a price "12,50" can be no list and no grouping
    if (
        mark is None
        and commas == 1
        and (tail[0] == "0" or run[0] == "0" or (has_unit and len(tail) <= 2))
    ):
        return (_decimal(run, "", ","),)
    return ()


def _two_marks(run: str, mark: DecimalMark | None) -> tuple[Decimal, ...]:
    decimal = "." if run.rfind(".") > run.rfind(",") else ","
    head, _, tail = run.rpartition(decimal)
    if mark not in (None, decimal) or decimal in head or not tail:
        return ()
    patterns = (_WESTERN_COMMA, _INDIAN_COMMA) if decimal == "." else (_WESTERN_DOT,)
    if any(pattern.fullmatch(head) for pattern in patterns):
        return (_decimal(run, "," if decimal == "." else ".", decimal),)
    return ()


def _broken_grouping(run: str) -> tuple[Decimal, ...]:
    """Readings of "5,00,00" (a lakh that lost a digit, or 50,000) and of "1,000,00" (100,000 or a comma decimal)."""
    whole = _decimal(run.replace(".", ""), ",")
    if _LOST_DIGIT.fullmatch(run):
        return (whole, whole * 10)
    head, _, tail = run.replace(".", "").rpartition(",")
    return (_decimal(f"{head}.{tail}", ","), whole)


def _decimal(run: str, grouping: str, mark: str = ".") -> Decimal:
    for separator in grouping:
        run = run.replace(separator, "")
    return Decimal(run.replace(",", ".") if mark == "," else run)
