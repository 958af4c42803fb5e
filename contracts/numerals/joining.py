"""Tokens that are one number although spaces stand between them: "50 000", "59 . 2 %", "7 3 / 4 %"."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from contracts.numerals.digit_runs import LONGEST_RUN
from contracts.numerals.token import FRACTIONS, Token
from contracts.numerals.words import SCALES, SHORT_SCALES
from contracts.units import SYMBOLS, unit_named

#: Denominators of the fractions in which prices and rates are quoted.
_QUOTED_IN = frozenset({"2", "3", "4", "5", "8", "16", "32", "64", "100"})


def join_groups(tokens: Iterator[Token]) -> Iterator[Token]:
    """Join "50 000" and "1 234 567.5": one to three digits, then groups of three, one space apart."""
    waiting: list[Token] = []
    for token in tokens:
        if waiting and _continues(waiting[-1], token):
            waiting.append(token)
            continue
        yield from _flush(waiting)
        waiting = [token] if token.kind == "number" else []
        if not waiting:
            yield token
    yield from _flush(waiting)


def _continues(last: Token, token: Token) -> bool:
    return token.kind == "number" and token.start == last.end + 1 and last.text.isdigit()


def _flush(run: list[Token]) -> Iterator[Token]:
    first, groups = run[:1], run[1:]
    whole = [group.text.replace(",", ".").partition(".")[0] for group in groups]
    # "500 600 700" is a list, "500 000" and "5 600 700" are not
    is_list = first and len(first[0].text) == 3 and not any(digits[:1] == "0" for digits in whole)
    fits = (
        groups
        and not is_list
        and len(first[0].text) <= 3
        and first[0].text[0] != "0"
        and all(len(digits) == 3 for digits in whole)
    )
    # "600,000" is a group of its own, "567,89" the end of "1 234 567,89"
    is_grouped = groups and "," in groups[-1].text and len(groups[-1].text) > len("567,89")
    if not fits or len(run) > LONGEST_RUN // 3 or is_grouped or not whole[-1].isdigit():
        yield from run
        return
    written = "".join(token.text for token in run).replace(",", ".")
    yield Token("number", written, run[0].start, run[-1].end, (Decimal(written),))


def join_spaced(tokens: Sequence[Token]) -> list[Token]:
    """Join what tokenised text keeps apart, where a unit or a whole number beside it shows that it is one number."""
    joined: list[Token] = []
    place = 0
    while place < len(tokens):
        first, mark, second = (*tokens[place : place + 3], None, None)[:3]
        after = tokens[place + 3] if place + 3 < len(tokens) else None
        whole = _one(first, mark, second, joined[-1] if joined else None, after)
        joined.append(whole or tokens[place])
        place += 3 if whole else 1
    return joined


def _one(
    first: Token | None, mark: Token | None, second: Token | None, before: Token | None, after: Token | None
) -> Token | None:
    if first is None or mark is None or second is None or mark.text not in {".", "/"}:
        return None
    if not (first.kind == second.kind == "number" and first.text.isdigit() and second.text.isdigit()):
        return None
    if mark.start != first.end + 1 or second.start != mark.end + 1 or len(first.text) + len(second.text) > LONGEST_RUN:
        return None
    if mark.text == "/":
        is_part = second.text in _QUOTED_IN and int(first.text) < int(second.text)
        if not is_part or not (_ends_whole(before) or _is_unit(after)):
            return None
        value = FRACTIONS.divide(Decimal(first.text), Decimal(second.text))
        return Token("fraction", f"{first.text}/{second.text}", first.start, second.end, (value,))
    if len(first.text) > 3 or not (_is_money_sign(before) or _is_unit(after)):
        return None
    value = Decimal(f"{first.text}.{second.text}")
    return Token("number", f"{first.text}.{second.text}", first.start, second.end, (value,))


def _ends_whole(token: Token | None) -> bool:
    return token is not None and token.kind == "number" and token.text.isdigit()


def _is_money_sign(token: Token | None) -> bool:
    return token is not None and token.kind == "symbol" and token.text in SYMBOLS and token.text != "%"


def _is_unit(token: Token | None) -> bool:
    if token is None:
        return False
    if token.kind == "symbol":
        return token.text in SYMBOLS
    text = token.text
    return token.kind == "word" and (text in SCALES or text in SHORT_SCALES or text == "per" or _is_money(text))


def _is_money(text: str) -> bool:
    unit = unit_named(text)
    return unit is not None and (unit.is_currency or unit.code == "%")
