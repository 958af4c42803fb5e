"""Tokens that are one number although spaces stand between them: "50 000", "59 . 2 %", "7 3 / 4 %"."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from quantities.numerals.digit_runs import LONGEST_RUN
from quantities.numerals.token import FRACTIONS, Token
from quantities.numerals.words import SCALES, SHORT_SCALES
from quantities.units import LONGEST_NAME, SYMBOLS, currency_code, measure_after, unit_named
from quantities.units.currencies import PREFIX_NAMES

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


def join_spaced(tokens: Sequence[Token], text: str) -> list[Token]:
    """Join what tokenised *text* keeps apart, where a unit or a whole number beside it shows that it is one number."""
    joined: list[Token] = []
    place = 0
    while place < len(tokens):
        whole, after = _one(tokens, place, joined[-1] if joined else None, text) or (tokens[place], place + 1)
        joined.append(whole)
        place = after
    return joined


def _one(tokens: Sequence[Token], place: int, before: Token | None, text: str) -> tuple[Token, int] | None:
    """Return the number or fraction that opens at *place* and the place after it."""
    first = tokens[place]
    if first.kind != "number" or not first.text.isdigit() or len(first.text) > LONGEST_RUN:
        return None
    end = place + 1
    while _follows(tokens, end, ",") and len(tokens[end + 1].text) == len("000") and end - place < LONGEST_RUN:
        end += 2
    if _follows(tokens, end, "."):
        end += 2
    if end == place + 1:
        return _fraction(tokens, place, before, text)
    is_grouped = tokens[place + 1].text == ","
    if len(first.text) > len("999") or (is_grouped and first.text[0] == "0"):
        return None
    if not (_opens_money(before) or _is_unit(tokens, end, text)):
        return None
    written = "".join(token.text for token in tokens[place:end]).replace(",", "")
    if len(written) > LONGEST_RUN:
        return None
    return Token("number", written, first.start, tokens[end - 1].end, (Decimal(written),)), end


def _fraction(tokens: Sequence[Token], place: int, before: Token | None, text: str) -> tuple[Token, int] | None:
    if not _follows(tokens, place + 1, "/"):
        return None
    first, second = tokens[place], tokens[place + 2]
    is_part = second.text in _QUOTED_IN and int(first.text) < int(second.text)
    is_whole = before is not None and before.kind == "number" and before.text.isdigit()
    if not is_part or not (is_whole or _is_unit(tokens, place + 3, text)):
        return None
    value = FRACTIONS.divide(Decimal(first.text), Decimal(second.text))
    return Token("fraction", f"{first.text}/{second.text}", first.start, second.end, (value,)), place + 3


def _follows(tokens: Sequence[Token], place: int, mark: str) -> bool:
    """True when *mark* stands at *place* with a space on either side and plain digits after it."""
    if place + 1 >= len(tokens) or tokens[place].text != mark:
        return False
    second = tokens[place + 1]
    is_spaced = tokens[place].start == tokens[place - 1].end + 1 and second.start == tokens[place].end + 1
    return is_spaced and second.kind == "number" and second.text.isdigit() and len(second.text) <= LONGEST_RUN


def _opens_money(token: Token | None) -> bool:
    if token is None:
        return False
    if token.kind == "symbol":
        return token.text in SYMBOLS and token.text != "%"
    return token.kind == "word" and (token.text in PREFIX_NAMES or currency_code(token.text) is not None)


def _is_unit(tokens: Sequence[Token], place: int, text: str) -> bool:
    """True when a scale, money, a percentage or a measure stands at *place*, behind a hyphen or not."""
    if measure_after(text, tokens[place - 1].end):
        return True
    place += place + 1 < len(tokens) and tokens[place].text == "-"
    if place >= len(tokens):
        return False
    kind, name = tokens[place][:2]
    if kind == "symbol":
        return name in SYMBOLS
    if kind != "word":
        return False
    if name == "of" and place + 2 < len(tokens) and tokens[place + 1].text in {"a", "an", "one"}:
        return _is_unit(tokens, place + 2, text)
    if name in SCALES or name in SHORT_SCALES or name == "per":
        return True
    words = [token.text for token in tokens[place : place + LONGEST_NAME]]
    return any(_is_money(" ".join(words[:count])) for count in range(1, len(words) + 1))


def _is_money(name: str) -> bool:
    unit = unit_named(name)
    return unit is not None and (unit.is_currency or unit.code == "%")
